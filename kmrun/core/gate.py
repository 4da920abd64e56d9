"""The gate: whether the new version of a case is slower than the old one by more than is allowed.

Two stages, both on log ratios of new time over old time, so that old and new are treated alike.

*Screening* looks at blocks of pairs of live processes. Each block in which the two took turns
in an order drawn at random votes "over the margin" or "under it". If at least half of all blocks were under the
margin in truth, no stopping rule makes the wealth of a gambler who bets on "over" exceed 1/a with a probability
above a (Ville's inequality; e-values: Shafer 2021, Ramdas et al. 2023), whatever the noise. The wealth is a
mixture of three fixed bets. The gambler bets on, from pair to pair, so that the blocks of all pairs speak together.
Screening clears a case in two pairs that agree, or in two of three, or makes it a suspect; it breaks nothing, since a
pair of processes may differ for good by where their memory happened to lie.

*Settling* takes fresh pairs of processes, one log ratio each. Under "as fast as the margin allows" these lie
symmetrically around it, because which process is which is drawn by lot: Wilcoxon's signed-rank test is then
exact, and unlike a t-test it keeps its power when a few pairs were disturbed. Its bounds are order statistics
of the Walsh averages (Hollander & Wolfe, Nonparametric Statistical Methods, 3.3). It looks a fixed number of times and
shares its error rates among the looks. Suspects are settled on new data only, so the error rate of settling
alone bounds false alarms; `alpha` is one case's share of what the whole suite may do wrong.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, NamedTuple

from kmrun.core.slowdown import Slowdown, SlowdownVerdict
from kmrun.core.statistics import median

BETS = (0.6, 0.75, 0.9)
"""Shares of blocks on one side that the gambler bets on."""

CLEAR_RATE = 0.05
"""One-sided rate at which a case that is too slow may be let pass."""

PAIR_CLEAR_RATE = CLEAR_RATE**0.5
"""The same of one pair of the screening by itself: half of the evidence that all its pairs together have to bring."""

_MOST_SCREENED = 3


class Look(NamedTuple):
    """A number of fresh pairs at which settling looks, and its shares of the two error rates.

    `breaking` is a share of a case's `alpha`, `clearing` one of `CLEAR_RATE`; each adds up to 1 over all looks.
    """

    pairs: int
    breaking: float
    clearing: float


LOOKS = (Look(10, 0.2, 0.2), Look(16, 0.3, 0.3), Look(24, 0.5, 0.5))
"""The last look has the most to decide."""

LIVE_LOOKS = (
    Look(7, 0.0, 0.16),
    Look(10, 0.2, 0.14),
    Look(16, 0.2, 0.2),
    Look(24, 0.25, 0.2),
    Look(36, 0.35, 0.3),
)
"""For two live versions, whose pairs are cheap: beside much other load 24 leave open what 36 settle.

Most suspects are as fast as before, and seven pairs that agree clear them; to break anything in a suite of many,
seven are too few.
"""

_MOST_LOG_WEALTH = 600.0
"""More proves nothing more, and does not fit a float."""

LEAST_DIFFERENCE_NS = 100.0
"""A difference below this (or below two ticks of the timer) is no slowdown, whatever its ratio."""

ScreeningOutcome = Literal["clear", "suspect", "open"]


@dataclass(frozen=True, slots=True)
class Screening:
    """What the blocks of one pair of processes come to: their middle as a log ratio."""

    outcome: ScreeningOutcome
    value: float


@dataclass(frozen=True, slots=True)
class Gate:
    """The rule for one case: what it is compared with, how much slower it may be, how often that may be wrong.

    `margin` is a fraction (0.03 is 3 %), `alpha` the case's one-sided share of the suite's error rate.
    """

    against: str
    margin: float
    alpha: float
    method: Literal["alternated", "baseline"] = "alternated"
    tick_ns: float = 0.0
    """Grain of the timer per call."""
    looks: tuple[Look, ...] = LOOKS

    def screen(self, blocks: Sequence[float], before: Sequence[float] = ()) -> Screening:
        """Judge the log ratios of a pair's blocks so far; may be asked after every block.

        A pair clears the case by its own blocks, and together with those `before`, of all pairs before it.

        Raises:
            ValueError: there are no blocks.
        """
        limit = math.log1p(self.margin)
        low, _ = betting_bounds(blocks, CLEAR_RATE)
        _, high = betting_bounds(blocks, PAIR_CLEAR_RATE)
        if before:
            high = max(high, betting_bounds([*before, *blocks], CLEAR_RATE)[1])
        outcome: ScreeningOutcome = "open"
        if high < limit:
            outcome = "clear"
        elif low > limit:
            outcome = "suspect"
        return Screening(outcome, median(blocks))

    def screened(self, seen: Sequence[Screening]) -> ScreeningOutcome:
        """Judge the pairs that were screened so far; "open" asks for another, of three at most.

        Two that clear the case do where the worse of them is under the margin by half of what they differ by, or
        three that clear it: a pair's own offset may hide a slowdown, and that several hide it is less likely the
        more they agree. One pair may leave it open, where its own offset or a burst of other load speaks against
        unchanged code.
        """
        clear = [each.value for each in seen if each.outcome == "clear"]
        not_clear = len(seen) - len(clear)
        if len(clear) == _MOST_SCREENED or (len(clear) == 2 and _reach(clear)[1] <= math.log1p(self.margin)):
            return "clear"
        over = any(each.outcome == "suspect" for each in seen)
        return "suspect" if over or not_clear == 2 or len(seen) == _MOST_SCREENED else "open"

    def cleared(self, seen: Sequence[Screening], blocks: Sequence[float]) -> Slowdown:
        """Return what a case comes to that was screened clear, by all its pairs and their blocks.

        Its interval holds what the blocks leave possible, and how far its pairs lie apart.
        """
        # Of three the middle one: the mean lies outside the interval where the pair that left it open is far away.
        value = median([each.value for each in seen])
        clear = [each.value for each in seen if each.outcome == "clear"]
        ends = _reach(clear) if len(clear) == 2 else (min(clear), max(clear))
        low, high = betting_bounds(blocks, CLEAR_RATE)
        low, high = min(low, ends[0]), max(high, ends[1])
        return self._slowdown("holds", value, low, high, len(blocks), processes=len(seen))

    def settle(self, pairs: Sequence[float], old_ns: float, blocks: int) -> Slowdown | None:
        """Judge the log ratios of fresh pairs of processes; None where more are to be taken.

        Args:
            pairs: one log ratio of new over old a pair, in the order in which they were taken.
            old_ns: the old version's time of a call.
            blocks: alternated blocks behind them, for the record.
        """
        if len(pairs) not in [look.pairs for look in self.looks]:
            return None
        found = self.estimate(pairs, old_ns, blocks)
        return found if found.verdict != "inconclusive" or len(pairs) == self.looks[-1].pairs else None

    def estimate(self, pairs: Sequence[float], old_ns: float, blocks: int, reason: str = "") -> Slowdown:
        """Judge what there is, at the error rate of the look that it was on the way to.

        `reason` says why there is no more, where that leaves it open.

        Raises:
            ValueError: there are no pairs, or more than the last look takes.
        """
        look = look_of(self.looks, len(pairs))
        ordered = walsh_averages(pairs)
        value = median(ordered)
        low = signed_rank_bound(ordered[::-1], len(pairs), self.alpha * look.breaking)
        high = signed_rank_bound(ordered, len(pairs), CLEAR_RATE * look.clearing)
        low = -math.inf if low is None else low
        high = math.inf if high is None else high
        limit = math.log1p(self.margin)
        verdict: SlowdownVerdict = "inconclusive"
        why = reason or f"{len(pairs)} pairs of fresh processes leave it open"
        if high <= limit:
            verdict, why = "holds", ""
        elif low > limit:
            verdict, why = "broken", ""
            least = max(2 * self.tick_ns, LEAST_DIFFERENCE_NS)
            if math.expm1(value) * old_ns <= least:
                verdict, why = "holds", f"the difference is below {least:g} ns, what a timer can tell apart"
        if verdict == "holds" and math.isinf(low):
            # No number of these few pairs is as sure as the case's share of many asks, so the lowest is its end. A
            # slowdown that puts it over the margin is no `holds`: more pairs follow, which are enough for the share.
            low = ordered[0]
        return self._slowdown(verdict, value, low, high, blocks, len(pairs), why)

    def _slowdown(
        self,
        verdict: SlowdownVerdict,
        value: float,
        low: float,
        high: float,
        blocks: int,
        processes: int,
        reason: str = "",
    ) -> Slowdown:
        visible = None
        if math.isfinite(low):
            # What lies this far over the margin has its own lower end on the margin.
            visible = math.expm1(math.log1p(self.margin) + value - low)
        return Slowdown(
            against=self.against,
            method=self.method,
            margin=self.margin,
            verdict=verdict,
            slowdown=math.expm1(value),
            low=math.expm1(low) if math.isfinite(low) else None,
            high=math.expm1(high) if math.isfinite(high) else None,
            visible=visible,
            blocks=blocks,
            processes=processes,
            reason=reason,
        )


def undecided(against: str, margin: float, reason: str) -> Slowdown:
    """Return the comparison that could not be made, and why."""
    return Slowdown(against, "alternated", margin, "inconclusive", None, None, None, None, 0, 0, reason)


def look_of(looks: Sequence[Look], number: int) -> Look:
    """Return the look that so many pairs are on the way to.

    Raises:
        ValueError: there are more than the last look takes.
    """
    found = next((look for look in looks if number <= look.pairs), None)
    if found is None:
        raise ValueError(f"{number} pairs are more than the last look takes")
    return found


def _reach(pair: Sequence[float]) -> tuple[float, float]:
    """Return two values' ends, each moved outwards by half of what they differ by."""
    apart = max(pair) - min(pair)
    return min(pair) - apart / 2, max(pair) + apart / 2


def wealth(wins: int, losses: int) -> float:
    """Return what one unit became after betting on `wins + losses` fair coins: the mixture over `BETS`.

    An e-value: under "each win has at most an even chance" its mean is at most 1, at any stopping time.
    """
    logs = [wins * math.log(2 * bet) + losses * math.log(2 * (1 - bet)) for bet in BETS]
    return sum(math.exp(min(each, _MOST_LOG_WEALTH)) for each in logs) / len(BETS)


@lru_cache(maxsize=4096)
def wins_needed(number: int, alpha: float) -> int | None:
    """Return the fewest wins out of `number` whose wealth is 1/alpha; None when even all are too few."""
    enough = (wins for wins in range(number + 1) if wealth(wins, number - wins) * alpha >= 1)
    # Wealth grows with the wins beyond an even score; below that, bets are lost either way.
    return next((wins for wins in enough if 2 * wins > number), None)


def betting_bounds(values: Sequence[float], alpha: float) -> tuple[float, float]:
    """Return one-sided bounds of the median, each wrong with probability at most `alpha` at any stopping time.

    Infinite where there are too few values. Values need not be alike, nor independent: what is bet on is that
    each lies on either side of the median with even chances, given those before.

    Raises:
        ValueError: there are no values.
    """
    if not values:
        raise ValueError("no values")
    wins = wins_needed(len(values), alpha)
    if wins is None:
        return -math.inf, math.inf
    ordered = sorted(values)
    return ordered[len(values) - wins], ordered[wins - 1]


def walsh_averages(values: Sequence[float]) -> list[float]:
    """Return the means of all pairs of values, each with itself too, in ascending order.

    Their median is the Hodges-Lehmann estimate of the middle of a symmetric distribution.
    """
    return sorted((one + other) / 2 for place, one in enumerate(values) for other in values[place:])


def signed_rank_bound(ordered: Sequence[float], number: int, alpha: float) -> float | None:
    """Return the bound of the centre at one-sided `alpha`: the critical rank's Walsh average.

    Args:
        ordered: Walsh averages of `number` values, ascending for an upper bound, descending for a lower one.
        number: how many values there were.
        alpha: one-sided error rate.

    Returns None when `number` values are too few for a bound at this rate.
    """
    rank = critical_rank_sum(number, alpha)
    return None if rank is None else ordered[rank - 1]


@lru_cache(maxsize=4096)
def critical_rank_sum(number: int, alpha: float) -> int | None:
    """Return the smallest sum w of positive ranks for which P(W >= w) <= alpha under symmetry; None without one.

    Exact: the number of subsets of {1..n} with each sum, by dynamic programming.
    """
    counts = [1]
    for rank in range(1, number + 1):
        grown = counts + [0] * rank
        for total, count in enumerate(counts):
            grown[total + rank] += count
        counts = grown
    allowed, seen, critical = alpha * 2.0**number, 0, None
    for total in range(len(counts) - 1, -1, -1):
        seen += counts[total]
        if seen > allowed:
            break
        critical = total
    return critical
