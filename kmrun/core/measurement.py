"""What a supervisor hands back: the raw findings of one case and of one run. No score, no verdict, plain data.

Times are nanoseconds per call (a batched sample is already divided by its batch), sizes bytes.
"""

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from kmrun.core.observed import Observed
from kmrun.core.slowdown import Slowdown

FaultKind = Literal["kernel", "suite", "environment", "undecided"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One reason for a verdict: a stable code, a sentence for people, and whose fault it is.

    `outcome` is the verdict it leads to by itself: `fail` (wrong result), `error`, `inconclusive`, `skipped`.
    `detail` is supporting text: the tail of a traceback or of what the user's code printed.
    """

    code: str
    sentence: str
    fault: FaultKind
    outcome: Literal["fail", "error", "inconclusive", "skipped"]
    detail: str = ""


@dataclass(frozen=True, slots=True)
class OutputCheck:
    """The worst comparison of one output over all checked calls. `error` and `allowed` in the metric's own unit."""

    name: str
    metric: str
    ok: bool
    error: float | None
    allowed: float | None
    worst_index: tuple[int, ...] | None = None
    got: float | None = None
    want: float | None = None
    seed: int | None = None


@dataclass(frozen=True, slots=True)
class Rival:
    """An implementation timed beside the kernel in alternated blocks (the reference or a versus entry).

    `pairs` holds one (kernel, rival) pair of times per block in ns per call: the lower quartile of the slots on
    a CPU, the median on a GPU. `alternated` is false in serial isolation: the ratio is then inconclusive.
    """

    name: str
    role: Literal["reference", "versus"]
    pairs: tuple[tuple[float, float], ...]
    median_ns: float
    alternated: bool = True


@dataclass(frozen=True, slots=True)
class Measurement:
    """All that was found out about one case. Empty samples when it was never given a speed."""

    case_id: str
    findings: tuple[Finding, ...] = ()
    labels: tuple[str, ...] = ()
    """Remarks that are no faults: `hot`, `in cache`, `reference reachable`, `unisolated`, `time unverified`..."""
    samples_ns: tuple[float, ...] = ()
    """Kernel alone, cold or hot as `l2` says, in time order."""
    hot_samples_ns: tuple[float, ...] = ()
    """Only with --hot-and-cold."""
    batch: int = 1
    first_call_ns: float | None = None
    host_ns: float | None = None
    """Submit time on the host."""
    event_ns: float | None = None
    """Spread of an empty event pair (GPU) or of an empty timed call (CPU)."""
    handoff_ns: float | None = None
    handoff_bias: float | None = None
    """By which fraction a slot after a hand-over took longer than one without; None on a CPU."""
    rivals: tuple[Rival, ...] = ()
    correct: bool | None = None
    """None: nothing to compare with, or never compared."""
    checks: tuple[OutputCheck, ...] = ()
    seeds: tuple[int, ...] = ()
    rechecked_share: float | None = None
    """Share of the timed calls whose outputs were compared."""
    learned_outputs: Mapping[str, Any] | None = None
    """{name: {shape, dtype}} when the suite left outputs out."""
    bytes: int | None = None
    """Bytes per call once outputs are known; the plan's figure otherwise."""
    resident_bytes: int | None = None
    """Bytes that one call touches and that the cache may keep: inputs and outputs."""
    peak_memory_bytes: int | None = None
    """The most that the kernel's side held for the case."""
    isolation: Literal["paired", "serial", "inline"] = "paired"
    exchange: Literal["shm", "ipc", "host", "none"] = "none"
    l2: Literal["cold", "hot"] = "cold"
    clock: Literal["sustained", "boost", "locked"] = "sustained"
    time_verified: bool | None = None
    timed_dtype: str | None = None
    wall_ns: float | None = None
    threads: int | None = None
    observed: Observed | None = None
    """What the machine was doing meanwhile; None when nothing was timed."""
    undecidable: str = ""
    """Why no clause about time can be decided: others used the card, or it was slowed down all the time."""
    slowdown: Slowdown | None = None
    """None: it was compared with no other version and no baseline."""
    not_compared: str = ""
    """Why not, where it was to be, or where this run saves what others are compared with."""
    extra: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Bandwidth:
    """A measured bandwidth in bytes per second for one working-set size; `kind` is read, copy or triad."""

    kind: str
    bytes: int
    bytes_per_s: float


@dataclass(frozen=True, slots=True)
class MatmulRate:
    """A measured matmul rate in flop per second. `age_s` is of one that an earlier run measured, None now."""

    dtype: str
    n: int
    flop_per_s: float
    age_s: float | None = None


@dataclass(frozen=True, slots=True)
class Ceilings:
    """What this machine delivered during this run: the larger of before and after, per kind."""

    bandwidths: tuple[Bandwidth, ...] = ()
    matmuls: tuple[MatmulRate, ...] = ()
    cache_bandwidths: tuple[Bandwidth, ...] = ()
    """Of working sets that live in a cache: one point per size, ascending."""
    wall_ns: float = 0.0

    def larger(self, other: "Ceilings") -> "Ceilings":
        """Return the larger of two measurements, figure by figure; their wall times add up."""
        rates: dict[str, MatmulRate] = {}
        for rate in (*self.matmuls, *other.matmuls):
            if rate.dtype not in rates or rate.flop_per_s > rates[rate.dtype].flop_per_s:
                rates[rate.dtype] = rate
        return Ceilings(
            bandwidths=_larger(self.bandwidths, other.bandwidths, lambda seen: (seen.kind, seen.bytes)),
            cache_bandwidths=_larger(self.cache_bandwidths, other.cache_bandwidths, lambda seen: seen.bytes),
            matmuls=tuple(rates.values()),
            wall_ns=self.wall_ns + other.wall_ns,
        )


def _larger(
    first: tuple[Bandwidth, ...], second: tuple[Bandwidth, ...], key: Callable[[Bandwidth], Hashable]
) -> tuple[Bandwidth, ...]:
    found: dict[Hashable, Bandwidth] = {}
    for seen in (*first, *second):
        held = found.get(key(seen))
        if held is None or seen.bytes_per_s > held.bytes_per_s:
            found[key(seen)] = seen
    return tuple(found.values())


@dataclass(frozen=True, slots=True)
class RunDevice:
    """What the sides reported of the device that ran.

    `kind` is `cpu`, `cuda` or `rocm`; `name` as torch or the OS calls it; `max_clock_hz` what the driver allows.
    """

    kind: Literal["cpu", "cuda", "rocm"]
    index: int
    name: str
    memory_bytes: int
    compute_capability: str | None = None
    max_clock_hz: float | None = None
    sm_count: int | None = None
    cache_bytes: int | None = None
    uuid: str | None = None
    cores: int | None = None
    threads: int | None = None
    pci_address: str | None = None
    """`0000:c1:00.0`: what AMD's sensors are found by."""

    @property
    def is_mig(self) -> bool:
        """Whether this is a slice of a GPU: the driver says so in the name, `... MIG 1g.10gb`."""
        return " MIG " in self.name
