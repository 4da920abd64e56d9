"""SI units for people: one unit a column, three significant digits, and back from text.

Core computes in base units (seconds, bytes, bytes per second, flop per second, hertz); only what is shown or
typed carries another.
"""

import math
import re
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from kmrun.core.formula_error import did_you_mean
from kmrun.errors import InvalidInput


@dataclass(frozen=True, slots=True)
class Unit:
    """A unit: `value / factor` is what is shown before `symbol`. `factor` is in the family's base unit."""

    symbol: str
    factor: float


@dataclass(frozen=True, slots=True)
class Family:
    """Units of one quantity, the smallest first. `also` are only read (binary prefixes, spellings)."""

    name: str
    units: tuple[Unit, ...]
    also: tuple[Unit, ...] = ()


def _rising(exponents: Sequence[int], symbols: str) -> tuple[Unit, ...]:
    return tuple(
        Unit(symbol, float(10**exponent)) for exponent, symbol in zip(exponents, symbols.split(), strict=True)
    )


TIME = Family(
    "time",
    (Unit("ns", 1e-9), Unit("us", 1e-6), Unit("ms", 1e-3), Unit("s", 1.0)),
    (Unit("\u00b5s", 1e-6), Unit("min", 60.0), Unit("h", 3600.0)),
)
BYTES = Family(
    "size",
    _rising((0, 3, 6, 9, 12), "B kB MB GB TB"),
    (
        Unit("KB", 1e3),
        Unit("KiB", 2.0**10),
        Unit("MiB", 2.0**20),
        Unit("GiB", 2.0**30),
        Unit("TiB", 2.0**40),
    ),
)
BANDWIDTH = Family(
    "bandwidth", _rising((0, 3, 6, 9, 12), "B/s kB/s MB/s GB/s TB/s"), (Unit("GiB/s", 2.0**30),)
)
FLOPS = Family("work", _rising((0, 3, 6, 9, 12, 15), "flop kflop Mflop Gflop Tflop Pflop"))
FLOP_RATE = Family(
    "rate",
    _rising((6, 9, 12, 15), "MFLOP/s GFLOP/s TFLOP/s PFLOP/s"),
    (
        Unit("MFLOPS", 1e6),
        Unit("GFLOPS", 1e9),
        Unit("TFLOPS", 1e12),
        Unit("PFLOPS", 1e15),
        Unit("TOPS", 1e12),
        Unit("TOP/s", 1e12),
    ),
)
FREQUENCY = Family("frequency", _rising((0, 3, 6, 9), "Hz kHz MHz GHz"))

_QUANTITY = re.compile(r"\s*([+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)\s*(\S*)\s*", re.ASCII)


def choose_unit(values: Iterable[float | None], family: Family) -> Unit:
    """Return the unit for a whole column: the largest in which its median is at least 1.

    Where the largest would have five digits before the point, it is the next one, if that leaves the smallest at
    least 0.01. None, zero and what is not finite have no say; a column of nothing else gets the smallest unit.
    """
    sizes = [abs(value) for value in values if value is not None and math.isfinite(value) and value != 0]
    if not sizes:
        return family.units[0]
    middle = statistics.median_low(sizes)
    # 999.9996 ns prints as 1000 ns; the unit is chosen for what is printed.
    fitting = [unit for unit in family.units if middle / unit.factor >= 0.9995]
    place = max(len(fitting) - 1, 0)
    for larger in family.units[place + 1 :]:
        if max(sizes) / family.units[place].factor < 9999.5 or min(sizes) / larger.factor < 0.01:
            break
        place += 1
    return family.units[place]


def format_number(value: float | None, digits: int = 3) -> str:
    """Return a number with that many significant digits, without an exponent if possible; `-` for None.

    Trailing zeros stay, they are significant: 1.00, 12.0, 0.520. From 10 ** digits on it is a whole number.
    """
    if value is None:
        return "-"
    if not math.isfinite(value):
        return "nan" if math.isnan(value) else ("inf" if value > 0 else "-inf")
    if value == 0:
        return "0"
    if not 1e-4 <= abs(value) < 1e9:
        return f"{value:.{digits - 1}e}"
    exponent = int(f"{value:.{digits - 1}e}".split("e")[1])  # after rounding: 9.999 has exponent 1
    return f"{value:.{max(digits - 1 - exponent, 0)}f}"


def format_in(value: float | None, unit: Unit, digits: int = 3) -> str:
    """Return the bare number of a value in a unit that the column's head names; `-` for None."""
    if value is None:
        return "-"
    if math.isfinite(value) and math.isinf(value / unit.factor):
        # Beyond what a float holds in this unit: no measurement's, but a number all the same.
        digits_of, _, exponent = f"{value:.{digits - 1}e}".partition("e")
        return f"{digits_of}e+{int(exponent) - round(math.log10(unit.factor))}"
    return format_number(value / unit.factor, digits)


def in_base(value: float | None, factor: float) -> float | None:
    """Return a figure in its base unit; None where there is none, or where it is beyond what a float holds."""
    scaled = None if value is None else value * factor
    return scaled if scaled is None or math.isfinite(scaled) else None


def format_quantity(value: float | None, family: Family, digits: int = 3) -> str:
    """Return number and unit of a single value, for prose: `3.35 TB/s`; `-` for None."""
    if value is None:
        return "-"
    unit = choose_unit([value], family)
    return f"{format_in(value, unit, digits)} {unit.symbol}"


def format_column(
    values: Sequence[float | None], family: Family, digits: int = 3
) -> tuple[Unit, tuple[str, ...]]:
    """Return the unit of a column and its bare numbers, in order."""
    unit = choose_unit(values, family)
    return unit, tuple(format_in(value, unit, digits) for value in values)


def parse_quantity(text: str, family: Family) -> float:
    """Return the base-unit value of text such as `24 GB`, `3.35TB/s` or `80 GiB`.

    Raises:
        InvalidInput: no number, no unit, or a unit of something else.
    """
    match = _QUANTITY.fullmatch(text)
    known = {unit.symbol: unit for unit in (*family.also, *family.units)}
    shown = " ".join(unit.symbol for unit in family.units)
    if match is None:
        raise InvalidInput(f"'{text}' is not a {family.name}", f"write a number and a unit: {shown}")
    number, symbol = match.groups()
    if not symbol:
        raise InvalidInput(f"'{text}' has no unit", f"write one of: {shown}")
    unit = known.get(symbol)
    if unit is None:
        hint = did_you_mean(symbol, known) or f"write one of: {shown}"
        raise InvalidInput(f"'{symbol}' is not a unit of {family.name}", hint)
    value = float(number) * unit.factor
    if not math.isfinite(value):
        raise InvalidInput(f"'{text}' is too large")
    return value
