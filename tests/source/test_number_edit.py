import pytest
from hypothesis import given
from hypothesis import strategies as st

from kmrun.source.document import Span
from kmrun.source.number_edit import number_text, replaced


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r", "\x85", "\u2028"])
def test_only_the_span_changes(end):
    text = f"a: 1{end}bb: 0.25 # ü 0.25{end}{end}c: 3"
    assert replaced(text, {Span(2, 5, 2, 9): "0.5", Span(4, 4, 4, 5): "44"}) == (
        f"a: 1{end}bb: 0.5 # ü 0.25{end}{end}c: 44"
    )


def test_no_edit_changes_nothing():
    assert replaced("a: 1\r\n", {}) == "a: 1\r\n"


@pytest.mark.parametrize("spans", [{Span(1, 1, 2, 1): "x"}, {Span(1, 1, 1, 3): "x", Span(1, 2, 1, 4): "y"}])
def test_what_is_no_edit_of_numbers(spans):
    with pytest.raises(ValueError, match=r"line|overlap"):
        replaced("abcd\nefgh\n", spans)


@given(st.floats(1e-12, 1e18))
def test_numbers_are_written_without_exponent_and_read_back(value):
    short = float(f"{value:.2g}")
    text = number_text(short)
    assert "e" not in text
    assert "." in text
    assert float(text) == short


def test_number_texts():
    assert [number_text(value) for value in (0.5, 1.0, 12.0, 0.45, 1.8e-9, 1e22)] == [
        *("0.5", "1.0", "12.0", "0.45", "0.0000000018", "10000000000000000000000.0")
    ]
