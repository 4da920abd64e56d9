"""What `kmrun gpus` shows of the database."""

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from kmrun.cli.sorting import by_key
from kmrun.core.card import Card
from kmrun.core.compare import PEAK_NAMES
from kmrun.core.peaks import BANDWIDTH, SCALE, peaks
from kmrun.errors import UsageError
from kmrun.report.columns import MISSING, Column, figures, render
from kmrun.source.suggest import meant

_GIB = 2**30


def chosen(
    cards: Iterable[Card], text: str | None, vendor: str | None, arch: str | None, min_vram: float | None
) -> list[Card]:
    """Return the cards that fit every filter.

    Raises:
        UsageError: a vendor or an architecture that no card has, or no amount of memory.
    """
    if min_vram is not None and not (min_vram >= 0 and math.isfinite(min_vram)):
        raise UsageError(f"--min-vram must be a number of GB, not {min_vram:g}")
    every = list(cards)
    if vendor is not None:
        _must_be(vendor.lower(), sorted({card.vendor for card in every}), "vendor")
    if arch is not None:
        names = sorted({name for card in every for name in _architectures(card)})
        if not any(name.startswith(arch.lower()) for name in names):
            _must_be(arch.lower(), names, "architecture")
    return [
        card
        for card in every
        if (text is None or _fits(card, text))
        and (vendor is None or card.vendor == vendor.lower())
        and (arch is None or any(name.startswith(arch.lower()) for name in _architectures(card)))
        and (min_vram is None or (card.memory_bytes or 0) >= min_vram * _GIB)
    ]


def ordered(cards: Sequence[Card], key: str | None) -> list[Card]:
    """Return the cards sorted by a key, largest first (names ascending), those without the figure last.

    Raises:
        UsageError: there is no such key.
    """
    if key is None:
        return list(cards)
    sorts: dict[str, tuple[Callable[[Card], Any], bool]] = {
        "name": (lambda card: card.id, False),
        "year": (lambda card: card.year, True),
        "vram": (lambda card: card.memory_bytes, True),
        "tdp": (lambda card: card.tdp_w, True),
        "memory": (lambda card: peaks(card).values.get(BANDWIDTH), True),
        **{name: (_by_figure(figure), True) for name, figure in PEAK_NAMES.items()},
    }
    return by_key(cards, key, sorts)


def record(card: Card) -> dict[str, Any]:
    """Return a card as `--json` prints it; an unknown figure is null."""
    found = peaks(card)
    return {
        "id": card.id,
        "name": card.name,
        "vendor": card.vendor,
        "arch": card.family,
        "architecture": card.architecture,
        "segment": card.segment,
        "compute_capability": card.compute_capability,
        "year": card.year,
        "unit": card.unit,
        "sm_count": card.sm_count,
        "devices": card.devices,
        "vector_clock_mhz": _over(card.vector_clock_hz, 1e6),
        "matmul_clock_mhz": _over(card.matmul_clock_hz, 1e6),
        "vram_bytes": card.memory_bytes,
        "memory_type": card.memory_type,
        "bus_bits": card.bus_bits,
        "pin_gbps": _over(card.pin_bits_per_s, 1e9),
        "l2_bytes": card.l2_bytes,
        "llc_bytes": card.llc_bytes,
        "link": card.link,
        "link_gb_per_s": _over(card.link_bytes_per_s, 1e9),
        "tdp_w": card.tdp_w,
        "peaks": found.scaled(),
        "provenance": {
            "peaks": dict(found.provenance),
            "parameters": dict(card.stated),
            "implied": card.implied or None,
            "source": card.source,
            "published": {name: value / SCALE[name] for name, value in card.published.items()},
        },
        "aliases": list(card.aliases),
        "driver_names": list(card.driver_names),
        "note": card.note or None,
    }


def lines(cards: Sequence[Card]) -> list[str]:
    """Return the table, with a line that counts."""
    count = "1 card" if len(cards) == 1 else f"{len(cards)} cards"
    if not cards:
        return ["no card fits"]
    scaled = [peaks(card).scaled() for card in cards]
    columns = [
        Column("id", [card.id for card in cards], left=True),
        Column("arch", [card.family for card in cards], left=True),
        Column("units", [str(card.sm_count or MISSING) for card in cards]),
        Column("memory", [_gib(card) for card in cards], "GB"),
        Column("memory", _whole([one[BANDWIDTH] for one in scaled]), "GB/s"),
        *(Column(head, _whole([one[figure] for one in scaled]), unit) for head, unit, figure in _SHOWN),
        Column("TDP", [f"{card.tdp_w:g}" if card.tdp_w else MISSING for card in cards], "W"),
    ]
    return [*render(columns), "", f"{count}; tensor figures dense, in TFLOP/s; - is not known"]


_SHOWN = (
    ("fp32", "TFLOP/s", "fp32_tflops"),
    ("fp64", "", "fp64_tflops"),
    ("fp16", "tensor", "fp16_tensor_tflops"),
    ("bf16", "tensor", "bf16_tensor_tflops"),
    ("fp8", "tensor", "fp8_tensor_tflops"),
)


def _whole(values: Sequence[float | None]) -> list[str]:
    """Return figures with three digits each: a list of cards spans too much for one number of decimals."""
    return [MISSING if value is None else figures([value])[0] for value in values]


def _gib(card: Card) -> str:
    return f"{card.memory_bytes / _GIB:g}" if card.memory_bytes else MISSING


def _by_figure(figure: str) -> Callable[[Card], float | None]:
    return lambda card: peaks(card).values.get(figure)


def _architectures(card: Card) -> set[str]:
    return {name for name in (card.family, card.architecture, card.compute_capability) if name}


def _fits(card: Card, text: str) -> bool:
    wanted = text.lower().split()
    known = " ".join((card.id, card.name, *card.aliases, *_architectures(card))).lower()
    return all(word in known for word in wanted)


def _must_be(word: str, known: Sequence[str], what: str) -> None:
    if word not in known:
        near = meant(word, known)
        raise UsageError(
            f"no {what} {word!r}", f"did you mean '{near}'?" if near else f"one of {', '.join(known)}"
        )


def _over(value: float | None, factor: float) -> float | None:
    return None if value is None else value / factor
