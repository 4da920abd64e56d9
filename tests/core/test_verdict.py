from dataclasses import replace
from itertools import permutations

import pytest

from kmrun.core.case import Check
from kmrun.core.clause import listed_kernels
from kmrun.core.measurement import Finding, OutputCheck
from kmrun.core.score import Roofs, score
from kmrun.core.slowdown import Slowdown
from kmrun.core.verdict import Judgement, exit_code, judge, verdict_of, worst_check
from support.cases import CEILINGS, CPU, clause, make_case, make_found

WRONG = Finding("wrong-result", "o differs", "kernel", "fail")
RAISED = Finding("raised", "ValueError: no", "kernel", "error")
REFERENCE = Finding("reference-raised", "the reference raises", "suite", "error")
NO_MODULE = Finding("module-missing", "needs triton", "environment", "error")
WEDGED = Finding("device-wedged", "the device does not answer", "environment", "error")
NOISY = Finding("too-noisy", "never settled", "undecided", "inconclusive")
SKIP_MODULE = Finding("missing-module", "triton is not installed", "environment", "skipped")
SKIP_SIZE = Finding("memory", "needs 90 GB of 80", "environment", "skipped")


def judged(case=None, kind="cpu", card=None, alpha=0.01, **found):
    case, measured = case or make_case(), make_found(**found)
    scored = score(case, measured, CPU, CEILINGS, Roofs())
    return judge(case, measured, scored, kind, card, alpha)


def of(*reasons: Finding) -> Judgement:
    return Judgement(verdict_of(reasons), reasons)


@pytest.mark.parametrize(
    ("reasons", "verdict"),
    [
        ((), "pass"),
        ((WRONG,), "fail"),
        ((RAISED,), "error"),
        ((REFERENCE,), "error"),
        ((WEDGED,), "error"),
        ((NOISY,), "inconclusive"),
        ((SKIP_MODULE,), "skipped"),
        ((WRONG, RAISED), "error"),
        ((WRONG, NOISY), "fail"),
        ((NOISY, RAISED), "error"),
    ],
)
def test_the_worst_reason_is_the_verdict(reasons, verdict):
    for order in permutations(reasons):
        assert verdict_of(order) == verdict


TRUTH = [
    # judgements of a run, exit status, with --allow-inconclusive
    ([], 0, 0),
    ([of()], 0, 0),
    ([of(), of(WRONG)], 1, 1),
    ([of(RAISED)], 1, 1),
    ([of(REFERENCE)], 2, 2),
    ([of(REFERENCE), of(WRONG), of(WEDGED), of(NOISY)], 2, 2),
    ([of(WRONG, REFERENCE)], 2, 2),
    ([of(WRONG), of(WEDGED), of(NOISY)], 1, 1),
    ([of(NO_MODULE)], 3, 3),
    ([of(WEDGED), of(NOISY)], 3, 3),
    ([of(NOISY)], 4, 0),
    ([of(), of(NOISY)], 4, 0),
    ([of(SKIP_MODULE)], 3, 3),
    ([of(SKIP_MODULE), of(SKIP_MODULE)], 3, 3),
    ([of(SKIP_MODULE), of()], 0, 0),
    ([of(SKIP_MODULE), of(NOISY)], 4, 0),
    ([of(SKIP_SIZE)], 0, 0),
    ([of(SKIP_SIZE), of()], 0, 0),
]


@pytest.mark.parametrize(("judgements", "status", "allowed"), TRUTH)
def test_exit_status(judgements, status, allowed):
    for order in list(permutations(judgements))[:24]:
        assert exit_code(order) == status
        assert exit_code(order, allow_inconclusive=True) == allowed
        assert exit_code(order, interrupted=True) == 130


def test_a_clean_case_passes():
    result = judged()
    assert (result.verdict, result.reasons, result.warnings) == ("pass", (), ())
    (correct,) = result.clauses
    assert (correct.kind, correct.verdict, correct.value, correct.bound) == ("correct", "pass", 1e-7, 1e-6)


def test_a_broken_clause_fails_through_the_kernel_s_fault():
    result = judged(make_case(clauses=(clause("max_ms", 1.0),)))
    assert result.verdict == "fail"
    assert [(r.code, r.fault, r.outcome) for r in result.reasons] == [("max_ms", "kernel", "fail")]
    assert exit_code([result]) == 1


def test_an_undecided_clause_is_inconclusive():
    result = judged(make_case(clauses=(clause("max_ms", 20.0),)))
    assert result.verdict == "inconclusive"
    assert [(r.code, r.fault) for r in result.reasons] == [("max_ms", "undecided")]
    assert exit_code([result]) == 4


def test_a_clause_that_cannot_be_judged_only_warns():
    result = judged(make_case(clauses=(clause("max_slowdown", 0.03),)))
    assert result.verdict == "pass"
    why = "nothing to compare with: --against or --against-baseline"
    assert result.warnings == (f"not judged: max_slowdown 0.03 ({why})",)


def test_a_comparison_breaks_also_where_the_suite_promises_nothing():
    slower = Slowdown("HEAD~1", "alternated", 0.05, "broken", 0.1, 0.08, 0.12, 0.07)
    result = judged(make_case(), slowdown=slower)
    assert result.verdict == "fail"
    assert [(r.code, r.fault) for r in result.reasons] == [("max_slowdown", "kernel")]
    assert result.clauses[-1].bound == 0.05
    assert exit_code([result]) == 1
    promised = judged(make_case(clauses=(clause("max_slowdown", 0.2),)), slowdown=slower)
    assert promised.verdict == "pass"
    assert [result.kind for result in promised.clauses].count("max_slowdown") == 1
    open_ = judged(make_case(), slowdown=replace(slower, verdict="inconclusive", reason="out of time"))
    assert exit_code([open_]) == 4


def test_a_wrong_kernel_has_one_reason_and_no_clause_about_speed():
    case = make_case(clauses=(clause("max_ms", 1.0),))
    wrong = (OutputCheck("out", "auto", False, 0.03, 0.002),)
    result = judged(case, findings=(WRONG,), correct=False, checks=wrong, samples_ns=())
    assert (result.verdict, result.reasons) == ("fail", (WRONG,))
    assert [(c.kind, c.verdict) for c in result.clauses] == [("correct", "fail"), ("max_ms", "not judged")]


def test_a_wrong_kernel_fails_even_when_nothing_else_said_so():
    wrong = (OutputCheck("out", "auto", False, 0.03, 0.002),)
    result = judged(correct=False, checks=wrong, samples_ns=())
    assert result.verdict == "fail"
    assert [(r.code, r.sentence) for r in result.reasons] == [("correct", "out is wrong")]


def test_an_output_of_the_wrong_form_breaks_correctness_without_a_comparison():
    form = Finding("output_shape", "o has shape [3], declared [4]", "kernel", "fail")
    for checks in ((), (OutputCheck("out", "auto", True, 1e-7, 1e-6),)):
        result = judged(findings=(form,), correct=False, checks=checks, samples_ns=())
        (correct,) = result.clauses
        assert (correct.kind, correct.verdict, correct.reason) == ("correct", "fail", form.sentence)
        assert (correct.value, correct.bound) == (None, None)
        assert result.reasons == (form,)


def test_silence_about_correctness_does_not_pass():
    assert judged(correct=None, checks=()).verdict == "inconclusive"
    unchecked = make_case(checks={"*": Check("none")})
    assert judged(unchecked, correct=None, checks=()).verdict == "pass"
    assert judged(make_case(reference=None), correct=None, checks=()).clauses == ()


def test_implausible_speed_is_an_error_that_silences_the_clauses():
    finding = Finding("implausible", "too fast", "kernel", "error")
    case, found = make_case(clauses=(clause("max_ms", 100.0),)), make_found()
    scored = score(case, found, CPU, CEILINGS, Roofs())
    from dataclasses import replace

    result = judge(case, found, replace(scored, findings=(finding,)), "cpu", None, 0.01)
    assert (result.verdict, result.reasons) == ("error", (finding,))
    assert result.clauses[1].verdict == "not judged"


def test_a_skipped_case_has_only_its_reason():
    result = judged(make_case(clauses=(clause("max_ms", 1.0),)), findings=(SKIP_MODULE,), samples_ns=())
    assert result == Judgement("skipped", (SKIP_MODULE,))


@pytest.mark.parametrize(("policy", "verdict"), [("report", "pass"), ("fail", "fail")])
def test_unlisted_device(policy, verdict):
    case = make_case(clauses=(clause("min_roof", {"h100-sxm": 0.5}),), unlisted_device=policy)
    result = judged(case)
    assert result.verdict == verdict
    said = [reason.sentence for reason in result.reasons] + list(result.warnings)
    assert said == ["no clause speaks of cpu"]


def test_a_device_that_one_clause_names_is_listed():
    clauses = (clause("min_roof", {"h100-sxm": 0.5}), clause("min_ceiling", {"cpu": 0.1}))
    assert judged(make_case(clauses=clauses, unlisted_device="fail")).verdict == "pass"


def test_a_kernel_that_another_case_lists_is_listed():
    case = make_case(clauses=(clause("min_roof", {"h100-sxm": 0.5}),), unlisted_device="fail")
    found = make_found()
    scored = score(case, found, CPU, CEILINGS, Roofs())
    assert judge(case, found, scored, "cpu", None, 0.01, listed=True).verdict == "pass"
    assert judge(case, found, scored, "cpu", None, 0.01, listed=False).verdict == "fail"
    other = make_case(clauses=(clause("min_ceiling", {"cpu": 0.1}),))
    assert listed_kernels([case, other], "cpu", None) == {"add"}
    assert listed_kernels([case], "cpu", None) == frozenset()


def test_xfail_breaks_nothing():
    broken = judged(make_case(clauses=(clause("max_ms", 1.0, xfail="slow"),)))
    assert (broken.verdict, broken.warnings) == ("pass", ())
    holding = judged(make_case(clauses=(clause("max_ms", 100.0, xfail="slow"),)))
    assert (holding.verdict, holding.warnings) == ("pass", ("xfail holds: max_ms 100 (slow)",))


def test_worst_check():
    near = OutputCheck("near", "auto", True, 0.9, 1.0)
    far = OutputCheck("far", "auto", True, 0.1, 1.0)
    broken = OutputCheck("broken", "exact", False, 1.0, 0.0)
    unknown = OutputCheck("unknown", "auto", False, float("nan"), 1.0)
    assert worst_check([far, near]) is near
    assert worst_check([near, broken, far]) is broken
    assert worst_check([broken, unknown]) is unknown
    assert worst_check([]) is None
