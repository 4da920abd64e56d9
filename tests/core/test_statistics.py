import math
import random
from itertools import accumulate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kmrun.core import statistics as own

positive = st.floats(min_value=1e-3, max_value=1e9, allow_nan=False)


def exact_tail(number: int, below: int) -> float:
    """P(Bin(number, 1/2) < below)."""
    return sum(math.comb(number, k) for k in range(below)) / 2**number


@given(st.lists(positive, min_size=1, max_size=200), st.sampled_from([0.8, 0.95, 0.99]))
def test_the_interval_holds_the_median_and_lies_within_the_samples(samples, level):
    interval = own.median_interval(samples, level)
    assert interval.low <= interval.value * (1 + 1e-12)
    assert interval.high >= interval.value * (1 - 1e-12)
    for bound in (interval.low, interval.high):
        assert math.isinf(bound) or bound in samples


@given(st.lists(positive, min_size=12, max_size=120))
def test_a_higher_level_is_never_narrower(samples):
    narrow, wide = own.median_interval(samples, 0.9), own.median_interval(samples, 0.995)
    assert wide.low <= narrow.low
    assert wide.high >= narrow.high


@given(st.lists(positive, min_size=8, max_size=60), st.floats(min_value=0.5, max_value=1e4))
def test_the_interval_scales_with_the_unit(samples, factor):
    plain = own.median_interval(samples)
    scaled = own.median_interval([sample * factor for sample in samples])
    assert scaled.value == pytest.approx(plain.value * factor)
    if math.isfinite(plain.low):
        assert (scaled.low, scaled.high) == pytest.approx((plain.low * factor, plain.high * factor))


@given(st.integers(1, 400), st.floats(min_value=1e-6, max_value=0.49))
def test_the_rank_is_the_largest_whose_tail_keeps_alpha(number, alpha):
    rank = own.lower_rank(number, alpha)
    assert exact_tail(number, rank) <= alpha
    assert exact_tail(number, rank + 1) > alpha * (1 - 1e-9)


@pytest.mark.parametrize("alpha", [0.01, 0.005, 0.01 / 40, 1e-5])
def test_the_normal_tail_is_never_less_careful_than_the_exact_one(alpha):
    for number in (2001, 5000):
        total, rank, term = 0, 0, 1
        limit = int(alpha * 2**60) * 2**number >> 60
        for k in range(number):
            total += term
            if total > limit:
                break
            rank, term = k + 1, term * (number - k) // (k + 1)
        assert rank - 3 <= own.lower_rank(number, alpha) <= rank


def test_samples_needed():
    assert own.samples_needed(0.01) == 7
    assert own.samples_needed(0.01 / 40) == 12
    assert own.samples_needed(0.25) == 2
    assert own.samples_needed(0.125) == 3


def test_too_few_samples_have_no_bounds():
    interval = own.median_bounds([1.0, 2.0, 3.0], 0.01)
    assert interval == own.Interval(-math.inf, 2.0, math.inf)
    assert interval.half_width == math.inf


def test_no_samples_is_a_mistake_of_the_caller():
    for function in (own.median, own.quartiles, own.median_interval):
        with pytest.raises(ValueError, match="no samples"):
            function([])
    with pytest.raises(ValueError, match="one-sided"):
        own.median_bounds([1.0], 0.7)


def test_quartiles_interpolate():
    assert own.quartiles([4, 1, 3, 2, 5]) == (2, 3, 4)
    assert own.quartiles([1, 2, 3, 4]) == (1.75, 2.5, 3.25)
    assert own.quantile([1, 2, 3, 4], 0) == 1
    assert own.quantile([1, 2, 3, 4], 1) == 4
    assert own.median([7]) == 7


def misses(draw, trials: int, number: int, truth: float, alpha: float) -> tuple[float, float]:
    """Share of trials in which the lower, and the upper, bound was on the wrong side of the true median."""
    low = high = 0
    for _ in range(trials):
        interval = own.median_bounds(draw(number), alpha)
        low += interval.low > truth
        high += interval.high < truth
    return low / trials, high / trials


@pytest.mark.parametrize("number", [10, 37, 200])
@pytest.mark.parametrize("alpha", [0.01, 0.05])
def test_bounds_of_independent_samples_keep_alpha(number, alpha):
    dice = random.Random(5)

    def skewed(count):
        return [math.exp(dice.gauss(0, 1)) for _ in range(count)]

    trials = 1500
    # Four standard errors of the share itself, so that the fixed seed is no lucky one.
    allowed = alpha + 4 * math.sqrt(alpha * (1 - alpha) / trials)
    assert max(misses(skewed, trials, number, 1.0, alpha)) <= allowed


@pytest.mark.parametrize("memory", [0.5, 0.8, 0.95])
def test_bounds_of_correlated_samples_stay_honest(memory):
    """AR(1) with a time constant of up to 20 samples: without the correction 2 to 25 % would miss here."""
    dice = random.Random(11)

    def drifting(count):
        noise = [dice.gauss(0, 1) for _ in range(count + 100)]
        series = list(accumulate(noise, lambda level, step: memory * level + step))
        return series[100:]

    assert max(misses(drifting, 400, 400, 0.0, 0.01)) <= 0.035


def test_without_the_correction_they_would_not(monkeypatch):
    monkeypatch.setattr(own, "correlation_factor", lambda samples: 1.0)
    dice = random.Random(11)

    def drifting(count):
        noise = [dice.gauss(0, 1) for _ in range(count + 100)]
        return list(accumulate(noise, lambda level, step: 0.95 * level + step))[100:]

    assert max(misses(drifting, 200, 400, 0.0, 0.01)) > 0.15


def test_correlation_factor_of_independent_and_of_sticky_samples():
    dice = random.Random(3)
    independent = [dice.random() for _ in range(2000)]
    assert own.correlation_factor(independent) < 1.6
    sticky = [value for value in independent[:200] for _ in range(10)]
    assert 6 < own.correlation_factor(sticky) < 16
    assert own.correlation_factor([1.0] * 50) == 1.0


def test_a_step_in_the_middle_falls_back_to_the_extremes():
    """Half the samples at one level, half at another: no rank is safe, so the bounds are what was seen."""
    samples = [1.0 + i * 1e-4 for i in range(40)] + [2.0 + i * 1e-4 for i in range(40)]
    interval = own.median_interval(samples)
    assert (interval.low, interval.high) == (min(samples), max(samples))


def test_ratio_bounds_are_those_of_the_ratio():
    pairs = [(1.0, 2.0 + i / 100) for i in range(-10, 11)]
    bounds = own.ratio_bounds(pairs, 0.01)
    assert bounds.value == pytest.approx(2.0)
    assert 1.9 <= bounds.low < 2.0 < bounds.high <= 2.1
    assert own.ratio_bounds(pairs[:4], 0.01).high == math.inf
    assert own.ratio_bounds(pairs[:4], 0.01).low == 0.0
    with pytest.raises(ValueError, match="positive"):
        own.ratio_bounds([(0.0, 1.0)], 0.01)


def test_enough_waits_for_the_interval():
    dice = random.Random(9)
    steady = [100 + dice.random() for _ in range(30)]
    assert own.enough(steady, 0.01)
    assert not own.enough(steady[:9], 0.01)
    assert not own.enough(steady, 0.01, at_least=31)
    assert not own.enough([100 + 40 * dice.random() for _ in range(30)], 0.01)
    assert not own.enough([], 0.5, at_least=0)


def test_enough_of_identical_samples():
    assert own.enough([5.0] * 12, 0.0)
    assert not own.enough([5.0] * 11, 0.0)


def stopped(draw, trials: int, truth: float, rel_ci: float = 0.01) -> tuple[float, float]:
    """Share of intervals that miss the truth where sampling went on until it was enough, and the mean n."""
    missed = number = 0
    for _ in range(trials):
        samples: list[float] = []
        while len(samples) < 1500 and not own.enough(samples, rel_ci):
            samples += draw(10, samples)
        interval = own.median_interval(samples)
        missed += not interval.low <= truth <= interval.high
        number += len(samples)
    return missed / trials, number / trials


def test_stopping_by_the_interval_keeps_the_interval_honest():
    dice = random.Random(4)
    missed, number = stopped(lambda count, _: [math.exp(dice.gauss(0, 0.02)) for _ in range(count)], 300, 1.0)
    assert missed <= 0.03
    assert number < 100


def test_stopping_waits_for_a_slow_drift():
    """AR(1) with a time constant of ten samples: a rule without the correction misses in half of the runs."""
    dice = random.Random(4)

    def drifting(count, samples):
        level = math.log(samples[-1]) / 0.02 if samples else dice.gauss(0, 1)
        drawn = []
        for _ in range(count):
            level = 0.9 * level + math.sqrt(1 - 0.81) * dice.gauss(0, 1)
            drawn.append(math.exp(0.02 * level))
        return drawn

    missed, number = stopped(drifting, 100, 1.0)
    assert missed <= 0.2
    assert number > 300


def test_corrected_alpha():
    assert own.corrected_alpha(0) == 0.01
    assert own.corrected_alpha(20) == 0.0005


@given(samples=st.lists(st.floats(-1e3, 1e3), min_size=1, max_size=12), by=st.floats(-1e3, 1e3))
def test_a_shift_is_what_lies_between_two_equal_shapes_and_turns_its_sign_with_them(samples, by):
    moved = [sample + by for sample in samples]
    assert own.shift(moved, samples) == pytest.approx(by, abs=1e-6)
    assert own.shift(samples, moved) == pytest.approx(-own.shift(moved, samples), abs=1e-9)


def test_a_shift_is_the_median_of_all_differences():
    assert own.shift([3.0, 10.0], [1.0, 2.0, 4.0]) == pytest.approx(4.0)
    with pytest.raises(ValueError, match="no samples"):
        own.shift([1.0], [])
