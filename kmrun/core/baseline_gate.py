"""Whether a case is slower than its baseline by more than is allowed, and what could have been told.

What is compared are log ratios of the kernel's time over a yardstick's, one a session, between the sessions of the
baseline and fresh ones: a shift between two samples, tested by ranks (Mann & Whitney 1947; bounds of the shift are
order statistics of all differences, Hodges & Lehmann 1963), exactly and whatever the noise, as long as it is the same
noise. A day that is noisier than that of the baseline is another noise: what breaks a clause has to pass Welch's test
(1947), too, which lets both have their own. Too few sessions for ranks, as in one saved result, leave Student's t.

A yardstick is not the kernel. So each speaks: the interval spans what either says, and is widened by a quarter of
what the yardstick itself moved since the baseline. A machine that is 10 % slower today is believed to slow the
kernel by 7.5 to 12.5 %, and a kernel that memory slows while arithmetic is as fast as ever is left undecided. On
a machine in the same state as before both cost nothing.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from kmrun.core.gate import CLEAR_RATE, LEAST_DIFFERENCE_NS, LOOKS, look_of
from kmrun.core.slowdown import Slowdown, SlowdownVerdict
from kmrun.core.statistics import median
from kmrun.core.student import student_quantile
from kmrun.core.yardstick import YARDSTICKS, Session

FIRST_SESSIONS = 2
"""Fresh processes that clear a case or make it a suspect; a suspect is measured in new ones."""

DOUBT = 0.25
"""Share of a correction that is not believed."""

_LEAST_NOW = 5
"""Fresh sessions without which nothing is known of today's noise, and nothing is broken."""

_LEAST_SPREAD = 0.002
"""Between few sessions that agree by chance, no less spread than this is believed."""


@dataclass(frozen=True, slots=True)
class Shift:
    """A log ratio of now over then with one-sided bounds, and how much of their distance no session can mend."""

    low: float
    value: float
    high: float
    sure_low: float
    """The lower end that infinitely many sessions would have."""
    sure_high: float
    moved: float
    """Log ratio of the yardsticks' own times, now over then: of the one that moved most."""


@dataclass(frozen=True, slots=True)
class BaselineGate:
    """The rule for one case: how much slower it may be, and how often that may be wrong.

    `alpha` is the case's one-sided share of the error rate of the whole suite, `bound` is `mem`, `comp` or None.
    """

    against: str
    margin: float
    alpha: float
    bound: str | None
    unsure: float = 0.0
    """Log ratio by which the baseline itself may be off, in either direction."""

    def clears(self, then: Sequence[Session], now: Sequence[Session]) -> Slowdown | None:
        """Return the comparison when the first sessions already show that the case holds, else None."""
        seen = self.shift(then, now, CLEAR_RATE, CLEAR_RATE, breaking=False)
        found = self._judged(then, now, seen)
        return found if found.verdict == "holds" else None

    def settle(self, then: Sequence[Session], now: Sequence[Session]) -> Slowdown | None:
        """Judge fresh sessions; None where more are to be taken. Looks at fixed numbers, sharing the error rate.

        Raises:
            ValueError: there are more sessions than the last look takes.
        """
        look = look_of(LOOKS, len(now))
        if len(now) != look.pairs:
            return None
        found = self.estimate(then, now)
        if found.verdict != "inconclusive" or look is LOOKS[-1]:
            return found
        limit = math.log1p(self.margin)
        seen = self.shift(then, now, self.alpha * look.breaking, CLEAR_RATE * look.clearing)
        # Where even infinitely many sessions would leave it open, more are a waste of time.
        return found if seen.sure_low <= limit < seen.sure_high else None

    def estimate(self, then: Sequence[Session], now: Sequence[Session], reason: str = "") -> Slowdown:
        """Judge what there is, at the error rate of the look that it was on the way to.

        `reason` says why there is no more, where that leaves it open.

        Raises:
            ValueError: there are more sessions than the last look takes.
        """
        look = look_of(LOOKS, len(now))
        seen = self.shift(then, now, self.alpha * look.breaking, CLEAR_RATE * look.clearing)
        found = self._judged(then, now, seen)
        return replace(found, reason=reason) if reason and found.verdict == "inconclusive" else found

    def shift(
        self,
        then: Sequence[Session],
        now: Sequence[Session],
        low_alpha: float,
        high_alpha: float,
        *,
        breaking: bool = True,
    ) -> Shift:
        """Return the shift of a case against both yardsticks, with all doubts.

        Raises:
            ValueError: there are no sessions on a side.
        """
        found = []
        for yardstick in YARDSTICKS:
            old, new = ([session.over(yardstick) for session in each] for each in (then, now))
            moved = median([math.log(each.yardstick_ms(yardstick)) for each in now]) - median(
                [math.log(each.yardstick_ms(yardstick)) for each in then]
            )
            bounds = shift_bounds(old, new, low_alpha, high_alpha, breaking=breaking)
            found.append((bounds, DOUBT * abs(moved) + self.unsure, moved))
        own = 0 if self.bound == "mem" else 1
        return Shift(
            low=min(low - doubt for (low, _, _), doubt, _ in found),
            value=found[own][0][1],
            high=max(high + doubt for (_, _, high), doubt, _ in found),
            sure_low=min(value - doubt for (_, value, _), doubt, _ in found),
            sure_high=max(value + doubt for (_, value, _), doubt, _ in found),
            moved=max((moved for _, _, moved in found), key=abs),
        )

    def _judged(self, then: Sequence[Session], now: Sequence[Session], seen: Shift) -> Slowdown:
        limit = math.log1p(self.margin)
        verdict: SlowdownVerdict = "inconclusive"
        why = _why_open(seen, len(then), len(now), self.unsure)
        if seen.high <= limit:
            verdict, why = "holds", ""
        elif seen.low > limit:
            verdict, why = "broken", ""
            then_ns = median([session.kernel_ms for session in then]) * 1e6
            if math.expm1(seen.value) * then_ns <= LEAST_DIFFERENCE_NS:
                verdict, why = "holds", f"the difference is below {LEAST_DIFFERENCE_NS:g} ns"
        low = seen.low if math.isfinite(seen.low) else None
        return Slowdown(
            against=self.against,
            method="baseline",
            margin=self.margin,
            verdict=verdict,
            slowdown=math.expm1(seen.value),
            low=None if low is None else math.expm1(low),
            high=math.expm1(seen.high) if math.isfinite(seen.high) else None,
            visible=None if low is None else math.expm1(limit + seen.value - low),
            blocks=0,
            processes=len(now),
            reason=why,
        )


def _why_open(seen: Shift, then: int, now: int, unsure: float) -> str:
    """Return what an undecided case owes its doubt to."""
    moved = math.expm1(seen.moved)
    if abs(moved) >= 0.02 and seen.sure_high - seen.sure_low - 2 * unsure >= 0.01:
        direction = "slower" if moved > 0 else "faster"
        return f"the machine itself is {abs(moved) * 100:.0f} % {direction} than it was"
    if math.isinf(unsure):
        return "too few samples stand behind what it is compared with"
    if unsure >= 0.01:
        return f"what it is compared with is known to {math.expm1(unsure) * 100:.0f} % only"
    if seen.sure_high - seen.sure_low >= 0.01:
        return "memory and arithmetic of this machine are in another proportion than they were"
    return f"{now} fresh processes against {then} leave it open"


def shift_bounds(
    then: Sequence[float],
    now: Sequence[float],
    low_alpha: float,
    high_alpha: float,
    *,
    breaking: bool = True,
) -> tuple[float, float, float]:
    """Return (low, value, high) of `now` less `then`; each bound is one-sided, infinite where nothing bounds it.

    The value is the median of all differences. With `breaking` the low end is the lower of what ranks and Welch's
    test say, since it is what breaks a clause: a noisier day must not. It takes five values of now, whose noise
    that is. Without, it is only shown.

    Raises:
        ValueError: there are no values on a side.
    """
    if not then or not now:
        raise ValueError("no sessions to compare")
    differences = sorted(new - old for new in now for old in then)
    value = median(differences)
    low_rank = critical_rank(len(then), len(now), low_alpha)
    high_rank = critical_rank(len(then), len(now), high_alpha)
    low = differences[low_rank - 1] if low_rank else value - _student(then, now, low_alpha)
    high = differences[-high_rank] if high_rank else value + _student(then, now, high_alpha)
    if breaking and len(now) < _LEAST_NOW:
        low = -math.inf
    elif breaking and low_rank:
        low = min(low, _welch_low(then, now, low_alpha))
    return min(low, value), value, max(high, value)


def _welch_low(then: Sequence[float], now: Sequence[float], alpha: float) -> float:
    """Return the lower bound of the difference of means at one-sided `alpha`, each side with its own variance."""
    parts = [max(_variance(each), _LEAST_SPREAD**2) / len(each) for each in (then, now)]
    total = sum(parts)
    freedom = total**2 / sum(part**2 / (len(each) - 1) for part, each in zip(parts, (then, now), strict=True))
    reach = student_quantile(alpha, freedom) * math.sqrt(total)
    return sum(now) / len(now) - sum(then) / len(then) - reach


def _student(then: Sequence[float], now: Sequence[float], alpha: float) -> float:
    """Return the half-width at one-sided `alpha`, of a pooled variance: both sides are sessions of one kind."""
    freedom = len(then) + len(now) - 2
    if freedom < 1:
        return math.inf
    squares = sum(_variance(each) * (len(each) - 1) for each in (then, now) if len(each) > 1)
    deviation = max(math.sqrt(squares / freedom), _LEAST_SPREAD)
    return student_quantile(alpha, freedom) * deviation * math.sqrt(1 / len(then) + 1 / len(now))


def _variance(values: Sequence[float]) -> float:
    middle = sum(values) / len(values)
    return sum((value - middle) ** 2 for value in values) / (len(values) - 1)


@lru_cache(maxsize=4096)
def critical_rank(then: int, now: int, alpha: float) -> int:
    """Return the largest c for which P(U < c) <= alpha, U being Mann and Whitney's count; 0 when there is none.

    Exact: the numbers of orders with each count are the coefficients of the Gaussian binomial.
    """
    counts = _orders(then, now)
    allowed, seen = alpha * math.comb(then + now, then), 0
    for count, orders in enumerate(counts):
        seen += orders
        if seen > allowed:
            return count
    return len(counts)


def _orders(then: int, now: int) -> list[int]:
    """Return, for each U from 0 to then*now, how many of the orders of both samples have it."""
    counts = [1] + [0] * (then * now)
    for step in range(1, then + 1):
        # Multiply by (1 - q^(now + step)), then divide by (1 - q^step): exact in integers.
        for at in range(len(counts) - 1, now + step - 1, -1):
            counts[at] -= counts[at - now - step]
        for at in range(step, len(counts)):
            counts[at] += counts[at - step]
    return counts
