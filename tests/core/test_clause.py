import math

import pytest

from kmrun.core.clause import bound_for, count_sampled, judge_clause
from kmrun.core.measurement import Ceilings
from kmrun.core.score import Roofs, score
from kmrun.core.slowdown import Slowdown
from support.cases import CEILINGS, CPU, GPU, clause, make_case, make_found, make_rival

H100 = Roofs(bandwidth=3.35e12, compute=66.9e12, compute_max=72e12, vector_fp32=66.9e12, card="h100-sxm")


def judged(kind, bound, *, device=CPU, ceilings=CEILINGS, roofs=None, alpha=0.01, xfail=None, **found):
    case, measured = make_case(), make_found(**found)
    scored = score(case, measured, device, ceilings, roofs or Roofs())
    return judge_clause(clause(kind, bound, xfail=xfail), bound, measured, scored, device.kind, alpha)


@pytest.mark.parametrize(
    ("bounds", "kind", "card", "want"),
    [
        ({"*": 1.0}, "cpu", None, 1.0),
        ({"*": 1.0}, "cuda", "h100-sxm", 1.0),
        ({"*": 1.0}, "cuda", None, 1.0),
        ({"h100-sxm": 0.5, "h100-*": 0.4, "gpu": 0.3}, "cuda", "h100-sxm", 0.5),
        ({"h*": 0.2, "h100-*": 0.4, "gpu": 0.3}, "cuda", "h100-pcie", 0.4),
        ({"h*": 0.2, "gpu": 0.3}, "cuda", "a100-sxm-80gb", 0.3),
        ({"h*": 0.2, "cpu": 0.3}, "cuda", "a100-sxm-80gb", None),
        ({"gpu": 0.3}, "rocm", None, 0.3),
        ({"gpu": 0.3}, "cpu", None, None),
        ({"cpu": 0.1, "gpu": 0.3}, "cpu", None, 0.1),
        ({"*": 0.1, "gpu": 0.3}, "cuda", "l4", 0.3),
    ],
)
def test_which_bound_applies(bounds, kind, card, want):
    assert bound_for(bounds, kind, card) == want


@pytest.mark.parametrize(
    ("kind", "good", "between", "bad"),
    [
        ("min_ceiling", 0.49, 0.5, 0.51),
        ("min_speedup", 1.9, 2.0, 2.1),
        ("max_ms", 20.1, 20.0, 19.9),
    ],
)
def test_the_interval_decides(kind, good, between, bad):
    assert judged(kind, good).verdict == "pass"
    assert judged(kind, between).verdict == "inconclusive"
    assert judged(kind, bad).verdict == "fail"


def test_min_roof_on_a_card():
    found = {"samples_ns": tuple(1e5 + i % 7 for i in range(30))}
    fraction = 2e8 / 3.35e12 / 1e-4
    for bound, verdict in ((fraction * 0.99, "pass"), (fraction * 1.01, "fail")):
        result = judged("min_roof", bound, device=GPU, ceilings=Ceilings(), roofs=H100, **found)
        assert result.verdict == verdict
        assert result.value == pytest.approx(fraction, rel=1e-3)
        assert result.low <= result.value <= result.high


def test_the_reason_shows_what_was_decided_on():
    result = judged("min_ceiling", 0.75)
    assert result.reason == "min_ceiling 0.75: 0.500 (0.500 to 0.500)"
    assert judged("min_speedup", 2.5).reason == "min_speedup 2.5: 2.00x (1.98 to 2.02) against reference"
    straddling = judged("max_ms", 20.0).reason
    assert straddling.endswith(", the bound lies inside the interval")


@pytest.mark.parametrize(("kind", "found", "good", "bad"), [
    ("max_host_us", {"host_ns": 12e3}, 12.5, 11.5),
    ("max_memory_gb", {"peak_memory_bytes": 3 * 10**8}, 0.3, 0.29),
])  # fmt: skip
def test_counted_figures_have_no_interval(kind, found, good, bad):
    assert judged(kind, good, **found).verdict == "pass"
    assert judged(kind, bad, **found).verdict == "fail"


@pytest.mark.parametrize(
    ("kind", "found", "why"),
    [
        ("max_slowdown", {}, "nothing to compare with: --against or --against-baseline"),
        ("max_slowdown", {"not_compared": "not compared: no code"}, "not compared: no code"),
        ("min_roof_clk", {}, "a CPU has no published roof"),
        ("min_roof", {}, "a CPU has no published roof"),
        ("max_host_us", {"host_ns": None}, "host time was not recorded"),
        ("max_memory_gb", {"peak_memory_bytes": None}, "memory was not recorded"),
        ("min_speedup", {"rivals": ()}, "nothing was timed beside it"),
    ],
)
def test_what_nothing_can_judge_is_a_warning(kind, found, why):
    result = judged(kind, 0.5, **found)
    assert (result.verdict, result.reason) == ("not judged", why)
    assert result.warning == f"not judged: {kind} 0.5 ({why})"


def test_unknown_roofs_and_ceilings_are_not_judged():
    on_gpu = {"device": GPU, "ceilings": Ceilings()}
    assert judged("min_roof", 0.5, **on_gpu).reason == "the roof of this device is not known"
    assert judged("min_ceiling", 0.5, **on_gpu).reason == "nothing measured bounds this case"


def test_without_samples_nothing_is_judged():
    result = judged("max_ms", 1.0, samples_ns=())
    assert (result.verdict, result.reason, result.warning) == ("not judged", "no time was measured", "")


def test_too_few_samples_for_the_corrected_rate_are_inconclusive_and_say_how_many():
    result = judged("max_ms", 15.0, samples_ns=(20e6,) * 8, alpha=0.01 / 40)
    assert (result.verdict, result.low, result.high) == ("inconclusive", None, 20.0)
    assert result.reason == "max_ms 15: 20.0 ms (at most 20.0), 8 samples are too few to break it: 12 needed"
    assert judged("max_ms", 15.0, samples_ns=(20e6,) * 12, alpha=0.01 / 40).verdict == "fail"
    nothing = judged("max_ms", 15.0, samples_ns=(20e6,) * 5)
    assert (nothing.verdict, nothing.low, nothing.high) == ("inconclusive", None, None)
    assert nothing.reason == "max_ms 15: 20.0 ms, 5 samples are too few for a bound: 7 needed"


def test_holding_takes_one_clause_s_error_rate_breaking_the_suite_s():
    """Eight blocks bound a median at 1 %, not at 1 % shared by 40: enough to hold, too few to break."""
    assert judged("max_ms", 25.0, samples_ns=(20e6,) * 8, alpha=0.01 / 40).verdict == "pass"
    few = {"rivals": (make_rival(blocks=8),), "alpha": 0.01 / 40}
    assert judged("min_speedup", 1.5, **few).verdict == "pass"
    assert judged("min_speedup", 2.5, **few).verdict == "inconclusive"
    assert judged("min_speedup", 2.5, rivals=(make_rival(blocks=12),), alpha=0.01 / 40).verdict == "fail"


def test_a_hand_over_that_changes_times_leaves_ratios_undecided():
    result = judged("min_speedup", 1.5, handoff_bias=0.011)
    assert result.verdict == "inconclusive"
    assert result.reason.endswith(", but a hand-over between the processes changes times by +1.1 %")
    assert judged("min_speedup", 1.5, handoff_bias=0.004).verdict == "pass"
    assert judged("max_ms", 25.0, handoff_bias=0.011).verdict == "pass"


def test_ratios_that_were_not_alternated_are_inconclusive():
    for rival in (make_rival(alternated=False), make_rival(pairs=())):
        result = judged("min_speedup", 0.1, rivals=(rival,))
        assert result.verdict == "inconclusive"
        assert "not alternated with reference" in result.reason


def test_min_speedup_is_against_the_fastest_versus():
    rivals = (make_rival("slow", "versus", 3.0), make_rival("quick", "versus", 1.5), make_rival())
    assert judged("min_speedup", 1.4, rivals=rivals).verdict == "pass"
    assert judged("min_speedup", 1.6, rivals=rivals).verdict == "fail"
    assert judged("min_speedup", 1.6, rivals=rivals).reason.endswith("against quick")


@pytest.mark.parametrize(
    ("bound", "verdict", "warning"),
    [(2.1, "pass", ""), (2.0, "pass", ""), (1.9, "pass", "xfail holds: min_speedup 1.9 (bug 7)")],
)
def test_xfail(bound, verdict, warning):
    result = judged("min_speedup", bound, xfail="bug 7")
    assert (result.verdict, result.warning) == (verdict, warning)
    assert ("xfail: bug 7" in result.reason) == (not warning)


def test_xfail_of_what_cannot_be_judged_stays_so():
    assert judged("max_slowdown", 0.03, xfail="later").verdict == "not judged"


def slowdown(verdict="holds", value=0.061, low=0.042, high=0.08, margin=0.03, **changes):
    fields = {"visible": margin + value - low if low is not None else None, "blocks": 80, "processes": 10}
    return Slowdown("HEAD~1", "alternated", margin, verdict, value, low, high, **(fields | changes))


def test_max_slowdown_is_the_gate_s_verdict_with_interval_and_what_could_be_seen():
    broken = judged("max_slowdown", 0.03, slowdown=slowdown("broken"))
    assert (broken.verdict, broken.value, broken.low, broken.high) == ("fail", 0.061, 0.042, 0.08)
    assert broken.reason == (
        "max_slowdown 0.03: 6.1 % slower than HEAD~1 (4.2 % slower to 8.0 % slower); "
        "called too slow from a measured 4.9 % on"
    )
    held = judged("max_slowdown", 0.03, slowdown=slowdown("holds", -0.004, -0.02, 0.012))
    assert held.verdict == "pass"
    assert held.reason == (
        "max_slowdown 0.03: 0.4 % faster than HEAD~1 (2.0 % faster to 1.2 % slower); "
        "called too slow from a measured 4.6 % on"
    )
    open_ = judged(
        "max_slowdown", 0.03, slowdown=slowdown("inconclusive", 0.02, -0.03, 0.08, reason="out of time")
    )
    assert open_.verdict == "inconclusive"
    assert "out of time" in open_.reason
    never = judged(
        "max_slowdown", 0.03, slowdown=slowdown("inconclusive", None, None, None, reason="it raised")
    )
    assert (never.verdict, never.reason) == (
        "inconclusive",
        "max_slowdown 0.03: not compared with HEAD~1: it raised",
    )
    assert judged("max_slowdown", 0.03, slowdown=slowdown("broken"), xfail="known").verdict == "pass"


@pytest.mark.parametrize(
    ("bound", "verdict"), [(0.03, "fail"), (0.05, "inconclusive"), (0.079, "inconclusive"), (0.08, "pass")]
)
def test_a_bound_that_the_gate_was_not_run_for_is_held_against_its_interval(bound, verdict):
    assert judged("max_slowdown", bound, slowdown=slowdown("broken")).verdict == verdict


def test_only_clauses_that_samples_decide_share_the_error_rate():
    case = make_case(
        clauses=(
            clause("min_ceiling", {"cpu": 0.1}),
            clause("min_roof", {"gpu": 0.1}),
            clause("min_speedup", 1.0),
            clause("max_memory_gb", 1.0),
            clause("max_slowdown", 0.03),
        )
    )
    assert count_sampled([case, case], "cpu", None) == 4
    assert count_sampled([case], "cuda", "l4") == 2


def test_bounds_in_the_result_are_finite_or_none():
    result = judged("min_speedup", 1.0, rivals=(make_rival(blocks=3),))
    assert result.verdict == "inconclusive"
    assert (result.low, result.high) == (None, None)
    assert math.isfinite(result.value)


def test_the_reason_blames_the_number_only_for_the_end_that_it_left_open():
    """Eight blocks of which one is slow: enough to hold the clause, had they agreed."""
    pairs = ((20e6, 40e6),) * 7 + ((20e6, 10e6),)
    result = judged("min_speedup", 1.0, rivals=(make_rival(pairs=pairs),), alpha=0.01 / 40)
    assert (result.verdict, result.low, result.high) == ("inconclusive", 0.5, None)
    assert result.reason.endswith("(at least 0.500) against reference, the bound lies inside the interval")
