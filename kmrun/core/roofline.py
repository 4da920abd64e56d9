"""The roofline model: what a call can reach at most, given its arithmetic intensity and two roofs.

Williams, Waterman & Patterson, "Roofline: an insightful visual performance model for multicore
architectures", CACM 52(4), 2009. Rates in flop/s and bytes/s, intensity in flop/byte.
"""

from typing import Literal

Bound = Literal["mem", "comp"]


def attainable(intensity: float, bandwidth: float, peak: float) -> float:
    """Return the highest rate in flop/s: the lower of the memory slope and the compute roof."""
    return min(intensity * bandwidth, peak)


def ridge_point(bandwidth: float, peak: float) -> float:
    """Return the intensity in flop/byte from which on compute is the limit."""
    return peak / bandwidth


def bound(intensity: float, bandwidth: float, peak: float) -> Bound:
    """Return `mem` left of the ridge, `comp` from the ridge on."""
    return "mem" if intensity < ridge_point(bandwidth, peak) else "comp"


def roof_time_s(
    bytes_moved: float | None, flops: float | None, bandwidth: float | None, peak: float | None
) -> float | None:
    """Return the shortest time in seconds that the roofs allow, None when neither roof applies.

    A roof applies when both its work and its rate are known and positive.
    """
    memory = bytes_moved / bandwidth if bytes_moved and bandwidth else None
    compute = flops / peak if flops and peak else None
    times = [time for time in (memory, compute) if time is not None]
    return max(times, default=None)
