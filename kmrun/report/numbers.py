"""How shares, spreads, wall times and counts read."""

import math
from collections.abc import Sequence

_LARGEST = 1e9
"""From here on a number is no measurement's, but an edited document's: told in few digits all the same."""


def _beyond(fraction: float) -> bool:
    return not abs(fraction) < _LARGEST


def _of_no_machine(fraction: float) -> str:
    """Return `1e+300 %`, or words for what is no number."""
    return f"{fraction * 100:.0e} %" if math.isfinite(fraction * 100) else "no number"


def whole(value: float) -> str:
    """Return a reading without decimals: `1755`."""
    return f"{value:.0f}" if abs(value) < _LARGEST else f"{value:.0e}"


def percent(fraction: float | None) -> str:
    """Return a fraction in percent: `54 %`, `0.8 %` under one, `-` for None."""
    if fraction is None or _beyond(fraction):
        return "-" if fraction is None else _of_no_machine(fraction)
    return f"{fraction * 100:.0f} %" if fraction >= 0.00995 or fraction == 0 else f"{fraction * 100:.1f} %"


def signed_percent(fraction: float | None) -> str:
    """Return a change in percent with its sign, one decimal under ten: `+6.1 %`, `-12 %`, `0.0 %`, `-` for None."""
    if fraction is None or _beyond(fraction):
        return "-" if fraction is None else _of_no_machine(fraction)
    told = f"{fraction * 100:+.0f} %" if abs(fraction) >= 0.0995 else f"{fraction * 100:+.1f} %"
    return "0.0 %" if told in ("+0.0 %", "-0.0 %") else told  # what rounds to nothing has no direction


def spread(fraction: float | None) -> str:
    """Return the half-width of an interval in percent, one decimal: `0.3 %`; `> 100 %` where it says nothing."""
    if fraction is None or _beyond(fraction):
        return "-" if fraction is None else _of_no_machine(fraction)
    if fraction >= 1.005:
        return "> 100 %"
    return f"{fraction * 100:.0f} %" if fraction >= 0.0995 else f"{fraction * 100:.1f} %"


def duration(seconds: float) -> str:
    """Return a wall time: `0.9 s`, `21 s`, `3 min 5 s`."""
    if seconds >= _LARGEST:
        return f"{seconds:.1e} s"
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    if seconds < 119.5:
        return f"{seconds:.0f} s"
    return f"{int(seconds + 0.5) // 60} min {int(seconds + 0.5) % 60} s"


def count(number: int, noun: str) -> str:
    """Return `1 case`, `3 cases`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def first_of(names: Sequence[str], most: int = 1) -> str:
    """Return the first names and how many follow them: `add`, `add and 2 more`, `add, gelu and 1 more`."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def readable(value: float, digits: int = 3) -> str:
    """Return a number with so many digits, and with all before its point: `0.0833`, `20`, `1170`."""
    text = f"{value:.{digits}g}"
    return f"{value:.0f}" if "e" in text and 1 <= abs(value) < 1e9 else text
