"""Legends: a sample of each line or mark, and what it stands for."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kmrun.report.plots.element import element, label, number
from kmrun.report.plots.marks import colour, dash, mark
from kmrun.report.plots.roofline import BROKEN, roof_attributes
from kmrun.report.roof_words import roofs_title
from kmrun.report.roofs import Picture
from kmrun.report.words import brief

WIDTH, HEIGHT = 36.0, 16.0
"""Of a sample."""


@dataclass(frozen=True, slots=True)
class Key:
    """An entry: the markup of its sample, and its text."""

    sample: str
    text: str


def roofline_keys(shown: Picture, kernels: Mapping[int, str]) -> list[Key]:
    """Return the legend of a roofline; `kernels` names the series of its points."""
    keys = [
        Key(element("path", d="M2 8H34", **roof_attributes(each)), roofs_title(each)) for each in shown.roofs
    ]
    keys += [Key(mark(series, 18, 8, 5), brief(kernel)) for series, kernel in kernels.items()]
    words = {point.word for point in shown.points}
    if words & set(BROKEN):
        ring = element("circle", cx=18, cy=8, r=7, class_="broken")
        keys.append(Key(ring + mark(0, 18, 8, 3.5, css="doubtful ink"), "broken"))
    if words - {"pass", *BROKEN}:
        keys.append(Key(mark(0, 18, 8, 4.5, css="doubtful ink"), "undecided"))
    return keys


def line_key(index: int, name: str) -> Key:
    """Return the entry of a line with marks."""
    line = element("path", d="M2 8H34", class_=f"line {colour(index)}", stroke_dasharray=dash(index))
    return Key(line + mark(index, 18, 8, 4), brief(name))


def names_of(shown: Picture) -> dict[int, str]:
    """Return the kernels of a picture's points by series."""
    return {point.series: point.kernel for point in shown.points}


def sample(key: Key) -> str:
    """Return the sample as a picture of its own, silent for those who are read to: the text says it."""
    return element(
        "svg", key.sample, viewBox=f"0 0 {WIDTH:g} {HEIGHT:g}", aria_hidden="true", class_="plot sample"
    )


def rows(keys: Sequence[Key], x: float, y: float, step: float) -> list[str]:
    """Return a legend as rows of a larger picture, the first with its middle at `y`."""
    drawn = []
    for index, key in enumerate(keys):
        middle = y + index * step
        drawn.append(element("g", key.sample, transform=f"translate({number(x)} {number(middle - 8)})"))
        drawn.append(label(key.text, x + WIDTH + 8, middle + 4))
    return drawn
