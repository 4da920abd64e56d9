"""A result document, version 1: what a run leaves behind, and all that is needed to believe it.

The classes here are the document, key by key; `schema/result.py` is the same document as a schema. Units
stand in the keys. A key that does not apply is None.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from kmrun.core.case import Case, Path
from kmrun.core.clause import ClauseResult
from kmrun.core.measurement import Ceilings, Finding, Measurement, OutputCheck, RunDevice
from kmrun.core.score import Ratio, Score
from kmrun.core.statistics import median, quartiles
from kmrun.core.verdict import Judgement, worst_check

VERSION = 1
"""The major of the result document."""

Locate = Callable[[Path], tuple[str, int] | None]
"""Turns a document path into the file and line where it was written."""


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a verdict is not `pass`: a stable code, a sentence, whose fault, and the verdict it leads to."""

    code: str
    sentence: str
    fault: str
    outcome: str
    detail: str | None = None


@dataclass(frozen=True, slots=True)
class ClauseEntry:
    """One promise and what became of it."""

    kind: str
    bound: float | None
    value: float | None
    low: float | None
    high: float | None
    verdict: str
    reason: str
    file: str | None
    line: int | None


@dataclass(frozen=True, slots=True)
class CheckEntry:
    """The worst comparison of one output."""

    output: str
    metric: str
    ok: bool
    error: float | None
    allowed: float | None
    worst_index: tuple[int, ...] | None
    got: float | None
    want: float | None
    seed: int | None


@dataclass(frozen=True, slots=True)
class VersusEntry:
    """One rival that was timed beside the kernel. `speedup` is its time over the kernel's."""

    role: str
    median_ms: float
    speedup: float
    low: float | None
    high: float | None
    alternated: bool
    pairs_ms: tuple[tuple[float, float], ...]


@dataclass(frozen=True, slots=True)
class CaseResult:
    """One case: its verdict with every reason, its times with every sample, its score."""

    id: str
    kernel: str
    axes: Mapping[str, Any]
    tags: tuple[str, ...]
    file: str | None
    line: int | None
    verdict: str
    reasons: tuple[Reason, ...]
    clauses: tuple[ClauseEntry, ...]
    warnings: tuple[str, ...]
    labels: tuple[str, ...]
    median_ms: float | None
    ci_low_ms: float | None
    ci_high_ms: float | None
    q1_ms: float | None
    q3_ms: float | None
    min_ms: float | None
    samples_ms: tuple[float, ...]
    hot_median_ms: float | None
    hot_samples_ms: tuple[float, ...]
    batch: int | None
    first_call_ms: float | None
    host_us: float | None
    event_us: float | None
    handoff_us: float | None
    bytes: int | None
    flops: float | None
    gb_per_s: float | None
    tflop_per_s: float | None
    intensity: float | None
    bound: str | None
    roof_fraction: float | None
    roof_max_fraction: float | None
    ceiling_fraction: float | None
    peak_bw_fraction: float | None
    fp32_fraction: float | None
    speedup: float | None
    speedup_against: str | None
    correct: bool | None
    max_error: float | None
    allowed_error: float | None
    checks: tuple[CheckEntry, ...]
    seeds: tuple[int, ...]
    rechecked_fraction: float | None
    peak_memory_bytes: int | None
    isolation: str | None
    exchange: str | None
    l2: str | None
    clock: str | None
    time_verified: bool | None
    threads: int | None
    wall_s: float | None
    versus: Mapping[str, VersusEntry] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SuiteEntry:
    """Which suite ran: its name, its file and the SHA-256 of the file's bytes."""

    name: str
    file: str | None
    digest: str | None


@dataclass(frozen=True, slots=True)
class DeviceEntry:
    """What ran it, and the published peaks it is held against."""

    kind: str
    index: int
    name: str
    card: str | None
    memory_bytes: int
    compute_capability: str | None
    max_clock_hz: float | None
    sm_count: int | None
    cache_bytes: int | None
    uuid: str | None
    cores: int | None
    threads: int | None


@dataclass(frozen=True, slots=True)
class BandwidthEntry:
    """A measured bandwidth of one working-set size."""

    kind: str
    bytes: int
    gb_per_s: float


@dataclass(frozen=True, slots=True)
class MatmulEntry:
    """A measured matmul rate."""

    dtype: str
    n: int
    tflop_per_s: float


@dataclass(frozen=True, slots=True)
class CeilingEntry:
    """What the machine delivered during this run."""

    bandwidths: tuple[BandwidthEntry, ...] = ()
    matmuls: tuple[MatmulEntry, ...] = ()
    cache_bandwidths: tuple[BandwidthEntry, ...] = ()
    wall_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Result:
    """The document of one suite's run. `complete` is false while it runs and when it was interrupted."""

    kmrun_result: int
    complete: bool
    suite: SuiteEntry
    started: str
    """UTC, ISO 8601."""
    wall_s: float
    command: tuple[str, ...]
    seed: int | None
    """The seed that replays the inputs: what `--seed` gave, or what was drawn."""
    error_rate: float
    """One-sided rate at which one clause is broken by chance, corrected over the suite."""
    device: DeviceEntry
    environment: Mapping[str, Any]
    ceilings: CeilingEntry
    cases: tuple[CaseResult, ...]


def case_result(
    case: Case, found: Measurement, scored: Score, judged: Judgement, locate: Locate = lambda path: None
) -> CaseResult:
    """Return the document's entry of one case."""
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
        bytes=scored.bytes,
        flops=scored.flops,
        gb_per_s=scored.gb_per_s,
        tflop_per_s=scored.tflop_per_s,
        intensity=scored.intensity,
        bound=scored.bound,
        roof_fraction=scored.roof_fraction,
        roof_max_fraction=scored.roof_max_fraction,
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
        tuple(MatmulEntry(rate.dtype, rate.n, rate.flop_per_s / 1e12) for rate in ceilings.matmuls),
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
