"""Clocks that were held, from the sensors' readings to a score, a clause and the document."""

import pytest

from kmrun.core.case import Peak
from kmrun.core.clause import judge_clause
from kmrun.core.clocks import REASONS
from kmrun.core.cpu_load import CpuLoad
from kmrun.core.entries import case_result
from kmrun.core.observed import MOST_POINTS, Observed, series_entry, telemetry_entry
from kmrun.core.roofs import roofs_of
from kmrun.core.score import score
from kmrun.core.telemetry import Reading, Telemetry, telemetry
from kmrun.core.verdict import judge
from kmrun.source.catalogue import load_cards
from support.cases import CEILINGS, CPU, GPU, clause, make_case, make_found

T4 = load_cards().find("t4")
T4_FLOP_PER_S = 8.1408e12
"""40 SMs, 64 lanes, 2 flop, 1590 MHz."""


def held(sm_mhz=877.0, mem_mhz=5001.0):
    window = Telemetry("nvml", 1.2, sm_mhz=sm_mhz, sm_mhz_max=1590.0, mem_mhz=mem_mhz, mem_mhz_max=5001.0)
    return Observed(window)


def on_a_t4(seconds, observed, *, peak=None, flops=T4_FLOP_PER_S, moved=1000, **changes):
    """A call of a second's worth of fp32 work on a T4, scored, and the case it is of."""
    case = make_case(peak=peak or Peak("vector", "fp32"), flops=flops, bytes=moved)
    samples = tuple(seconds * 1e9 + i for i in range(41))
    found = make_found(samples_ns=samples, observed=observed, rivals=(), bytes=None, **changes)
    clock = observed.window.sm_hz if observed else None
    return case, found, score(case, found, GPU, CEILINGS, roofs_of(case, T4, 1.59e9, clock))


def test_a_kernel_at_half_the_clock_is_near_what_the_card_could_do():
    _, _, scored = on_a_t4(1 / 0.527, held())
    assert scored.roof_fraction == pytest.approx(0.527, abs=1e-4)
    assert scored.roof_clk_fraction == pytest.approx(0.955, abs=1e-3)


def test_the_memory_clock_moves_the_memory_roof():
    moved = 320.064e9  # what a T4 moves in a second
    _, _, scored = on_a_t4(2.0, held(mem_mhz=2500.5), flops=None, moved=moved)
    assert scored.roof_fraction == pytest.approx(0.5, rel=1e-3)
    assert scored.roof_clk_fraction == pytest.approx(1.0, rel=1e-3)


@pytest.mark.parametrize("observed", [None, Observed(), Observed(Telemetry(note="NVML hangs"))])
def test_a_clock_that_nobody_read_scores_nothing(observed):
    _, found, scored = on_a_t4(2.0, observed)
    assert scored.roof_fraction == pytest.approx(0.5, abs=1e-4)
    assert scored.roof_clk_fraction is None
    result = judge_clause(clause("min_roof_clk", 0.9), 0.9, found, scored, "cuda", 0.01)
    note = observed.window.note if observed else ""
    why = "the clock that was held is not known" + (f": {note}" if note else "")
    assert (result.verdict, result.reason) == ("not judged", why)
    assert result.warning == f"not judged: min_roof_clk 0.9 ({why})"


@pytest.mark.parametrize(("seconds", "known"), [(1 / 0.527, True), (1.2, False)])
def test_a_clock_at_which_it_could_not_have_been_so_fast_is_none(seconds, known):
    """300 of 1590 MHz: the clock of an idle card, read while another one was held."""
    _, found, scored = on_a_t4(seconds, held(sm_mhz=877.0 if known else 300.0))
    assert (scored.roof_clk_fraction is not None) == known
    assert ("clock not known" in scored.labels) == (not known)
    result = judge_clause(clause("min_roof_clk", 0.9), 0.9, found, scored, "cuda", 0.01)
    assert result.verdict == ("pass" if known else "not judged")
    if not known:
        assert result.reason == "the clock that was read is not the one that was held"
        assert result.warning


def test_a_dead_sensor_passes_no_clause():
    dead = telemetry(
        [Reading(0.0, sm_mhz=300.0, power_w=9.85)], 100.0, 101.5, note="nvml hangs: no reading for 100 s"
    )
    _, found, scored = on_a_t4(1.5, Observed(dead))
    assert (dead.energy_mj_per_call(1000), scored.roof_clk_fraction) == (None, None)
    result = judge_clause(clause("min_roof_clk", 0.9), 0.9, found, scored, "cuda", 0.01)
    assert result.verdict == "not judged"
    assert result.reason == "the clock that was held is not known: nvml hangs: no reading for 100 s"


@pytest.mark.parametrize(("bound", "verdict"), [(0.9, "pass"), (0.97, "fail")])
def test_min_roof_clk(bound, verdict):
    _, found, scored = on_a_t4(1 / 0.527, held())
    result = judge_clause(clause("min_roof_clk", bound), bound, found, scored, "cuda", 0.01)
    assert (result.verdict, result.value) == (verdict, pytest.approx(0.955, abs=1e-3))
    # The same call is far from the roof at the published clock.
    assert judge_clause(clause("min_roof", 0.9), 0.9, found, scored, "cuda", 0.01).verdict == "fail"


@pytest.mark.parametrize("kind", ["max_ms", "min_roof", "min_roof_clk", "max_host_us"])
@pytest.mark.parametrize("bound", [1e-9, 1e9])
def test_what_cannot_be_decided_neither_holds_nor_breaks(kind, bound):
    _, found, scored = on_a_t4(1 / 0.527, held(), undecidable="others used the card")
    result = judge_clause(clause(kind, bound), bound, found, scored, "cuda", 0.01)
    assert result.verdict == "inconclusive"
    assert result.reason.endswith(", but others used the card")
    assert result.value is not None


def test_memory_is_decided_whoever_else_uses_the_card():
    _, found, scored = on_a_t4(1.0, held(), undecidable="others used it", peak_memory_bytes=10**9)
    assert judge_clause(clause("max_memory_gb", 2.0), 2.0, found, scored, "cuda", 0.01).verdict == "pass"


def test_the_entry_says_what_was_read_and_null_for_the_rest():
    capped = ("sw_power_cap",)
    readings = [Reading(i / 10, 1410 + i, 2619, 60 + i, 600.0, throttle=capped) for i in range(20)]
    window = telemetry(readings, 0.0, 0.5, source="nvml", sm_mhz_max=1980)
    observed = Observed(window, 612.0, 31.5, CpuLoad(0.5, 1.0, 0.25, 0.0), tuple(readings))
    entry = telemetry_entry(observed)
    assert (entry.sm_mhz_held, entry.sm_mhz_low, entry.sm_mhz_max) == (1412.5, 1410, 1980)
    assert (entry.temp_c, entry.power_w, entry.energy_mj_per_call) == (65, 612.0, 31.5)
    assert (entry.throttle, entry.throttle_fraction) == (capped, {"sw_power_cap": 1.0})
    assert (entry.own_cores, entry.other_cores, entry.stolen_cores) == (1.0, 0.25, 0.0)
    assert (entry.samples, entry.utilisation_fraction, entry.mem_mhz_max) == (6, None, None)
    assert entry.series.time_s[-1] == 1.9
    assert entry.series.sm_mhz[-1] == 1429
    assert set(capped) <= set(REASONS)


@pytest.mark.parametrize("count", [0, 1, MOST_POINTS, MOST_POINTS + 1, 10 * MOST_POINTS])
def test_a_series_is_thin_and_its_columns_are_of_one_length(count):
    series = series_entry([Reading(5.0 + i / 10, sm_mhz=float(i)) for i in range(count)])
    lengths = {len(column) for column in (series.time_s, series.sm_mhz, series.power_w, series.temp_c)}
    assert len(lengths) == 1
    assert min(count, MOST_POINTS // 2) <= lengths.pop() <= MOST_POINTS
    assert series.time_s[:1] == ((0.0,) if count else ())


def test_a_wrong_kernel_has_no_telemetry_either():
    case, found = make_case(), make_found(observed=held(), samples_ns=())
    scored = score(case, found, CPU, CEILINGS, roofs_of(case, None))
    judged = judge(case, found, scored, "cpu", None, 0.01)
    assert case_result(case, found, scored, judged).telemetry is None
