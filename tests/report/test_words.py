"""Names in few characters."""

from hypothesis import given
from hypothesis import strategies as st

from kmrun.report.words import brief


@given(
    st.text(st.characters(exclude_characters="\N{HORIZONTAL ELLIPSIS}"), max_size=400), st.integers(3, 200)
)
def test_a_long_name_keeps_both_ends(text, most):
    shown = brief(text, most)
    if len(text) <= most:
        assert shown == text
        return
    begin, sign, end = shown.partition("\N{HORIZONTAL ELLIPSIS}")
    assert (len(shown), sign) == (most, "\N{HORIZONTAL ELLIPSIS}")
    assert text.startswith(begin)
    assert end
    assert text.endswith(end)
