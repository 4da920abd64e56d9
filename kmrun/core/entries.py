"""From a measurement and what was made of it to the entries of a result document."""

import math
from collections.abc import Callable

from kmrun.core.case import Case, Path
from kmrun.core.clause import ClauseResult
from kmrun.core.measurement import Ceilings, Finding, Measurement, OutputCheck, RunDevice
from kmrun.core.observed import telemetry_entry
from kmrun.core.result import (
    BandwidthEntry,
    CaseResult,
    CeilingEntry,
    CheckEntry,
    ClauseEntry,
    DeviceEntry,
    MatmulEntry,
    Reason,
    VersusEntry,
)
from kmrun.core.score import Ratio, Score
from kmrun.core.statistics import median, quartiles
from kmrun.core.verdict import Judgement, worst_check

Locate = Callable[[Path], tuple[str, int] | None]
"""Turns a document path into the file and line where it was written."""


def case_result(
    case: Case,
    found: Measurement,
    scored: Score,
    judged: Judgement,
    locate: Locate = lambda path: None,
    digest: str | None = None,
) -> CaseResult:
    """Return the document's entry of one case; `digest` is of its definition."""
    file, line = locate(case.place) or (None, None)
    time = scored.time_s
    timed = time is not None
    low, middle, high = quartiles(found.samples_ns) if timed else (None, None, None)
    worst = worst_check(found.checks)
    return CaseResult(
        id=case.id,
        kernel=case.kernel,
        axes={name: case.axes[name] for name in case.shown_axes},
        tags=case.tags,
        file=file,
        line=line,
        verdict=judged.verdict,
        reasons=tuple(_reason(finding) for finding in judged.reasons),
        clauses=tuple(_clause(result, locate) for result in judged.clauses),
        warnings=judged.warnings,
        labels=(*found.labels, *scored.labels),
        median_ms=_in(middle, 1e6),
        ci_low_ms=_in(time.low, 1e-3) if time else None,
        ci_high_ms=_in(time.high, 1e-3) if time else None,
        q1_ms=_in(low, 1e6),
        q3_ms=_in(high, 1e6),
        min_ms=_in(min(found.samples_ns), 1e6) if timed else None,
        samples_ms=_samples_ms(found.samples_ns) if timed else (),
        hot_median_ms=_in(median(found.hot_samples_ns), 1e6) if timed and found.hot_samples_ns else None,
        hot_samples_ms=_samples_ms(found.hot_samples_ns) if timed else (),
        batch=found.batch if timed else None,
        first_call_ms=_in(found.first_call_ns, 1e6),
        host_us=_in(found.host_ns, 1e3),
        event_us=_in(found.event_ns, 1e3),
        handoff_us=_in(found.handoff_ns, 1e3),
        handoff_bias=found.handoff_bias,
        bytes=scored.bytes,
        flops=scored.flops,
        gb_per_s=scored.gb_per_s,
        tflop_per_s=scored.tflop_per_s,
        intensity=scored.intensity,
        bound=scored.bound,
        roof_fraction=scored.roof_fraction,
        roof_max_fraction=scored.roof_max_fraction,
        roof_clk_fraction=scored.roof_clk_fraction,
        ceiling_fraction=scored.ceiling_fraction,
        peak_bw_fraction=scored.peak_bw_fraction,
        fp32_fraction=scored.fp32_fraction,
        speedup=scored.speedup,
        speedup_against=scored.speedup_against,
        correct=found.correct,
        max_error=_finite(worst.error) if worst else None,
        allowed_error=_finite(worst.allowed) if worst else None,
        checks=tuple(_check(check) for check in found.checks),
        seeds=found.seeds,
        rechecked_fraction=found.rechecked_share,
        peak_memory_bytes=found.peak_memory_bytes,
        isolation=found.isolation if timed else None,
        exchange=found.exchange if timed else None,
        l2=found.l2 if timed else None,
        clock=found.clock if timed else None,
        time_verified=found.time_verified,
        threads=found.threads,
        wall_s=_in(found.wall_ns, 1e9),
        versus={rival.name: _versus(scored.ratios.get(rival.name), rival.pairs) for rival in found.rivals}
        if timed
        else {},
        telemetry=telemetry_entry(found.observed) if timed and found.observed is not None else None,
        slowdown=found.slowdown,
        digest=digest,
    )


def device_entry(device: RunDevice, card: str | None) -> DeviceEntry:
    """Return the document's entry of the device that ran."""
    return DeviceEntry(
        kind=device.kind,
        index=device.index,
        name=device.name,
        card=card,
        memory_bytes=device.memory_bytes,
        compute_capability=device.compute_capability,
        max_clock_hz=device.max_clock_hz,
        sm_count=device.sm_count,
        cache_bytes=device.cache_bytes,
        uuid=device.uuid,
        cores=device.cores,
        threads=device.threads,
    )


def ceiling_entry(ceilings: Ceilings) -> CeilingEntry:
    """Return the document's entry of the measured ceilings."""
    return CeilingEntry(
        tuple(BandwidthEntry(seen.kind, seen.bytes, seen.bytes_per_s / 1e9) for seen in ceilings.bandwidths),
        tuple(
            MatmulEntry(rate.dtype, rate.n, rate.flop_per_s / 1e12, rate.age_s) for rate in ceilings.matmuls
        ),
        tuple(
            BandwidthEntry(seen.kind, seen.bytes, seen.bytes_per_s / 1e9)
            for seen in ceilings.cache_bandwidths
        ),
        ceilings.wall_ns / 1e9,
    )


def _reason(finding: Finding) -> Reason:
    return Reason(finding.code, finding.sentence, finding.fault, finding.outcome, finding.detail or None)


def _clause(result: ClauseResult, locate: Locate) -> ClauseEntry:
    file, line = locate(result.place) or (None, None)
    return ClauseEntry(
        kind=result.kind,
        bound=_finite(result.bound),
        value=_finite(result.value),
        low=_finite(result.low),
        high=_finite(result.high),
        verdict=result.verdict,
        reason=result.reason,
        file=file,
        line=line,
    )


def _check(check: OutputCheck) -> CheckEntry:
    return CheckEntry(
        output=check.name,
        metric=check.metric,
        ok=check.ok,
        error=_finite(check.error),
        allowed=_finite(check.allowed),
        worst_index=check.worst_index,
        got=_finite(check.got),
        want=_finite(check.want),
        seed=check.seed,
    )


def _versus(ratio: Ratio | None, pairs: tuple[tuple[float, float], ...]) -> VersusEntry:
    if ratio is None:
        raise ValueError("a rival without a ratio was never scored")
    return VersusEntry(
        role=ratio.role,
        median_ms=ratio.median_ms,
        speedup=ratio.speedup.value,
        low=_finite(ratio.speedup.low) or None,
        high=_finite(ratio.speedup.high),
        alternated=ratio.alternated,
        pairs_ms=tuple((ours / 1e6, theirs / 1e6) for ours, theirs in pairs),
    )


def _samples_ms(samples_ns: tuple[float, ...]) -> tuple[float, ...]:
    """Return samples to a tenth of a nanosecond: what lies below no clock has seen, and only fills files."""
    return tuple(round(sample / 1e6, 7) for sample in samples_ns)


def _in(amount: float | None, unit: float) -> float | None:
    return None if amount is None or not math.isfinite(amount) else amount / unit


def _finite(value: float | None) -> float | None:
    """JSON has no infinity and no NaN: an error without a number has none in the document either."""
    return value if value is not None and math.isfinite(value) else None
