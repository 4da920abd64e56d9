"""One promise of a contract, judged on confidence bounds.

A clause holds when its bound lies outside the interval on the good side, is broken when it lies outside on
the bad side, and is undecided when the interval straddles it. Each end of the interval is a one-sided bound:
the end that can break the clause at the error rate shared by the whole suite, so that many clauses raise no
more false alarms than one; the end that lets it hold at 1 % a clause. What is printed is what was decided on.
"""

import fnmatch
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Literal

from kmrun.core.case import Case, Clause, Path
from kmrun.core.measurement import Measurement, Rival
from kmrun.core.score import Score
from kmrun.core.slowdown import told
from kmrun.core.statistics import ERROR_RATE, Interval, median_bounds, ratio_bounds, samples_needed
from kmrun.core.units import format_number

ClauseVerdict = Literal["pass", "fail", "inconclusive", "not judged"]

_AT_LEAST = ("min_roof", "min_roof_clk", "min_ceiling", "min_speedup")
_SAMPLED = ("min_roof", "min_roof_clk", "min_ceiling", "min_speedup", "max_ms")
_TIMELESS = ("max_memory_gb",)
_UNITS = {"min_speedup": "x", "max_ms": " ms", "max_host_us": " us", "max_memory_gb": " GB"}
_NOTHING_TIMED = "no time was measured"
SAVES_BASELINE = "this run saves what later ones are compared with"
HANDOFF_BIAS_MOST = 0.005
_COMPARED: dict[str, ClauseVerdict] = {"holds": "pass", "broken": "fail", "inconclusive": "inconclusive"}


@dataclass(frozen=True, slots=True)
class ClauseResult:
    """What became of one promise. Bounds are None where there is none; `bound` is the suite's own number."""

    kind: str
    bound: float | None
    verdict: ClauseVerdict
    reason: str = ""
    value: float | None = None
    low: float | None = None
    high: float | None = None
    place: Path = ()
    warning: str = ""


def bound_for(bounds: Mapping[str, float], kind: str, card: str | None) -> float | None:
    """Return the bound that applies on a device, or None when the clause says nothing about it.

    The exact card id wins, then the longest glob that matches it, then `cpu` or `gpu`; `*` alone, which is
    also how a plain number arrives here, stands for any device and comes last.
    """
    if card is not None:
        if card in bounds:
            return bounds[card]
        globs = [key for key in bounds if key != "*" and fnmatch.fnmatchcase(card, key)]
        if globs:
            return bounds[max(globs, key=len)]
    family = "cpu" if kind == "cpu" else "gpu"
    return bounds.get(family, bounds.get("*"))


def count_sampled(cases: Iterable[Case], kind: str, card: str | None) -> int:
    """Count the clauses of a run that samples decide: what the error rate is shared by."""
    return sum(
        clause.kind in _SAMPLED and bound_for(clause.bounds, kind, card) is not None
        for case in cases
        for clause in case.clauses
    )


def listed_kernels(cases: Iterable[Case], kind: str, card: str | None) -> frozenset[str]:
    """Return the kernels that make at least one promise for this device."""
    return frozenset(
        case.kernel
        for case in cases
        if any(bound_for(clause.bounds, kind, card) is not None for clause in case.clauses)
    )


def judge_clause(
    clause: Clause, bound: float, found: Measurement, scored: Score, kind: str, alpha: float
) -> ClauseResult:
    """Judge one clause whose `bound` applies on this device; it breaks at the one-sided rate `alpha`."""
    result = _judged(clause, bound, found, scored, kind, alpha)
    if found.undecidable and clause.kind not in _TIMELESS and result.verdict in ("pass", "fail"):
        result = _doubted(result, found.undecidable)
    if clause.xfail is None or result.verdict == "not judged":
        return result
    if result.verdict == "pass":
        holds = f"xfail holds: {clause.kind} {bound:g} ({clause.xfail})"
        return replace(result, warning=holds)
    # Broken is what was expected, and undecided could only turn out broken or better.
    return replace(result, verdict="pass", reason=f"{result.reason}; xfail: {clause.xfail}")


def _judged(
    clause: Clause, bound: float, found: Measurement, scored: Score, kind: str, alpha: float
) -> ClauseResult:
    if clause.kind == "max_slowdown":
        return _slowdown(clause, bound, found)
    if clause.kind == "max_memory_gb":
        return _decided(clause, bound, _exact(found.peak_memory_bytes, 1e9), "memory was not recorded")
    if not found.samples_ns:
        return _not_judged(clause, bound, _NOTHING_TIMED)
    if clause.kind == "max_host_us":
        return _decided(clause, bound, _exact(found.host_ns, 1e3), "host time was not recorded")
    if clause.kind == "min_speedup":
        return _speedup(clause, bound, found, alpha)
    lenient, strict = median_bounds(found.samples_ns, ERROR_RATE), median_bounds(found.samples_ns, alpha)
    if clause.kind == "max_ms":
        time = Interval(strict.low * 1e-6, strict.value * 1e-6, lenient.high * 1e-6)
        return _decided(clause, bound, time, "", needs=_needs(found.samples_ns, alpha))
    if clause.kind in ("min_roof", "min_roof_clk"):
        missing = "a CPU has no published roof" if kind == "cpu" else "the roof of this device is not known"
        best_s = scored.roof_s
        if clause.kind == "min_roof_clk" and best_s is not None:
            missing, best_s = _clock_unknown(found), scored.roof_clk_s
    else:
        missing, best_s = "nothing measured bounds this case", scored.ceiling_s
    time = Interval(strict.low, strict.value, lenient.high)
    fraction = None if best_s is None else _inverse(time, best_s * 1e9)
    return _decided(clause, bound, fraction, missing, needs=_needs(found.samples_ns, alpha))


def _clock_unknown(found: Measurement) -> str:
    """Return why there is no roof at the clock that was held, with what the sensors' note says of it."""
    window = found.observed.window if found.observed is not None else None
    if window is not None and window.sm_mhz is not None:
        return "the clock that was read is not the one that was held"
    note = window.note if window is not None else ""
    return f"the clock that was held is not known{f': {note}' if note else ''}"


def _speedup(clause: Clause, bound: float, found: Measurement, alpha: float) -> ClauseResult:
    """Judge against the fastest versus entry, or the reference where there is none."""
    versus = [rival for rival in found.rivals if rival.role == "versus"]
    rivals = versus or list(found.rivals)
    if not rivals:
        return _not_judged(clause, bound, "nothing was timed beside it", warn=True)
    apart = [rival.name for rival in rivals if not rival.alternated or not rival.pairs]
    if apart:
        reason = f"not alternated with {', '.join(apart)}: the ratio is not one of the same moments"
        return ClauseResult(clause.kind, bound, "inconclusive", reason, place=clause.place)

    def ratio(rival: Rival) -> Interval:
        strict = ratio_bounds(rival.pairs, alpha)
        return Interval(ratio_bounds(rival.pairs, ERROR_RATE).low, strict.value, strict.high)

    fastest = min(rivals, key=lambda rival: ratio(rival).value)
    result = _decided(
        clause, bound, ratio(fastest), "", needs=_needs(fastest.pairs, alpha), beside=fastest.name
    )
    doubt = handoff_doubt(found.handoff_bias)
    return _doubted(result, doubt) if doubt else result


def _doubted(result: ClauseResult, why: str) -> ClauseResult:
    return replace(result, verdict="inconclusive", reason=f"{result.reason}, but {why}")


def handoff_doubt(bias: float | None) -> str:
    """Return why no ratio of alternated sides can be believed, or nothing: handing over changed what they took."""
    if bias is None or abs(bias) <= HANDOFF_BIAS_MOST:
        return ""
    return f"a hand-over between the processes changes times by {bias * 100:+.1f} %"


def _slowdown(clause: Clause, bound: float, found: Measurement) -> ClauseResult:
    """Take the gate's verdict; a bound that it was not run for is held against its interval."""
    seen = found.slowdown
    if seen is None:
        why = found.not_compared or "nothing to compare with: --against or --against-baseline"
        # Whoever saves a baseline asked for no comparison, and hears of none that is missing.
        return _not_judged(clause, bound, why, warn=why != SAVES_BASELINE)
    verdict = _COMPARED[seen.verdict]
    if bound != seen.margin:
        under = seen.high is not None and seen.high <= bound
        over = seen.verdict == "broken" and seen.low is not None and seen.low > bound
        verdict = "pass" if under else "fail" if over else "inconclusive"
    said = f"{clause.kind} {bound:g}: {told(seen)}"
    return ClauseResult(clause.kind, bound, verdict, said, seen.slowdown, seen.low, seen.high, clause.place)


def _decided(
    clause: Clause, bound: float, interval: Interval | None, missing: str, needs: str = "", beside: str = ""
) -> ClauseResult:
    if interval is None:
        return _not_judged(clause, bound, missing, warn=True)
    low = interval.low if math.isfinite(interval.low) and interval.low > 0 else None
    high = interval.high if math.isfinite(interval.high) else None
    if clause.kind in _AT_LEAST:
        good, bad = low is not None and low >= bound, high is not None and high < bound
    else:
        good, bad = high is not None and high <= bound, low is not None and low > bound
    verdict: ClauseVerdict = "pass" if good else "fail" if bad else "inconclusive"
    said = f"{clause.kind} {bound:g}: {format_number(interval.value)}{_UNITS.get(clause.kind, '')}"
    if low is not None and high is not None and low != high:
        said += f" ({format_number(low)} to {format_number(high)})"
    elif low is not None and low != high:
        said += f" (at least {format_number(low)})"
    elif high is not None and low != high:
        said += f" (at most {format_number(high)})"
    if beside:
        said += f" against {beside}"
    if verdict == "inconclusive":
        # The end that would decide, on the side where the value lies: too few samples may have left it open.
        deciding = low if interval.value > bound else high
        said += f", {needs if needs and deciding is None else 'the bound lies inside the interval'}"
    return ClauseResult(clause.kind, bound, verdict, said, interval.value, low, high, clause.place)


def _not_judged(clause: Clause, bound: float, why: str, *, warn: bool = False) -> ClauseResult:
    warning = f"not judged: {clause.kind} {bound:g} ({why})" if warn else ""
    return ClauseResult(clause.kind, bound, "not judged", why, place=clause.place, warning=warning)


def _needs(samples: tuple[object, ...], alpha: float) -> str:
    number, to_hold, to_break = len(samples), samples_needed(ERROR_RATE), samples_needed(alpha)
    if number < to_hold:
        return f"{number} samples are too few for a bound: {to_hold} needed"
    return f"{number} samples are too few to break it: {to_break} needed" if number < to_break else ""


def _exact(amount: float | None, unit: float) -> Interval | None:
    return None if amount is None else Interval(amount / unit, amount / unit, amount / unit)


def _inverse(time: Interval, best: float) -> Interval:
    """Turn bounds of a time into bounds of `best / time`."""
    low = best / time.high if math.isfinite(time.high) else 0.0
    high = best / time.low if time.low > 0 else math.inf
    return Interval(low, best / time.value, high)
