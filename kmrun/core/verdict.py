"""From findings and clauses to a verdict, and from verdicts to the exit status.

A case is `error`, `fail`, `inconclusive`, `skipped` or `pass`, the first that one of its reasons leads to.
The exit status looks at whose fault the reasons are, so that a broken suite never looks like a slow kernel.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from kmrun.core.case import Case, Clause
from kmrun.core.clause import ClauseResult, bound_for, judge_clause
from kmrun.core.measurement import Finding, Measurement, OutputCheck
from kmrun.core.score import Score

Verdict = Literal["pass", "fail", "error", "inconclusive", "skipped"]
_WORST_FIRST: tuple[Verdict, ...] = ("error", "fail", "inconclusive", "skipped")


@dataclass(frozen=True, slots=True)
class Judgement:
    """The verdict of a case, every reason for it, and its clauses; `warnings` break nothing."""

    verdict: Verdict
    reasons: tuple[Finding, ...] = ()
    clauses: tuple[ClauseResult, ...] = ()
    warnings: tuple[str, ...] = ()


def judge(
    case: Case,
    found: Measurement,
    scored: Score,
    kind: str,
    card: str | None,
    alpha: float,
    listed: bool | None = None,
) -> Judgement:
    """Return the verdict of one case.

    `kind` is the device's (`cpu`, `cuda`, `rocm`), `card` the id of the matched card or None. `alpha` is the
    one-sided error rate of one clause: 1 % shared by all that this run decides from samples. `listed` says
    whether any case of the kernel has a clause that speaks of this device; None looks at this case alone.
    """
    if any(finding.outcome == "skipped" for finding in found.findings):
        return Judgement("skipped", tuple(f for f in found.findings if f.outcome == "skipped"))
    clauses, reasons = list(_correctness(case, found)), [*found.findings, *scored.findings]
    broken = any(finding.outcome in ("error", "fail") for finding in reasons)
    applying = [(clause, bound_for(clause.bounds, kind, card)) for clause in case.clauses]
    for clause, bound in applying:
        if bound is None:
            continue
        if broken:
            why = "no speed counts beside an error or a wrong result"
            clauses.append(ClauseResult(clause.kind, bound, "not judged", why, place=clause.place))
        else:
            clauses.append(judge_clause(clause, bound, found, scored, kind, alpha))
    ungated = all(bound is None or clause.kind != "max_slowdown" for clause, bound in applying)
    if found.slowdown is not None and ungated and not broken:
        # Whoever asks for a comparison wants to hear of a slowdown, also where the suite promises nothing.
        margin = found.slowdown.margin
        assumed = Clause("max_slowdown", {"*": margin}, place=case.place)
        clauses.append(judge_clause(assumed, margin, found, scored, kind, alpha))
    decisive = [result for result in clauses if result.verdict in ("fail", "inconclusive")]
    # A wrong result brings its own finding, with the place and the figures: one reason for it is enough.
    reasons += [_reason(result) for result in decisive if not (broken and result.kind == "correct")]
    warnings = [result.warning for result in clauses if result.warning]
    silent = all(bound is None for _, bound in applying) if listed is None else not listed
    if case.clauses and silent:
        unlisted = f"no clause speaks of {card or kind}"
        if case.unlisted_device == "fail":
            reasons.append(Finding("unlisted-device", unlisted, "kernel", "fail"))
        else:
            warnings.append(unlisted)
    return Judgement(verdict_of(reasons), tuple(reasons), tuple(clauses), tuple(warnings))


def verdict_of(reasons: Iterable[Finding]) -> Verdict:
    """Return the worst that the reasons lead to; `pass` when there are none."""
    outcomes = {finding.outcome for finding in reasons}
    return next((verdict for verdict in _WORST_FIRST if verdict in outcomes), "pass")


def worst_check(checks: Sequence[OutputCheck]) -> OutputCheck | None:
    """Return the check that came nearest to its limit, or went furthest beyond it."""

    def share(check: OutputCheck) -> tuple[bool, float]:
        if check.error is None or check.error != check.error:
            return (not check.ok, 0.0 if check.ok else float("inf"))
        return (not check.ok, check.error / check.allowed if check.allowed else check.error)

    return max(checks, key=share, default=None)


def exit_code(
    judgements: Iterable[Judgement], *, allow_inconclusive: bool = False, interrupted: bool = False
) -> int:
    """Return the exit status of a run.

    130 interrupted, 2 the suite is at fault, 1 a kernel is, 3 the environment is (also when all cases were
    skipped for a module or a device that it lacks), 4 something is undecided, 0 every clause holds; the
    first that applies.
    """
    judged = list(judgements)
    if interrupted:
        return 130
    reasons = [reason for judgement in judged for reason in judgement.reasons]
    serious = {reason.fault for reason in reasons if reason.outcome in ("fail", "error")}
    if "suite" in serious:
        return 2
    if "kernel" in serious:
        return 1
    all_skipped = bool(judged) and all(judgement.verdict == "skipped" for judgement in judged)
    lacking = any(reason.fault == "environment" and reason.code != "memory" for reason in reasons)
    if "environment" in serious or (all_skipped and lacking):
        return 3
    undecided = "undecided" in serious or any(judgement.verdict == "inconclusive" for judgement in judged)
    return 4 if undecided and not allow_inconclusive else 0


def _correctness(case: Case, found: Measurement) -> Iterable[ClauseResult]:
    """Correctness is a clause of every kernel with a reference."""
    if case.reference is None:
        return
    worst = worst_check(found.checks)
    error, allowed = (worst.error, worst.allowed) if worst else (None, None)
    if found.correct is None and _asks_for_no_check(case):
        yield ClauseResult(
            "correct", None, "not judged", "the suite asks for no comparison", place=case.place
        )
    elif found.correct is None:
        # A verdict that is missing is no verdict: silence must not pass.
        yield ClauseResult("correct", allowed, "inconclusive", "never compared", place=case.place)
    elif found.correct:
        yield ClauseResult("correct", allowed, "pass", value=error, place=case.place)
    else:
        why = next((finding.sentence for finding in found.findings if finding.outcome == "fail"), "")
        if worst is not None and not worst.ok:
            why = f"{worst.name} is wrong"
        elif worst is not None:  # an earlier output was right: its figures say nothing of what was wrong
            error = allowed = None
        yield ClauseResult(
            "correct", allowed, "fail", why or "the result is wrong", value=error, place=case.place
        )


def _asks_for_no_check(case: Case) -> bool:
    return bool(case.checks) and all(check.metric == "none" for check in case.checks.values())


def _reason(result: ClauseResult) -> Finding:
    if result.verdict == "fail":
        return Finding(result.kind, result.reason, "kernel", "fail")
    return Finding(result.kind, result.reason, "undecided", "inconclusive")
