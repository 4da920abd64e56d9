"""How much slower a case is than another version of itself, and whether that is more than is allowed."""

from dataclasses import dataclass
from typing import Literal

SlowdownVerdict = Literal["holds", "broken", "inconclusive"]

DEFAULT_MARGIN = 0.05
"""What a comparison allows where the suite has no `max_slowdown` clause for the case."""


@dataclass(frozen=True, slots=True)
class Slowdown:
    """One case compared with another version of itself.

    `slowdown`, `low` and `high` are fractions: new time over old time, less one (0.03 is 3 % slower, negative is
    faster); the ends are None where nothing bounds them. `visible` is the smallest slowdown that this run could
    have called. `margin` is what was allowed.
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
