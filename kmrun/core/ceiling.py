"""The least time a case could take by what this machine was seen to deliver in this very run."""

from dataclasses import dataclass

from kmrun.core import dtypes
from kmrun.core.case import Peak
from kmrun.core.measurement import Bandwidth, Ceilings

SLACK = 1.25
"""Beating a measured ceiling by more than this says that it is a ceiling of something else."""


@dataclass(frozen=True, slots=True)
class CeilingTime:
    """Seconds per call at the measured ceiling, or None where none applies; the larger one binds."""

    memory_s: float | None
    compute_s: float | None
    applies: bool
    """False when a part of the work has no measured ceiling: a fraction of the rest would mislead."""
    in_cache: bool = False

    @property
    def seconds(self) -> float | None:
        """The larger of both, None where the fraction would mislead."""
        known = [time for time in (self.memory_s, self.compute_s) if time]
        return max(known) if self.applies and known else None

    @property
    def bound(self) -> str | None:
        """`mem` or `comp`."""
        if self.seconds is None:
            return None
        return "comp" if (self.compute_s or 0) > (self.memory_s or 0) else "mem"


def compute_rate(ceilings: Ceilings, dtype: str | None, units: str | None, on_cpu: bool) -> float | None:
    """Return the measured compute ceiling of a dtype in flop/s, None where nothing measured bounds it.

    It is the fastest matmul of the dtype and of every wider floating type: a type without fast units of its
    own is computed in a wider one. Vector work on a GPU is bounded only by the types whose matmul runs there
    on the vector units.
    """
    if dtype is None:
        return None
    own = dtypes.find(dtype)
    if units == "vector" and not on_cpu and own.name not in ("fp32", "fp64"):
        return None

    def bounds(measured: str) -> bool:
        other = dtypes.find(measured)
        return other.name == own.name or (own.is_float and other.is_float and other.bits > own.bits)

    rates = [rate.flop_per_s for rate in ceilings.matmuls if bounds(rate.dtype)]
    return max(rates, default=None)


def dram_rate(ceilings: Ceilings) -> float | None:
    """Return the largest measured bandwidth of memory-sized sets in bytes per second."""
    return max((seen.bytes_per_s for seen in ceilings.bandwidths), default=None)


def cache_rate(points: tuple[Bandwidth, ...], resident_bytes: int) -> float | None:
    """Return the bandwidth of a set of that size that lives in a cache, in bytes per second.

    The larger of the two measured neighbours: between two sizes the curve stays under the higher one, so no
    honest kernel beats it. None beyond the largest measured set, or when nothing was measured.
    """
    above = [point for point in points if point.bytes >= resident_bytes]
    if not above:
        return None
    next_size = min(point.bytes for point in above)
    below_size = max((point.bytes for point in points if point.bytes < resident_bytes), default=next_size)
    return max(point.bytes_per_s for point in points if point.bytes in (below_size, next_size))


def ceiling_time(
    ceilings: Ceilings,
    *,
    bytes_moved: int | None,
    flops: float | None,
    peak: Peak | None,
    resident_bytes: int | None,
    cache_bytes: int | None,
    cold: bool,
    on_cpu: bool,
    seconds: float,
) -> CeilingTime:
    """Return the ceiling time of a case that took `seconds` per call.

    Cold sets are held against memory. A set that fits the cache and is hot, or was faster than memory could
    feed it (the flush did not reach all of it), is held against the cache's own curve.
    """
    resident = resident_bytes if resident_bytes is not None else bytes_moved
    memory_s, known, in_cache = None, True, False
    if bytes_moved:
        dram, cached = dram_rate(ceilings), cache_rate(ceilings.cache_bandwidths, resident or bytes_moved)
        fits = resident is not None and (cached is not None or resident <= (cache_bytes or 0))
        in_cache = fits and (not cold or (dram is not None and bytes_moved / dram > seconds))
        rate = max(cached, dram or 0.0) if in_cache and cached else None if in_cache else dram
        memory_s = bytes_moved / rate if rate else None
        known = memory_s is not None
    compute_s = None
    if flops and peak is None:
        # No units were named. Memory may still be the honest limit, unless the fastest arithmetic seen would
        # already take longer.
        fastest = max((rate.flop_per_s for rate in ceilings.matmuls), default=None)
        known = known and (memory_s is None or fastest is None or flops / fastest <= memory_s)
    if flops and peak is not None:
        dtype = peak.dtype if peak.tflops is None else None
        rate = compute_rate(ceilings, dtype, peak.units, on_cpu)
        compute_s = flops / rate if rate else None
        known = known and compute_s is not None
    return CeilingTime(memory_s, compute_s, known, in_cache)
