"""Intervals of a median that assume no noise model, and the rule that says when to stop sampling.

The bounds are order statistics: the median of the population lies under the k-th smallest of n independent
samples with probability P(Bin(n, 1/2) < k), whatever the distribution (David & Nagaraja, Order Statistics,
7.1). Timings are not independent: clocks, caches and neighbours move slowly. What is assumed instead is that
the samples are stationary; the serial correlation of "above or below the median" is estimated from the
samples in time order, and the ranks are taken for the smaller number of independent samples that are worth
as much. Where fewer are left than a bound needs, the extremes that were seen stand in for it.

Units are those of the samples, throughout. `alpha` is a one-sided error rate, `level` a two-sided coverage.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

ERROR_RATE = 0.01
"""One-sided error rate of a verdict: 99 % bounds."""

STOPPING_LEVEL = 0.99
"""Coverage of the interval that the stopping rule and the printed `±` speak of."""

WORTH_AT_LEAST = 12
"""Independent samples that sampling never stops under; 8 would bound a median at that level."""


@dataclass(frozen=True, slots=True)
class Interval:
    """A value with its bounds; `-inf` or `inf` where there are too few samples to give one."""

    low: float
    value: float
    high: float

    @property
    def half_width(self) -> float:
        """Half of the distance between the bounds, relative to the value; `inf` when it has no meaning."""
        if self.value == 0:
            return 0.0 if self.low == self.high else math.inf
        return (self.high - self.low) / (2 * abs(self.value))


def median(samples: Sequence[float]) -> float:
    """Return the middle of the samples, the mean of the middle two when their number is even.

    Raises:
        ValueError: there are none.
    """
    return quantile(samples, 0.5)


def quantile(samples: Sequence[float], share: float) -> float:
    """Return the quantile by linear interpolation between order statistics (Hyndman & Fan, type 7).

    Raises:
        ValueError: there are no samples, or `share` is outside [0, 1].
    """
    if not samples:
        raise ValueError("no samples")
    if not 0 <= share <= 1:
        raise ValueError(f"a quantile's share lies in [0, 1], not {share}")
    return _interpolated(sorted(samples), share)


def quartiles(samples: Sequence[float]) -> tuple[float, float, float]:
    """Return the lower quartile, the median and the upper quartile.

    Raises:
        ValueError: there are no samples.
    """
    if not samples:
        raise ValueError("no samples")
    ordered = sorted(samples)
    return _interpolated(ordered, 0.25), _interpolated(ordered, 0.5), _interpolated(ordered, 0.75)


def shift(samples: Sequence[float], others: Sequence[float]) -> float:
    """Return by how much the samples lie above others: the median of all differences.

    The estimate of Hodges & Lehmann (1963) for two samples that differ by where they lie; a third of either may be
    disturbed without moving it far.

    Raises:
        ValueError: one of them is empty.
    """
    return median([one - other for one in samples for other in others])


def median_interval(samples: Sequence[float], level: float = STOPPING_LEVEL) -> Interval:
    """Return the median with bounds that hold together at `level` (two-sided). Samples are in time order.

    Raises:
        ValueError: there are no samples.
    """
    return median_bounds(samples, (1 - level) / 2)


def median_bounds(samples: Sequence[float], alpha: float) -> Interval:
    """Return the median with two bounds, each of which is wrong with probability at most `alpha` (one-sided).

    Samples are in time order. A side for which n is too small at this `alpha` is infinite.

    Raises:
        ValueError: there are no samples, or `alpha` is not in (0, 1/2).
    """
    if not samples:
        raise ValueError("no samples")
    if not 0 < alpha < 0.5:
        raise ValueError(f"a one-sided error rate lies in (0, 1/2), not {alpha}")
    ordered, number = sorted(samples), len(samples)
    value = _interpolated(ordered, 0.5)
    if number < samples_needed(alpha):
        return Interval(-math.inf, value, math.inf)
    worth = max(1, math.floor(number / correlation_factor(samples)))
    rank = max(1, lower_rank(worth, alpha))
    place = (rank - 1) * number // worth
    return Interval(ordered[place], value, ordered[number - 1 - place])


def ratio_bounds(pairs: Sequence[tuple[float, float]], alpha: float) -> Interval:
    """Return the median of `second / first` over the pairs, with one-sided bounds at `alpha`.

    Given (kernel, rival) times it is the speedup of the kernel. Bounds of the ratio are those of its
    logarithm: order statistics do not see a monotone change of scale.

    Raises:
        ValueError: there are no pairs, or a time is not positive.
    """
    if any(first <= 0 or second <= 0 for first, second in pairs):
        raise ValueError("a ratio needs positive times")
    logs = [math.log(second / first) for first, second in pairs]
    bounds = median_bounds(logs, alpha)
    high = math.exp(bounds.high) if math.isfinite(bounds.high) else math.inf
    return Interval(math.exp(bounds.low), math.exp(bounds.value), high)


def samples_needed(alpha: float) -> int:
    """Return the fewest independent samples (or pairs) that can bound a median at one-sided `alpha`.

    2^-n is the chance that all n fall on one side: 7 for 1 %, 12 for 1 % shared by 40 clauses.
    """
    return max(1, math.ceil(-math.log2(alpha) - 1e-9))


@lru_cache(maxsize=4096)
def lower_rank(number: int, alpha: float) -> int:
    """Return the largest k for which P(Bin(number, 1/2) < k) <= alpha; 0 when there is none.

    The k-th smallest sample is then a lower bound of the median, and the k-th largest an upper one.
    """
    if number > 2000:
        # The normal tail with continuity correction is within one rank of the exact one from here on, and
        # rounding down errs towards the wider interval.
        return math.floor(number / 2 - _normal_quantile(alpha) * math.sqrt(number) / 2 - 0.5)
    # Exact integers: the tail is compared as a count out of 2^n, so no rounding can promote a rank.
    budget, total, term, rank = math.floor(alpha * 2.0**60), 0, 1, 0
    limit = (budget << number) >> 60
    for k in range(number + 1):
        total += term
        if total > limit:
            return rank
        rank = k + 1
        term = term * (number - k) // (k + 1)
    return rank


def correlation_factor(samples: Sequence[float]) -> float:
    """Return by how much serial correlation inflates the variance of the median's rank; 1 when independent.

    The factor is 1 + 2 * sum of the autocorrelations of "is above the median", cut by the initial positive
    sequence rule (Geyer 1992, section 3.3), plus one standard error of that estimate: a stopping rule stops
    where the estimate happens to be low. Only the sign pattern is used, so outliers have no weight.
    """
    number = len(samples)
    if number < 8:
        return 1.0
    middle = _interpolated(sorted(samples), 0.5)
    # One bit a sample: an autocorrelation is then one shift, one xor and one popcount.
    bits = int("".join("1" if sample > middle else "0" for sample in samples), 2)
    above = bits.bit_count() / number
    variance = above * (1 - above)
    if variance == 0:
        return 1.0

    def correlation(lag: int) -> float:
        overlap = number - lag
        mask = (1 << overlap) - 1
        both = (bits & (bits >> lag) & mask).bit_count()
        return (both / number - above * above * overlap / number) / variance

    total = 0.0
    for lag in range(0, number // 2, 2):
        pair = correlation(lag) + correlation(lag + 1)
        if pair <= 0:
            break
        total += pair
    factor = 2 * total - 1
    return factor * (1 + math.sqrt(2 * factor / number)) if factor > 1 else 1.0


def enough(samples: Sequence[float], rel_ci: float, at_least: int = 10) -> bool:
    """Say whether sampling may stop: the 99 % interval of the median is within ±`rel_ci` of it.

    The samples must also be worth a dozen independent ones: a slow drift looks narrow at first.
    Pure and cheap (one sort, a few shifts of a bit string): a timer may ask after every batch of samples.
    """
    number = len(samples)
    if number < max(at_least, samples_needed((1 - STOPPING_LEVEL) / 2)):
        return False
    if number < WORTH_AT_LEAST * correlation_factor(samples):
        return False
    return median_interval(samples).half_width <= rel_ci


def corrected_alpha(tests: int, alpha: float = ERROR_RATE) -> float:
    """Return the error rate of one of `tests` tests at which all together keep `alpha` (Bonferroni)."""
    return alpha / max(1, tests)


def _interpolated(ordered: Sequence[float], share: float) -> float:
    place = share * (len(ordered) - 1)
    below = math.floor(place)
    if below + 1 >= len(ordered):
        return float(ordered[below])
    rest = place - below
    return ordered[below] * (1 - rest) + ordered[below + 1] * rest


def _normal_quantile(alpha: float) -> float:
    """Return z with P(Z > z) = alpha, by bisection on erfc."""
    low, high = 0.0, 40.0
    for _ in range(80):
        middle = (low + high) / 2
        if math.erfc(middle / math.sqrt(2)) / 2 > alpha:
            low = middle
        else:
            high = middle
    return high
