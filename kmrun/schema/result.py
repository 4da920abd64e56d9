"""The result document, version 1, as a schema: what `--json` prints and `--save` writes.

Key by key the document of `core/result.py`; a test holds the two to each other. Times are in the unit of the
key, fractions are of 1, bytes are bytes.
"""

from typing import Annotated, Any, Literal

from pydantic import Field

from kmrun.schema.base import Document, Many

Verdict = Literal["pass", "fail", "error", "inconclusive", "skipped"]
Fault = Literal["kernel", "suite", "environment", "undecided"]
NotNegative = Annotated[float, Field(ge=0)]
Count = Annotated[int, Field(ge=0)]
Pair = Annotated[Many[float], Field(min_length=2, max_length=2)]


class Reason(Document):
    """Why a verdict is not `pass`."""

    code: str = Field(description="Stable code, for scripts.")
    sentence: str = Field(description="What happened, for people.")
    fault: Fault = Field(description="Whose fault it is; it decides the exit status.")
    outcome: Literal["fail", "error", "inconclusive", "skipped"]
    detail: str | None = Field(description="Supporting text: a traceback, or what user code printed.")


class Clause(Document):
    """One promise and what became of it; `correct` is one of every kernel with a reference."""

    kind: str
    bound: float | None = Field(description="The suite's own number, as it applies on this device.")
    value: float | None
    low: float | None = Field(
        description="One-sided bound: at `error_rate` where it breaks the clause, else at 1 %."
    )
    high: float | None = Field(description="The same on the other side.")
    verdict: Literal["pass", "fail", "inconclusive", "not judged"]
    reason: str
    file: str | None
    line: int | None


class Check(Document):
    """The worst comparison of one output over all checked calls."""

    output: str
    metric: str
    ok: bool
    error: float | None = Field(description="In the metric's own unit; null when it is no number.")
    allowed: float | None
    worst_index: Many[int] | None
    got: float | None
    want: float | None
    seed: int | None


class Versus(Document):
    """A rival that was timed beside the kernel."""

    role: Literal["reference", "versus"]
    median_ms: NotNegative
    speedup: NotNegative = Field(description="The rival's time over the kernel's.")
    low: float | None
    high: float | None
    alternated: bool = Field(description="False: the two were not timed in the same moments.")
    pairs_ms: Many[Pair] = Field(description="Kernel and rival time of each block.")


class Series(Document):
    """Readings of the sensors over a case, as columns of one length, at most 120 of them."""

    time_s: Many[NotNegative] = Field(description="Seconds since the first reading.")
    sm_mhz: Many[float | None]
    power_w: Many[float | None]
    temp_c: Many[float | None]


class Telemetry(Document):
    """What the machine was doing while a case was timed; null where it has no such sensor, or hides it."""

    source: str | None = Field(description="What was asked: `nvml`, `smi`, `cpu`; null: nothing answered.")
    window_s: NotNegative = Field(description="How long the kernel was timed alone.")
    samples: Count = Field(
        description="Readings in that time; of less than 0.1 s, the nearest one, if it is near."
    )
    sm_mhz_held: NotNegative | None = Field(
        description="Median clock of the compute units; of a CPU, the mean of its cores."
    )
    sm_mhz_low: NotNegative | None = Field(description="The lowest reading of it.")
    sm_mhz_max: NotNegative | None = Field(description="The highest clock that the device allows.")
    mem_mhz: NotNegative | None
    mem_mhz_max: NotNegative | None
    temp_c: float | None = Field(description="The hottest reading, in degrees Celsius.")
    power_w: NotNegative | None = Field(
        description="Mean over a second or more of calls without pause; never of less."
    )
    energy_mj_per_call: NotNegative | None = Field(
        description="Over the same calls, by the energy counter where there is one."
    )
    utilisation_fraction: NotNegative | None
    throttle: Many[str] | None = Field(
        description="Every reason for a lower clock that was seen: `sw_power_cap`; null where none can be read."
    )
    throttle_fraction: dict[str, NotNegative] = Field(description="The share of the readings that showed it.")
    own_cores: NotNegative | None = Field(
        description="CPU time of kmrun's processes over wall time, so cores."
    )
    other_cores: NotNegative | None = Field(description="The same of all other processes of the machine.")
    stolen_cores: NotNegative | None = Field(description="The same of what a virtual machine's host took.")
    note: str = Field(description="Why figures are missing.")
    series: Series


class Slowdown(Document):
    """The case compared with another version of itself. Fractions: 0.03 is 3 % slower, negative is faster."""

    against: str = Field(description="A commit, a path, or a baseline and its date.")
    method: Literal["alternated", "baseline"]
    margin: NotNegative = Field(description="What was allowed.")
    verdict: Literal["holds", "broken", "inconclusive"]
    slowdown: float | None = Field(description="New time over old time, less one.")
    low: float | None = Field(
        description="One-sided bound: at the case's share of 1 % where fresh processes decided, else at 5 %; "
        "the lowest pair where a case held before there were pairs enough for that share."
    )
    high: float | None = Field(description="One-sided bound at 5 %.")
    visible: float | None = Field(
        description="The smallest measured slowdown that this run, with its noise, would have called too slow."
    )
    blocks: Count
    processes: Count = Field(description="Pairs of fresh processes.")
    reason: str
    median: float | None = Field(
        None, description="Of all timed calls of both versions; judged by no clause."
    )
    p95: float | None = Field(None, description="Of their 95th percentiles; judged by no clause.")


class Case(Document):
    """One case."""

    id: str
    kernel: str
    axes: dict[str, Any]
    tags: Many[str]
    file: str | None
    line: int | None
    verdict: Verdict
    reasons: Many[Reason]
    clauses: Many[Clause]
    warnings: Many[str] = Field(description="What breaks nothing but should be known.")
    labels: Many[str] = Field(description="Remarks on how the figures came about: `in cache`, `hot`.")
    median_ms: NotNegative | None
    ci_low_ms: NotNegative | None = Field(description="99 % interval of the median.")
    ci_high_ms: NotNegative | None
    q1_ms: NotNegative | None
    q3_ms: NotNegative | None
    min_ms: NotNegative | None
    samples_ms: Many[float] = Field(description="Time per call of every sample, in time order.")
    hot_median_ms: NotNegative | None
    hot_samples_ms: Many[float]
    batch: Count | None = Field(description="Calls in one sample.")
    first_call_ms: NotNegative | None
    host_us: NotNegative | None = Field(description="Submit time on the host.")
    event_us: NotNegative | None = Field(description="Spread of an empty timed call.")
    handoff_us: NotNegative | None
    handoff_bias: float | None = Field(
        default=None, description="By which fraction a hand-over between processes lengthens what follows it."
    )
    bytes: Count | None = Field(description="Compulsory traffic of one call.")
    flops: NotNegative | None
    gb_per_s: NotNegative | None
    tflop_per_s: NotNegative | None
    intensity: NotNegative | None = Field(description="flop per byte.")
    bound: Literal["mem", "comp"] | None
    roof_fraction: NotNegative | None
    roof_max_fraction: NotNegative | None
    roof_clk_fraction: NotNegative | None = Field(
        description="Of what the published peaks come to at the clocks that the card held."
    )
    ceiling_fraction: NotNegative | None
    peak_bw_fraction: NotNegative | None
    fp32_fraction: NotNegative | None
    speedup: NotNegative | None
    speedup_against: str | None
    correct: bool | None
    max_error: float | None
    allowed_error: float | None
    checks: Many[Check]
    seeds: Many[int]
    rechecked_fraction: NotNegative | None
    peak_memory_bytes: Count | None
    isolation: Literal["paired", "serial", "inline"] | None
    exchange: Literal["shm", "ipc", "host", "none"] | None
    l2: Literal["cold", "hot"] | None
    clock: Literal["sustained", "boost", "locked"] | None
    time_verified: bool | None
    threads: int | None
    wall_s: NotNegative | None
    versus: dict[str, Versus]
    telemetry: Telemetry | None
    slowdown: Slowdown | None
    digest: Annotated[str, Field(pattern="^[0-9a-f]{64}$")] | None = Field(
        default=None, description="SHA-256 of the case's definition: of another one no time can be compared."
    )


class Suite(Document):
    """Which suite ran."""

    name: str
    file: str | None
    digest: str | None = Field(description="SHA-256 of the file's bytes, in hex.")


class Device(Document):
    """What ran it."""

    kind: Literal["cpu", "cuda", "rocm"]
    index: int
    name: str
    card: str | None = Field(description="Id in the card database; null for a CPU or an unknown card.")
    memory_bytes: int
    compute_capability: str | None
    max_clock_hz: float | None
    sm_count: int | None
    cache_bytes: int | None
    uuid: str | None
    cores: int | None
    threads: int | None


class Bandwidth(Document):
    """A measured bandwidth of one working-set size."""

    kind: str
    bytes: int
    gb_per_s: NotNegative


class Matmul(Document):
    """A measured matmul rate."""

    dtype: str
    n: int
    tflop_per_s: NotNegative
    age_s: NotNegative | None = Field(description="Since an earlier run measured it; null: in this run.")


class Ceilings(Document):
    """What the machine delivered during this run."""

    bandwidths: Many[Bandwidth]
    matmuls: Many[Matmul]
    cache_bandwidths: Many[Bandwidth]
    wall_s: NotNegative


class Result(Document):
    """kmrun result document, version 1."""

    kmrun_result: Literal[1] = Field(description="Major version of the format.")
    complete: bool = Field(description="False: the run was interrupted, or is still going on.")
    suite: Suite
    started: str = Field(description="UTC, ISO 8601.")
    wall_s: NotNegative
    command: Many[str]
    seed: int | None = Field(description="Replays the inputs with `--seed`.")
    error_rate: float = Field(
        description="One-sided rate at which chance breaks one clause, corrected over the suite."
    )
    device: Device
    environment: dict[str, Any]
    ceilings: Ceilings
    cases: Many[Case]
