import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kmrun.core.plain import from_plain, to_plain
from kmrun.core.telemetry import Reading, Telemetry, telemetry


def series(count: int, step: float = 0.1, **fields: object) -> list[Reading]:
    return [Reading(at_s=at * step, **fields) for at in range(count)]  # type: ignore[arg-type]


def test_a_window_takes_its_own_readings() -> None:
    seen = [Reading(at / 10, sm_mhz=1000 + at, temp_c=40 + at, mem_mhz=5000) for at in range(20)]
    found = telemetry(seen, 0.5, 0.9, source="nvml", sm_mhz_max=1590, mem_mhz_max=5001)
    assert (found.sm_mhz, found.sm_mhz_low, found.sm_mhz_max) == (1007, 1005, 1590)
    assert (found.temp_c, found.mem_mhz, found.mem_mhz_max) == (49, 5000, 5001)
    assert len(found.readings) == 5
    assert found.window_s == pytest.approx(0.4)


def test_power_and_energy_need_a_second() -> None:
    seen = series(30, power_w=70.4)
    short = telemetry(seen, 0.0, 0.99)
    assert (short.power_w, short.energy_j, short.energy_mj_per_call(10)) == (None, None, None)
    long = telemetry(seen, 0.0, 2.0)
    assert long.power_w == pytest.approx(70.4)
    assert long.energy_j == pytest.approx(140.8)
    assert long.energy_mj_per_call(100) == pytest.approx(1408)
    assert long.energy_mj_per_call(0) is None


@given(st.floats(0, 1e4), st.integers(1, 40))
def test_equal_readings_are_told_as_they_were_read(figure: float, count: int) -> None:
    found = telemetry(series(count, utilisation=figure, power_w=figure), 0.0, max(1.0, (count - 1) / 10))
    assert {found.utilisation, found.power_w} <= {figure, None}


def test_the_energy_counter_stands_over_power_readings() -> None:
    seen = [Reading(at / 10, power_w=999.0, energy_j=5000 + 7.0 * at) for at in range(21)]
    assert telemetry(seen, 0.0, 2.0).power_w == pytest.approx(70)


def test_a_counter_that_was_reset_is_not_believed() -> None:
    seen = [Reading(at / 10, power_w=50.0, energy_j=float(100 - at)) for at in range(21)]
    assert telemetry(seen, 0.0, 2.0).power_w == pytest.approx(50)


def test_reasons_and_their_shares() -> None:
    seen = [Reading(float(at), throttle=("sw_power_cap",) if at % 2 else ()) for at in range(4)]
    found = telemetry(seen, 0.0, 3.0)
    assert found.throttle == ("sw_power_cap",)
    assert found.throttle_fraction == {"sw_power_cap": 0.5}


def test_a_short_window_is_spoken_for_by_the_nearest_reading() -> None:
    found = telemetry([Reading(0.0, sm_mhz=500), Reading(0.1, sm_mhz=900)], 0.07, 0.08)
    assert (found.sm_mhz, found.power_w) == (900, None)


def test_a_reading_speaks_for_nothing_that_is_far_from_it() -> None:
    old = Reading(0.0, sm_mhz=300, temp_c=40, power_w=9.85, throttle=("hw_thermal_slowdown",))
    found = telemetry([old], 100.0, 101.5, source="nvml", note="nvml hangs: no reading for 100 s")
    assert (found.sm_mhz, found.temp_c, found.power_w, found.energy_j) == (None, None, None, None)
    assert (found.throttle, found.readings, found.note) == (None, (), "nvml hangs: no reading for 100 s")
    assert telemetry([old], 100.0, 100.01).note == "the sensors answered at no moment of this time"
    assert telemetry([old], 0.19, 0.2).sm_mhz == 300
    assert telemetry([old], 0.21, 0.22).sm_mhz is None
    assert telemetry([old], 0.9, 0.95, fresh_s=1.0).sm_mhz == 300  # of what is polled twice a second


def test_sensors_that_died_on_the_way_say_nothing_of_the_whole() -> None:
    seen = [Reading(at / 10, 900, 5000, 66, 50.0, 5.0 * at, 0.9, ()) for at in range(6)]
    found = telemetry(seen, 0.0, 1.5)
    assert (found.sm_mhz, found.mem_mhz, found.power_w, found.energy_j) == (None, None, None, None)
    assert (found.utilisation, found.temp_c, found.throttle) == (None, 66, ())
    assert found.note == "the sensors answered only for a part of this time"
    alive = telemetry(seen, 0.0, 0.6)
    assert (alive.sm_mhz, alive.note) == (900, "")


def test_one_sensor_may_die_alone() -> None:
    seen = [Reading(at / 10, sm_mhz=900, power_w=50.0 if at < 5 else None) for at in range(21)]
    found = telemetry(seen, 0.0, 2.0)
    assert (found.sm_mhz, found.power_w, found.energy_j, found.note) == (900, None, None, "")


@given(st.floats(0, 10), st.floats(0, 3), st.lists(st.floats(0, 12), max_size=30), st.floats(0.01, 1))
def test_no_figure_comes_from_further_away_than_a_reading_speaks(
    begin: float, length: float, moments: list[float], fresh_s: float
) -> None:
    seen = [Reading(at_s, sm_mhz=900, power_w=50.0) for at_s in sorted(moments)]
    found = telemetry(seen, begin, begin + length, fresh_s=fresh_s)
    near = [one for one in seen if begin - fresh_s <= one.at_s <= begin + length + fresh_s]
    assert set(found.readings) <= set(near)
    if not near:
        assert (found.sm_mhz, found.power_w) == (None, None)


def test_reasons_that_cannot_be_read_are_not_none_seen() -> None:
    assert telemetry(series(5), 0.0, 0.4).throttle is None
    assert telemetry(series(5, throttle=()), 0.0, 0.4).throttle == ()


def test_nothing_read_says_nothing() -> None:
    found = telemetry([], 0.0, 5.0, note="NVML did not answer")
    assert found == Telemetry(window_s=5.0, note="NVML did not answer")


@given(st.lists(st.floats(100, 3000), min_size=1, max_size=40))
def test_the_clock_held_lies_among_the_readings(clocks: list[float]) -> None:
    seen = [Reading(at / 10, sm_mhz=clock) for at, clock in enumerate(clocks)]
    found = telemetry(seen, 0.0, len(clocks) / 10)
    assert found.sm_mhz is not None and found.sm_mhz_low is not None
    assert found.sm_mhz_low == min(clocks)
    assert min(clocks) <= found.sm_mhz <= max(clocks)


def test_crosses_as_plain_data() -> None:
    seen = [Reading(0.0, sm_mhz=900, throttle=("sw_power_cap",)), Reading(1.0, power_w=50.0)]
    found = telemetry(seen, 0.0, 1.0, source="nvml", note="x")
    assert from_plain(Telemetry, json.loads(json.dumps(to_plain(found)))) == found


@pytest.mark.parametrize(
    "counter",
    [
        [0.0, 50.0, 2.0, 3.0, 120.0],  # wrapped, and went on beyond where it began
        [100.0, 100.0, 0.0, 50.0, 100.0],  # begun anew
        [0.0, 1e9, 2e9, 3e9, 4e9],  # no board draws that
        [7.0] * 5,  # stuck
    ],
)
def test_a_counter_that_cannot_be_believed_gives_way_to_the_power_readings(counter: list[float]) -> None:
    readings = [Reading(0.5 * at, power_w=300.0, energy_j=energy) for at, energy in enumerate(counter)]
    assert telemetry(readings, 0.0, 2.0, fresh_s=0.6).power_w == 300.0


def test_a_highest_clock_below_the_one_that_is_held_is_none() -> None:
    readings = [Reading(0.0, 1590.0, 5001.0), Reading(0.1, 1605.0, 5001.0)]
    seen = telemetry(readings, 0.0, 0.1, sm_mhz_max=585.0, mem_mhz_max=5001.0)
    assert (seen.sm_mhz_max, seen.mem_mhz_max) == (None, 5001.0)
    assert telemetry(readings, 0.0, 0.1, sm_mhz_max=1590.0).sm_mhz_max == 1590.0
