"""Plain tables and their figures."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kmrun.report.columns import WIDTH, Column, figures, render


@pytest.mark.parametrize(
    ("values", "texts"),
    [
        ([1.008, 2.039, 3.352], ["1.01", "2.04", "3.35"]),
        ([0.333, 0.673, 1.106], ["0.33", "0.67", "1.11"]),
        ([330.3, 311.9, 989.4], ["330", "312", "989"]),
        ([81.9, 9.56, 19.96], ["81.9", "9.6", "20.0"]),
        ([43.0, 143.0, 227.2], ["43.0", "143.0", "227.2"]),
        ([1008.0, 320.0, 5325.0], ["1008", "320", "5325"]),
        ([0.0104, 1.0], ["0.010", "1.000"]),
        ([None, 2.0], ["-", "2.00"]),
        ([None, None], ["-", "-"]),
        ([0.0, None], ["0", "-"]),
    ],
)
def test_one_number_of_decimals_a_column(values: list[float | None], texts: list[str]) -> None:
    assert figures(values) == texts


@given(st.lists(st.floats(min_value=1e-4, max_value=1e9), min_size=1, max_size=6))
def test_no_figure_is_off_by_more_than_its_last_digit(values: list[float]) -> None:
    for value, text in zip(values, figures(values), strict=True):
        assert abs(float(text) - value) <= 0.005 * max(1.0, *values) + 1e-9


def test_gaps_shrink_before_a_name_is_cut() -> None:
    columns = [Column("id", ["a" * 30], left=True), *(Column(f"c{i}", ["1" * 9], "unit") for i in range(7))]
    lines = render(columns)
    assert max(map(len, lines)) <= WIDTH
    assert lines[2].startswith("a" * 28)
    wide = [Column("id", ["a" * 50], left=True), *(Column(f"c{i}", ["1" * 9], "unit") for i in range(7))]
    lines = render(wide)
    assert max(map(len, lines)) == WIDTH
    assert ".. 111" in lines[2]


def test_names_stand_left_and_figures_right() -> None:
    assert render([Column("id", ["a", "bbb"], left=True), Column("x", ["1", "22"])]) == [
        "id     x",
        "a      1",
        "bbb   22",
    ]
