import pytest
from hypothesis import given
from hypothesis import strategies as st

from kmrun.core.clocks import (
    LONGEST_PAUSE_S,
    PAUSE_S,
    REASONS,
    clock_ratio,
    next_pause,
    reasons_of,
    roof_clk_fraction,
    survivors,
    unheld,
)
from kmrun.core.telemetry import Reading


def readings(*clocks: float, throttle: tuple[str, ...] | None = ()) -> list[Reading]:
    return [Reading(at_s=float(at), sm_mhz=clock, throttle=throttle) for at, clock in enumerate(clocks)]


def test_a_t4_under_its_power_cap() -> None:
    """877 of 1590 MHz turns 52.7 % of the roof into 95.5 % of the roof at the clock held."""
    fraction = roof_clk_fraction(
        1.0, memory_roof_s=0.02, compute_roof_s=0.527, sm_held=clock_ratio(877, 1590), mem_held=1.0
    )
    assert fraction == pytest.approx(0.955, abs=0.0005)


def test_a_memory_bound_call_does_not_care_for_the_sm_clock() -> None:
    fraction = roof_clk_fraction(
        1.0, memory_roof_s=0.769, compute_roof_s=0.01, sm_held=clock_ratio(1062, 1590)
    )
    assert fraction == pytest.approx(0.769)
    assert roof_clk_fraction(
        1.0, memory_roof_s=0.4, compute_roof_s=None, sm_held=None, mem_held=0.5
    ) == pytest.approx(0.8)


def test_a_slow_clock_can_make_a_memory_bound_call_compute_bound() -> None:
    fraction = roof_clk_fraction(1.0, memory_roof_s=0.5, compute_roof_s=0.4, sm_held=0.5)
    assert fraction == pytest.approx(0.8)


@pytest.mark.parametrize(
    ("memory", "compute", "ratio"), [(None, None, 1.0), (0.5, 0.5, None), (None, 0.5, None)]
)
def test_no_fraction_where_a_roof_or_a_clock_is_unknown(memory, compute, ratio) -> None:
    assert roof_clk_fraction(1.0, memory_roof_s=memory, compute_roof_s=compute, sm_held=ratio) is None


@given(st.floats(0.01, 1), st.floats(0.01, 1), st.floats(0.05, 1))
def test_a_lower_clock_never_lowers_the_fraction(memory: float, compute: float, ratio: float) -> None:
    at_full = roof_clk_fraction(1.0, memory_roof_s=memory, compute_roof_s=compute, sm_held=1.0)
    held = roof_clk_fraction(1.0, memory_roof_s=memory, compute_roof_s=compute, sm_held=ratio)
    assert at_full == pytest.approx(max(memory, compute))
    assert held is not None and at_full is not None
    assert held >= at_full


def test_power_capping_is_normal() -> None:
    capped = readings(1000, 500, 400, throttle=("sw_power_cap",))
    assert survivors([(0.1, 0.2), (1.1, 1.9)], capped).kept == (True, True)


def test_samples_that_a_slowdown_touched_are_dropped() -> None:
    hot = Reading(at_s=2.0, sm_mhz=900, throttle=("sw_power_cap", "hw_thermal_slowdown"))
    seen = [*readings(1000, 1000), hot, Reading(3.0, 1000, throttle=()), Reading(4.0, 1000, throttle=())]
    found = survivors([(0.1, 0.9), (1.1, 1.9), (1.9, 2.1), (2.5, 2.6), (3.2, 3.9)], seen)
    assert found.kept == (True, False, False, False, True)
    assert (found.dropped, found.enough) == (3, False)
    assert found.sentence == "3 of 5 samples dropped: hw_thermal_slowdown"


def test_without_reasons_the_run_s_own_median_clock_judges() -> None:
    seen = readings(700, 700, 700, 500, 700, throttle=None)
    assert survivors([(0.1, 0.9), (3.1, 3.2)], seen).kept == (True, False)
    # All alike, however far below the sheet, is no slowdown.
    assert survivors([(0.1, 0.9)], readings(300, 300, 300, throttle=None)).dropped == 0


def test_sensors_that_died_hot_drop_nothing_of_later() -> None:
    hot = Reading(at_s=1.0, throttle=("hw_thermal_slowdown",))
    spans = [(0.5, 0.9), (1.1, 1.2), (1.9, 2.0), (3.0, 3.1)]
    assert survivors(spans, [hot], reach_s=1.0).kept == (False, False, False, True)
    assert survivors(spans, [hot]).kept == (False,) * 4


def test_no_readings_drop_nothing() -> None:
    found = survivors([(0.0, 1.0)], [])
    assert (found.kept, found.sentence, found.enough) == ((True,), "", True)
    assert survivors([], []).enough


@given(st.lists(st.booleans(), max_size=30))
def test_the_pause_grows_while_the_card_is_slowed_and_ends(slowed: list[bool]) -> None:
    pause = 0.0
    for hot in slowed:
        longer = next_pause(pause, hot)
        assert (longer >= max(pause, PAUSE_S)) if hot else (longer <= pause)
        assert longer <= LONGEST_PAUSE_S
        pause = longer
    for _ in range(10):
        pause = next_pause(pause, False)
    assert pause == 0.0


def test_bits_have_names() -> None:
    assert reasons_of(0) == ()
    assert reasons_of(0x1) == ("idle",)
    assert reasons_of(0x4 | 0x40) == ("sw_power_cap", "hw_thermal_slowdown")
    assert reasons_of(0x8 | 0x20 | 0x80) == ("hw_slowdown", "sw_thermal_slowdown", "hw_power_brake")
    assert reasons_of(1 << 40) == ("reason_40",)
    assert len(set(REASONS)) == 11


@pytest.mark.parametrize(
    ("clocks", "usual", "why"),
    [
        ((1005, 1005, 1005), None, ""),
        ((1005, 990, 1005), 1005, ""),  # one of the card's steps
        ((1005, 900, 1005), None, "it moved between 900 and 1005 MHz"),
        ((1005, 1005), 1200, "it moved between 1005 and 1200 MHz"),
        ((1590, 1590), None, "it was the card's highest, 1590 MHz, under load"),
        ((), None, None),
    ],
)
def test_whether_a_locked_clock_is_held(clocks, usual, why) -> None:
    assert unheld(readings(*clocks), usual, 1590) == why


def test_what_an_idle_or_a_hot_card_runs_at_tells_nothing_of_a_locked_clock() -> None:
    aside = [Reading(0.0, 300, throttle=("idle",)), Reading(1.0, 500, throttle=("hw_slowdown",))]
    assert unheld(aside, None, 1590) is None
    assert unheld([*aside, *readings(1005)], None, 1590) == ""
