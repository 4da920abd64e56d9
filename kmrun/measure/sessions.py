"""A case measured against yardsticks in a fresh process, for baselines. No torch.

The case passed its checks just before, in the same run. What differs from process to process is where memory lies,
what was allocated before, which code got inlined; so each session has its own. It may also be what a kernel tunes or
draws when it is loaded: one call of what was timed is checked, too.
"""

import math
import time
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from kmrun.core.case import Case, Output
from kmrun.core.measurement import Finding, Measurement
from kmrun.core.statistics import median
from kmrun.core.yardstick import Session
from kmrun.measure import findings
from kmrun.measure.asking import Asking, Over
from kmrun.measure.blocks import turn_of
from kmrun.measure.roles import KERNEL, REFERENCE
from kmrun.measure.room import warm_up_limits
from kmrun.measure.starting import NotStarted

if TYPE_CHECKING:
    from kmrun.measure.supervisor import Supervisor

BLOCKS, BLOCKS_FLUSHED = 16, 5
MOST_NS = 1.2e9
"""Of the blocks of one session; five are taken whatever they cost."""
WARM_MOST_NS = 0.4e9
_SLOTS = (0, 1)


def take_session(
    supervisor: "Supervisor",
    case: Case,
    found: Measurement,
    progress: Callable[[str], None],
    alone: bool = False,
    repeats: tuple[int, int] | None = None,
) -> Session | Finding:
    """Measure a case in a fresh process; a finding says why that failed.

    Args:
        supervisor: owns the sides; the kernel's is replaced.
        case: a case that was measured just before.
        found: what came of that.
        progress: told what is going on.
        alone: take the median of a window, as a run does, and no yardsticks (both are 1 ms in the session).
        repeats: of the yardsticks in a sample, those of the sessions to compare with; None chooses them.
    """
    if supervisor.isolation == "serial":
        sentence = "a baseline needs kernel and judge at once: not in serial isolation"
        return Finding("not_alternated", sentence, "undecided", "inconclusive")
    if found.learned_outputs is not None and case.outputs is None:
        learned = tuple(
            Output(name, tuple(said["shape"]), said["dtype"], learned=True)
            for name, said in found.learned_outputs.items()
        )
        case = replace(case, outputs=learned)
    supervisor.replace_host()
    again = _Again(supervisor, case, progress)
    again.inline = found.isolation == "inline"
    try:
        return again.take(found, alone, repeats)
    except Over:
        return again.findings[-1]
    except NotStarted as lacks:
        return findings.no_process(lacks)
    finally:
        again.leave_inline()


class _Again(Asking):
    """The course of one session."""

    def take(self, found: Measurement, alone: bool, repeats: tuple[int, int] | None) -> Session:
        """Take it.

        Raises:
            Over: a side failed.
        """
        if not self.inline:
            self.run.kernel().bury()
        self.begin(self.side_of_kernel, self.kernel)
        if not self.inline:
            self.begin(self.side_of_judge, self.judge)
        self.kernel("load", self.case.first_call_timeout_s, key=KERNEL)
        if self.case.mode != "forward":  # the gradients' shapes are the reference's
            self.judge("load", key=REFERENCE)
        if not self.inline:
            self.run.arena_for(self.case, self.kernel, self.judge)
        for slot in _SLOTS:
            drawn = self.judge(
                "draw", slot=slot, seed=self.run.case_seed(self.case, slot), share=not self.inline
            )
            if not self.inline:
                self.kernel("receive", slot=slot, tree=drawn["tree"])
        self.deadline = time.monotonic() + self.case.first_call_timeout_s + self.case.case_timeout_s
        with self.only_kernel():
            level = self._warmed(found)
            session = self._window() if alone else self._beside_yardsticks(found, level, repeats)
            shown = self.kernel("show_turns", key=KERNEL, most=int(self.has_checks), share=not self.inline)
        for each in shown:
            self._check(each["slot"], each["tree"])
        self.kernel("end")
        if not self.inline:
            self.judge("end")
        return session

    def _check(self, slot: int, tree: Any) -> None:
        if self.has_reference:
            if self.case.mode == "forward":
                self.judge("load", key=REFERENCE)
            self.judge("expect", slot=slot)
        seed = self.run.case_seed(self.case, slot)
        self.refuse_wrong(self.judge("compare", slot=slot, tree=tree, seed=seed), "in a fresh process: ")

    def _warmed(self, found: Measurement) -> float:
        """Stage and warm up the kernel as its own window did; return the level in ns per call."""
        self.kernel("stage", cold=found.l2 == "cold", bytes_per_call=self.bytes_per_call())
        call_ns = self.kernel("prepare", key=KERNEL)["call_ns"]
        level: float = self.kernel("warm_up", key=KERNEL, **warm_up_limits(WARM_MOST_NS, call_ns))["call_ns"]
        self.kernel("refresh")
        return level

    def _window(self) -> Session:
        timing = self.case.timing
        budget = {
            "min_ns": timing.min_time_ms * 1e6,
            "max_ns": MOST_NS,
            "rel_ci": timing.rel_ci,
            "at_least": 10,
        }
        taken = self.kernel("window", key=KERNEL, budget=budget)
        kernel_ms = median(taken["samples_ns"]) / 1e6
        return Session(kernel_ms, 1.0, 1.0, math.log(kernel_ms), math.log(kernel_ms))

    def _beside_yardsticks(
        self, found: Measurement, level: float, repeats: tuple[int, int] | None
    ) -> Session:
        flushed = self.run.on_cpu and found.extra.get("cold_by") == "flush"
        turn = turn_of(level, self.run.on_cpu, flushed)
        taken = self.kernel(
            "take_yardsticks",
            call_ns=min(found.samples_ns),
            calls=turn.calls,
            discard=turn.discard,
            repeats=repeats,
            blocks=BLOCKS_FLUSHED if flushed else BLOCKS,
            most_ns=MOST_NS,
        )
        return session_of(taken["rows"], tuple(taken["repeats"]))


def session_of(rows: list[list[float]], repeats: tuple[int, int]) -> Session:
    """Return the session of blocks of (kernel, memory, compute) times in ns per call.

    Raises:
        ValueError: there are no blocks, or a time is not positive.
    """
    if not rows or any(time_ns <= 0 for row in rows for time_ns in row):
        raise ValueError("a session needs blocks of positive times")
    kernel, memory, compute = (median([row[column] for row in rows]) / 1e6 for column in range(3))
    return Session(
        kernel_ms=kernel,
        memory_ms=memory,
        compute_ms=compute,
        over_memory=median([math.log(row[0] / row[1]) for row in rows]),
        over_compute=median([math.log(row[0] / row[2]) for row in rows]),
        memory_calls=repeats[0],
        compute_calls=repeats[1],
    )
