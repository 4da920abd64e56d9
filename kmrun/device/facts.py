"""Everything that the drivers in this machine say of its GPUs, and how that compares with the card database."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Protocol

from kmrun.core.card import Card
from kmrun.core.peaks import BANDWIDTH, Peaks, peaks
from kmrun.device import sensor_blocks
from kmrun.device.apart import Crashed, Tell, apart
from kmrun.device.bounded import NoAnswer
from kmrun.device.cuda_driver import CudaDevice
from kmrun.device.driver_library import NoDriver
from kmrun.device.drivers import Vendor, vendors
from kmrun.device.local_card import card_of
from kmrun.device.rocm import HipDevice
from kmrun.device.sensor_blocks import Blocks, nvml_blocks, smi_blocks
from kmrun.errors import EnvironmentLacks

_SAME = 0.005
_CALLS, _START_S = 8, 10.0
"""Calls to a library of sensors that may each take their whole time, and what starting the process may take."""


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


def gpus(catalogue: Matching, only: int | None = None, tell: Tell | None = None) -> Gpus:
    """Ask every driver. Failures are kept, not raised: what one device hides must not hide the others.

    Args:
        catalogue: the card database.
        only: the index of the one device that is wanted, counted over all vendors, NVIDIA's first.
        tell: is told what is waited for, should that take long.

    Raises:
        EnvironmentLacks: there are GPUs, but not that one.
    """
    both = nvidia, amd = vendors(only, tell)
    total = nvidia.count + amd.count
    if only is not None and total and not 0 <= only < total:
        raise EnvironmentLacks(f"no GPU {only} in this machine", f"GPUs here: 0 to {total - 1}")
    failures = [vendor.failure for vendor in both if vendor.failure is not None and vendor.there]
    failures += [*nvidia.lost, *amd.lost]
    if not total and not failures:
        failures = [_none(nvidia, amd)]
    cuda, hip = nvidia.devices, amd.devices
    nvml = _blocks("NVML", nvml_blocks, cuda)
    smi = _blocks("AMD SMI or ROCm SMI", smi_blocks, hip)
    devices = [_with_sensors(_cuda_facts(device, catalogue), device.index, nvml) for device in cuda]
    for device in hip:
        facts = replace(_hip_facts(device, catalogue), index=device.index + nvidia.count)
        devices.append(_with_sensors(facts, device.index, smi))
    versions: dict[str, str] = {vendor.kind: vendor.version for vendor in both if vendor.version is not None}
    if nvml.driver:
        versions["nvidia_driver"] = nvml.driver
    return Gpus(tuple(devices), versions, tuple(failures))


def _blocks(who: str, ask: Callable[[Sequence[Any], float], Blocks], devices: Sequence[Any]) -> Blocks:
    """Return what a library of sensors says; where it crashes, that is why it says nothing."""
    if not devices:
        return Blocks()
    try:
        limit_s = _CALLS * sensor_blocks.SENSORS_S + _START_S
        return apart(who, limit_s, None, partial(ask, devices, sensor_blocks.SENSORS_S))
    except (NoAnswer, Crashed) as lost:
        return Blocks(notes=dict.fromkeys((device.index for device in devices), str(lost)))


def _none(nvidia: Vendor, amd: Vendor) -> EnvironmentLacks:
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
