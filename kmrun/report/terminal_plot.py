"""Rooflines in a terminal: log-log, up to eight cards, each with its own symbol and colour."""

import math
from collections.abc import Sequence

from kmrun.report.numbers import readable

SYMBOLS = "*o+x#@%&"
MOST = len(SYMBOLS)
_COLOURS = (36, 33, 35, 32, 34, 31, 96, 93)
_LABEL = 12
_HEIGHT = 15
_RIDGE = "^"
MARKS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnpqrstuvwyz0123456789"
"""Letters for kernels; `o` and `x` are rooflines."""

_MOST_GUIDES = 6
"""Lines down to the axis for more kernels would hide the roofs."""

_RATES = tuple(
    (10.0 ** (3 * power), f"{prefix}FLOP/s") for power, prefix in zip(range(7, 0, -1), "ZEPTGMk", strict=True)
)


class Curve:
    """One roofline: bytes/s and flop/s."""

    def __init__(self, name: str, bandwidth: float, peak: float) -> None:
        """Take the two roofs."""
        self.name = name
        self.bandwidth = bandwidth
        self.peak = peak
        self.ridge = peak / bandwidth

    def at(self, intensity: float) -> float:
        """Attainable flop/s."""
        return min(intensity * self.bandwidth, self.peak)


class Mark:
    """A kernel on the picture. `rate` in flop/s where it was measured, None to put it on the first roof."""

    def __init__(self, name: str, intensity: float, rate: float | None = None) -> None:
        """Take the place; intensity in flop/byte."""
        self.name = name
        self.intensity = intensity
        self.rate = rate


class Span:
    """A logarithmic axis over so many cells."""

    def __init__(self, low: float, high: float, cells: int) -> None:
        """Take the values at the first and the last cell."""
        self.low = low
        self.high = high
        self.cells = cells
        self._start = math.log10(low)
        self._decades = math.log10(high) - self._start

    def cell(self, value: float) -> int:
        """Return the cell of a value, which may lie outside."""
        return round((math.log10(value) - self._start) / self._decades * (self.cells - 1))

    def value(self, cell: float) -> float:
        """Return the value at a cell."""
        return float(10 ** (self._start + cell / (self.cells - 1) * self._decades))


def axes(curves: Sequence[Curve], marks: Sequence[Mark], width: int, height: int) -> tuple[Span, Span]:
    """Return the axes that show every ridge, every mark and some of the slope left of them."""
    points = [curve.ridge for curve in curves] + [mark.intensity for mark in marks]
    low, high = min(0.1, min(points) / 3), max(max(points) * 4, 10)
    rates = [curve.at(low) for curve in curves] + [mark.rate for mark in marks if mark.rate]
    top = max([curve.peak for curve in curves] + [mark.rate for mark in marks if mark.rate])
    return Span(low, high, width), Span(min(rates), top, height)


def render(
    curves: Sequence[Curve],
    marks: Sequence[Mark] = (),
    width: int = 100,
    colour: bool = False,
    *,
    marks_named: bool = True,
) -> list[str]:
    """Return the lines of the picture with its legend. At most MOST curves.

    Args:
        curves: rooflines, the first in front.
        marks: kernels; those beyond the last letter are left out.
        width: columns.
        colour: paint the curves.
        marks_named: say in the legend what each letter is; else the caller does.
    """
    across, up = axes(curves, marks, max(20, width - _LABEL - 2), _HEIGHT)
    grid = [[" "] * across.cells for _ in range(up.cells)]
    owner = [[-1] * across.cells for _ in range(up.cells)]
    if len(marks) <= _MOST_GUIDES:
        _guides(grid, across, marks)
    for index in reversed(range(len(curves))):
        _draw(grid, owner, across, up, curves[index], index)
    if len(curves) == 1:
        grid[up.cell(curves[0].peak)][across.cell(curves[0].ridge)] = _RIDGE
    for letter, mark in zip(MARKS, marks, strict=False):
        rate = mark.rate or curves[0].at(mark.intensity)
        row, column = up.cell(rate), across.cell(mark.intensity)
        grid[min(max(row, 0), up.cells - 1)][column] = letter
        owner[min(max(row, 0), up.cells - 1)][column] = -1
    lines = [
        f"{_tick(up, row):>{_LABEL}} |" + _painted(grid[row], owner[row], colour)
        for row in reversed(range(up.cells))
    ]
    lines.append(" " * _LABEL + " +" + "-" * across.cells)
    lines.append(" " * _LABEL + "  " + _intensities(across))
    lines += _legend(curves, marks if marks_named else (), colour, width)
    return [line.rstrip() for line in lines]


def _draw(
    grid: list[list[str]], owner: list[list[int]], across: Span, up: Span, curve: Curve, index: int
) -> None:
    for column in range(across.cells):
        row = up.cell(curve.at(across.value(column)))
        if 0 <= row < up.cells:
            grid[row][column], owner[row][column] = SYMBOLS[index], index


def _guides(grid: list[list[str]], across: Span, marks: Sequence[Mark]) -> None:
    for mark in marks:
        for row in grid:
            row[across.cell(mark.intensity)] = ":"


def _tick(up: Span, row: int) -> str:
    """Return the label of a row: the top, and each power of ten at the row nearest to it."""
    if row == up.cells - 1:
        return rate_text(up.high)
    exponent = round(math.log10(up.value(row)))
    return rate_text(10.0**exponent) if up.cell(10.0**exponent) == row and row < up.cells - 2 else ""


def _intensities(across: Span) -> str:
    cells = [" "] * across.cells
    first, last = math.ceil(math.log10(across.low)), math.floor(math.log10(across.high))
    free = 0
    for exponent in range(first, last + 1):
        text = f"{10.0**exponent:g}"
        at = across.cell(10.0**exponent)
        if free <= at and at + len(text) <= across.cells - 10:
            cells[at : at + len(text)] = text
            free = at + len(text) + 1
    unit = "flop/byte"
    cells[-len(unit) :] = unit
    return "".join(cells)


def _legend(curves: Sequence[Curve], marks: Sequence[Mark], colour: bool, width: int) -> list[str]:
    indent = " " * (_LABEL + 2)
    lines = []
    at = f" ({_RIDGE}) at" if len(curves) == 1 else " at"
    for index, curve in enumerate(curves):
        symbol = _paint(SYMBOLS[index], index, colour)
        lines.append(f"{indent}{symbol} {curve.name}, ridge{at} {readable(curve.ridge)} flop/byte")
    for letter, mark in zip(MARKS, marks, strict=False):
        reached = f", measured {rate_text(mark.rate)}" if mark.rate else ""
        where = f" at {readable(mark.intensity)} flop/byte{reached}"
        room = width - len(indent) - 2 - len(where)
        name = mark.name if len(mark.name) <= room else mark.name[: max(8, room - 2)] + ".."
        lines.append(f"{indent}{letter} {name}{where}")
    return lines


def _painted(cells: Sequence[str], owners: Sequence[int], colour: bool) -> str:
    if not colour:
        return "".join(cells)
    return "".join(
        _paint(cell, owner, colour) if owner >= 0 else cell for cell, owner in zip(cells, owners, strict=True)
    )


def _paint(text: str, index: int, colour: bool) -> str:
    return f"\x1b[{_COLOURS[index]}m{text}\x1b[0m" if colour else text


def rate_text(rate: float) -> str:
    """Return flop/s with three digits: `989 TFLOP/s`."""
    for factor, unit in _RATES:
        if rate >= factor:
            return f"{readable(rate / factor)} {unit}"
    return f"{readable(rate)} FLOP/s"
