"""From a time to a score: rates, roofs and ratios of one measured case.

The roofline model (Williams, Waterman & Patterson, CACM 52(4), 2009): a call that must do `flops` and move
`bytes` takes at least max(flops / compute roof, bytes / memory roof). A fraction of a roof is that time over
the measured median. SI units: seconds, bytes per second, flop per second.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from kmrun.core import dtypes
from kmrun.core.case import Case
from kmrun.core.ceiling import SLACK, CeilingTime, ceiling_time
from kmrun.core.clocks import clock_ratio, roof_clk_fraction
from kmrun.core.measurement import Ceilings, Finding, Measurement, Rival, RunDevice
from kmrun.core.observed import Observed
from kmrun.core.statistics import STOPPING_LEVEL, Interval, median, median_interval, ratio_bounds

IMPLAUSIBLE = 0.95
"""Faster than 1/0.95 of a physical roof is no record."""


@dataclass(frozen=True, slots=True)
class Roofs:
    """The published peaks that one case is held against; None where nothing is published.

    `bandwidth` in bytes per second; `compute` at the published clock, `compute_max` at the driver's maximum
    clock, `compute_clk` at the clock that was held, all for the case's own units and dtype, and `vector_fp32`,
    in flop per second. `card` is the id of the matched card, None for an unmatched device or a CPU.
    """

    bandwidth: float | None = None
    compute: float | None = None
    compute_max: float | None = None
    vector_fp32: float | None = None
    card: str | None = None
    compute_clk: float | None = None


@dataclass(frozen=True, slots=True)
class Ratio:
    """How often faster the kernel is than a rival; the bounds are those of the 99 % interval.

    `speedup` is rival time over kernel time. `alternated` false: the two never ran side by side.
    """

    name: str
    role: str
    median_ms: float
    speedup: Interval
    alternated: bool


@dataclass(frozen=True, slots=True)
class Score:
    """What a case's time is worth. Every figure is None where it does not apply."""

    time_s: Interval | None = None
    bytes: int | None = None
    flops: float | None = None
    gb_per_s: float | None = None
    tflop_per_s: float | None = None
    intensity: float | None = None
    bound: str | None = None
    roof_s: float | None = None
    """Seconds a call takes at the roof; `roof_fraction` is this over the median."""
    ceiling_s: float | None = None
    roof_clk_s: float | None = None
    """Seconds a call takes at the roof that the clocks held leave; None where they are not known."""
    roof_fraction: float | None = None
    roof_max_fraction: float | None = None
    roof_clk_fraction: float | None = None
    ceiling_fraction: float | None = None
    peak_bw_fraction: float | None = None
    fp32_fraction: float | None = None
    speedup: float | None = None
    """Against the reference where it was timed, else against the fastest versus entry."""
    speedup_against: str | None = None
    ratios: Mapping[str, Ratio] = field(default_factory=dict)
    labels: tuple[str, ...] = ()
    findings: tuple[Finding, ...] = ()


def score(case: Case, found: Measurement, device: RunDevice, ceilings: Ceilings, roofs: Roofs) -> Score:
    """Return the score of one measured case.

    Without samples there is none, nor beside a wrong result or an error: such a kernel is given no speed.
    """
    moved = found.bytes if found.bytes is not None else case.bytes
    flops = case.flops
    intensity = flops / moved if flops and moved else None
    stopped = found.correct is False or any(one.outcome in ("fail", "error") for one in found.findings)
    if stopped or not found.samples_ns:
        return Score(bytes=moved, flops=flops, intensity=intensity)
    time = _seconds(median_interval(found.samples_ns))
    cold = found.l2 == "cold"
    ceiling = ceiling_time(
        ceilings,
        bytes_moved=moved,
        flops=flops,
        peak=case.peak,
        resident_bytes=found.resident_bytes,
        cache_bytes=device.cache_bytes,
        cold=cold,
        on_cpu=device.kind == "cpu",
        seconds=time.value,
    )
    ceiling_s, labels = _held_ceiling(ceiling, time.value)
    if device.kind != "cpu" and roofs.card is None:
        labels = (*labels, "slice" if device.is_mig else "unverified roof")
    memory_roof_s = moved / roofs.bandwidth if moved and roofs.bandwidth and cold else None
    compute_roof_s = flops / roofs.compute if flops and roofs.compute else None
    roof_s = _longest(memory_roof_s, compute_roof_s)
    roof_max_s = _longest(memory_roof_s, flops / roofs.compute_max if flops and roofs.compute_max else None)
    roof_clk_s = _roof_clk_s(found.observed, roofs, memory_roof_s, compute_roof_s)
    if roof_clk_s and time.value < IMPLAUSIBLE * roof_clk_s:
        # Not the kernel's fault, of which the roof at the highest clock decides: the clock that was read is not the
        # one that it ran at.
        roof_clk_s, labels = None, (*labels, "clock not known")
    ratios = {rival.name: _ratio(rival, time.value) for rival in found.rivals}
    against = _headline(ratios)
    return Score(
        time_s=time,
        bytes=moved,
        flops=flops,
        gb_per_s=moved / time.value / 1e9 if moved else None,
        tflop_per_s=flops / time.value / 1e12 if flops else None,
        intensity=intensity,
        bound=_bound(memory_roof_s, compute_roof_s, ceiling),
        roof_s=roof_s,
        ceiling_s=ceiling_s,
        roof_clk_s=roof_clk_s,
        roof_fraction=roof_s / time.value if roof_s else None,
        roof_max_fraction=roof_max_s / time.value if roof_max_s else None,
        roof_clk_fraction=roof_clk_s / time.value if roof_clk_s else None,
        ceiling_fraction=ceiling_s / time.value if ceiling_s else None,
        peak_bw_fraction=moved / time.value / roofs.bandwidth if moved and roofs.bandwidth else None,
        fp32_fraction=flops / time.value / roofs.vector_fp32 if flops and roofs.vector_fp32 else None,
        speedup=ratios[against].speedup.value if against else None,
        speedup_against=against,
        ratios=ratios,
        labels=labels,
        findings=implausible(case, found, device, roofs, moved, time),
    )


def implausible(
    case: Case, found: Measurement, device: RunDevice, roofs: Roofs, moved: int | None, time: Interval
) -> tuple[Finding, ...]:
    """Return the finding of a time that physics does not allow, or nothing.

    The upper bound of the median is what must be too fast, so that noise never accuses. In cold mode, memory
    traffic that a cache may absorb (writes, up to its size) is not compulsory; in hot mode none is.
    """
    slowest = time.high if time.high < float("inf") else max(found.samples_ns) / 1e9
    flops = case.flops
    if flops and roofs.compute_max and slowest < IMPLAUSIBLE * flops / roofs.compute_max:
        times = flops / roofs.compute_max / slowest
        return (_accuse(f"{times:.2f} times the compute roof at the card's highest clock"),)
    if moved and roofs.bandwidth and found.l2 == "cold":
        compulsory = moved - min(written_bytes(case, found), device.cache_bytes or 0)
        if slowest < IMPLAUSIBLE * compulsory / roofs.bandwidth:
            times = compulsory / roofs.bandwidth / slowest
            return (_accuse(f"{times:.2f} times what the card's memory can deliver"),)
    return ()


def _accuse(what: str) -> Finding:
    return Finding(
        code="implausible",
        sentence=f"ran at {what}: a wrong formula (flops, bytes), a wrong peak, a cache effect or a cheat",
        fault="kernel",
        outcome="error",
    )


def written_bytes(case: Case, found: Measurement) -> int:
    """Return the bytes that one call writes: declared or learned outputs and the arguments it mutates."""
    tensors: list[tuple[tuple[int, ...], str]] = [(out.shape, out.dtype) for out in case.outputs or ()]
    if case.outputs is None:
        tensors += [
            (tuple(out["shape"]), str(out["dtype"]))
            for name, out in (found.learned_outputs or {}).items()
            if name not in case.mutates  # what is mutated follows
        ]
    tensors += [
        (argument.shape, argument.dtype)
        for argument in case.arguments
        if argument.name in case.mutates and argument.shape is not None and argument.dtype is not None
    ]
    return sum(
        dtypes.storage_bytes(math.prod(shape), dtype) for shape, dtype in tensors if dtypes.is_dtype(dtype)
    )


def _held_ceiling(ceiling: CeilingTime, seconds: float) -> tuple[float | None, tuple[str, ...]]:
    """Return the ceiling time that counts, never longer than the time itself, and the labels that say why.

    A kernel that beats a measured ceiling a little has measured it better than the probe did, and becomes the
    ceiling. One that beats it by far is bounded by something else, and has no fraction of it.
    """
    labels: tuple[str, ...] = ("in cache",) if ceiling.in_cache else ()
    limit = ceiling.seconds
    if limit is None or limit <= seconds:
        return limit, labels
    if limit / seconds <= SLACK:
        return seconds, (*labels, "ceiling beaten")
    return None, (*labels, "far above ceiling")


def _roof_clk_s(
    observed: Observed | None, roofs: Roofs, memory_s: float | None, compute_s: float | None
) -> float | None:
    """Return what a call takes at the roof that the clocks held leave, None where no clock was read."""
    if observed is None or observed.window.sm_mhz is None:
        return None
    window = observed.window
    # A fraction of one second is that roof in seconds.
    return roof_clk_fraction(
        1.0,
        memory_roof_s=memory_s,
        compute_roof_s=compute_s,
        sm_held=clock_ratio(roofs.compute_clk, roofs.compute),
        mem_held=clock_ratio(window.mem_mhz, window.mem_mhz_max),
    )


def _seconds(nanoseconds: Interval) -> Interval:
    return Interval(nanoseconds.low / 1e9, nanoseconds.value / 1e9, nanoseconds.high / 1e9)


def _longest(*times: float | None) -> float | None:
    return max((time for time in times if time), default=None)


def _bound(memory_s: float | None, compute_s: float | None, ceiling: CeilingTime) -> str | None:
    if memory_s is None or compute_s is None:
        return ceiling.bound or ("mem" if memory_s else "comp" if compute_s else None)
    return "comp" if (compute_s or 0) > (memory_s or 0) else "mem"


def _ratio(rival: Rival, own_s: float) -> Ratio:
    if rival.pairs and rival.alternated:
        speedup = ratio_bounds(rival.pairs, (1 - STOPPING_LEVEL) / 2)
    elif rival.pairs:
        speedup = Interval(0.0, median([theirs / ours for ours, theirs in rival.pairs]), float("inf"))
    else:
        speedup = Interval(0.0, rival.median_ns / 1e9 / own_s, float("inf"))
    return Ratio(
        rival.name, rival.role, rival.median_ns / 1e6, speedup, rival.alternated and bool(rival.pairs)
    )


def _headline(ratios: Mapping[str, Ratio]) -> str | None:
    """Name the rival that the one speedup figure is against."""
    for name, ratio in ratios.items():
        if ratio.role == "reference":
            return name
    return min(ratios, key=lambda name: ratios[name].speedup.value, default=None)
