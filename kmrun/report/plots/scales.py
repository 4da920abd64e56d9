"""Axes: where a value lies, and ticks that a reader can trust."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from kmrun.report.numbers import readable

_PREFIXES = (
    (1e24, "Y"),
    (1e21, "Z"),
    (1e18, "E"),
    (1e15, "P"),
    (1e12, "T"),
    (1e9, "G"),
    (1e6, "M"),
    (1e3, "k"),
)
_RAISED = str.maketrans("0123456789-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻")
_MOST_DECADES = 8
_STEPS = (1, 2, 5)

Label = Callable[[float], str]


SMALLEST, LARGEST = 1e-18, 1e30
"""What an axis shows at most: no time, rate, size or reading of any machine lies beyond."""


def can_be_drawn(value: float | None) -> bool:
    """Say whether a positive value has a place on some axis; a document that was edited may hold any number."""
    return value is not None and SMALLEST <= value <= LARGEST


@dataclass(frozen=True, slots=True)
class Scale:
    """A linear or logarithmic axis from `low` at pixel `start` to `high` at pixel `end`; `low` < `high`."""

    low: float
    high: float
    start: float
    end: float
    logarithmic: bool = False

    def at(self, value: float) -> float:
        """Return the pixel of a value; a logarithmic axis takes positive ones only."""
        low, high, value = (
            (math.log(self.low), math.log(self.high), math.log(value))
            if self.logarithmic
            else (self.low, self.high, value)
        )
        return self.start + (value - low) / (high - low) * (self.end - self.start)

    def holds(self, value: float) -> bool:
        """Say whether a value lies on the axis, rounding forgiven."""
        slack = 1e-9 * (abs(self.high) + abs(self.low))
        return self.low - slack <= value <= self.high + slack


@dataclass(frozen=True, slots=True)
class Tick:
    """A tick; one without a label is a minor one."""

    value: float
    label: str = ""


def log_ticks(low: float, high: float, label: Label) -> list[Tick]:
    """Return a tick at every 1 to 9 times a power of ten, labels where they divide the axis evenly to the eye.

    From two powers of ten on these are labelled; on less also 2 and 5 times them; on very little the ticks of a
    linear axis, which is what so short a piece looks like.
    """
    exponents = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    within = [
        (digit, exponent, float(f"{digit}e{exponent}"))
        for exponent in exponents
        for digit in range(1, 10)
        if low * (1 - 1e-9) <= float(f"{digit}e{exponent}") <= high * (1 + 1e-9)
    ]
    decades = [exponent for digit, exponent, _ in within if digit == 1]
    if len(decades) >= 2:
        every = math.ceil(len(decades) / _MOST_DECADES)
        return [
            Tick(value, label(value) if digit == 1 and exponent % every == 0 else "")
            for digit, exponent, value in within
        ]
    fitting = [value for digit, _, value in within if digit in _STEPS]
    if len(fitting) >= 2:
        return [Tick(value, label(value) if digit in _STEPS else "") for digit, _, value in within]
    return linear_ticks(low, high, label)


def linear_ticks(low: float, high: float, label: Label, about: int = 4) -> list[Tick]:
    """Return ticks at multiples of 1, 2 or 5 times a power of ten, about so many (Heckbert's nice numbers)."""
    raw = (high - low) / max(1, about)
    magnitude = 10.0 ** math.floor(math.log10(raw))
    step = next(factor * magnitude for factor in (1, 2, 5, 10) if factor * magnitude >= raw * (1 - 1e-9))
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [Tick(index * step, label(float(f"{index * step:.12g}"))) for index in range(first, last + 1)]


def ticks_at(values: Sequence[float], label: Label) -> list[Tick]:
    """Return a tick at each value that was measured: sizes are rarely powers of ten."""
    return [Tick(value, label(value)) for value in values]


def spaced(ticks: Sequence[Tick], scale: Scale, room: Callable[[str], float], gap: float = 6) -> list[Tick]:
    """Return the ticks with labels taken from those that would touch the one before. `room` is a text's extent."""
    kept: list[Tick] = []
    taken = -math.inf
    for tick in sorted(ticks, key=lambda each: scale.at(each.value)):
        place, half = scale.at(tick.value), room(tick.label) / 2
        if tick.label and place - half < taken + gap:
            tick = Tick(tick.value)
        elif tick.label:
            taken = place + half
        kept.append(tick)
    return kept


def size_text(value: float) -> str:
    """Return a size that was measured, exactly: `4096`, `2²⁴` from a million on where it is a power of two."""
    if abs(value) < 1e6 and value == round(value, 3):
        return f"{value:.10g}"
    power = math.log2(value) if value > 0 else 0.5
    return f"2{str(round(power)).translate(_RAISED)}" if power == round(power) else si(value)


def si(value: float) -> str:
    """Return a number with a prefix, for the ticks of rates and sizes: `100G`, `1T`, `20`."""
    for factor, prefix in _PREFIXES:
        if abs(value) >= factor * (1 - 1e-9):
            return f"{readable(value / factor)}{prefix}"
    return readable(value)
