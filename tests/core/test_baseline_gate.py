import itertools
import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kmrun.core.baseline_gate import FIRST_SESSIONS, BaselineGate, critical_rank, shift_bounds
from kmrun.core.gate import LOOKS
from kmrun.core.yardstick import Session

LOGS = st.lists(st.floats(-1, 1), min_size=1, max_size=8)


def sessions(count, seed, slower=1.0, memory=1.0, compute=1.0, noise=0.004):
    """Sessions of a kernel of 1 ms beside yardsticks of 2 and 4 ms; factors say how much slower each became."""
    chance = random.Random(seed)
    found = []
    for _ in range(count):
        offset = chance.gauss(0, noise)
        kernel = math.exp(offset) * slower
        found.append(
            Session(
                kernel,
                2 * memory,
                4 * compute,
                math.log(kernel / (2 * memory)),
                math.log(kernel / (4 * compute)),
            )
        )
    return found


def gate(margin=0.03, alpha=0.01 / 14, bound="mem"):
    return BaselineGate("the baseline", margin, alpha, bound)


def verdict(then, now, **changes):
    """What all looks come to, as in a run."""
    for look in LOOKS:
        found = gate(**changes).settle(then, now[: look.pairs])
        if found is not None:
            return found
    raise AssertionError("the last look decides")


@pytest.mark.parametrize(("then", "now"), [(1, 3), (3, 4), (5, 2), (6, 6)])
def test_critical_ranks_are_those_of_all_orders(then, now):
    counts = [0] * (then * now + 1)
    for chosen in itertools.combinations(range(then + now), now):
        others = [place for place in range(then + now) if place not in chosen]
        counts[sum(one > other for one in chosen for other in others)] += 1
    for alpha in (0.2, 0.05, 0.01, 0.001):
        rank = critical_rank(then, now, alpha)
        below = sum(counts[:rank]) / sum(counts)
        assert below <= alpha < below + counts[rank] / sum(counts)


@given(LOGS, LOGS, st.floats(-0.5, 0.5))
def test_a_shift_shifts_all_bounds(then, now, by):
    plain = shift_bounds(then, now, 0.05, 0.05)
    moved = shift_bounds(then, [log + by for log in now], 0.05, 0.05)
    assert moved == pytest.approx([bound + by for bound in plain], abs=1e-9)


@given(LOGS, LOGS)
def test_bounds_lie_on_their_sides(then, now):
    low, value, high = shift_bounds(then, now, 0.05, 0.05)
    assert low <= value <= high
    assert math.isfinite(low) == (len(now) >= 5)


def test_one_session_against_one_bounds_nothing():
    assert shift_bounds([0.0], [0.1], 0.05, 0.05) == (-math.inf, 0.1, math.inf)
    assert shift_bounds([0.0] * 10, [0.1] * 4, 0.05, 0.05)[0] == -math.inf
    with pytest.raises(ValueError, match="no sessions"):
        shift_bounds([], [0.1], 0.05, 0.05)


def test_ranks_keep_their_rate_and_so_does_student():
    """Of unchanged pairs the lower bound lies above 0 in at most alpha of all; 3 standard errors of room."""
    chance, trials, alpha = random.Random(1), 1000, 0.05
    for then in (10, 1):
        wrong = sum(
            shift_bounds(
                [chance.gauss(0, 0.01) for _ in range(then)],
                [chance.gauss(0, 0.01) for _ in range(10)],
                alpha,
                0.05,
            )[0]
            > 0
            for _ in range(trials)
        )
        assert wrong / trials <= alpha + 3 * math.sqrt(alpha / trials)


def test_a_noisier_day_breaks_nothing():
    """Ten values around the margin all lie above it in one of 1024 tries; ranks alone would call that certain."""
    chance, trials, alpha = random.Random(2), 1500, 0.0002
    wrong = sum(
        shift_bounds(
            [chance.gauss(0, 0.0001) for _ in range(10)],
            [chance.gauss(0, 0.05) for _ in range(10)],
            alpha,
            0.05,
        )[0]
        > 0
        for _ in range(trials)
    )
    assert wrong <= 1


def test_an_unchanged_case_is_cleared_by_the_first_sessions():
    cleared = [gate().clears(sessions(10, seed), sessions(FIRST_SESSIONS, 100 + seed)) for seed in range(50)]
    assert sum(found is not None for found in cleared) >= 45
    found = next(found for found in cleared if found is not None)
    assert (found.verdict, found.method, found.processes, found.margin) == ("holds", "baseline", 2, 0.03)
    assert found.low < 0 < found.high < 0.03 < found.visible


def test_three_points_over_the_margin_are_found_and_the_margin_itself_is_not():
    slow = [verdict(sessions(10, seed), sessions(24, 100 + seed, slower=1.0609)) for seed in range(60)]
    assert sum(found.verdict == "broken" for found in slow) >= 57
    assert all(found.low > 0.03 for found in slow if found.verdict == "broken")
    edge = [verdict(sessions(10, seed), sessions(24, 100 + seed, slower=1.03)) for seed in range(60)]
    assert sum(found.verdict == "broken" for found in edge) == 0


def test_a_slower_machine_is_no_slower_kernel():
    found = verdict(sessions(10, 1), sessions(24, 2, slower=1.08, memory=1.08, compute=1.08))
    assert found.verdict == "holds"
    assert abs(found.slowdown) < 0.005


def test_a_kernel_that_is_slower_than_its_slower_machine_is_found():
    found = verdict(sessions(10, 1), sessions(24, 2, slower=1.08 * 1.09, memory=1.08, compute=1.08))
    assert found.verdict == "broken"
    assert found.slowdown == pytest.approx(0.09, abs=0.01)


def test_yardsticks_that_disagree_leave_it_open():
    found = verdict(sessions(10, 1), sessions(24, 2, slower=1.15, memory=1.3))
    assert found.verdict == "inconclusive"
    assert found.reason == "the machine itself is 30 % slower than it was"
    assert found.processes == LOOKS[0].pairs  # more sessions could not mend it
    assert found.visible > 0.1
    swapped = verdict(
        sessions(10, 1), sessions(24, 2, slower=1.05, memory=1.015, compute=0.985), bound="comp"
    )
    assert swapped.verdict in ("inconclusive", "broken")


def test_a_noisy_machine_says_what_it_could_have_seen():
    found = verdict(sessions(10, 3, noise=0.05), sessions(24, 4, slower=1.05, noise=0.05))
    assert found.verdict == "inconclusive"
    assert found.visible > 0.05


def test_a_single_saved_session_still_finds_what_is_twice_as_slow():
    assert verdict(sessions(1, 1), sessions(24, 2, slower=2.0), margin=0.05, bound=None).verdict == "broken"
    assert verdict(sessions(1, 1), sessions(24, 2), margin=0.05).verdict == "holds"


@pytest.mark.parametrize("unsure", [0.3, math.inf])
def test_a_saved_time_that_is_hardly_known_leaves_it_open(unsure):
    found = BaselineGate("r.json", 0.05, 0.01, None, unsure=unsure).settle(
        sessions(1, 1), sessions(10, 2, slower=1.2)
    )
    assert found.verdict == "inconclusive"
    assert (found.reason == "what it is compared with is known to 35 % only") == (unsure == 0.3)
    assert (found.visible is None) == (unsure == math.inf)


def test_a_difference_that_no_timer_can_tell_is_none():
    tiny = [Session(1e-7, 2.0, 4.0, math.log(5e-8), math.log(2.5e-8))] * 10
    slow = [Session(1.5e-7, 2.0, 4.0, math.log(7.5e-8), math.log(3.75e-8))] * 10
    found = gate().settle(tiny, slow)
    assert (found.verdict, found.reason) == ("holds", "the difference is below 100 ns")


def test_what_there_is_can_be_judged_when_time_is_up():
    then = sessions(10, 1)
    found = gate().estimate(then, sessions(4, 2, slower=1.05, noise=0.03), "out of time")
    assert (found.verdict, found.reason, found.processes) == ("inconclusive", "out of time", 4)
    assert gate().estimate(then, sessions(7, 2, slower=1.5), "out of time").verdict == "broken"


def test_looks_are_fixed():
    then = sessions(10, 1)
    assert gate().settle(then, sessions(9, 2)) is None
    with pytest.raises(ValueError, match="more than the last look"):
        gate().settle(then, sessions(25, 2))
