from hypothesis import given
from hypothesis import strategies as st

from kmrun.core.printable import printable


def test_what_moves_the_cursor_is_replaced():
    assert printable("größe · 4 ±") == "größe · 4 ±"
    assert printable("a\x1b[31mb\x07\x00") == "a\ufffd[31mb\ufffd\ufffd"
    assert printable("a\r\n\tb\u00a0c") == "a   b c"
    assert printable("\udcff\u202e\x9b") == "\ufffd\ufffd\ufffd"


@given(st.text())
def test_the_rest_is_untouched(text):
    shown = printable(text)
    assert shown.isprintable()
    assert len(shown) == len(text)
    assert all(new == old for new, old in zip(shown, text, strict=True) if old.isprintable())
