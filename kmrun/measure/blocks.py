"""Two live sides taking turns in blocks: ABBA or BAAB, the order drawn at random. No torch."""

import math
import random
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from statistics import fmean

from kmrun.core.statistics import quantile, shift

Take = Callable[[int, int], list[float]]
"""Lets one side take a turn: so many calls after so many thrown away ones; returns ns per call."""

LEVELS = {"cpu": 0.25, "cuda": 0.5, "rocm": 0.5}
"""What stands for a turn's or a block's calls: on a CPU the lower quartile, which finds more than the median beside
other load."""


@dataclass(frozen=True, slots=True)
class Turn:
    """How long one side's turn is: timed calls, and calls before them that bring clocks and caches back up."""

    calls: int
    discard: int


def turn_of(call_ns: float, on_cpu: bool, flushed: bool) -> Turn:
    """Return the turn for calls of this length.

    On a CPU about 4 ms, one to eight calls, and long calls need no run-up; on a GPU 20 ms of device time after
    two calls that bring the clocks back up. One call where a CPU's flush before it costs more than the call.
    """
    if flushed:
        return Turn(1, 0)
    if on_cpu:
        return Turn(max(1, min(8, round(4e6 / max(call_ns, 1.0)))), 1 if call_ns < 3e6 else 0)
    return Turn(max(1, min(200, round(20e6 / max(call_ns, 1.0)))), 2)


class Blocks:
    """Alternated blocks of two sides.

    Args:
        takes: let each side take a turn.
        turns: how long each side's turns are.
        level: the quantile of a side's calls, in a turn or a block, that stands for them.

    Attributes:
        samples: every timed call of each side in ns, in time order.
        means: of each block, each side's mean in ns.
    """

    def __init__(self, takes: tuple[Take, Take], turns: tuple[Turn, Turn], level: float) -> None:
        self.samples: tuple[list[float], list[float]] = ([], [])
        self.means: list[tuple[float, float]] = []
        self._takes = takes
        self._turns = turns
        self._level = level
        self._logs: tuple[list[float], list[float]] = ([], [])
        """Of each side's turns: what stands for its calls."""
        # From the OS: nothing that repeats on the machine can keep step with it.
        self._order = random.Random(secrets.randbits(64))

    def take(self) -> tuple[float, float]:
        """Take a block; return what stands for each side's calls in it, in ns per call."""
        first = self._order.randrange(2)
        seen: tuple[list[float], list[float]] = ([], [])
        for who in (first, 1 - first, 1 - first, first):
            turn = self._turns[who]
            taken = self._takes[who](turn.calls, turn.discard)
            self._logs[who].append(math.log(quantile(taken, self._level)))
            seen[who].extend(taken)
        for kept, new in zip(self.samples, seen, strict=True):
            kept.extend(new)
        self.means.append((fmean(seen[0]), fmean(seen[1])))
        return quantile(seen[0], self._level), quantile(seen[1], self._level)

    def log_ratio(self) -> float:
        """Return the first side's time over the second's, as a logarithm, by all turns so far.

        Turn by turn, since calls of one turn share where their outputs lie and what else the machine does: of equal
        versions it differs by up to a fifth less from pair to pair than the ratio of all calls' quartiles does.

        Raises:
            ValueError: no block was taken.
        """
        return shift(*self._logs)
