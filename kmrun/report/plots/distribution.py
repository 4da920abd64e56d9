"""The samples of one case as a picture as small as a word: a histogram about the median, on an axis that rows share."""

from collections.abc import Sequence
from dataclasses import dataclass

from kmrun.core.statistics import quantile
from kmrun.report.numbers import percent
from kmrun.report.plots.element import element, number, title

WIDTH, HEIGHT = 132.0, 26.0
_BINS = 33
_FOOT = 23.0
_WIDEST = (0.5, 2.0)
"""Of the axis, times the median; what lies beyond is drawn in the outermost bin."""
_NARROWEST = 0.02


@dataclass(frozen=True, slots=True)
class Span:
    """The axis of the small pictures: sample over median, from `low` to `high`."""

    low: float
    high: float

    @property
    def text(self) -> str:
        """How a person reads the ends: `-4 % to +20 % of the median`."""
        return f"\N{MINUS SIGN}{percent(1 - self.low)} to +{percent(self.high - 1)} about the median"


def span_of(cases: Sequence[tuple[Sequence[float], float]]) -> Span:
    """Return one axis for several cases, each its samples and their median: all but one sample in a hundred fit."""
    known = [(samples, median) for samples, median in cases if samples and median > 0]
    low = min((quantile(samples, 0.01) / median for samples, median in known), default=1.0)
    high = max((quantile(samples, 0.99) / median for samples, median in known), default=1.0)
    return Span(max(_WIDEST[0], min(low, 1 - _NARROWEST)), min(_WIDEST[1], max(high, 1 + _NARROWEST)))


def counts_of(samples: Sequence[float], median: float, span: Span, bins: int = _BINS) -> list[int]:
    """Return how many samples fall into each bin; the first and last also hold what lies outside."""
    found = [0] * bins
    scale, offset, last = bins / (span.high - span.low), span.low, bins - 1
    for sample in samples:
        place = (sample / median - offset) * scale
        found[0 if place < 0 else last if place >= last else int(place)] += 1
    return found


def distribution(
    samples: Sequence[float], median: float, ends: tuple[float, float] | None, span: Span, said: str
) -> str:
    """Return the picture, empty without samples.

    Args:
        samples: times in one unit.
        median: of them, in that unit; above 0.
        ends: of the interval of the median, None without one.
        span: the axis.
        said: the text alternative.
    """
    if not samples or median <= 0:
        return ""
    counts = counts_of(samples, median, span)
    tallest, step = max(counts), WIDTH / len(counts)
    path, last = [f"M0 {number(_FOOT)}"], _FOOT
    for index, count in enumerate(counts):
        y = _FOOT - (0 if count == 0 else max(1.5, count / tallest * (_FOOT - 2)))
        if y != last:
            path.append(f"H{number(index * step)}V{number(y)}")
            last = y
    path.append(f"H{number(WIDTH)}V{number(_FOOT)}z")

    def x(value: float) -> float:
        return min(max((value / median - span.low) / (span.high - span.low), 0.0), 1.0) * WIDTH

    band = ""
    if ends is not None:
        left, right = x(ends[0]), x(ends[1])
        band = element(
            "path", d=f"M{number(left)} {number(_FOOT + 1.5)}H{number(max(right, left + 1))}", class_="band"
        )
    return element(
        "svg",
        title(said),
        element("path", d="".join(path), class_="bars"),
        element("path", d=f"M{number(x(median))} 0V{number(_FOOT)}", class_="median"),
        band,
        viewBox=f"0 0 {number(WIDTH)} {number(HEIGHT)}",
        role="img",
        class_="plot small",
    )
