"""What handing over between two sides costs, and on a GPU how far it leaks into what is timed. No torch.

Sides that take turns on a GPU hand it over with each turn: the context is switched, clocks may sag meanwhile. That
is shared by both and cancels in their ratio, unless it is not the same for both. So a spin kernel of fixed length
is timed right after a hand-over and again with none before it: as long as both agree, nothing leaks.
"""

import math
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from kmrun.core.statistics import median
from kmrun.measure.side import Idle

if TYPE_CHECKING:
    from kmrun.measure.trial import Trial

Spin = Callable[[], list[float]]
"""Lets one side spin for a slot; returns ns per call."""

ROUNDS, CALLS, DISCARD = 9, 20, 2
"""Slots of about 20 ms; their first two calls bring the clocks back up, as in every turn on a GPU."""


def look(trial: "Trial") -> None:
    """Note what handing over costs and, on a GPU, its bias, which is measured once a run."""
    trial.know(handoff_ns=_cost_ns(trial))
    if trial.run.on_cpu or trial.inline:
        return
    if trial.run.handoff_bias is None:
        trial.progress("handing over")
        trial.run.handoff_bias = bias(_spins(trial.kernel), _spins(trial.judge))
    trial.know(handoff_bias=trial.run.handoff_bias)


def bias(first: Spin, second: Spin) -> float:
    """Return by which fraction a slot after a hand-over takes longer than one without; of the side where it is more.

    Each round both sides spin twice; the first slot of the two comes after a hand-over, the second does not.
    """
    logs: tuple[list[float], list[float]] = ([], [])
    for _ in range(ROUNDS):
        for spin, seen in zip((first, second), logs, strict=True):
            after, alone = median(spin()), median(spin())
            seen.append(math.log(after / alone))
    return math.expm1(max((median(seen) for seen in logs), key=abs))


def _spins(ask: Callable[..., list[float]]) -> Spin:
    return lambda: ask("spin", calls=CALLS, discard=DISCARD)


def _cost_ns(trial: "Trial") -> float:
    """Return what handing over takes: stop one side, wake the other, one empty request."""
    costs = []
    for _ in range(5):
        for ask, idle in ((trial.kernel, trial.side_of_judge), (trial.judge, trial.side_of_kernel)):
            begin = time.perf_counter_ns()
            with Idle(idle() if trial.run.on_cpu and not trial.inline else None):
                ask("ping")
            costs.append(time.perf_counter_ns() - begin)
    return median(costs)
