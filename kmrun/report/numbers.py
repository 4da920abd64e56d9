"""Numbers as people read them: three digits that count, one unit for a column."""

import math
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Unit:
    """A unit: its name and how much of the base unit it is."""

    name: str
    size: float


TIME = (Unit("ns", 1e-6), Unit("us", 1e-3), Unit("ms", 1.0), Unit("s", 1e3))
"""Of milliseconds."""
BANDWIDTH = (Unit("MB/s", 1e-3), Unit("GB/s", 1.0), Unit("TB/s", 1e3))
"""Of GB/s."""
COMPUTE = (Unit("MFLOP/s", 1e-6), Unit("GFLOP/s", 1e-3), Unit("TFLOP/s", 1.0), Unit("PFLOP/s", 1e3))
"""Of TFLOP/s."""


def unit_for(values: Iterable[float | None], units: tuple[Unit, ...]) -> Unit:
    """Return the unit for a whole column: the largest in which the middle value is at least 1."""
    known = sorted(value for value in values if value)
    if not known:
        return next(unit for unit in units if unit.size == 1.0)
    middle = known[len(known) // 2]
    return max((unit for unit in units if middle >= unit.size), key=lambda unit: unit.size, default=units[0])


def significant(value: float | None, digits: int = 3) -> str:
    """Return a number with so many significant digits, no exponent: 0.0512, 1.03, 12300; `-` for None."""
    if value is None or not math.isfinite(value):
        return "-"
    if value == 0:
        return "0"
    # Rounding first keeps 9.996 from becoming 10.00.
    magnitude = math.floor(math.log10(abs(float(f"{value:.{digits - 1}e}"))))
    return f"{value:.{max(0, min(9, digits - 1 - magnitude))}f}"


def in_unit(value: float | None, unit: Unit) -> str:
    """Return a value of the base unit in that unit, without its name."""
    return significant(None if value is None else value / unit.size)


def percent(fraction: float | None) -> str:
    """Return a fraction in percent: `54 %`, `0.8 %` under one, `-` for None."""
    if fraction is None:
        return "-"
    return f"{fraction * 100:.0f} %" if fraction >= 0.00995 or fraction == 0 else f"{fraction * 100:.1f} %"


def spread(fraction: float | None) -> str:
    """Return the half-width of an interval in percent, one decimal: `0.3 %`."""
    if fraction is None:
        return "-"
    return f"{fraction * 100:.0f} %" if fraction >= 0.0995 else f"{fraction * 100:.1f} %"


def duration(seconds: float) -> str:
    """Return a wall time: `0.9 s`, `21 s`, `3 min 5 s`."""
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    if seconds < 119.5:
        return f"{seconds:.0f} s"
    return f"{int(seconds + 0.5) // 60} min {int(seconds + 0.5) % 60} s"


def count(number: int, noun: str) -> str:
    """Return `1 case`, `3 cases`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
