"""How much slower a case is than another version of itself, and whether that is more than is allowed."""

from dataclasses import dataclass
from typing import Literal

SlowdownVerdict = Literal["holds", "broken", "inconclusive"]

DEFAULT_MARGIN = 0.05
"""What a comparison allows where the suite has no `max_slowdown` clause for the case."""

_TIMES = 10.0
"""From this slowdown on it is told in times."""


@dataclass(frozen=True, slots=True)
class Slowdown:
    """One case compared with another version of itself.

    `slowdown`, `low` and `high` are fractions: new time over old time, less one (0.03 is 3 % slower, negative is
    faster); the ends are None where nothing bounds them. `visible` is the smallest slowdown that, had it
    been measured with the noise of this run, would have been called more than is allowed. `margin` is what was allowed.
    """

    against: str
    """What it was compared with: a commit, a path, or the baseline and its date."""
    method: Literal["alternated", "baseline"]
    margin: float
    verdict: SlowdownVerdict
    slowdown: float | None
    low: float | None
    high: float | None
    visible: float | None
    blocks: int = 0
    """Alternated blocks that were compared, over all pairs of processes."""
    processes: int = 1
    """Pairs of fresh processes, or fresh processes against a baseline."""
    reason: str = ""
    median: float | None = None
    """Of all timed calls of both versions, in the same terms; nothing is judged by it, nor by the next."""
    p95: float | None = None
    """Of the slow ones: what a version does in few calls only is in neither end of its fastest."""


def told(seen: Slowdown) -> str:
    """Return the comparison as a sentence: how much slower, within what, and from what on it is too slow.

    `6.1 % slower than HEAD~1 (4.2 % slower to 8.0 % slower); called too slow from a measured 4.9 % on`
    """
    if seen.slowdown is None:
        return f"not compared with {seen.against}: {seen.reason}"
    said = f"{change(seen.slowdown)} {'as' if seen.slowdown >= _TIMES else 'than'} {seen.against}"
    if seen.low is not None and seen.high is not None:
        said += f" ({change(seen.low)} to {change(seen.high)})"
    elif seen.low is not None:
        said += f" (at least {change(seen.low)})"
    elif seen.high is not None:
        said += f" (at most {change(seen.high)})"
    if seen.reason:
        said += f", {seen.reason}"
    if seen.visible is not None:
        said += f"; {called(seen.visible)}"
    return said


def called(visible: float) -> str:
    """Return from which measured slowdown on this run would have called a case too slow.

    A true slowdown of that size is called about every second time, since it is measured larger or smaller.
    """
    if visible < _TIMES:
        return f"called too slow from a measured {visible * 100:.1f} % on"
    return f"called too slow only from {1 + visible:,.0f} times as slow on"


def change(fraction: float) -> str:
    """Return `6.1 % slower` or `0.4 % faster`; `27 times as slow` where percent say little."""
    if fraction >= _TIMES:
        return f"{1 + fraction:,.0f} times as slow"
    return f"{abs(fraction) * 100:.1f} % {'faster' if fraction < 0 else 'slower'}"
