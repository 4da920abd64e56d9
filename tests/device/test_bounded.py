"""Calls that may never return, one and several at once."""

import threading

import pytest

from kmrun.device.bounded import NoAnswer, bounded, bounded_each

NEVER = threading.Event()


def failing() -> int:
    raise KeyError("gone")


def test_one_that_hangs_is_given_up() -> None:
    with pytest.raises(NoAnswer, match=r"a library did not answer within 0\.05 s"):
        bounded("a library", 0.05, NEVER.wait)
    assert bounded("a library", 60, lambda: 7) == 7


def test_one_that_hangs_holds_up_no_other() -> None:
    found = bounded_each("a library", 0.2, {0: NEVER.wait, 1: lambda: True, 2: NEVER.wait})
    assert found[1] is True
    assert [str(found[at]) for at in (0, 2)] == ["a library did not answer within 0.2 s"] * 2


def test_an_expected_error_stands_in_its_place_and_any_other_is_raised() -> None:
    found = bounded_each("a library", 60, {"a": failing, "b": lambda: 1}, KeyError)
    assert isinstance(found["a"], KeyError)
    assert found["b"] == 1
    with pytest.raises(KeyError, match="gone"):
        bounded_each("a library", 60, {"a": failing}, ValueError)
