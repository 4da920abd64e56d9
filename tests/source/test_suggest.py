"""Lists of names in hints: as many as fit on a line, and how many more there are."""

import re

from hypothesis import given
from hypothesis import strategies as st

from kmrun.source.suggest import some_of


def test_what_does_not_fit_is_counted() -> None:
    assert some_of(["a", "b", "c"], room=4) == "a, b and 1 more"
    assert some_of(["a", "b"], room=4) == "a, b"
    assert some_of(["a" * 30, "b"], room=4) == "a" * 30 + " and 1 more"
    assert some_of([]) == ""


@given(st.lists(st.text("abcdef-", min_size=1, max_size=30), max_size=60), st.integers(30, 90))
def test_every_word_is_shown_or_counted(words: list[str], room: int) -> None:
    text = some_of(words, room)
    assert len(text) <= room + len(" and 60 more")
    more = re.search(r" and (\d+) more$", text)
    shown = text[: more.start()].split(", ") if more else [word for word in text.split(", ") if word]
    assert shown == words[: len(shown)]
    assert len(shown) + (int(more[1]) if more else 0) == len(words)
