"""What a scorecard says of the machine: clocks, power, heat, load, the age of ceilings."""

from dataclasses import replace

import pytest

from kmrun.core.cpu_load import CpuLoad
from kmrun.core.entries import ceiling_entry
from kmrun.core.measurement import MatmulRate
from kmrun.core.observed import Observed
from kmrun.core.telemetry import Telemetry
from kmrun.report.machine import age, machine_line, measured_when
from kmrun.report.view import view
from support.cases import CEILINGS, make_found
from support.results import make_entry, make_result


def entry(window, power_w=None, load=None):
    return make_entry(found=make_found(observed=Observed(window, power_w, None, load)))


def held(mhz, temp_c, *throttle):
    return Telemetry("nvml", 1.0, mhz, mhz, 1980.0, temp_c=temp_c, throttle=throttle)


def test_the_line_spans_the_cases():
    cases = [entry(held(1410.0, 66.0, "sw_power_cap"), 612.0), entry(held(1755.0, 61.0, "idle"), 540.0)]
    assert machine_line(cases) == "1410-1755 of 1980 MHz · 612 W · 66 C · power cap"


def test_what_nobody_read_is_not_said():
    assert machine_line([make_entry(), entry(Telemetry(note="NVML hangs"))]) == ""
    assert machine_line([entry(held(1410.0, None))]) == "1410 of 1980 MHz"


def test_the_load_of_others_is_told_on_a_cpu_and_left_out_on_a_gpu():
    load = CpuLoad(1.0, 1.0, 0.62, 0.31)
    line = "up to 0.6 cores used by others · up to 0.3 cores stolen by the host"
    assert machine_line([entry(Telemetry("cpu"), load=load)]) == line
    assert machine_line([entry(Telemetry("cpu"), load=CpuLoad(1.0, 1.0, 0.05, 0.0))]) == ""
    assert machine_line([entry(held(1410.0, 66.0), load=load)]) == "1410 of 1980 MHz · 66 C"


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(0, "0 s"), (59, "59 s"), (60, "1 min"), (7200, "2 h"), (86400, "1 day"), (9 * 86400, "9 days")],
)
def test_ages(seconds, said):
    assert age(seconds) == said


def test_kept_ceilings_are_told_with_their_age():
    assert measured_when(ceiling_entry(CEILINGS)) == "measured now, 0.3 s"
    kept = replace(CEILINGS, matmuls=(MatmulRate("bf16", 8192, 742e12, 3 * 86400.0),))
    assert measured_when(ceiling_entry(kept)) == "measured now, 0.3 s, matmul 3 days ago"
    shown = view(make_result(ceilings=ceiling_entry(kept)))
    assert shown.ceilings[-1] == "measured now, 0.3 s, matmul 3 days ago"
