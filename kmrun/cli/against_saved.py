"""`--compare FILE`: every case against what `--save` wrote in an earlier run."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from kmrun.cli.baselining import decide, note_faster
from kmrun.cli.companion import Companion, Done, Key, Phase, Suite, Take, has_time, shared_alpha
from kmrun.core.baseline import device_key, other_environment
from kmrun.core.baseline_gate import BaselineGate
from kmrun.core.case import Case
from kmrun.core.counterpart import counterpart
from kmrun.core.entries import ceiling_entry
from kmrun.core.measurement import Ceilings, Finding, Measurement, RunDevice
from kmrun.core.plain import from_plain, to_plain
from kmrun.core.printable import printable
from kmrun.core.result import CaseResult, CeilingEntry, Result, SuiteEntry
from kmrun.core.yardstick import LEAST, MOST, Session
from kmrun.errors import InvalidInput, UsageError
from kmrun.report.numbers import first_of
from kmrun.store import results


@dataclass
class AgainstSaved(Companion):
    """Compares with a result as with a baseline of one session, whose yardsticks are the run's ceilings.

    One session says nothing of the spread between sessions: that is learned from fresh processes of today.
    """

    path: Path = field(kw_only=True)
    take: Take = field(kw_only=True)
    say: Callable[[str], None] = field(kw_only=True)
    _saved: list[Result] = field(default_factory=list)
    _then: dict[Key, Result] = field(default_factory=dict)
    _compared: dict[Key, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Read the file before anything is measured.

        Raises:
            InvalidInput: it is no result document.
        """
        self._saved = results.read(self.path)

    def open(self, suite: Suite) -> None:
        """Refuse a result of another device or suite; warn of another driver or torch."""
        if not suite.cases:
            return
        then = counterpart(SuiteEntry(suite.name, suite.file, None), self._saved)
        if then is None:
            raise self._no_counterpart(suite)
        key = device_key(suite.device, suite.card)
        if _key_of(then) != key:
            raise UsageError(f"--compare {self.path}: is of {_key_of(then)}, this is {key}")
        for there, here in other_environment(then.environment, suite.environment):
            self.say(printable(f"warning: {self.path}: is of {there}, this is {here}") + "\n")
        known = {case.id for case in then.cases if session_of(case, then.ceilings)}
        self._refuse_changed(suite, then)
        new = [case.id for case in suite.cases if case.id not in known]
        if new:
            self.say(printable(f"warning: {self.path}: has no time of {first_of(new)}: not compared") + "\n")
        self._then[suite.key] = then
        self._compared[suite.key] = len(suite.cases) - len(new)

    def _no_counterpart(self, suite: Suite) -> InvalidInput:
        files = [result.suite.file or "?" for result in self._saved if result.suite.name == suite.name]
        if files:
            told = f"has {suite.name} of {' and of '.join(files)}, none of {suite.file}"
            return InvalidInput(
                printable(f"--compare {self.path}: {told}"), "name the file as it was named then"
            )
        names = ", ".join(dict.fromkeys(result.suite.name for result in self._saved)) or "nothing"
        return InvalidInput(printable(f"--compare {self.path}: is of {names}, not of {suite.name}"))

    def _refuse_changed(self, suite: Suite, then: Result) -> None:
        """Refuse cases that are others under the same name: their times tell of no slowdown.

        Raises:
            UsageError: a case is defined in another way than it was, or is timed with other caches.
        """
        entries = {entry.id: entry for entry in then.cases if entry.median_ms}
        both = [(case, entries[case.id]) for case in suite.cases if case.id in entries]
        changed = [case for case, entry in both if entry.digest not in (None, suite.digest(case))]
        if changed:
            told = (
                f"{suite.named(changed)} is defined in another way than it was, or is timed cold against hot"
            )
            raise UsageError(printable(f"--compare {self.path}: {told}"), "--save measures it anew")
        if any(entry.digest is None for _, entry in both):
            told = "does not say how its cases are defined: a changed one would look slower or faster"
            self.say(printable(f"warning: {self.path}: {told}") + "\n")

    def measured(
        self, suite: Suite, case: Case, found: Measurement, ceilings: Ceilings, supervisor: Any, phase: Phase
    ) -> Measurement:
        """Compare with the saved time of the case."""
        result = self._then[suite.key]
        entry = next((entry for entry in result.cases if entry.id == case.id), None)
        then = session_of(entry, result.ceilings) if entry else None
        if entry is None or then is None:
            lacks = "ceilings that can be compared" if entry and entry.median_ms else "time of it"
            return replace(found, not_compared=printable(f"no {lacks} in {self.path}"))
        if not has_time(found):
            return found
        gate = BaselineGate(
            str(self.path),
            suite.margin(case),
            shared_alpha(self._compared[suite.key]),
            entry.bound,
            unsure=_unsure(entry),
        )
        today = ceiling_entry(ceilings)

        def take() -> Session | Finding:
            taken = self.take(supervisor, case, found, phase, True, None)
            return taken if isinstance(taken, Finding) else _beside(taken.kernel_ms, today)

        outcome = decide(gate, (then,), take, phase)
        if isinstance(outcome, Finding):
            return replace(found, findings=(*found.findings, outcome))
        return replace(found, slowdown=outcome)

    def close(self, suite: Suite, done: Sequence[Done], supervisor: Any, phase: Phase) -> None:
        """Tell of what became faster."""
        note_faster(self.notes, done, "--save keeps that")


def session_of(entry: CaseResult, ceilings: CeilingEntry) -> Session | None:
    """Return the one session that a saved case is; None without a time or ceilings, or with ones of no machine."""
    if not entry.median_ms or not ceilings.bandwidths or not _fp32(ceilings):
        return None
    figures = entry.median_ms, max(seen.gb_per_s for seen in ceilings.bandwidths), max(_fp32(ceilings))
    return _beside(entry.median_ms, ceilings) if all(LEAST <= each <= MOST for each in figures) else None


def _unsure(entry: CaseResult) -> float:
    """Return the log ratio by which the median may be off within its own run: the wider half of its interval."""
    figures = entry.ci_low_ms or 0.0, entry.median_ms or 0.0, entry.ci_high_ms or 0.0
    if not all(LEAST <= each <= MOST for each in figures):
        return math.inf
    low, middle, high = map(math.log, figures)
    return max(high - middle, middle - low)


def _beside(kernel_ms: float, ceilings: CeilingEntry) -> Session:
    """Return a kernel's time beside what the machine took for 1 GB and for 1 Tflop at its best."""
    memory_ms = 1e3 / max(seen.gb_per_s for seen in ceilings.bandwidths)
    compute_ms = 1e3 / max(_fp32(ceilings))
    over_memory, over_compute = (
        math.log(kernel_ms) - math.log(yardstick_ms) for yardstick_ms in (memory_ms, compute_ms)
    )
    return Session(kernel_ms, memory_ms, compute_ms, over_memory, over_compute)


def _fp32(ceilings: CeilingEntry) -> list[float]:
    """Return the rates of the one matmul that every run measures; none where a document lacks it."""
    return [rate.tflop_per_s for rate in ceilings.matmuls if rate.dtype == "fp32"]


def _key_of(result: Result) -> str:
    return device_key(from_plain(RunDevice, _run_device(to_plain(result.device))), result.device.card)


def _run_device(plain: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in plain.items() if name != "card"}
