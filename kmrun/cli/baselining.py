"""`--save-baseline` and `--against-baseline`: how fast a suite was on this device, and whether it still is."""

import datetime
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from kmrun.cli.companion import Companion, Done, Key, Phase, Suite, Take, has_time, shared_alpha
from kmrun.core.baseline import (
    TELLING,
    VERSION,
    Baseline,
    BaselineCase,
    baseline_device,
    case_of,
    device_key,
    other_environment,
)
from kmrun.core.baseline_gate import FIRST_SESSIONS, BaselineGate
from kmrun.core.case import Case
from kmrun.core.clause import SAVES_BASELINE
from kmrun.core.gate import LOOKS
from kmrun.core.measurement import Ceilings, Finding, Measurement
from kmrun.core.printable import printable
from kmrun.core.slowdown import Slowdown
from kmrun.core.yardstick import Session
from kmrun.errors import EnvironmentLacks, UsageError
from kmrun.report.numbers import count, first_of
from kmrun.store import baselines
from kmrun.store.targets import TargetFile

SESSIONS = 10
"""Fresh processes behind each case of a baseline: by ranks ten against ten can tell 1 in 184756."""

NOISY = 0.03
"""A spread between sessions above this hides what a baseline is there to find."""

SETTLE_S = 60.0
"""What a suspect may take, as with `--against`."""

_CODES = {"suite": 2, "kernel": 1, "environment": 3, "undecided": 4}
"""Fault of what ended a fresh process to the exit code of a saving that lacks its case."""

Say = Callable[[str], None]


@dataclass
class Saving(Companion):
    """Writes a suite's baseline when all of its cases were measured; the sessions go round all cases in turn.

    So each case's ten sessions are spread over the whole of the saving, and hold what the machine did meanwhile.
    """

    take: Take = field(kw_only=True)
    say: Say = field(kw_only=True)
    partial: bool = False
    """Only some cases were chosen: the file keeps its others."""
    now: Callable[[], datetime.datetime] = lambda: datetime.datetime.now(datetime.UTC)
    _targets: dict[Key, TargetFile] = field(default_factory=dict)

    def open(self, suite: Suite) -> None:
        """Find the file writable before anything is measured, and an earlier one fit to be completed."""
        if not suite.cases:
            return
        path = baselines.file_of(suite.folder, suite.name, device_key(suite.device, suite.card))
        target = baselines.target(path)
        for (_, name, file), taken in self._targets.items():
            if taken.path == target.path:
                told = f"--save-baseline {path}: is of {name} in {file} and of {suite.name} in {suite.file}"
                raise UsageError(printable(told), "give one of the two another name")
        self._targets[suite.key] = target
        earlier = self._earlier(path, self.say)
        if earlier is not None and earlier.suite != suite.name:
            told = f"--save-baseline {path}: is of another suite, {earlier.suite}"
            raise UsageError(printable(told), "give one of the two another name, or take the file away")
        others = self._kept(earlier, suite, {case.id for case in suite.cases})
        other = other_environment(earlier.environment, suite.environment) if earlier is not None else ()
        if others and other:
            there, here = other[0]
            hint = f"leave out -k and --tag: {len(others)} other cases of it are of {there}"
            told = f"--save-baseline {path}: is of {there}, this is {here}"
            raise UsageError(printable(told), printable(hint))

    def measured(
        self, suite: Suite, case: Case, found: Measurement, ceilings: Ceilings, supervisor: Any, phase: Phase
    ) -> Measurement:
        """Say that there is nothing to compare with yet, and that it lacks nothing."""
        return replace(found, not_compared=SAVES_BASELINE)

    def close(self, suite: Suite, done: Sequence[Done], supervisor: Any, phase: Phase) -> None:
        """Take the sessions and write the file; what could not be measured keeps its earlier entry."""
        target = self._targets.get(suite.key)
        if target is None:
            return
        chosen = [one for one in done if has_time(one.found) and one.verdict != "error"]
        left = {one.case.id: _why_left(one) for one in done if one not in chosen}
        sessions: dict[str, list[Session]] = {one.case.id: [] for one in chosen}
        for round_ in range(SESSIONS):
            for one in list(chosen):
                phase(f"baseline, round {round_ + 1} of {SESSIONS}: {one.case.id}")
                first = sessions[one.case.id][:1]
                repeats = first[0].repeats if first else None
                taken = self.take(supervisor, one.case, one.found, phase, False, repeats)
                if isinstance(taken, Session):
                    sessions[one.case.id].append(taken)
                else:
                    chosen.remove(one)
                    left[one.case.id] = f" ({taken.sentence})"
                    self.exit_code = self.exit_code or _CODES[taken.fault]
        saved = self.now().isoformat(timespec="seconds")
        cases = {
            one.case.id: case_of(one.case.id, suite.digest(one.case), one.bound, sessions[one.case.id], saved)
            for one in chosen
        }
        earlier = self._earlier(target.path)
        kept = {case.id: case for case in self._kept(earlier, suite, set(cases))}
        if not cases:
            self.exit_code = self.exit_code or EnvironmentLacks.exit_code
        elif earlier and kept and (other := other_environment(earlier.environment, suite.environment)):
            # One document is of one environment: neither half may be passed off as of the other's.
            there, here = other[0]
            told = f"{target.path}: not written: {next(iter(kept))} in it is of {there}, this is {here}"
            self.say(printable(f"warning: {told}; take the file away to begin anew") + "\n")
            self.exit_code = self.exit_code or EnvironmentLacks.exit_code
        else:
            target.replace(baselines.render(_document(suite, list((kept | cases).values()))))
            self.notes.append(
                f"baseline of {count(len(cases), 'case')}, {SESSIONS} processes each: {target.path}"
            )
        if any(one.verdict == "skipped" and one.case.id in kept for one in done):
            # It was measured here once: what it needs is missing today.
            self.exit_code = self.exit_code or EnvironmentLacks.exit_code
        for name, why in left.items():
            told = "not measured anew, its earlier entry stays" if name in kept else "not in the baseline"
            self.say(printable(f"warning: {told}: {name}{why}") + "\n")
        noisy = [case for case in cases.values() if case.spread > NOISY]
        if noisy:
            worst = max(noisy, key=lambda case: case.spread)
            told = f"{count(len(noisy), 'case')} differ by over {NOISY * 100:.0f} % from process to process"
            at_worst = f"{worst.id} by {worst.spread * 100:.0f} %"
            told = f"warning: {told} ({at_worst}): save it again while the machine has less else to do"
            self.say(printable(told) + "\n")

    @staticmethod
    def _earlier(path: Path, say: Say = lambda text: None) -> Baseline | None:
        """Return the file's baseline; None where there is none or one that is damaged, which is told."""
        if not path.is_file() or not path.stat().st_size:
            return None
        try:
            return baselines.read(path)
        except baselines.DamagedBaseline as error:
            say(printable(f"warning: {error}: it is written anew, nothing of it is kept") + "\n")
            return None

    def _kept(self, earlier: Baseline | None, suite: Suite, measured: Collection[str]) -> list[BaselineCase]:
        """Return the cases of an earlier baseline that stay: all others of a part, else those of the suite."""
        own = {case.id for case in suite.cases}
        stored = earlier.cases if earlier is not None else ()
        return [case for case in stored if case.id not in measured and (self.partial or case.id in own)]


@dataclass
class AgainstBaseline(Companion):
    """Holds every case against its stored baseline."""

    take: Take = field(kw_only=True)
    say: Say = field(kw_only=True)
    _known: dict[Key, Baseline] = field(default_factory=dict)
    _missing: dict[Key, str] = field(default_factory=dict)
    _compared: dict[Key, int] = field(default_factory=dict)

    def open(self, suite: Suite) -> None:
        """Read the baseline; refuse one of another device or of other cases, warn of another driver or torch."""
        if not suite.cases:
            return
        key = device_key(suite.device, suite.card)
        path = baselines.file_of(suite.folder, suite.name, key)
        found = baselines.read(path)
        if found is None:
            others = baselines.others(suite.folder, suite.name, key)
            there = f" (there is one for {', '.join(others)})" if others else ""
            told = f"warning: {suite.name} has no baseline for {key}{there}: max_slowdown is not judged"
            self.say(printable(told) + "\n")
            self._missing[suite.key] = f"no baseline for {key}"
            return
        if found.device.key != key or found.suite != suite.name:
            hint = "--save-baseline writes one of this device"
            told = f"{path}: is of {found.suite} on {found.device.key}, not on {key}"
            raise UsageError(printable(told), hint)
        if found.device.threads != suite.device.threads:
            then, today = found.device.threads, suite.device.threads
            raise UsageError(
                f"{printable(str(path))}: is of {then} threads, this run has {today}",
                "--save-baseline writes it anew",
            )
        for there, here in other_environment(found.environment, suite.environment):
            self.say(printable(f"warning: {path}: is of {there}, this is {here}") + "\n")
        known = [case.id for case in suite.cases if found.case(case.id)]
        changed = [case for case in suite.cases if _is_changed(found.case(case.id), case, suite)]
        if changed:
            hint = "--save-baseline measures it anew, with -k only what changed"
            told = f"{path}: {suite.named(changed)} is defined in another way than it was"
            raise UsageError(printable(told), hint)
        new = len(suite.cases) - len(known)
        if new:
            told = f"{count(new, 'case')} of this run not in it"
            self.say(printable(f"warning: {path}: {told}: max_slowdown is not judged there") + "\n")
        self._known[suite.key] = found
        self._compared[suite.key] = len(known)

    def measured(
        self, suite: Suite, case: Case, found: Measurement, ceilings: Ceilings, supervisor: Any, phase: Phase
    ) -> Measurement:
        """Compare: two fresh processes clear a case or make it a suspect, which is measured in new ones."""
        baseline = self._known.get(suite.key)
        then = baseline.case(case.id) if baseline else None
        if then is None:
            why = self._missing.get(suite.key, "not in the baseline: --save-baseline adds it")
            return replace(found, not_compared=printable(why))
        if not has_time(found):
            return found
        gate = BaselineGate(
            f"the baseline of {then.saved[:10]}",
            suite.margin(case),
            shared_alpha(self._compared[suite.key]),
            then.bound,
        )

        def take() -> Session | Finding:
            return self.take(supervisor, case, found, phase, False, then.sessions[0].repeats)

        outcome = decide(gate, then.sessions, take, phase)
        if isinstance(outcome, Finding):
            return replace(found, findings=(*found.findings, outcome))
        return replace(found, slowdown=outcome)

    def close(self, suite: Suite, done: Sequence[Done], supervisor: Any, phase: Phase) -> None:
        """Tell of what became faster: that fails nothing, but a new baseline would keep it."""
        note_faster(self.notes, done, "--save-baseline keeps that")


def decide(
    gate: BaselineGate, then: Sequence[Session], take: Callable[[], Session | Finding], phase: Phase
) -> Slowdown | Finding:
    """Take fresh sessions until the gate knows; a finding ends it."""
    first: list[Session] = []
    for _ in range(FIRST_SESSIONS):
        phase(f"against {gate.against}, process {len(first) + 1}")
        taken = take()
        if isinstance(taken, Finding):
            return taken
        first.append(taken)
    cleared = gate.clears(then, first)
    if cleared is not None:
        return cleared
    again: list[Session] = []
    begin = time.monotonic()
    while True:
        phase(f"suspect, process {len(again) + 1} of at most {LOOKS[-1].pairs}")
        taken = take()
        if isinstance(taken, Finding):
            return taken
        again.append(taken)
        settled = gate.settle(then, again)
        if settled is not None:
            return settled
        if time.monotonic() - begin > SETTLE_S:
            return gate.estimate(then, again, f"out of time after {processes(len(again))}")


def processes(number: int) -> str:
    """Return `1 fresh process`, `3 fresh processes`."""
    return f"{number} fresh process{'' if number == 1 else 'es'}"


def note_faster(notes: list[str], done: Sequence[Done], hint: str) -> None:
    """Add a note when cases became faster by more than their margin, beyond doubt."""
    faster = [
        one.case.id
        for one in done
        if one.found.slowdown is not None
        and one.found.slowdown.high is not None
        and one.found.slowdown.high < -one.found.slowdown.margin
    ]
    if faster:
        notes.append(f"faster than before: {first_of(faster)}; {hint}")


def _why_left(one: Done) -> str:
    """Return why a case was skipped, in brackets; what else keeps a case out stands in its own verdict."""
    skipped = [finding.sentence for finding in one.found.findings if finding.outcome == "skipped"]
    return f" ({printable(skipped[0])})" if skipped else ""


def _document(suite: Suite, cases: Sequence[BaselineCase]) -> Baseline:
    order = {case.id: place for place, case in enumerate(suite.cases)}
    names = ("kmrun", "python", "os", *TELLING)
    return Baseline(
        kmrun_baseline=VERSION,
        suite=suite.name,
        device=baseline_device(suite.device, suite.card),
        environment={name: suite.environment.get(name) for name in names},
        cases=tuple(sorted(cases, key=lambda case: (order.get(case.id, len(order)), case.id))),
    )


def _is_changed(then: BaselineCase | None, case: Case, suite: Suite) -> bool:
    return then is not None and then.digest != suite.digest(case)
