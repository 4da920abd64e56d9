"""A result document, version 1: what a run leaves behind, and all that is needed to believe it.

The classes here are the document, key by key; `schema/result.py` is the same document as a schema. Units
stand in the keys. A key that does not apply is None.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from kmrun.core.slowdown import Slowdown

VERSION = 1
"""The major of the result document."""


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
class SeriesEntry:
    """Readings of the sensors over a case, as columns of one length; None where a sensor said nothing."""

    time_s: tuple[float, ...] = ()
    """Since the first reading."""
    sm_mhz: tuple[float | None, ...] = ()
    power_w: tuple[float | None, ...] = ()
    temp_c: tuple[float | None, ...] = ()


@dataclass(frozen=True, slots=True)
class TelemetryEntry:
    """What the machine was doing while a case was timed; None where it has no such sensor, or hides it."""

    source: str | None
    window_s: float
    samples: int
    sm_mhz_held: float | None
    sm_mhz_low: float | None
    sm_mhz_max: float | None
    mem_mhz: float | None
    mem_mhz_max: float | None
    temp_c: float | None
    power_w: float | None
    energy_mj_per_call: float | None
    utilisation_fraction: float | None
    throttle: tuple[str, ...] | None
    throttle_fraction: Mapping[str, float]
    own_cores: float | None
    other_cores: float | None
    stolen_cores: float | None
    note: str
    series: SeriesEntry


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
    handoff_bias: float | None = field(default=None, kw_only=True)  # younger than the format
    bytes: int | None
    flops: float | None
    gb_per_s: float | None
    tflop_per_s: float | None
    intensity: float | None
    bound: str | None
    roof_fraction: float | None
    roof_max_fraction: float | None
    roof_clk_fraction: float | None
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
    telemetry: TelemetryEntry | None = None
    slowdown: Slowdown | None = None
    digest: str | None = None
    """Of the case's definition, as in a baseline: another one is another case."""


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
    age_s: float | None = None
    """Since an earlier run measured it; None: in this run."""


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
