"""Holding the clock of the kernel's side against the supervisor's own. No torch."""

import time
from typing import TYPE_CHECKING

from kmrun.measure import findings
from kmrun.measure.roles import KERNEL

if TYPE_CHECKING:
    from kmrun.measure.trial import Trial

ABOVE_NS = {"cpu": 20e3, "cuda": 200e3, "rocm": 200e3}
SLACK = 0.10
TRIES, MOST_NS = 8, 100e6
ROOM_SHARE = 0.25
"""Of what is left of the case's time: a slow kernel's goes into samples."""


def verify_time(trial: "Trial", call_ns: float) -> None:
    """Hold the kernel side's own timer against the supervisor's clock over unflushed bursts of N and 2N calls.

    The slope between both bursts is free of what a request costs. A busy machine disturbs one of the clocks
    for a moment, in either direction, and less the longer the bursts get; a forged clock claims too little
    in every try.

    Raises:
        Over: every try says that the clock is forged.
    """
    if call_ns < ABOVE_NS[trial.run.device.kind]:
        trial.label("time unverified")
        trial.know(time_verified=None)
        return
    forged = []
    for attempt in range(TRIES):
        calls = max(1, min(5000, int(min(20e6 * 2**attempt, MOST_NS) / call_ns)))
        if 3 * calls * call_ns / 1e9 > ROOM_SHARE * trial.left_s:
            break
        seen, told = [], []
        for count in (calls, 2 * calls):
            begin = time.perf_counter_ns()
            told.append(trial.kernel("burst", key=KERNEL, calls=count))
            seen.append(time.perf_counter_ns() - begin)
        ours, theirs = seen[1] - seen[0], told[1] - told[0]
        if abs(ours - theirs) <= SLACK * ours:
            trial.know(time_verified=True)
            return
        forged.append(ours > (1 + 3 * SLACK) * max(theirs, 0.0) and ours - theirs > 5e6)
    trial.know(time_verified=False)
    if len(forged) == TRIES and all(forged):
        trial.over(findings.time_disagrees(ours / calls, theirs / calls))
    trial.label("time unverified")
