"""Sensor readings over time: one narrow strip a quantity, all over the same time axis."""

from collections.abc import Sequence
from dataclasses import dataclass

from kmrun.report.numbers import readable
from kmrun.report.plots.element import element, label, number, picture, title
from kmrun.report.plots.labels import text_width
from kmrun.report.plots.marks import colour
from kmrun.report.plots.scales import Scale, Tick, linear_ticks, spaced

WIDTH = 900.0
_LEFT, _RIGHT, _ROW, _GAP, _TOP, _FOOT = 64.0, 12.0, 62.0, 26.0, 22.0, 36.0
_TEXT = 11.0
_ABOUT = (2, 3, 4, 6, 9)
"""Ticks asked for; a round step may leave fewer."""

Reading = tuple[float, float | None]


@dataclass(frozen=True, slots=True)
class Track:
    """One quantity over time. Readings are (seconds, value), None where the sensor said nothing."""

    name: str
    unit: str
    readings: tuple[Reading, ...]


@dataclass(frozen=True, slots=True)
class Stretch:
    """A case's part of the time axis, in seconds."""

    name: str
    begin: float
    end: float


def strip(name: str, tracks: Sequence[Track], stretches: Sequence[Stretch], width: float = WIDTH) -> str:
    """Return the picture; a track without any reading is left out, and so is the picture without any track."""
    shown = [track for track in tracks if any(value is not None for _, value in track.readings)]
    if not shown or not stretches:
        return ""
    across = Scale(0.0, max(stretch.end for stretch in stretches) or 1.0, _LEFT, width - _RIGHT)
    height = _TOP + len(shown) * (_ROW + _GAP) - _GAP + _FOOT
    bottom = height - _FOOT
    said = "; ".join(f"{track.name} {_range(track)}" for track in shown)
    return picture(
        name,
        width,
        height,
        "Telemetry over time",
        f"Over {readable(across.high)} s and {len(stretches)} cases: {said}.",
        *(_shade(index, stretch, across, bottom) for index, stretch in enumerate(stretches)),
        *(
            part
            for row, track in enumerate(shown)
            for part in _track(row, track, across, _TOP + row * (_ROW + _GAP))
        ),
        *_time(across, bottom),
        css="plot strip",
    )


def _shade(index: int, stretch: Stretch, across: Scale, bottom: float) -> str:
    """Shade every other case, and name each under the pointer."""
    x, end = across.at(stretch.begin), across.at(stretch.end)
    css = "stretch odd" if index % 2 else "stretch"
    return element(
        "rect", title(stretch.name), x=x, y=_TOP, width=max(end - x, 0.5), height=bottom - _TOP, class_=css
    )


def _track(row: int, track: Track, across: Scale, top: float) -> list[str]:
    values = [value for _, value in track.readings if value is not None]
    low, high = min(values), max(values)
    room = max((high - low) * 0.1, abs(high) * 0.02, 1e-6)
    up = Scale(low - room, high + room, top + _ROW, top)
    ticks = _ticks(up)
    pieces: list[str] = []
    pen = "M"
    for at, value in track.readings:
        if value is None:
            pen = "M"
            continue
        pieces.append(f"{pen}{number(across.at(at))} {number(up.at(value))}")
        pen = "L"
    grid = "".join(f"M{number(_LEFT)} {number(up.at(tick.value))}H{number(across.end)}" for tick in ticks)
    return [
        label(f"{track.name}, {track.unit}", _LEFT, top - 6, class_="axis-title"),
        element("path", d=grid, class_="grid"),
        element(
            "g",
            *(label(tick.label, _LEFT - 7, up.at(tick.value) + 4, text_anchor="end") for tick in ticks),
            class_="ticks",
        ),
        element("path", d="".join(pieces), class_=f"line {colour(row)}"),
    ]


def _ticks(up: Scale) -> list[Tick]:
    """Return the fewest round ticks from which a reader can tell the scale: two."""
    found = (linear_ticks(up.low, up.high, readable, about) for about in _ABOUT)
    return next(ticks for ticks in found if len(ticks) >= 2)


def _time(across: Scale, bottom: float) -> list[str]:
    ticks = spaced(
        linear_ticks(0.0, across.high, readable, about=6), across, lambda text: text_width(text, _TEXT)
    )
    texts = [
        label(tick.label, across.at(tick.value), bottom + 16, text_anchor="middle")
        for tick in ticks
        if tick.label
    ]
    middle = (across.start + across.end) / 2
    return [
        element("path", d=f"M{number(across.start)} {number(bottom)}H{number(across.end)}", class_="axis"),
        element("g", *texts, class_="ticks"),
        label("time in the cases, s", middle, bottom + 33, text_anchor="middle", class_="axis-title"),
    ]


def _range(track: Track) -> str:
    values = [value for _, value in track.readings if value is not None]
    low, high = readable(min(values)), readable(max(values))
    return f"{low} {track.unit}" if low == high else f"{low} to {high} {track.unit}"
