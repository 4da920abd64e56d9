"""The GPU in this machine as a card and as occupancy limits."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from kmrun.core.architecture import Architecture, OccupancyLimits, merged_rates
from kmrun.core.architectures import BY_COMPUTE_CAPABILITY
from kmrun.core.card import Card
from kmrun.core.occupancy import limits_of
from kmrun.device.cuda_driver import CudaDevice
from kmrun.errors import EnvironmentLacks


@dataclass(frozen=True, slots=True)
class LocalCard:
    """A local device. `matched`: the card is the database's; else it was made from what the driver says."""

    device: CudaDevice
    card: Card
    matched: bool
    candidates: tuple[str, ...] = ()


Match = Callable[[CudaDevice], tuple[Card | None, tuple[str, ...]]]
"""Gives the database's card of a device, and all that might be it."""


def local_card(device: CudaDevice, match: Match) -> LocalCard:
    """Return the card of a device: the database's where exactly one fits, else one from its attributes."""
    card, candidates = match(device)
    if card is not None:
        return LocalCard(device, card, True)
    return LocalCard(device, card_of(device), False, candidates)


def card_of(device: CudaDevice) -> Card:
    """Return a card made of a device's attributes, with the rates that its architecture has in every segment.

    Peaks are at the driver's highest clock. An unknown architecture leaves bandwidth only. A MIG slice has none:
    the driver shows the bus of the whole GPU.
    """
    architecture = BY_COMPUTE_CAPABILITY.get(device.compute_capability or "")
    bits = device.attributes.get("global_memory_bus_width")
    bandwidth = None if device.is_mig else device.bandwidth
    l2 = device.attributes.get("l2_cache_size") or None
    return Card(
        id=f"device-{device.index}",
        name=device.name,
        vendor="nvidia",
        architecture=architecture.id if architecture else "unknown",
        family=architecture.family if architecture else "unknown",
        unit="SM",
        compute_capability=device.compute_capability,
        driver_names=(device.name,),
        sm_count=device.sm_count,
        vector_clock_hz=device.max_clock_hz,
        matmul_clock_hz=device.max_clock_hz,
        memory_bytes=device.memory_bytes,
        bus_bits=bits,
        pin_bits_per_s=bandwidth * 8 / bits if bandwidth and bits else None,
        l2_bytes=l2,
        llc_bytes=l2,
        vector_rates=_common(architecture, 0) if architecture else {},
        matmul_rates=_common(architecture, 1) if architecture else {},
        source="the driver's attributes",
    )


def limits_of_device(device: CudaDevice) -> OccupancyLimits:
    """Return what an SM of the device holds: the architecture's limits with the device's own figures.

    Raises:
        UnknownComputeCapability: nothing is known of its compute capability.
        EnvironmentLacks: the driver does not say it.
    """
    if device.compute_capability is None:
        raise EnvironmentLacks(
            f"the driver does not say the compute capability of device {device.index}", "--cc gives one"
        )
    known = limits_of(device.compute_capability)
    own = device.attributes.get
    shared = own("max_shared_memory_per_multiprocessor") or known.shared_bytes_per_sm
    return replace(
        known,
        threads_per_sm=own("max_threads_per_multiprocessor") or known.threads_per_sm,
        blocks_per_sm=own("max_blocks_per_multiprocessor") or known.blocks_per_sm,
        registers_per_sm=own("max_registers_per_multiprocessor") or known.registers_per_sm,
        registers_per_block=own("max_registers_per_block") or known.registers_per_block,
        shared_bytes_per_sm=shared,
        shared_bytes_per_block=own("max_shared_memory_per_block") or known.shared_bytes_per_block,
        shared_bytes_per_block_optin=own("max_shared_memory_per_block_optin")
        or known.shared_bytes_per_block_optin,
        reserved_shared_bytes_per_block=own("reserved_shared_memory_per_block")
        or known.reserved_shared_bytes_per_block,
        shared_carveouts=tuple(
            sorted({*(size for size in known.shared_carveouts if size <= shared), shared})
        ),
    )


def _common(architecture: Architecture, units: int) -> dict[str, float]:
    """Return the rates on which all segments agree; which segment a device is, its attributes do not say."""
    base = (architecture.vector_rates, architecture.matmul_rates)[units]
    tables = [merged_rates(base, overrides[units]) for overrides in architecture.segments.values()]
    tables = tables or [merged_rates(base)]
    return {
        name: rate for name, rate in tables[0].items() if all(table.get(name) == rate for table in tables)
    }
