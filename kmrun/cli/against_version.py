"""`--against`: holds every case of a run against the same case in another version of the code."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from kmrun.cli.companion import Companion, Key, Phase, Suite, shared_alpha
from kmrun.core.case import Case
from kmrun.core.clause import count_sampled
from kmrun.core.gate import LIVE_LOOKS, Gate
from kmrun.core.measurement import Ceilings, Measurement
from kmrun.core.opponent import Opponent, Tree
from kmrun.plan.selection import runs_on
from kmrun.report.numbers import count, first_of

_SHOWN = 5


@dataclass(frozen=True, slots=True)
class Matchup:
    """A suite's other version: its cases by id, and where both versions lie. `name` is what it is called.

    `broken` says why none of its cases is known, where that is so. `ours` are the ids of all cases of this version,
    chosen for the run or not.
    """

    name: str
    cases: Mapping[str, Case]
    own: Tree
    other: Tree
    broken: str = ""
    ours: frozenset[str] = frozenset()


@dataclass
class AgainstVersion(Companion):
    """Gives each case its opponent, and tells which cases have none."""

    matchups: Mapping[Key, Matchup] = field(kw_only=True)
    say: Callable[[str], None] = field(kw_only=True)
    _alpha: dict[Key, float] = field(default_factory=dict)

    def open(self, suite: Suite) -> None:
        """Share the error rate among all that the suite decides, and list what only one version has."""
        matchup = self.matchups[suite.key]
        sampled = count_sampled(suite.cases, suite.device.kind, suite.card)
        self._alpha[suite.key] = shared_alpha(sampled + self.decisions(suite))
        if matchup.broken:
            self.say(f"warning: nothing is compared with {matchup.name}: {matchup.broken}\n")
            return
        new = [case.id for case in suite.cases if case.id not in matchup.cases]
        changed = [
            case.id
            for case in suite.cases
            if case.id in matchup.cases and not _same_inputs(case, matchup.cases[case.id])
        ]
        kind, card = suite.device.kind, suite.card
        gone = [
            case.id
            for case in matchup.cases.values()
            if case.id not in matchup.ours and runs_on(case, kind, card)
        ]
        for ids, why in (
            (new, f"not in {matchup.name}"),
            (changed, f"called with other arguments in {matchup.name}"),
            (gone, f"only in {matchup.name}"),
        ):
            if ids:
                self.say(f"warning: {count(len(ids), 'case')} {why}: {first_of(ids, _SHOWN)}\n")

    def decisions(self, suite: Suite) -> int:
        """Return how many cases have an opponent."""
        matchup = self.matchups[suite.key]
        return sum(self._other(matchup, case) is not None for case in suite.cases)

    def opponent(self, suite: Suite, case: Case) -> Opponent | None:
        """Return the other version of a case; None where there is none."""
        matchup = self.matchups[suite.key]
        other = self._other(matchup, case)
        if other is None:
            return None
        gate = Gate(matchup.name, suite.margin(case), self._alpha[suite.key], looks=LIVE_LOOKS)
        return Opponent(other, gate, matchup.own, matchup.other)

    def measured(
        self, suite: Suite, case: Case, found: Measurement, ceilings: Ceilings, supervisor: Any, phase: Phase
    ) -> Measurement:
        """Label what had no opponent."""
        matchup = self.matchups[suite.key]
        if self._other(matchup, case) is not None:
            return found
        why = (
            f"the suite is invalid in {matchup.name}"
            if matchup.broken
            else f"not the same case in {matchup.name}"
        )
        told = f"not compared: {why}"
        return replace(found, labels=(*found.labels, told), not_compared=told)

    @staticmethod
    def _other(matchup: Matchup, case: Case) -> Case | None:
        other = matchup.cases.get(case.id)
        return other if other is not None and _same_inputs(case, other) else None


def _same_inputs(one: Case, other: Case) -> bool:
    """Whether both versions can be called with the same inputs, bit by bit."""
    return (one.arguments, one.mode, one.grad, one.mutates) == (
        other.arguments,
        other.mode,
        other.grad,
        other.mutates,
    )
