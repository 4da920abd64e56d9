import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kmrun.core import units
from kmrun.errors import InvalidInput

FAMILIES = [units.TIME, units.BYTES, units.BANDWIDTH, units.FLOPS, units.FLOP_RATE, units.FREQUENCY]


@pytest.mark.parametrize(
    ("values", "symbol"),
    [
        ([1.03e-3, 0.61e-3, 2.12e-4], "us"),
        ([1.03e-3, 1.61e-3, 2.12e-4], "ms"),
        ([3e-9], "ns"),
        ([1e-12], "ns"),
        ([None, 0.0, math.nan, 2.0], "s"),
        ([], "ns"),
        ([9.9999e-7], "us"),
        ([2e-4, 9e-4, 13.765e-3], "ms"),
        ([2e-4, 9e-4, 9.9994e-3], "us"),
        ([9e-6, 9e-4, 13.765e-3], "us"),  # in ms the first would be 0.00900
        ([100.0, 200.0, 20000.0], "s"),  # there is none larger
    ],
)
def test_the_median_chooses_for_the_column(values: list[float | None], symbol: str) -> None:
    assert units.choose_unit(values, units.TIME).symbol == symbol


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "-"),
        (0, "0"),
        (1, "1.00"),
        (0.52, "0.520"),
        (533.2, "533"),
        (12.34, "12.3"),
        (9.999, "10.0"),
        (99.96, "100"),
        (4610.4, "4610"),
        (0.00123, "0.00123"),
        (0.00000123, "1.23e-06"),
        (1.5e9, "1.50e+09"),
        (-2.5, "-2.50"),
        (math.inf, "inf"),
        (-math.inf, "-inf"),
        (math.nan, "nan"),
    ],
)
def test_three_significant_digits(value: float | None, text: str) -> None:
    assert units.format_number(value) == text


def test_a_column_has_one_unit() -> None:
    unit, texts = units.format_column([3.35e12, None, 5.2e11, 1.0e12], units.BANDWIDTH)
    assert unit.symbol == "TB/s"
    assert texts == ("3.35", "-", "0.520", "1.00")


def test_one_quantity_in_prose() -> None:
    assert units.format_quantity(3.35e12, units.BANDWIDTH) == "3.35 TB/s"
    assert units.format_quantity(989.4e12, units.FLOP_RATE) == "989 TFLOP/s"
    assert units.format_quantity(None, units.TIME) == "-"


@pytest.mark.parametrize(
    ("text", "family", "value"),
    [
        ("24 GB", units.BYTES, 24e9),
        ("80GiB", units.BYTES, 80 * 2**30),
        ("3.35TB/s", units.BANDWIDTH, 3.35e12),
        (" .5 us ", units.TIME, 5e-7),
        ("1e3 MHz", units.FREQUENCY, 1e9),
        ("312 TFLOPS", units.FLOP_RATE, 312e12),
    ],
)
def test_parse(text: str, family: units.Family, value: float) -> None:
    assert units.parse_quantity(text, family) == pytest.approx(value, rel=1e-12)


@pytest.mark.parametrize(
    ("text", "sentence", "hint"),
    [
        ("fast", "'fast' is not a size", "write a number and a unit: B kB MB GB TB"),
        ("24", "'24' has no unit", "write one of: B kB MB GB TB"),
        ("24 gb", "'gb' is not a unit of size", "did you mean 'GB'?"),
        ("24 TFLOP/s", "'TFLOP/s' is not a unit of size", "write one of: B kB MB GB TB"),
        ("1e999 GB", "'1e999 GB' is too large", ""),
    ],
)
def test_what_is_no_size(text: str, sentence: str, hint: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        units.parse_quantity(text, units.BYTES)
    assert (caught.value.sentence, caught.value.hint) == (sentence, hint)


@given(st.sampled_from(FAMILIES), st.floats(1e-7, 1e15))
@settings(deadline=None)
def test_what_is_shown_reads_back(family: units.Family, value: float) -> None:
    text = units.format_quantity(value, family, digits=6)
    assert units.parse_quantity(text, family) == pytest.approx(value, rel=1e-5)


@given(st.sampled_from(FAMILIES), st.lists(st.one_of(st.none(), st.floats(1e-7, 1e15)), max_size=8))
@settings(deadline=None)
def test_a_column_keeps_its_order_and_length(family: units.Family, values: list[float | None]) -> None:
    unit, texts = units.format_column(values, family)
    assert unit in family.units
    assert [text == "-" for text in texts] == [value is None for value in values]


def test_what_a_float_does_not_hold_in_a_unit_is_a_number_all_the_same() -> None:
    micro = next(unit for unit in units.TIME.units if unit.symbol == "us")
    assert units.format_in(1.7e305, micro) == "1.70e+311"
    assert units.format_in(-1.7e305, micro) == "-1.70e+311"
    assert units.format_in(1.7e300, micro) == "1.70e+306"
    assert units.format_in(math.inf, micro) == "inf"
