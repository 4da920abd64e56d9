"""Figures of sensors that can be, and those that no card can have."""

import math

import pytest

from kmrun.device import plausible

FULL = (2**16 - 1, 2**32 - 1, 2**64 - 1, math.inf, math.nan, None)


@pytest.mark.parametrize("figure", [plausible.mhz, plausible.celsius, plausible.watts, plausible.fraction])
@pytest.mark.parametrize("value", FULL)
def test_a_field_that_is_full_is_no_figure(figure, value) -> None:  # type: ignore[no-untyped-def]
    assert figure(value) is None


def test_figures_of_cards_stay() -> None:
    assert (plausible.mhz(14001), plausible.mhz(210)) == (14001.0, 210.0)
    assert (plausible.celsius(0), plausible.celsius(-12), plausible.celsius(110)) == (0.0, -12.0, 110.0)
    assert (plausible.watts(0), plausible.watts(1200.5)) == (0.0, 1200.5)
    assert (plausible.fraction(0), plausible.fraction(97)) == (0.0, 0.97)
    assert plausible.joules(3.6e9) == 3.6e9


def test_a_clock_of_nothing_is_none() -> None:
    assert plausible.mhz(0) is None
    assert plausible.mhz(-5) is None


@pytest.mark.parametrize(
    ("used", "total"), [(2**64 - 1, 80 << 30), (5, 2**64 - 1), (81 << 30, 80 << 30), (5, 0), (-1, 8)]
)
def test_memory_that_cannot_be(used: int, total: int) -> None:
    assert plausible.used_bytes(used, total) == (None, None)
    assert plausible.used_bytes(5, 80) == (5, 80)
    assert plausible.used_bytes(None, 80) == (None, 80)
