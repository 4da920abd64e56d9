"""A slowdown with its interval as a picture as small as a word, on an axis that rows share."""

from collections.abc import Sequence
from dataclasses import dataclass

from kmrun.core.slowdown import Slowdown
from kmrun.report.numbers import signed_percent
from kmrun.report.plots.element import element, number, title

WIDTH, HEIGHT = 150.0, 20.0
_MIDDLE = 10.0
_WIDEST = 1.0
"""Of the axis: twice as slow; what lies beyond ends at the edge."""


@dataclass(frozen=True, slots=True)
class Axis:
    """Slowdowns from `-reach` to `reach`, as fractions."""

    reach: float

    def at(self, slowdown: float) -> float:
        """Return the pixel of a slowdown, at the edge where it lies beyond."""
        return WIDTH / 2 * (1 + min(max(slowdown / self.reach, -1.0), 1.0))


def axis_of(found: Sequence[Slowdown]) -> Axis:
    """Return one axis for several comparisons, on which intervals and margins fit."""
    sizes = [
        abs(end)
        for each in found
        for end in (each.slowdown, each.low, each.high, each.margin)
        if end is not None
    ]
    return Axis(min(max(sizes, default=0.0) * 1.15, _WIDEST) or _WIDEST)


def interval(found: Slowdown, axis: Axis, css: str) -> str:
    """Return the picture: zero and what is allowed as lines, the interval as a bar, the slowdown as a dot.

    Args:
        found: the comparison; without a slowdown the picture is empty.
        axis: that rows share.
        css: class of the verdict.
    """
    if found.slowdown is None:
        return ""
    low, high = (found.slowdown if end is None else end for end in (found.low, found.high))
    left, right = axis.at(low), axis.at(high)
    return element(
        "svg",
        title(
            f"{signed(found.slowdown)}, between {signed(low)} and {signed(high)}; {signed(found.margin)} is allowed"
        ),
        element("path", d=f"M{number(axis.at(0.0))} 1V{number(HEIGHT - 1)}", class_="axis"),
        element("path", d=f"M{number(axis.at(found.margin))} 1V{number(HEIGHT - 1)}", class_="margin"),
        element(
            "path",
            d=f"M{number(left)} {number(_MIDDLE)}H{number(max(right, left + 1))}",
            class_=f"whisker {css}",
        ),
        element("circle", cx=axis.at(found.slowdown), cy=_MIDDLE, r=4, class_=f"dot {css}"),
        viewBox=f"0 0 {number(WIDTH)} {number(HEIGHT)}",
        role="img",
        class_="plot interval",
    )


def signed(slowdown: float) -> str:
    """Return a slowdown as people read it: `+3.1 %` is slower, `-2.0 %` faster, `0.0 %` rounds to neither."""
    return signed_percent(slowdown).replace("-", "\N{MINUS SIGN}")
