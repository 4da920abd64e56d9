"""Which roofs stand over a result's cases, and where the cases landed: plain numbers, drawn elsewhere."""

import statistics
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from kmrun.core.card import Card
from kmrun.core.compare import peak_title
from kmrun.core.peaks import BANDWIDTH, COMPUTE_FIGURES, Peaks, bandwidth, peaks
from kmrun.core.result import CaseResult, Result
from kmrun.report.plots.scales import can_be_drawn
from kmrun.report.words import case_labels, word_of

Kind = Literal["published", "driver", "measured", "held", "cache", "card"]

_SAME = 0.01
"""Two peaks closer than this are one: fractions in documents are of finite precision."""
_USUAL = ("fp32_tflops", "bf16_tensor_tflops", "fp16_tensor_tflops")
"""What is drawn when no case says which compute roof is its own."""


@dataclass(frozen=True, slots=True)
class Roofs:
    """The roofs of one kind: a memory slope in bytes/s and compute roofs by name in flop/s, the highest first.

    Those of kind `card` are of one card among others: `name` says which, `series` gives colour and dash.
    """

    kind: Kind
    bandwidth: float | None
    peaks: tuple[tuple[str, float], ...]
    name: str = ""
    series: int = 0
    sloped: bool = True
    """False: the slope is that of another kind, and drawn there."""


@dataclass(frozen=True, slots=True)
class Point:
    """A case on the picture: flop/byte and flop/s, its place in the table, its kernel's number, its verdict."""

    number: int
    name: str
    label: str
    kernel: str
    series: int
    intensity: float
    rate: float
    word: str
    share: float | None
    """Of the published roof, else of the measured ceiling."""
    share_of: str


@dataclass(frozen=True, slots=True)
class Picture:
    """All that a roofline shows. `left_out` counts cases without intensity or speed."""

    roofs: tuple[Roofs, ...]
    points: tuple[Point, ...]
    left_out: int = 0


def picture_of(result: Result, card: Card | None) -> Picture:
    """Return the roofline of a result; `card` is the device's share of the card that its document names."""
    labels = case_labels(result.cases)
    kernels = list(dict.fromkeys(case.kernel for case in result.cases))
    points = tuple(
        _point(index, case, label, kernels.index(case.kernel))
        for index, (case, label) in enumerate(zip(result.cases, labels, strict=True), 1)
        if is_drawn(case)
    )
    roofs = (_published(result, card), _held(result.cases, card), _measured(result), _cache(result))
    return Picture(
        tuple(each for each in roofs if each.peaks or each.bandwidth), points, len(result.cases) - len(points)
    )


def card_picture(found: Peaks, kind: Kind = "published") -> Picture:
    """Return the roofline of a card alone: every compute figure that is known of it; no roof where none is."""
    named = [(peak_title(name), found.values[name]) for name in COMPUTE_FIGURES if name in found.values]
    roofs = Roofs(kind, found.values.get(BANDWIDTH), _highest_first(_merged(named)))
    return Picture((roofs,) if roofs.peaks or roofs.bandwidth else (), ())


def _merged(named: Sequence[tuple[str, float]]) -> list[tuple[str, float]]:
    """Return peaks with those of one height as one, under both names."""
    merged: dict[float, list[str]] = {}
    for name, value in named:
        height = next((known for known in merged if abs(known / value - 1) < _SAME), value)
        merged.setdefault(height, []).append(name)
    return [(_joined(names), value) for value, names in merged.items()]


def _joined(names: Sequence[str]) -> str:
    """Return `fp16 / bf16 tensor`; a variant of a figure that is no lower than the figure goes without saying."""
    shown = [name for name in names if not any(name != other and name.startswith(other) for other in names)]
    tensor = " tensor"
    if len(shown) > 1 and all(name.endswith(tensor) for name in shown):
        return " / ".join(name.removesuffix(tensor) for name in shown) + tensor
    return " / ".join(shown)


def is_drawn(case: CaseResult) -> bool:
    """Say whether a case has a place on the picture; what is implausible or wrong has none, as in the table."""
    placed = can_be_drawn(case.intensity) and can_be_drawn(case.tflop_per_s)
    return placed and case.verdict != "error" and case.correct is not False


def _point(number: int, case: CaseResult, label: str, series: int) -> Point:
    share, of = (
        (case.roof_fraction, "roof") if case.roof_fraction is not None else (case.ceiling_fraction, "ceiling")
    )
    return Point(
        number=number,
        name=case.id,
        label=label,
        kernel=case.kernel,
        series=series,
        intensity=case.intensity or 0.0,
        rate=(case.tflop_per_s or 0.0) * 1e12,
        word=word_of(case),
        share=share,
        share_of=of,
    )


def _published(result: Result, card: Card | None) -> Roofs:
    own = _own_peaks([(case, case.roof_fraction) for case in result.cases])
    if card is None:
        return Roofs("published", None, _highest_first([("compute", value) for value in own]))
    figures = peaks(card).values
    dtypes = {value for case in result.cases for value in case.axes.values() if isinstance(value, str)}
    named = [(_figure_name(value, figures, dtypes), value) for value in own]
    usual = [(peak_title(name), figures[name]) for name in _USUAL if name in figures]
    return Roofs("published", bandwidth(card), _highest_first(named or _merged(usual)))


def _figure_name(value: float, known: Mapping[str, float], dtypes: Collection[str]) -> str:
    """Return what a peak is called: the card's figures of that value, of the dtypes that the cases name."""
    near = [name for name in COMPUTE_FIGURES if name in known and abs(known[name] / value - 1) < _SAME]
    named = {dtype: name for name in reversed(near) if (dtype := name.partition("_")[0]) in dtypes}
    return _joined(sorted(peak_title(name) for name in named.values() or near[:1])) or "compute"


def _held(cases: Sequence[CaseResult], card: Card | None) -> Roofs:
    """Return the compute roofs at the clocks that were held."""
    ratios = [
        case.roof_fraction / case.roof_clk_fraction
        for case in cases
        if case.bound == "comp" and case.roof_fraction and case.roof_clk_fraction
    ]
    if not ratios:
        return Roofs("held", None, ())
    own = _own_peaks([(case, case.roof_clk_fraction) for case in cases], same=0.1)
    # Memory keeps its clock: its slope is that of the published roof.
    return Roofs(
        "held", bandwidth(card) if card else None, _highest_first([("", each) for each in own]), sloped=False
    )


def _own_peaks(cases: Sequence[tuple[CaseResult, float | None]], same: float = _SAME) -> list[float]:
    """Return the distinct compute roofs that compute-bound cases were held against, from speed over fraction."""
    found = sorted(
        case.tflop_per_s * 1e12 / fraction
        for case, fraction in cases
        if case.bound == "comp"
        and fraction
        and can_be_drawn(fraction)
        and case.tflop_per_s
        and is_drawn(case)
    )
    groups: list[list[float]] = []
    for value in found:
        if groups and value / groups[-1][0] - 1 < same:
            groups[-1].append(value)
        else:
            groups.append([value])
    return [statistics.median(group) for group in groups]


def _measured(result: Result) -> Roofs:
    speeds = [seen.gb_per_s * 1e9 for seen in result.ceilings.bandwidths if can_be_drawn(seen.gb_per_s)]
    rates: dict[str, float] = {}
    for seen in result.ceilings.matmuls:
        if not can_be_drawn(seen.tflop_per_s):
            continue
        rates[seen.dtype] = max(rates.get(seen.dtype, 0.0), seen.tflop_per_s * 1e12)
    return Roofs("measured", max(speeds, default=None), _highest_first(list(rates.items())))


def _cache(result: Result) -> Roofs:
    """Return the cache's bandwidth where cases were held against it."""
    inside = any("in cache" in case.labels for case in result.cases)
    seen = result.ceilings.cache_bandwidths if inside else ()
    speeds = [each.gb_per_s * 1e9 for each in seen if can_be_drawn(each.gb_per_s)]
    return Roofs("cache", max(speeds, default=None), ())


def _highest_first(found: Sequence[tuple[str, float]]) -> tuple[tuple[str, float], ...]:
    return tuple(sorted(found, key=lambda named: -named[1]))
