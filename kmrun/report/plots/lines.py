"""A line plot of measured values: one line and one mark shape a series, ticks where something was measured."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from kmrun.report.plots import frame as frames
from kmrun.report.plots.element import element, number, picture, title
from kmrun.report.plots.labels import Box
from kmrun.report.plots.marks import colour, dash, mark
from kmrun.report.plots.scales import Scale, Tick, linear_ticks, log_ticks, size_text, ticks_at

WIDTH, HEIGHT = 400.0, 250.0
_MOST_MARKS = 60
"""More would run into each other, and into a thick line."""
_BOX = Box(50, 26, 388, 206)


@dataclass(frozen=True, slots=True)
class Series:
    """One line: `index` chooses colour and shape, `points` are (size, value), `texts` the hover text of each."""

    name: str
    index: int
    points: tuple[tuple[float, float], ...]
    texts: tuple[str, ...] = ()


def lines(
    name: str,
    heading: str,
    series: Sequence[Series],
    across_title: str,
    up_title: str,
    label: Callable[[float], str],
    *,
    logarithmic: bool,
) -> str:
    """Return the picture; both axes are logarithmic, or the upper one starts at zero.

    Args:
        name: unique in the page.
        heading: what it shows.
        series: at least one point in all.
        across_title: of the axis of sizes.
        up_title: of the axis of values, with the unit.
        label: text of a tick of the upper axis.
        logarithmic: for values over orders of magnitude; all above 0.
    """
    frame = _frame(series, across_title, up_title, label, logarithmic=logarithmic)
    return picture(
        name,
        WIDTH,
        HEIGHT,
        heading,
        f"{up_title} over {across_title}, one line each for {', '.join(each.name for each in series)}. "
        "The tables have the numbers.",
        *frames.drawn(frame),
        *(_line(each, frame) for each in series),
        css="plot lines",
    )


def _frame(
    series: Sequence[Series],
    across_title: str,
    up_title: str,
    label: Callable[[float], str],
    *,
    logarithmic: bool,
) -> frames.Frame:
    sizes = sorted({x for each in series for x, _ in each.points})
    values = [y for each in series for _, y in each.points]
    positive = sizes[0] > 0
    if positive:
        room = (sizes[-1] / sizes[0]) ** 0.05 if sizes[-1] > sizes[0] else 2.0
        across = Scale(sizes[0] / room, sizes[-1] * room, _BOX.left, _BOX.right, logarithmic=True)
    else:
        room = (sizes[-1] - sizes[0]) * 0.05 or 1.0
        across = Scale(sizes[0] - room, sizes[-1] + room, _BOX.left, _BOX.right)
    up_ticks: Sequence[Tick]
    if logarithmic:
        up = Scale(min(values) / 1.5, max(values) * 1.5, _BOX.bottom, _BOX.top, logarithmic=True)
        up_ticks = log_ticks(up.low, up.high, label)
    else:
        up = Scale(0.0, max(*values, 1e-9) * 1.12, _BOX.bottom, _BOX.top)
        up_ticks = linear_ticks(up.low, up.high, label, about=5)
    titles = [
        f"{across_title} (log)" if positive else across_title,
        f"{up_title} (log)" if logarithmic else up_title,
    ]
    return frames.Frame(_BOX, across, up, ticks_at(sizes, size_text), up_ticks, *titles)


def _line(series: Series, frame: frames.Frame) -> str:
    places = [(frame.across.at(x), frame.up.at(y)) for x, y in sorted(series.points)]
    path = "M" + "L".join(f"{number(x)} {number(y)}" for x, y in places)
    marks = (
        []
        if len(places) > _MOST_MARKS
        else [
            mark(series.index, x, y, 4.0, title(text))
            for (x, y), text in zip(places, series.texts or [series.name] * len(places), strict=True)
        ]
    )
    line = element("path", d=path, class_=f"line {colour(series.index)}", stroke_dasharray=dash(series.index))
    return element("g", line, *marks)
