"""The gate's arithmetic, its error rates by simulation, and what it promises of any data."""

import itertools
import math
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kmrun.core.gate import (
    CLEAR_RATE,
    LIVE_LOOKS,
    LOOKS,
    PAIR_CLEAR_RATE,
    Gate,
    Screening,
    betting_bounds,
    critical_rank_sum,
    signed_rank_bound,
    walsh_averages,
    wealth,
    wins_needed,
)
from kmrun.core.slowdown import Slowdown

RATIO = st.floats(-0.5, 0.5, allow_nan=False)
SUITE_OF_50 = 0.01 / 50


def gate(margin: float = 0.03, alpha: float = SUITE_OF_50, **more: Any) -> Gate:
    return Gate("old", margin, alpha, **more)


def test_wealth_fits_a_float_however_many_blocks_there_were():
    assert wealth(10**6, 0) == wealth(10**7, 0) > 1e200
    assert wealth(0, 10**6) == 0.0
    assert betting_bounds([0.1] * 3000, 0.01) == (0.1, 0.1)


@pytest.mark.parametrize("number", [0, 1, 5, 12])
def test_wealth_is_worth_one_on_average_when_coins_are_fair(number):
    mean = (
        sum(math.comb(number, wins) * wealth(wins, number - wins) for wins in range(number + 1)) / 2**number
    )
    assert mean == pytest.approx(1.0)


def test_four_blocks_on_one_side_clear():
    assert wins_needed(3, PAIR_CLEAR_RATE) is None
    assert wins_needed(4, PAIR_CLEAR_RATE) == 4
    assert gate().screen([0.0] * 3).outcome == "open"
    assert gate().screen([0.0] * 4).outcome == "clear"


def test_seven_blocks_on_the_other_side_make_a_suspect():
    assert wins_needed(6, CLEAR_RATE) is None
    assert wins_needed(7, CLEAR_RATE) == 7
    assert gate().screen([0.2] * 6).outcome == "open"
    assert gate().screen([0.2] * 7).outcome == "suspect"


def test_what_a_pair_clears_all_blocks_so_far_have_to_clear_together():
    assert wins_needed(7, CLEAR_RATE) == 7
    assert gate().screen([0.0] * 4, before=[0.0] * 2).outcome == "open"
    assert gate().screen([0.0] * 4, before=[0.0] * 3).outcome == "clear"
    undecided = [0.0, 0.1] * 10
    assert gate().screen([0.0] * 10, before=undecided).outcome == "open"
    needed = next(number for number in range(10, 60) if wins_needed(20 + number, CLEAR_RATE) == 10 + number)
    assert gate().screen([0.0] * (needed - 1), before=undecided).outcome == "open"
    assert gate().screen([0.0] * needed, before=undecided).outcome == "clear"
    # It makes a suspect by its own blocks alone, and cannot clear what it speaks against.
    assert gate().screen([0.2] * 7, before=[0.0] * 30).outcome == "suspect"
    assert gate().screen([0.2] * 6, before=[0.0] * 30).outcome == "open"


def test_the_interval_of_a_cleared_case_holds_its_blocks_and_how_far_its_pairs_lie_apart():
    found = gate().cleared([clear(-0.01), clear(-0.005)], [-0.03] + [-0.0075] * 12 + [0.01])
    assert (found.verdict, found.blocks, found.processes) == ("holds", 14, 2)
    assert found.slowdown == pytest.approx(math.expm1(-0.0075))
    assert (found.low, found.high) == pytest.approx((math.expm1(-0.0125), math.expm1(-0.0025)))
    spread = [0.001 * place for place in range(-20, 21)]
    found = gate().cleared([clear(0.0), OPEN, clear(0.0)], spread)
    assert found.processes == 3
    assert found.slowdown == 0.0
    low, high = betting_bounds(spread, CLEAR_RATE)
    assert low < 0 < high
    assert (found.low, found.high) == (math.expm1(low), math.expm1(high))
    found = gate().cleared([clear(-0.03), clear(0.02), clear(0.0)], [0.0] * 30)
    assert (found.low, found.high) == (math.expm1(-0.03), math.expm1(0.02))


@given(
    pairs=st.lists(st.lists(RATIO, min_size=1, max_size=30), min_size=1, max_size=3),
    margin=st.floats(0.0, 0.3),
)
def test_what_is_screened_clear_ends_within_the_margin(pairs, margin):
    rule, seen, blocks = gate(margin), [], []
    for pair in pairs:
        seen.append(rule.screen(pair, blocks))
        blocks += pair
        if rule.screened(seen) == "clear":
            found = rule.cleared(seen, blocks)
            assert found.low - 1e-12 <= found.slowdown <= found.high + 1e-12
            assert found.high <= margin + 1e-12
            break


def test_a_pair_that_leaves_it_open_far_away_moves_no_cleared_case_out_of_its_interval():
    far, under = [0.1, 0.1, 0.1, 0.1, -0.05, -0.05, -0.05], [-0.05] * 40
    rule, seen, blocks = gate(), [], []
    for pair in (far, under, under):
        seen.append(rule.screen(pair, blocks))
        blocks += pair
    assert [each.outcome for each in seen] == ["open", "clear", "clear"]
    found = rule.cleared(seen, blocks)
    assert found.low <= found.slowdown <= found.high <= rule.margin


def test_a_pair_s_own_offset_hides_a_slowdown_less_often_in_two():
    wide = verdicts(300, 0.0609, offset=0.03, noise=0.01)
    assert wide["holds"] <= 0.05 * 300


@given(number=st.integers(1, 60), alpha=st.sampled_from([0.05, 0.01, 2e-4]))
def test_more_wins_never_needed_than_there_are_and_one_fewer_is_too_few(number, alpha):
    wins = wins_needed(number, alpha)
    if wins is not None:
        assert number / 2 < wins <= number
        assert wealth(wins, number - wins) >= 1 / alpha > wealth(wins - 1, number - wins + 1)


@given(values=st.lists(RATIO, min_size=1, max_size=40))
def test_betting_bounds_bracket_the_median_and_mirror(values):
    low, high = betting_bounds(values, 0.05)
    assert low <= sorted(values)[len(values) // 2] <= high
    mirrored_low, mirrored_high = betting_bounds([-value for value in values], 0.05)
    assert (mirrored_low, mirrored_high) == (-high, -low)


@given(values=st.lists(RATIO, min_size=1, max_size=40), margin=st.floats(0.0, 0.3))
def test_screening_is_the_test_that_its_bounds_invert(values, margin):
    limit = math.log1p(margin)
    over, under = sum(value > limit for value in values), sum(value < limit for value in values)
    to_clear, to_suspect = (wins_needed(len(values), rate) for rate in (PAIR_CLEAR_RATE, CLEAR_RATE))
    expected = "open"
    if to_clear is not None and under >= to_clear:
        expected = "clear"
    elif to_suspect is not None and over >= to_suspect:
        expected = "suspect"
    assert gate(margin).screen(values).outcome == expected


@pytest.mark.parametrize("number", range(1, 11))
@pytest.mark.parametrize("alpha", [0.05, 0.01, 0.001])
def test_critical_rank_sum_by_counting_every_sign(number, alpha):
    sums = [
        sum(rank for rank, sign in zip(range(1, number + 1), signs, strict=True) if sign)
        for signs in itertools.product((0, 1), repeat=number)
    ]
    fitting = [w for w in range(max(sums) + 1) if sum(total >= w for total in sums) <= alpha * 2**number]
    assert critical_rank_sum(number, alpha) == (min(fitting) if fitting else None)


@given(
    values=st.lists(RATIO, min_size=6, max_size=16, unique_by=lambda value: round(abs(value), 9)),
    alpha=st.sampled_from([0.05, 0.01, 0.001]),
)
def test_the_signed_rank_bound_is_where_the_test_stops_rejecting(values, alpha):
    rank = critical_rank_sum(len(values), alpha)
    low = signed_rank_bound(walsh_averages(values)[::-1], len(values), alpha)
    if rank is None:
        assert low is None
        return

    def rank_sum(centre: float) -> int:
        moved = sorted((value - centre for value in values), key=abs)
        return sum(place for place, value in enumerate(moved, 1) if value > 0)

    assert rank_sum(low - 1e-6) >= rank > rank_sum(low + 1e-6)


@given(values=st.lists(RATIO, min_size=10, max_size=10), old_ns=st.floats(1e3, 1e9))
def test_settling_always_says_how_much_and_how_well(values, old_ns):
    found = gate(alpha=0.01).estimate(values, old_ns, 80)
    assert found.low is not None
    assert found.high is not None
    assert found.low <= found.slowdown <= found.high
    assert found.visible >= found.margin - 1e-12
    assert (found.verdict == "broken") <= (found.low > found.margin)
    assert (found.verdict == "inconclusive") <= bool(found.reason)


@given(values=st.lists(st.floats(-0.2, 0.02), min_size=10, max_size=10), cases=st.integers(2, 1000))
def test_what_holds_in_a_suite_of_many_says_so_too_and_is_judged_as_before(values, cases):
    rule = gate(alpha=0.01 / cases)
    found = rule.settle(values, 1e6, 80)
    assert found is not None
    assert found.verdict == "holds"
    assert found.low == math.expm1(min(values))
    assert found.visible >= found.margin - 1e-12
    seen_at_once = math.log1p(found.visible) - math.log1p(found.slowdown) + 1e-9
    more = rule.settle([value + seen_at_once for value in values], 1e6, 80)
    assert more is None or more.verdict == "broken"


def test_it_looks_only_at_its_looks_and_ends_at_the_last():
    taken: list[float] = []
    looked = []
    wobble = itertools.cycle([-0.2, 0.2, 0.05, -0.02])
    while len(taken) < LOOKS[-1].pairs:
        taken.append(next(wobble))
        found = gate().settle(taken, 1e6, len(taken) * 8)
        if found is not None:
            looked.append((len(taken), found.verdict))
    assert looked == [(LOOKS[-1].pairs, "inconclusive")]


@pytest.mark.parametrize("looks", [LOOKS, LIVE_LOOKS])
def test_looks_share_both_error_rates_without_a_rest(looks):
    assert math.isclose(sum(look.breaking for look in looks), 1.0)
    assert math.isclose(sum(look.clearing for look in looks), 1.0)
    assert [look.pairs for look in looks] == sorted({look.pairs for look in looks})
    # A look that could never clear would waste its share.
    assert all(critical_rank_sum(look.pairs, CLEAR_RATE * look.clearing) for look in looks)


def test_seven_live_pairs_clear_a_suspect_and_break_none():
    rule = gate(looks=LIVE_LOOKS, alpha=0.01)
    cleared = rule.settle([0.001 * place for place in range(7)], 1e6, 56)
    assert cleared is not None
    assert (cleared.verdict, cleared.processes) == ("holds", 7)
    assert cleared.high <= rule.margin
    assert rule.settle([0.2 + 0.001 * place for place in range(7)], 1e6, 56) is None
    assert rule.settle([0.0] * 6 + [0.05], 1e6, 56) is None
    assert rule.settle([0.2 + 0.001 * place for place in range(10)], 1e6, 80).verdict == "broken"


def clear(value: float) -> Screening:
    return Screening("clear", value)


OPEN, OVER = Screening("open", 0.02), Screening("suspect", 0.06)


@pytest.mark.parametrize(
    ("seen", "outcome"),
    [
        ([clear(0.0)], "open"),
        ([clear(-0.01), clear(0.015)], "clear"),
        ([clear(-0.05), clear(-0.01)], "clear"),
        # Half of what they differ by puts the worse of them over the margin: all three have to.
        ([clear(-0.02), clear(0.02)], "open"),
        ([clear(-0.02), clear(0.02), clear(0.0)], "clear"),
        ([clear(-0.02), clear(0.02), OPEN], "suspect"),
        # One may leave it open.
        ([OPEN], "open"),
        ([OPEN, clear(0.0)], "open"),
        ([OPEN, clear(0.0), clear(0.01)], "clear"),
        ([clear(0.0), OPEN, clear(0.01)], "clear"),
        ([clear(0.01), OPEN, clear(-0.04)], "suspect"),
        ([OPEN, OPEN], "suspect"),
        ([clear(0.0), OPEN, OPEN], "suspect"),
        # None may say that it is over.
        ([OVER], "suspect"),
        ([clear(0.0), OVER], "suspect"),
        ([OPEN, clear(0.0), OVER], "suspect"),
    ],
)
def test_two_pairs_that_agree_clear_a_case_and_a_third_decides_where_one_leaves_it_open(seen, outcome):
    assert gate().screened(seen) == outcome


def test_a_clear_slowdown_is_called_with_its_size():
    found = gate().settle([0.10 + 0.001 * place for place in range(16)], 1e6, 128)
    assert found is not None
    assert found.verdict == "broken"
    assert found.slowdown == pytest.approx(math.expm1(0.1075), rel=1e-3)
    assert found.processes == 16
    assert found.blocks == 128


def test_a_difference_that_no_timer_can_tell_apart_breaks_nothing():
    pairs = [0.10 + 0.001 * place for place in range(16)]
    found = gate().settle(pairs, 500.0, 128)
    assert found is not None
    assert (found.verdict, found.reason) == (
        "holds",
        "the difference is below 100 ns, what a timer can tell apart",
    )
    coarse = gate(tick_ns=1000.0).settle(pairs, 10_000.0, 128)
    assert coarse is not None
    assert "below 2000 ns" in coarse.reason


def test_too_few_pairs_decide_nothing_but_are_told():
    found = gate().estimate([0.5, 0.5], 1e6, 16, "out of time")
    assert (found.verdict, found.low, found.high, found.visible) == ("inconclusive", None, None, None)
    assert found.reason == "out of time"
    assert found.slowdown == pytest.approx(math.expm1(0.5))


class Machine:
    """Process pairs with an offset for good, blocks with noise that has a heavy tail."""

    def __init__(self, seed: int, slowdown: float, offset: float, noise: float) -> None:
        self.random = random.Random(seed)
        self.true, self.offset, self.noise = math.log1p(slowdown), offset, noise

    def pair(self) -> "list[float]":
        centre = self.true + self.random.gauss(0.0, self.offset)
        return [centre + self._noise() for _ in range(60)]

    def _noise(self) -> float:
        spread = 8 * self.noise if self.random.random() < 0.1 else self.noise
        return self.random.gauss(0.0, spread)

    def run(self, rule: Gate) -> Slowdown:
        screened: list[Screening] = []
        taken: list[float] = []
        while rule.screened(screened) == "open":
            blocks = self.pair()
            for number in range(1, 61):
                seen = rule.screen(blocks[:number], taken)
                if seen.outcome != "open":
                    break
            screened.append(seen)
            taken += blocks[:number]
        if rule.screened(screened) == "clear":
            return rule.cleared(screened, taken)
        pairs: list[float] = []
        while True:
            pairs.append(sorted(self.pair()[:8])[4])
            found = rule.settle(pairs, 1e6, 8 * len(pairs))
            if found is not None:
                return found


def verdicts(count: int, slowdown: float, **machine: float) -> dict[str, int]:
    seen = {"holds": 0, "broken": 0, "inconclusive": 0}
    for seed in range(count):
        seen[Machine(seed, slowdown, **machine).run(gate(looks=LIVE_LOOKS)).verdict] += 1
    return seen


@pytest.mark.parametrize(("offset", "noise"), [(0.0, 0.01), (0.01, 0.01), (0.02, 0.03)])
def test_unchanged_kernels_raise_no_alarm_even_where_processes_differ_for_good(offset, noise):
    # 400 kernels are eight suites of 50, of which at most 1 % may alarm.
    assert verdicts(400, 0.0, offset=offset, noise=noise)["broken"] == 0


def test_more_pairs_settle_what_much_other_load_leaves_open():
    rule = gate(looks=LIVE_LOOKS)
    seen = [Machine(seed, 0.0609, offset=0.03, noise=0.01).run(rule).verdict for seed in range(150)]
    short = [Machine(seed, 0.0609, offset=0.03, noise=0.01).run(gate()).verdict for seed in range(150)]
    same = [Machine(seed, 0.0, offset=0.03, noise=0.01).run(rule).verdict for seed in range(150)]
    assert seen.count("broken") > short.count("broken")
    assert same.count("broken") == 0


@pytest.mark.parametrize("offset", [0.0, 0.01])
def test_three_points_over_the_margin_are_found(offset):
    assert verdicts(300, 0.0609, offset=offset, noise=0.01)["broken"] >= 0.95 * 300


def test_a_slowdown_of_just_the_margin_is_not_called():
    seen = verdicts(400, 0.03, offset=0.01, noise=0.01)
    assert seen["broken"] <= 2
