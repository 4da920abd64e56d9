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


def test_nothing_read_says_nothing() -> None:
    found = telemetry([], 0.0, 5.0, note="NVML did not answer")
    assert found == Telemetry(window_s=5.0, note="NVML did not answer")


@given(st.lists(st.floats(100, 3000), min_size=1, max_size=40))
def test_the_clock_held_lies_among_the_readings(clocks: list[float]) -> None:
    seen = [Reading(float(at), sm_mhz=clock) for at, clock in enumerate(clocks)]
    found = telemetry(seen, 0.0, float(len(clocks)))
    assert found.sm_mhz is not None and found.sm_mhz_low is not None
    assert found.sm_mhz_low == min(clocks)
    assert min(clocks) <= found.sm_mhz <= max(clocks)


def test_crosses_as_plain_data() -> None:
    seen = [Reading(0.0, sm_mhz=900, throttle=("sw_power_cap",)), Reading(1.0, power_w=50.0)]
    found = telemetry(seen, 0.0, 1.0, source="nvml", note="x")
    assert from_plain(Telemetry, json.loads(json.dumps(to_plain(found)))) == found
