"""Everything that the drivers in this machine say of its GPUs, and how that compares with the card database."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Protocol

from kmrun.core.card import Card
from kmrun.core.peaks import BANDWIDTH, Peaks, peaks
from kmrun.device.bounded import NoAnswer, bounded, bounded_each
from kmrun.device.cuda_driver import CudaDevice, CudaDriver
from kmrun.device.driver_library import NoDevice, NoDriver
from kmrun.device.local_card import card_of
from kmrun.device.rocm import HipDevice, HipRuntime
from kmrun.device.sensor_blocks import Blocks, nvml_blocks, smi_blocks
from kmrun.errors import EnvironmentLacks

DRIVER_S = 20.0
"""How long a driver may take to start: it may have to load its kernel module."""
DEVICE_S = 10.0
"""How long it may take to tell of a device, or of several at once."""
_LOST = "a GPU may have fallen off its bus"
_SAME = 0.005


@dataclass(frozen=True, slots=True)
class Difference:
    """A figure on which the driver and the database's card differ, both in `unit`."""

    what: str
    driver: float
    card: float
    unit: str


@dataclass(frozen=True, slots=True)
class GpuFacts:
    """One GPU. `peaks` are at the driver's highest clocks, those of `card` at the published ones.

    `index` is the driver's; AMD's are counted on from NVIDIA's. `architecture` is the compute capability, or AMD's
    gfx name. `sensors` is the block of NVML, or of ROCm or AMD SMI, named by `sensors_source`; `sensors_note` says
    why there is none. `notes` say which figures are missing, and why.
    """

    vendor: str
    index: int
    name: str
    memory_bytes: int
    architecture: str | None
    uuid: str | None
    pci_address: str | None
    is_mig: bool
    attributes: Mapping[str, int]
    peaks: Peaks
    card: Card | None
    candidates: tuple[str, ...]
    differences: tuple[Difference, ...]
    sensors: Mapping[str, Any] | None = None
    sensors_source: str | None = None
    sensors_note: str = ""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Gpus:
    """The GPUs of a machine. `versions`: of the drivers. `failures`: what could not be asked, in sentences."""

    devices: tuple[GpuFacts, ...] = ()
    versions: Mapping[str, str] = field(default_factory=dict)
    failures: tuple[EnvironmentLacks, ...] = ()


class Matching(Protocol):
    """What gives the database's card of a device; `source.catalogue.Catalogue` does."""

    def match_driver(
        self,
        name: str,
        sm_count: int | None = None,
        memory_bytes: int | None = None,
        architecture: str | None = None,
    ) -> Any:
        """Return a match with `card` and `candidates`."""


def gpus(catalogue: Matching, only: int | None = None) -> Gpus:
    """Ask every driver. Failures are kept, not raised: what one device hides must not hide the others.

    Args:
        catalogue: the card database.
        only: the index of the one device that is wanted, counted over all vendors, NVIDIA's first.

    Raises:
        EnvironmentLacks: there are GPUs, but not that one.
    """
    nvidia = _vendor("the NVIDIA driver", "cuda", CudaDriver)
    amd = _vendor("the HIP runtime", "hip", HipRuntime)
    vendors = (nvidia, amd)
    total = nvidia.count + amd.count
    if only is not None and total and not 0 <= only < total:
        raise EnvironmentLacks(f"no GPU {only} in this machine", f"GPUs here: 0 to {total - 1}")
    cuda, lost_cuda = _devices(nvidia, range(nvidia.count) if only is None else [only])
    hip, lost_hip = _devices(amd, range(amd.count) if only is None else [only - nvidia.count])
    failures = [vendor.failure for vendor in vendors if vendor.failure is not None and vendor.there]
    failures += [*lost_cuda, *lost_hip]
    if not total and not failures:
        failures = [_none(nvidia, amd)]
    nvml, smi = nvml_blocks(cuda), smi_blocks(hip)
    devices = [_with_sensors(_cuda_facts(device, catalogue), device.index, nvml) for device in cuda]
    for device in hip:
        facts = replace(_hip_facts(device, catalogue), index=device.index + nvidia.count)
        devices.append(_with_sensors(facts, device.index, smi))
    versions = {vendor.kind: vendor.version for vendor in vendors if vendor.version is not None}
    if nvml.driver:
        versions["nvidia_driver"] = nvml.driver
    return Gpus(tuple(devices), versions, tuple(failures))


class _Driver(Protocol):
    def version(self) -> str | None: ...

    def count(self) -> int: ...

    def device(self, index: int) -> Any: ...


@dataclass(frozen=True, slots=True)
class _Vendor:
    """A vendor's driver. `failure`: why it does not serve; `there`: that failure is of a driver that should."""

    who: str
    kind: str
    driver: _Driver | None = None
    version: str | None = None
    count: int = 0
    failure: EnvironmentLacks | None = None

    @property
    def there(self) -> bool:
        return not isinstance(self.failure, NoDriver | NoDevice)


def _vendor(who: str, kind: str, load: Callable[[], _Driver]) -> _Vendor:
    def ask() -> _Vendor:
        driver = load()
        return _Vendor(who, kind, driver, driver.version(), driver.count())

    try:
        return bounded(who, DRIVER_S, ask)
    except NoAnswer as silent:
        return _Vendor(who, kind, failure=EnvironmentLacks(str(silent), _LOST))
    except EnvironmentLacks as error:
        return _Vendor(who, kind, failure=error)


def _devices(vendor: _Vendor, wanted: Collection[int]) -> tuple[list[Any], list[EnvironmentLacks]]:
    """Return those devices of a vendor that answer, and of the others why they do not."""
    driver = vendor.driver
    if driver is None:
        return [], []
    calls = {index: partial(driver.device, index) for index in wanted if 0 <= index < vendor.count}
    found, lost = [], []
    for index, answer in bounded_each(vendor.who, DEVICE_S, calls, EnvironmentLacks).items():
        if isinstance(answer, EnvironmentLacks):
            lost.append(EnvironmentLacks(f"{vendor.kind} device {index}: {answer.sentence}", answer.hint))
        elif isinstance(answer, NoAnswer):
            lost.append(EnvironmentLacks(f"{vendor.kind} device {index}: {answer}", _LOST))
        else:
            found.append(answer)
    return found, lost


def _none(nvidia: _Vendor, amd: _Vendor) -> EnvironmentLacks:
    """Return what to say where no driver fails, and none has a device."""
    empty = [vendor for vendor in (nvidia, amd) if not isinstance(vendor.failure, NoDriver)]
    if not empty:
        sentence = "there is no GPU driver in this machine: neither NVIDIA's nor AMD's HIP runtime answers"
        return EnvironmentLacks(sentence, nvidia.failure.hint if nvidia.failure else "")
    why = [vendor.failure.sentence if vendor.failure else f"{vendor.who} shows no device" for vendor in empty]
    hints = [vendor.failure.hint for vendor in empty if vendor.failure]
    hint = hints[0] if hints else "a container may hide it, or a variable such as CUDA_VISIBLE_DEVICES"
    return EnvironmentLacks(f"there is no GPU here: {'; '.join(why)}", hint)


def _cuda_facts(device: CudaDevice, catalogue: Matching) -> GpuFacts:
    match = catalogue.match_driver(
        device.name, device.sm_count, device.memory_bytes, device.compute_capability
    )
    card: Card | None = match.card
    own = card_of(device)
    if card is not None:
        # The driver does not say which segment a board belongs to; the matched card does.
        own = replace(own, vector_rates=card.vector_rates, matmul_rates=card.matmul_rates)
    return GpuFacts(
        vendor="nvidia",
        index=device.index,
        name=device.name,
        memory_bytes=device.memory_bytes,
        architecture=device.compute_capability,
        uuid=device.uuid,
        pci_address=device.pci_address,
        is_mig=device.is_mig,
        attributes=device.attributes,
        # Of a slice the driver shows the whole card's bus and clocks: they are no roof of the slice.
        peaks=Peaks({}, {}) if device.is_mig else peaks(own),
        card=card,
        candidates=() if card else tuple(match.candidates),
        differences=_differences(own, card) if card else (),
        notes=(*device.notes, *_underived(device, own)),
    )


def _underived(device: CudaDevice, own: Card) -> tuple[str, ...]:
    """Return why no compute peak is derived of a device, where the driver leaves out what it would follow from."""
    needed = (
        ("compute capability", device.compute_capability),
        ("number of SMs", device.sm_count),
        ("highest clock", device.max_clock_hz),
    )
    lacking = [what for what, value in needed if value is None]
    if device.is_mig or not lacking or set(peaks(own).values) - {BANDWIDTH}:
        return ()
    return (f"no compute peak is derived: the driver does not say the {' and the '.join(lacking)}",)


def _hip_facts(device: HipDevice, catalogue: Matching) -> GpuFacts:
    match = catalogue.match_driver(device.name, device.compute_units, device.memory_bytes, device.gfx)
    card: Card | None = match.card
    own = Card(
        id=f"device-{device.index}",
        name=device.name,
        vendor="amd",
        architecture=card.architecture if card else "unknown",
        family=card.family if card else "unknown",
        unit="CU",
        compute_capability=device.gfx,
        # RDNA's units are counted in pairs by HIP; the card's own count stands where it matched.
        sm_count=card.sm_count if card else device.compute_units,
        vector_clock_hz=device.max_clock_hz,
        matmul_clock_hz=device.max_clock_hz,
        memory_bytes=device.memory_bytes,
        bus_bits=device.attributes.get("memory_bus_width"),
        vector_rates=card.vector_rates if card else {},
        matmul_rates=card.matmul_rates if card else {},
    )
    # HIP gives a memory clock, but not how many transfers it makes a clock: no bandwidth follows from it.
    return GpuFacts(
        vendor="amd",
        index=device.index,
        name=device.name,
        memory_bytes=device.memory_bytes,
        architecture=device.gfx,
        uuid=None,
        pci_address=device.pci_address,
        is_mig=False,
        attributes=device.attributes,
        peaks=peaks(own),
        card=card,
        candidates=() if card else tuple(match.candidates),
        differences=_differences(own, card) if card else (),
        notes=device.notes,
    )


def _differences(own: Card, card: Card) -> tuple[Difference, ...]:
    """Return the parameters on which a device and its card differ by more than rounding."""
    pairs: Sequence[tuple[str, float | None, float | None, float, str]] = (
        (f"{own.unit}s", own.sm_count, card.sm_count, 1, ""),
        ("highest clock, published boost", own.vector_clock_hz, card.vector_clock_hz, 1e6, "MHz"),
        ("memory, on the label", own.memory_bytes, card.memory_bytes, 2**30, "GiB"),
        ("memory bus", own.bus_bits, card.bus_bits, 1, "bit"),
        ("memory rate per pin", own.pin_bits_per_s, card.pin_bits_per_s, 1e9, "Gbit/s"),
        # HIP shows the L2 of one chiplet, the database that of the card.
        ("L2", own.l2_bytes if own.vendor == "nvidia" else None, card.l2_bytes, 2**20, "MiB"),
    )
    return tuple(
        Difference(what, ours / unit, theirs / unit, symbol)
        for what, ours, theirs, unit, symbol in pairs
        if ours and theirs and abs(ours / theirs - 1) > _SAME
    )


def _with_sensors(facts: GpuFacts, index: int, blocks: Blocks) -> GpuFacts:
    block = blocks.found.get(index)
    if block is None:
        return replace(facts, sensors_note=blocks.notes.get(index, ""))
    limit, tdp = block.get("power_limit_w"), facts.card.tdp_w if facts.card else None
    differences = facts.differences
    if limit and tdp and abs(limit / tdp - 1) > _SAME:
        differences = (*differences, Difference("power limit, TDP", limit, tdp, "W"))
    return replace(facts, sensors=block, sensors_source=blocks.source, differences=differences)
