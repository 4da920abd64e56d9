import pytest
from hypothesis import given
from hypothesis import strategies as st

from kmrun.report import numbers


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (None, "-"),
        (float("inf"), "-"),
        (0, "0"),
        (0.05123, "0.0512"),
        (1.0349, "1.03"),
        (9.996, "10.0"),
        (99.96, "100"),
        (851.4, "851"),
        (12345.6, "12346"),
        (-2.5, "-2.50"),
    ],
)
def test_significant(value, said):
    assert numbers.significant(value) == said


@given(st.floats(min_value=1e-6, max_value=1e9))
def test_three_digits_are_within_half_a_percent(value):
    assert float(numbers.significant(value)) == pytest.approx(value, rel=0.0051)


@pytest.mark.parametrize(
    ("values", "units", "name"),
    [
        ([0.5, 2.0, 900.0], numbers.TIME, "ms"),
        ([0.5, 0.002, None], numbers.TIME, "us"),
        ([2e-7], numbers.TIME, "ns"),
        ([], numbers.TIME, "ms"),
        ([None], numbers.BANDWIDTH, "GB/s"),
        ([2900.0, 800.0, 3000.0], numbers.BANDWIDTH, "TB/s"),
        ([0.2], numbers.COMPUTE, "GFLOP/s"),
        ([742.0], numbers.COMPUTE, "TFLOP/s"),
    ],
)
def test_a_column_has_one_unit(values, units, name):
    assert numbers.unit_for(values, units).name == name


def test_percent_and_spread():
    assert [numbers.percent(value) for value in (None, 0.0, 0.0051, 0.00996, 0.544, 1.0)] == [
        *("-", "0 %", "0.5 %", "1 %", "54 %", "100 %")
    ]
    assert [numbers.spread(value) for value in (None, 0.0031, 0.0994, 0.0996)] == [
        *("-", "0.3 %", "9.9 %", "10 %")
    ]


def test_duration_and_count():
    assert [numbers.duration(value) for value in (0.91, 9.96, 21.4, 119.6, 185.2)] == [
        *("0.9 s", "10 s", "21 s", "2 min 0 s", "3 min 5 s")
    ]
    assert numbers.count(1, "case") == "1 case"
    assert numbers.count(0, "case") == "0 cases"
