"""Figures of sensors that can be: a card that has no answer gives 0, or the largest number that its field holds."""

from math import isfinite

_MHZ, _CELSIUS, _WATTS = 60_000, 250, 60_000
"""More than any memory's clock, any chip that works, and any board; less than a 16-bit field that is full."""
_JOULES = 1e15


def mhz(value: float | None) -> float | None:
    """Return a clock in MHz; None where it is none."""
    return _between(value, 0, _MHZ) or None


def celsius(value: float | None) -> float | None:
    """Return a temperature in degrees Celsius; None where no chip works at it."""
    return _between(value, -_CELSIUS, _CELSIUS)


def watts(value: float | None) -> float | None:
    """Return a power in W; None where no board draws it."""
    return _between(value, 0, _WATTS)


def joules(value: float | None) -> float | None:
    """Return an energy counter in J; None where no card has come to it."""
    return _between(value, 0, _JOULES)


def fraction(percent: float | None) -> float | None:
    """Return a share of 1, None where the percentage is none."""
    found = _between(percent, 0, 100)
    return None if found is None else found / 100


def used_bytes(used: int | None, total: int | None) -> tuple[int | None, int | None]:
    """Return the memory in use and in all; both None where one is more than the other, or there is none."""
    if total is not None and not 0 < total < 1 << 60:
        return None, None
    if used is not None and not 0 <= used <= (total or 1 << 60):
        return None, None
    return used, total


def _between(value: float | None, least: float, most: float) -> float | None:
    return float(value) if value is not None and isfinite(value) and least <= value <= most else None
