"""Everything that the drivers in this machine say of its GPUs, and how that compares with the card database."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from kmrun.core.card import Card
from kmrun.core.peaks import Peaks, peaks
from kmrun.device.bounded import NoAnswer, bounded
from kmrun.device.cuda_driver import CudaDevice, CudaDriver
from kmrun.device.driver_library import NoDriver
from kmrun.device.local_card import card_of
from kmrun.device.rocm import HipDevice, HipRuntime
from kmrun.device.sensor_blocks import nvml_blocks, smi_blocks
from kmrun.errors import EnvironmentLacks

DRIVER_S = 20.0
"""How long a driver may take to start: it may have to load its kernel module."""
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
    why there is none.
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
    nvidia = _vendor("the NVIDIA driver", _nvidia)
    amd = _vendor("the HIP runtime", _amd)
    vendors = (nvidia, amd)
    total = nvidia.count + amd.count
    if only is not None and total and not 0 <= only < total:
        raise EnvironmentLacks(f"no GPU {only} in this machine", f"GPUs here: 0 to {total - 1}")
    failures = [failure for vendor in vendors if vendor.there for failure in vendor.failures]
    for vendor, before in ((nvidia, 0), (amd, nvidia.count)):
        failures += [lost for index, lost in vendor.lost.items() if only in (None, index + before)]
    if not total and not failures:
        sentence = "there is no GPU driver in this machine: neither NVIDIA's nor AMD's HIP runtime answers"
        failures = [EnvironmentLacks(sentence, *(failure.hint for failure in nvidia.failures[:1]))]
    cuda: list[CudaDevice] = [device for device in nvidia.devices if only in (None, device.index)]
    hip: list[HipDevice] = [device for device in amd.devices if only in (None, device.index + nvidia.count)]
    nvml, nvml_driver, nvml_note = nvml_blocks(cuda)
    smi, smi_source, smi_note = smi_blocks(hip)
    devices = [
        _with_sensors(_cuda_facts(device, catalogue), nvml.get(device.index), "nvml", nvml_note)
        for device in cuda
    ]
    for device in hip:
        facts = replace(_hip_facts(device, catalogue), index=device.index + nvidia.count)
        devices.append(_with_sensors(facts, smi.get(device.index), smi_source, smi_note))
    versions = {**nvidia.versions, **amd.versions}
    if nvml_driver:
        versions["nvidia_driver"] = nvml_driver
    return Gpus(tuple(devices), versions, tuple(failures))


@dataclass(frozen=True, slots=True)
class _Vendor:
    devices: tuple[Any, ...] = ()
    versions: Mapping[str, str] = field(default_factory=dict)
    failures: tuple[EnvironmentLacks, ...] = ()
    count: int = 0
    """Devices, with those that failed."""
    lost: Mapping[int, EnvironmentLacks] = field(default_factory=dict)
    """Devices that the driver has, but fails on."""
    there: bool = True
    """Whether the vendor's library is in this machine at all."""


def _vendor(what: str, ask: Callable[[], _Vendor]) -> _Vendor:
    try:
        return bounded(what, DRIVER_S, ask)
    except NoAnswer as silent:
        return _Vendor(failures=(EnvironmentLacks(str(silent), "a GPU may have fallen off its bus"),))


def _nvidia() -> _Vendor:
    try:
        driver = CudaDriver()
    except EnvironmentLacks as error:
        return _Vendor(failures=(error,), there=not isinstance(error, NoDriver))
    return _devices("cuda", driver.version, driver.count, driver.device)


def _amd() -> _Vendor:
    try:
        runtime = HipRuntime()
    except EnvironmentLacks as error:
        return _Vendor(failures=(error,), there=not isinstance(error, NoDriver))
    return _devices("hip", runtime.version, runtime.count, runtime.device)


def _devices(
    kind: str, version: Callable[[], str | None], count: Callable[[], int], device: Callable[[int], Any]
) -> _Vendor:
    try:
        served, number = version(), count()
    except EnvironmentLacks as error:
        return _Vendor(failures=(error,))
    devices, lost = [], {}
    for index in range(number):
        try:
            devices.append(device(index))
        except EnvironmentLacks as error:
            lost[index] = EnvironmentLacks(f"{kind} device {index}: {error.sentence}", error.hint)
    return _Vendor(tuple(devices), {kind: served} if served else {}, count=number, lost=lost)


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
    )


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


def _with_sensors(
    facts: GpuFacts, block: Mapping[str, Any] | None, source: str | None, note: str
) -> GpuFacts:
    if block is None:
        return replace(facts, sensors_note=note)
    limit, tdp = block.get("power_limit_w"), facts.card.tdp_w if facts.card else None
    differences = facts.differences
    if limit and tdp and abs(limit / tdp - 1) > _SAME:
        differences = (*differences, Difference("power limit, TDP", limit, tdp, "W"))
    return replace(facts, sensors=block, sensors_source=source, differences=differences)
