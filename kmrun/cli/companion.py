"""What accompanies a run from case to case: a stored baseline, a saved result. This one accompanies nothing."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kmrun.core.baseline import definition_digest
from kmrun.core.case import Case
from kmrun.core.clause import bound_for
from kmrun.core.entries import Locate
from kmrun.core.measurement import Ceilings, Finding, Measurement, RunDevice
from kmrun.core.opponent import Opponent
from kmrun.core.slowdown import DEFAULT_MARGIN
from kmrun.core.statistics import ERROR_RATE
from kmrun.core.yardstick import Session
from kmrun.report.numbers import first_of

Phase = Callable[[str], None]
"""Is told what the case has come to."""

Take = Callable[[Any, Case, Measurement, Phase, bool, tuple[int, int] | None], Session | Finding]
"""Measures a case in a fresh process: (supervisor, case, what came of it, phase, alone, repeats of the yardsticks);
see `measure.sessions`."""

Key = tuple[str, str, str | None]
"""Folder, name and file of a suite."""


@dataclass(frozen=True, slots=True)
class Suite:
    """A suite of the run, once the device is known."""

    name: str
    file: str | None
    folder: Path
    cases: Sequence[Case]
    device: RunDevice
    card: str | None
    environment: dict[str, Any]
    flush_l2: bool = True
    root: Path | None = None
    """The tree that the suite lies in; None: its folder."""
    locate: Locate = lambda path: None
    """Turns a place of the document into file and line."""

    @property
    def key(self) -> "Key":
        """What tells the suites of a run apart: two files of a folder may name their suites alike."""
        return str(self.folder), self.name, self.file

    def l2(self, case: Case) -> str:
        """Return whether the case is asked to be timed `cold` or `hot`."""
        return "cold" if case.timing.l2 == "cold" and self.flush_l2 else "hot"

    def digest(self, case: Case) -> str:
        """Return what tells a case from one of that name that is defined in another way."""
        return definition_digest(case, self.l2(case), str(self.root or self.folder))

    def named(self, cases: Sequence[Case]) -> str:
        """Return the first case, where it was written, how many follow it: `add[n=64] (s.yaml:7) and 2 more`."""
        found = self.locate(cases[0].place)
        at = f" ({found[0]}:{found[1]})" if found else ""
        return first_of([f"{cases[0].id}{at}", *(case.id for case in cases[1:])])

    def margin(self, case: Case) -> float:
        """Return how much slower a case may be: its strictest clause on this device, else 5 %."""
        bounds = (
            bound_for(clause.bounds, self.device.kind, self.card)
            for clause in case.clauses
            if clause.kind == "max_slowdown"
        )
        return min((bound for bound in bounds if bound is not None), default=DEFAULT_MARGIN)


@dataclass(frozen=True, slots=True)
class Done:
    """A case that was measured, judged and found right or wrong; `bound` is `mem`, `comp` or None."""

    case: Case
    found: Measurement
    verdict: str
    bound: str | None


@dataclass
class Companion:
    """What a session tells its companion. All methods may raise a `KmrunError`, which ends the run."""

    notes: list[str] = field(default_factory=list)
    """For the reader of the scorecard."""
    exit_code: int = 0
    """Of what it could not do; the verdicts' own comes first."""

    def open(self, suite: Suite) -> None:
        """Take up a suite, of which nothing was measured yet."""

    def decisions(self, suite: Suite) -> int:
        """Return how many comparisons share the suite's error rate with the clauses that samples decide."""
        return 0

    def opponent(self, suite: Suite, case: Case) -> Opponent | None:
        """Return the other version that the case is to be timed beside."""
        return None

    def measured(
        self, suite: Suite, case: Case, found: Measurement, ceilings: Ceilings, supervisor: Any, phase: Phase
    ) -> Measurement:
        """Take up a case that was measured; what is returned is judged."""
        return found

    def close(self, suite: Suite, done: Sequence[Done], supervisor: Any, phase: Phase) -> None:
        """Take leave of a suite, all of whose cases were measured."""


def shared_alpha(cases: int) -> float:
    """Return one case's share of the error rate of a whole suite."""
    return ERROR_RATE / max(1, cases)


def has_time(found: Measurement) -> bool:
    """Say whether a case was given a speed: only that can be compared."""
    stopped = found.correct is False or any(one.outcome in ("fail", "error") for one in found.findings)
    return bool(found.samples_ns) and not stopped
