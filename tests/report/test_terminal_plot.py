"""Rooflines in a terminal."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kmrun.report.terminal_plot import MOST, SYMBOLS, Curve, Mark, Span, rate_text, render

CARD = Curve("card", 1e12, 10e12)


def test_the_roof_rises_to_the_ridge_and_is_flat_from_there() -> None:
    lines = [line.partition("|")[2] for line in render([CARD], width=80) if "|" in line]
    flat = lines[0]
    ridge = flat.index("^")
    assert set(flat[ridge + 1 :]) == {"*"}
    lowest = [
        next(index for index, line in enumerate(lines) if line[column : column + 1].strip())
        for column in range(60)
    ]
    assert lowest == sorted(lowest, reverse=True)


def test_marks_stand_on_the_roof_or_where_they_were_measured() -> None:
    lines = render([CARD], [Mark("first", 1.0), Mark("second", 1.0, 0.2e12)], width=80)
    rows = {
        letter: index
        for index, line in enumerate(lines)
        for letter in "AB"
        if letter in line.partition("|")[2]
    }
    assert rows["A"] < rows["B"]
    assert "A first at 1 flop/byte" in "\n".join(lines)
    assert "B second at 1 flop/byte, measured 200 GFLOP/s" in "\n".join(lines)


def test_each_card_has_its_symbol_and_on_a_terminal_its_colour() -> None:
    curves = [Curve(f"card{index}", 1e12 * (index + 1), 1e13 * (index + 1)) for index in range(MOST)]
    plain, coloured = "\n".join(render(curves)), "\n".join(render(curves, colour=True))
    for index, symbol in enumerate(SYMBOLS):
        assert f"{symbol} card{index}, ridge at 10 flop/byte" in plain
    assert "\x1b" not in plain
    assert len({part.partition("m")[0] for part in coloured.split("\x1b[")[1:]} - {"0"}) == MOST


@given(
    bandwidth=st.floats(1e8, 1e14),
    peak=st.floats(1e9, 1e17),
    intensity=st.floats(1e-4, 1e6),
    rate=st.none() | st.floats(1e6, 1e18),
    width=st.integers(20, 140),
)
def test_any_roofline_and_any_kernel_can_be_drawn(
    bandwidth: float, peak: float, intensity: float, rate: float | None, width: int
) -> None:
    lines = render([Curve("c", bandwidth, peak)], [Mark("k", intensity, rate)], width=width)
    drawn = [line.partition("|")[2] for line in lines if "|" in line]
    assert len(drawn) == 15
    assert max(map(len, drawn)) <= max(20, width)
    assert sum("A" in line for line in drawn) == 1


@given(
    low=st.floats(1e-6, 1), decades=st.floats(0.5, 12), cells=st.integers(2, 200), cell=st.integers(0, 199)
)
def test_a_cell_and_its_value_lead_to_each_other(low: float, decades: float, cells: int, cell: int) -> None:
    span = Span(low, low * 10**decades, cells)
    assert span.cell(span.value(cell % cells)) == cell % cells


@pytest.mark.parametrize(
    ("rate", "text"),
    [(1.3074e15, "1.31 PFLOP/s"), (82.6e12, "82.6 TFLOP/s"), (1e11, "100 GFLOP/s"), (5e6, "5 MFLOP/s")],
)
def test_rates_in_words(rate: float, text: str) -> None:
    assert rate_text(rate) == text
