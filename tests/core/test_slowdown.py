"""How much slower a case is, in words."""

import pytest

from kmrun.core.slowdown import Slowdown, called, change, told


@pytest.mark.parametrize(
    ("fraction", "words"),
    [
        (0.061, "6.1 % slower"),
        (-0.004, "0.4 % faster"),
        (0.0, "0.0 % slower"),
        (3.5, "350.0 % slower"),
        (9.99, "999.0 % slower"),
        (10.0, "11 times as slow"),
        (2216.3, "2,217 times as slow"),
    ],
)
def test_a_change_is_told_in_percent_and_what_is_no_small_one_in_times(fraction, words):
    assert change(fraction) == words


def test_from_when_on_it_is_called():
    assert called(0.113) == "called too slow from a measured 11.3 % on"
    assert called(26.0) == "called too slow only from 27 times as slow on"


def test_a_comparison_as_a_sentence():
    seen = Slowdown("v1", "alternated", 0.03, "broken", 0.061, 0.042, 0.08, 0.049)
    assert told(seen) == (
        "6.1 % slower than v1 (4.2 % slower to 8.0 % slower); called too slow from a measured 4.9 % on"
    )
    wild = Slowdown("v1", "baseline", 0.03, "inconclusive", 0.5, -0.2, 596.5, 2216.3, reason="it is busy")
    assert told(wild) == (
        "50.0 % slower than v1 (20.0 % faster to 598 times as slow), it is busy; "
        "called too slow only from 2,217 times as slow on"
    )
    far = Slowdown("v1", "alternated", 0.03, "broken", 26.0, 25.0, None, None)
    assert told(far) == "27 times as slow as v1 (at least 26 times as slow)"
