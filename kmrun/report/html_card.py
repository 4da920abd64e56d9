"""A card alone as a page: peaks, roofline, facts, launch limits."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kmrun.core.architecture import OccupancyLimits
from kmrun.core.architectures import BY_COMPUTE_CAPABILITY
from kmrun.core.card import Card
from kmrun.core.peaks import BANDWIDTH, COMPUTE_FIGURES, FIGURES, SCALE, Peaks
from kmrun.core.units import BANDWIDTH as BANDWIDTHS
from kmrun.core.units import FLOP_RATE, format_number, format_quantity
from kmrun.report.html_figures import figure_of
from kmrun.report.html_parts import Cell, Figure, Head, Line, Section, Table, Tile, number
from kmrun.report.info_text import figure_text, figure_title
from kmrun.report.numbers import readable
from kmrun.report.roofs import card_picture

_RIDGE = ("bf16_tensor_tflops", "fp16_tensor_tflops", "fp32_tflops")
"""Whose ridge a page begins with: of the first that the card has. The table has all."""


@dataclass(frozen=True, slots=True)
class CardPage:
    """A page about one card. `origin` says whether it is the database's or this machine's."""

    title: str
    origin: str
    tiles: tuple[Tile, ...]
    figure: Figure | None
    sections: tuple[Section, ...]
    note: str
    long: bool = False


def card_parts(
    card: Card,
    found: Peaks,
    origin: str,
    limits: OccupancyLimits | None,
    facts: Sequence[tuple[str, str]] = (),
    attributes: Mapping[str, int] | None = None,
) -> CardPage:
    """Return a card formatted.

    Args:
        card: the whole card, or what is known of a device.
        found: the peaks to show: of the card, or of the device at its driver's clocks.
        origin: a sentence: where the figures come from.
        limits: of a multiprocessor, None where nobody published them.
        facts: what the drivers say besides, as (name, text).
        attributes: the driver's, by name, where the card is a device here; then the peaks are its driver's, too.
    """
    picture = card_picture(found, "published" if attributes is None else "driver")
    sections = [
        Section("peaks", "Peaks", tables=(_peaks(card, found),) if found.values else ()),
        Section("facts", "Facts", tables=_facts(card, facts, limits), panels=True),
        Section("attributes", "Driver attributes", tables=_attributes(attributes or {})),
    ]
    return CardPage(
        title=card.name,
        origin=origin,
        tiles=_tiles(card, found),
        figure=figure_of("card-roof", picture, {}) if picture.roofs else None,
        sections=tuple(section for section in sections if section.tables),
        note=card.note,
    )


def _tiles(card: Card, found: Peaks) -> tuple[Tile, ...]:
    tiles = []
    for name in FIGURES:
        if name in found.values:
            family = BANDWIDTHS if name == BANDWIDTH else FLOP_RATE
            value, _, unit = format_quantity(found.values[name], family).partition(" ")
            unit = unit.replace("FLOP/s", "OP/s") if name.endswith("_tops") else unit
            tiles.append(Tile(figure_title(name), value, unit, found.provenance[name]))
    tiles += _ridge_tile(found)
    if card.memory_bytes is not None:
        tiles.insert(1, Tile("memory", f"{card.memory_bytes / 2**30:g}", "GiB", card.memory_type.upper()))
    return tuple(tiles)


def _ridge_tile(found: Peaks) -> list[Tile]:
    """Return from which intensity on compute is the limit, for the compute roof that kernels of models stand under."""
    memory, name = found.values.get(BANDWIDTH), next((each for each in _RIDGE if each in found.values), None)
    if memory is None or name is None:
        return []
    return [
        Tile("ridge point", readable(found.values[name] / memory), "flop/byte", f"of {figure_title(name)}")
    ]


def _peaks(card: Card, found: Peaks) -> Table:
    memory = found.values.get(BANDWIDTH)
    heads = (
        Head("figure"),
        Head("peak", "num", "dense, without sparsity"),
        Head("ridge, flop/byte", "num", "from this intensity on compute is the limit"),
        Head("published", "num", "on the vendor's sheet, where it is there"),
        Head("how"),
    )
    lines = []
    for name in FIGURES:
        if name in found.values:
            value, printed = found.values[name], card.published.get(name)
            ridge = readable(value / memory) if memory and name in COMPUTE_FIGURES else "-"
            lines.append(
                Line(
                    (
                        Cell(figure_title(name)),
                        number(figure_text(name, value / SCALE[name])),
                        number(ridge),
                        number("-" if printed is None else figure_text(name, printed / SCALE[name])),
                        Cell(
                            "rate x units x clock" if found.provenance[name] == "derived" else "as published",
                            "",
                        ),
                    )
                )
            )
    return Table("Peaks, dense", heads, tuple(lines))


def _facts(card: Card, own: Sequence[tuple[str, str]], limits: OccupancyLimits | None) -> tuple[Table, ...]:
    rows: list[tuple[str, str | None]] = [
        ("id", card.id),
        ("vendor", card.vendor),
        (
            "architecture",
            f"{card.family} ({card.architecture})" if card.family != card.architecture else card.family,
        ),
        ("compute capability" if card.vendor == "nvidia" else "target", card.compute_capability),
        ("year", None if card.year is None else str(card.year)),
        (f"{card.unit}s", None if card.sm_count is None else str(card.sm_count)),
        ("vector clock", _mhz(card.vector_clock_hz)),
        ("matrix clock", _mhz(card.matmul_clock_hz)),
        (
            "memory",
            None
            if card.memory_bytes is None
            else f"{card.memory_bytes / 2**30:g} GiB {card.memory_type.upper()}".rstrip(),
        ),
        ("memory bus", None if card.bus_bits is None else f"{card.bus_bits} bit"),
        ("per pin", None if card.pin_bits_per_s is None else f"{readable(card.pin_bits_per_s / 1e9)} Gbit/s"),
        ("L2 cache", _mib(card.l2_bytes)),
        ("last-level cache", _mib(card.llc_bytes) if card.llc_bytes != card.l2_bytes else None),
        ("link", _link(card)),
        ("board power", None if card.tdp_w is None else f"{readable(card.tdp_w)} W"),
        ("source", card.source),
    ]
    known = [(name, text) for name, text in rows if text]
    tables = [_pairs("The card", known)]
    if own:
        tables.append(_pairs("By the driver", own))
    if limits is not None:
        tables.append(_limits(limits))
    return tuple(tables)


def _limits(limits: OccupancyLimits) -> Table:
    rows = [
        ("threads per multiprocessor", f"{limits.threads_per_sm:,}"),
        ("blocks per multiprocessor", f"{limits.blocks_per_sm:,}"),
        ("registers per multiprocessor", f"{limits.registers_per_sm:,}"),
        ("registers per block", f"{limits.registers_per_block:,}"),
        ("shared memory per multiprocessor", _kib(limits.shared_bytes_per_sm)),
        ("shared memory per block", _kib(limits.shared_bytes_per_block)),
        ("shared memory per block, opted in", _kib(limits.shared_bytes_per_block_optin)),
        ("shared memory kept by the driver per block", _kib(limits.reserved_shared_bytes_per_block)),
        ("shared memory splits", ", ".join(f"{size // 1024}" for size in limits.shared_carveouts) + " KiB"),
        ("threads per warp", "32"),
        ("threads per block", "1,024"),
    ]
    if limits.block_barriers_per_sm is not None:
        rows.append(("barriers per multiprocessor", str(limits.block_barriers_per_sm)))
    return _pairs("Launch limits, of one multiprocessor", rows)


def _attributes(found: Mapping[str, int]) -> tuple[Table, ...]:
    if not found:
        return ()
    heads = (Head("attribute"), Head("value", "num"))
    lines = tuple(Line((Cell(name), number(str(value)))) for name, value in found.items())
    return (Table(f"{len(lines)} attributes", heads, lines, folded=True),)


def known_limits(card: Card) -> OccupancyLimits | None:
    """Return what a multiprocessor of the card holds, None where nobody published it."""
    architecture = BY_COMPUTE_CAPABILITY.get(card.compute_capability or "")
    return None if architecture is None else architecture.occupancy


def _pairs(caption: str, rows: Sequence[tuple[str, str]]) -> Table:
    heads = (Head("what"), Head("value"))
    return Table(
        caption,
        heads,
        tuple(Line((Cell(name), Cell(text))) for name, text in rows),
        css="pairs",
    )


def _link(card: Card) -> str | None:
    if card.link is None:
        return None
    rate = (
        ""
        if card.link_bytes_per_s is None
        else f", {format_quantity(card.link_bytes_per_s, BANDWIDTHS)} both ways"
    )
    return f"{card.link}{rate}"


def _mhz(hertz: float | None) -> str | None:
    return None if hertz is None else f"{format_number(hertz / 1e6, 4)} MHz"


def _mib(size: int | None) -> str | None:
    return None if size is None else f"{readable(size / 2**20)} MiB"


def _kib(size: int) -> str:
    return f"{readable(size / 1024)} KiB"
