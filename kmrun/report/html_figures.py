"""The pictures of a run: roofline, scaling, telemetry, each with its legend and caption."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from markupsafe import Markup

from kmrun.core.card import Card
from kmrun.core.result import CaseResult, Result
from kmrun.core.units import TIME, choose_unit, format_quantity
from kmrun.report.html_parts import Figure, Key
from kmrun.report.numbers import count, percent, readable
from kmrun.report.plots import legend
from kmrun.report.plots.lines import Series, lines
from kmrun.report.plots.roofline import NARROW, WIDE, drawn, layout
from kmrun.report.plots.scales import can_be_drawn, size_text
from kmrun.report.plots.strip import Stretch, Track, strip
from kmrun.report.roofs import Picture, picture_of
from kmrun.report.words import axes_label, brief

MOST_PANELS = 8
_MOST_READINGS = 1500
_NARROW_STRIP = 360.0
_LONGEST_S = 1e6
"""Of the readings of one case."""


def roofline_figure(name: str, result: Result, card: Card | None) -> Figure | None:
    """Return the roofline of a result, None when it has neither roof nor point."""
    shown = picture_of(result, card)
    if not shown.roofs and not shown.points:
        return None
    return figure_of(name, shown, legend.names_of(shown))


def figure_of(name: str, shown: Picture, kernels: Mapping[int, str]) -> Figure:
    """Return a roofline with its legend; `kernels` names the series of its points."""
    wide, narrow = layout(shown, WIDE), layout(shown, NARROW)
    said = []
    if shown.points:
        said.append(
            "Each mark is a case; rest the pointer on one for its figures. Numbers are those of the tables."
        )
        said += _unlabelled(len(shown.points), wide.labelled, narrow.labelled)
    if shown.left_out:
        said.append(f"Not drawn: {count(shown.left_out, 'case')} without intensity, speed or a right result.")
    return Figure(
        Markup(drawn(f"{name}-wide", shown, wide, WIDE)),
        Markup(drawn(f"{name}-narrow", shown, narrow, NARROW)),
        " ".join(said),
        _keys(legend.roofline_keys(shown, kernels)),
    )


def _unlabelled(points: int, wide: int, narrow: int) -> list[str]:
    """Say how many marks carry their number, where not all do."""
    if wide < points:
        return [
            f"{wide} of {count(points, 'mark')} carry theirs: the broken first, then those that stand alone."
        ]
    if narrow < points:
        return [f"On a narrow screen {narrow} of {count(points, 'mark')} carry theirs."]
    return []


def scaling_figures(name: str, result: Result) -> tuple[tuple[Figure, ...], str]:
    """Return the plots over every axis of three sizes or more, and a sentence on those for which there was no room."""
    figures: list[Figure] = []
    left_out = 0
    for kernel in dict.fromkeys(case.kernel for case in result.cases):
        cases = [
            case
            for case in result.cases
            if case.kernel == kernel and can_be_drawn(case.median_ms) and is_shown(case)
        ]
        shown = 0
        for axis in _long_axes(cases):
            for rest, group in _groups(cases, axis):
                if shown == MOST_PANELS:
                    left_out += 1
                    continue
                shown += 1
                figures += _pair(f"{name}-{len(figures)}", kernel, axis, rest, group)
    note = (
        f"{count(left_out, 'further combination')} of other axes are in the tables only." if left_out else ""
    )
    return tuple(figures), note


def is_shown(case: CaseResult) -> bool:
    """Say whether a case's speed may be shown: not when it is implausible, or of a wrong result."""
    return case.verdict != "error" and case.correct is not False


def telemetry_figure(name: str, result: Result) -> Figure | None:
    """Return clock, power and temperature over the cases, in the order in which they ran; None without readings."""
    stretches: list[Stretch] = []
    columns: dict[str, list[tuple[float, float | None]]] = {"sm_mhz": [], "power_w": [], "temp_c": []}
    total = sum(len(case.telemetry.series.time_s) for case in result.cases if case.telemetry is not None)
    step = max(1, math.ceil(total / _MOST_READINGS))
    begin = 0.0
    for case in result.cases:
        if case.telemetry is None or not case.telemetry.series.time_s:
            continue
        if max(case.telemetry.series.time_s) > _LONGEST_S:
            continue
        series = case.telemetry.series
        for key, readings in columns.items():
            pairs = zip(series.time_s, getattr(series, key), strict=False)
            readings += [(begin + at, value if can_be_drawn(value) else None) for at, value in pairs][::step]
            readings.append((begin, None))  # the machine was not watched between two cases: the line breaks
        end = begin + max(series.time_s[-1], 1e-3)
        stretches.append(Stretch(case.id, begin, end))
        begin = end
    tracks = [
        Track("clock", "MHz", tuple(columns["sm_mhz"])),
        Track("power", "W", tuple(columns["power_w"])),
        Track("temperature", "°C", tuple(columns["temp_c"])),
    ]
    wide = strip(f"{name}-wide", tracks, stretches)
    if not wide:
        return None
    narrow = strip(f"{name}-narrow", tracks, stretches, _NARROW_STRIP)
    return Figure(
        Markup(wide), Markup(narrow), "Shaded and plain stretches are cases, in the order in which they ran."
    )


def _long_axes(cases: Sequence[CaseResult]) -> list[str]:
    names = dict.fromkeys(axis for case in cases for axis in case.axes)
    return [axis for axis in names if len(_sizes(cases, axis)) >= 3]


def _sizes(cases: Sequence[CaseResult], axis: str) -> set[float]:
    values = [case.axes.get(axis) for case in cases]
    return {
        float(value) for value in values if isinstance(value, int | float) and not isinstance(value, bool)
    }


def _groups(cases: Sequence[CaseResult], axis: str) -> list[tuple[str, list[CaseResult]]]:
    """Return the cases that differ in this axis alone, by a label of the others; of three sizes or more."""
    groups: dict[str, list[CaseResult]] = {}
    for case in cases:
        groups.setdefault(repr([(key, value) for key, value in case.axes.items() if key != axis]), []).append(
            case
        )
    fitting = [group for group in groups.values() if len(_sizes(group, axis)) >= 3]
    others = [key for key in dict.fromkeys(key for case in cases for key in case.axes) if key != axis]
    varying = [key for key in others if len({repr(group[0].axes.get(key)) for group in fitting}) > 1]
    return [(axes_label(group[0].axes, varying), group) for group in fitting]


def _pair(name: str, kernel: str, axis: str, rest: str, cases: Sequence[CaseResult]) -> list[Figure]:
    """Return time, and share of the roof or ceiling, over one axis: a line for each implementation."""
    rivals = list(dict.fromkeys(rival for case in cases for rival in case.versus))
    names = [kernel, *rivals]
    heading = f"{kernel} {rest}".rstrip()
    times = [_times(index, each, axis, cases) for index, each in enumerate(names)]
    figures = [_figure(f"{name}-t", heading, times, axis, "time", _seconds, logarithmic=True)]
    field, of = (
        ("roof_fraction", "roof")
        if any(case.roof_fraction for case in cases)
        else ("ceiling_fraction", "ceiling")
    )
    shares = [_shares(index, each, axis, cases, field) for index, each in enumerate(names)]
    if any(series.points for series in shares):
        figures.append(_figure(f"{name}-s", heading, shares, axis, f"% of {of}", readable, logarithmic=False))
    return figures


def _figure(
    name: str,
    heading: str,
    series: Sequence[Series],
    axis: str,
    up: str,
    label: Callable[[float], str],
    *,
    logarithmic: bool,
) -> Figure:
    shown = [each for each in series if each.points]
    svg = lines(name, f"{heading}: {up} over {axis}", shown, axis, up, label, logarithmic=logarithmic)
    return Figure(
        Markup(svg), None, brief(heading), _keys([legend.line_key(each.index, each.name) for each in shown])
    )


def _times(index: int, name: str, axis: str, cases: Sequence[CaseResult]) -> Series:
    points, texts = [], []
    for case in cases:
        size = _size(case, axis)
        own = case.median_ms if index == 0 else (case.versus[name].median_ms if name in case.versus else None)
        if size is not None and own is not None and can_be_drawn(own):
            seconds = own * 1e-3
            points.append((size, seconds))
            texts.append(f"{name}, {axis}={size_text(size)}: {format_quantity(seconds, TIME)}")
    return _sorted(name, index, points, texts)


def _shares(index: int, name: str, axis: str, cases: Sequence[CaseResult], field: str) -> Series:
    """Return the share of the roof in percent; a rival does the same work, so its share is less by the speed-up."""
    points, texts = [], []
    for case in cases:
        size, share = _size(case, axis), getattr(case, field)
        if index > 0:
            entry = case.versus.get(name)
            share = share / entry.speedup if share and entry is not None and entry.speedup else None
        if size is not None and can_be_drawn(share):
            points.append((size, share * 100))
            texts.append(f"{name}, {axis}={size_text(size)}: {percent(share)}")
    return _sorted(name, index, points, texts)


def _seconds(value: float) -> str:
    unit = choose_unit([value], TIME)
    return f"{readable(value / unit.factor)} {unit.symbol}"


def _sorted(name: str, index: int, points: list[tuple[float, float]], texts: list[str]) -> Series:
    pairs = sorted(zip(points, texts, strict=True))
    return Series(name, index, tuple(point for point, _ in pairs), tuple(text for _, text in pairs))


def _size(case: CaseResult, axis: str) -> float | None:
    value: Any = case.axes.get(axis)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if value == 0 or can_be_drawn(value) else None


def _keys(keys: Sequence[legend.Key]) -> tuple[Key, ...]:
    return tuple(Key(Markup(legend.sample(key)), key.text) for key in keys)
