"""A run: the suites' cases measured one after the other, scored, judged, and written down after each."""

import datetime
import platform
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, closing, suppress
from dataclasses import dataclass, field, replace
from itertools import groupby
from pathlib import Path
from typing import Any, Protocol

from kmrun import __version__
from kmrun.cli.companion import Companion, Done, Suite
from kmrun.core.card import Card
from kmrun.core.case import Case
from kmrun.core.clause import count_sampled, listed_kernels
from kmrun.core.entries import Locate, case_result, ceiling_entry, device_entry
from kmrun.core.measurement import Ceilings, Measurement, RunDevice
from kmrun.core.opponent import Opponent
from kmrun.core.result import VERSION, CaseResult, Result, SuiteEntry
from kmrun.core.roofs import roofs_of
from kmrun.core.score import score
from kmrun.core.statistics import corrected_alpha
from kmrun.core.verdict import Judgement, judge
from kmrun.errors import KmrunError
from kmrun.report.progress import Progress
from kmrun.report.words import axes_label
from kmrun.source.findable import may_exist
from kmrun.store.repository import git_state, toplevel


class Supervising(Protocol):
    """What a run needs of a supervisor."""

    environment: dict[str, Any]

    @property
    def device(self) -> RunDevice:
        """The device that the cases run on."""

    @property
    def seed(self) -> int:
        """The seed that replays the inputs; known once a kernel was loaded."""

    def use_cache_bytes(self, cache_bytes: int) -> None:
        """Take the last-level cache's size from the matched card."""

    def open_ceilings(self, dtypes: tuple[str, ...]) -> Ceilings:
        """Measure what the machine delivers, before the cases."""

    def close_ceilings(self) -> Ceilings:
        """Measure it again, and return the larger of both."""

    def measure(
        self, case: Case, progress: Callable[[str], None], opponent: Opponent | None = None
    ) -> Measurement:
        """Measure one case, beside its other version where there is one."""


Open = Callable[[str], AbstractContextManager[Supervising]]
"""Starts a supervisor whose sides work in a folder."""


@dataclass(frozen=True)
class Job:
    """One suite to run: what its document says of it, and its cases for a device."""

    name: str
    file: str | None
    digest: str | None
    folder: str
    cases_for: Callable[[RunDevice, str | None], Sequence[Case]]
    locate: Locate = lambda path: None


@dataclass(frozen=True)
class _Scored:
    """A case that was measured, and what was made of it."""

    case: Case
    found: Measurement
    judged: Judgement
    entry: CaseResult


@dataclass
class _Going:
    """A suite under way: what is known so far."""

    job: Job
    device: RunDevice
    card: Card | None
    environment: dict[str, Any]
    cases: Sequence[Case]
    command: tuple[str, ...]
    started: str
    begin: float
    alpha: float
    listed: frozenset[str]
    suite: Suite
    ceilings: Ceilings = field(default_factory=Ceilings)
    scored: list[_Scored] = field(default_factory=list)
    wall_s: float = 0.0
    seed: int | None = None

    def add(self, case: Case, found: Measurement) -> None:
        """Score and judge a case that was measured."""
        self.scored.append(self._score(case, found, self.ceilings))

    def tick(self) -> None:
        """Note how long a person has waited by now: for the ceilings and what the companion does, too."""
        self.wall_s = time.monotonic() - self.begin

    def held_against(self, ceilings: Ceilings) -> None:
        """Score and judge everything again: the machine may have delivered more after the cases."""
        # Built aside: an interrupt in between must lose none of them.
        self.scored = [self._score(each.case, each.found, ceilings) for each in self.scored]
        self.ceilings = ceilings

    def _score(self, case: Case, found: Measurement, ceilings: Ceilings) -> _Scored:
        held_hz = found.observed.window.sm_hz if found.observed else None
        roofs = roofs_of(case, self.card, self.device.max_clock_hz, held_hz)
        scored = score(case, found, self.device, ceilings, roofs)
        listed = case.kernel in self.listed
        judged = judge(case, found, scored, self.device.kind, roofs.card, self.alpha, listed)
        entry = case_result(case, found, scored, judged, self.job.locate, self.suite.digest(case))
        return _Scored(case, found, judged, entry)

    def done(self) -> list[Done]:
        """Return what the run's companion is told of the cases."""
        return [Done(each.case, each.found, each.entry.verdict, each.entry.bound) for each in self.scored]

    def document(self, complete: bool) -> Result:
        """Return the result document as of now."""
        return Result(
            kmrun_result=VERSION,
            complete=complete,
            suite=SuiteEntry(self.job.name, self.job.file, self.job.digest),
            started=self.started,
            wall_s=self.wall_s,
            command=self.command,
            seed=self.seed,
            error_rate=self.alpha,
            device=device_entry(self.device, self.card.id if self.card else None),
            environment=self.environment,
            ceilings=ceiling_entry(self.ceilings),
            cases=tuple(each.entry for each in self.scored),
        )


@dataclass
class Outcome:
    """What a run came to. `stopped` is what ended it early, `interrupted` that a person did.

    A fault of kmrun's own ends it, too: it is to be raised again once all that was measured is written and printed.
    """

    results: list[Result] = field(default_factory=list)
    judgements: list[Judgement] = field(default_factory=list)
    interrupted: bool = False
    stopped: Exception | None = None
    undone: int = 0
    """The exit code of what the companion could not do, where every verdict is well."""


@dataclass
class _Delivered:
    """What the machine delivers: measured before the first case whose code may be there, and again after them all.

    Where nothing can be timed, nobody waits for it.
    """

    supervisor: Supervising
    around: Progress
    dtypes: tuple[str, ...]
    before: Ceilings | None = None

    def before_a_case(self, wanted: bool) -> Ceilings:
        """Return what is known, measured now where it is wanted and was not yet."""
        if self.before is None and wanted:
            self.around.start("measuring what this machine delivers")
            self.before = self.supervisor.open_ceilings(self.dtypes)
        return self.before or Ceilings()

    def again(self) -> Ceilings:
        """Measure it once more, and return the larger of both."""
        self.around.start("measuring once more what this machine delivers")
        return self.supervisor.close_ceilings()


class Session:
    """Runs suites; `save` is called with all documents after every case.

    `expected` says what the device will be, for the document of a run that ends before its sides have said it.
    """

    def __init__(
        self,
        open_supervisor: Open,
        match_card: Callable[[RunDevice], Card | None],
        progress: Callable[[int], Progress],
        save: Callable[[Sequence[Result]], None],
        command: Sequence[str] = (),
        companion: Companion | None = None,
        flush_l2: bool = True,
        expected: Callable[[], RunDevice] | None = None,
    ) -> None:
        self._open = open_supervisor
        self._expected = expected
        self._match_card = match_card
        self._progress = progress
        self._save = save
        self._command = tuple(command)
        self._companion = companion or Companion()
        self._flush_l2 = flush_l2
        self._going: list[_Going] = []
        self._complete: set[int] = set()

    def run(self, jobs: Sequence[Job]) -> Outcome:
        """Measure every case of every suite, in order; an interrupt ends it with what there is."""
        outcome = Outcome()
        try:
            for folder, group in groupby(jobs, key=lambda job: job.folder):
                self._run_in(folder, list(group))
        except KeyboardInterrupt:
            outcome.interrupted = True
            if jobs and not self._going and self._expected is not None:
                self._leave_empty(jobs[0], self._expected())
        except Exception as error:
            # Not swallowed: raised again once all that was measured is printed; a fault of kmrun's keeps its traceback.
            outcome.stopped = error
        outcome.results = self._documents()
        outcome.undone = self._companion.exit_code
        outcome.judgements = [each.judged for going in self._going for each in going.scored]
        if outcome.results:
            try:
                self._save(outcome.results)
            except Exception as error:
                outcome.stopped = outcome.stopped or error  # told once all that was measured is printed
        return outcome

    def _run_in(self, folder: str, jobs: Sequence[Job]) -> None:
        around = self._progress(0)
        around.start("starting the sides")
        with closing(around), self._open(folder) as supervisor:
            device = supervisor.device
            card = self._match_card(device)
            if card is not None and card.llc_bytes:
                supervisor.use_cache_bytes(card.llc_bytes)
            selected = [(job, job.cases_for(device, card.id if card else None)) for job in jobs]
            every = [case for _, cases in selected for case in cases]
            suites = [
                self._suite(job, cases, supervisor.environment, device, card) for job, cases in selected
            ]
            for suite in suites:
                self._companion.open(suite)
            delivered = _Delivered(supervisor, around, _dtypes(every))
            progress, here = self._progress(len(every)), []
            try:
                for (job, cases), suite in zip(selected, suites, strict=True):
                    going = self._start(job, cases, suite, device, card)
                    here.append(going)
                    self._measure(going, supervisor, progress, delivered)
            finally:
                progress.close()
            if delivered.before is not None:
                final = delivered.again()
                for going in here:
                    going.held_against(final)
                here[-1].tick()  # the last waits for them, as the first did
            for going in here:
                self._complete.add(id(going))

    def _start(
        self,
        job: Job,
        cases: Sequence[Case],
        suite: Suite,
        device: RunDevice,
        card: Card | None,
    ) -> _Going:
        card_id = card.id if card else None
        sampled = count_sampled(cases, device.kind, card_id)
        going = _Going(
            job=job,
            device=device,
            card=card,
            environment=suite.environment,
            cases=cases,
            command=self._command,
            started=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
            begin=time.monotonic(),
            alpha=corrected_alpha(sampled + self._companion.decisions(suite)),
            listed=listed_kernels(cases, device.kind, card_id),
            suite=suite,
        )
        self._going.append(going)
        return going

    def _leave_empty(self, job: Job, device: RunDevice) -> None:
        """Begin a suite that nobody will measure, so that an interrupt leaves a document at any moment."""
        self._start(job, (), self._suite(job, (), {}, device, None), device, None)

    def _suite(
        self,
        job: Job,
        cases: Sequence[Case],
        measured: dict[str, Any],
        device: RunDevice,
        card: Card | None,
    ) -> Suite:
        return Suite(
            name=job.name,
            file=job.file,
            folder=Path(job.folder),
            cases=cases,
            device=device,
            card=card.id if card else None,
            environment=_environment(measured, job.folder),
            flush_l2=self._flush_l2,
            root=toplevel(Path(job.folder)),
            locate=job.locate,
        )

    def _measure(
        self, going: _Going, supervisor: Supervising, progress: Progress, delivered: _Delivered
    ) -> None:
        for case in going.cases:
            opponent = self._companion.opponent(going.suite, case)
            # The document was begun before, so that an interrupt leaves one.
            going.ceilings = delivered.before_a_case(may_exist(case))
            progress.start(f"{case.kernel} {axes_label(case.axes, case.shown_axes)}".strip())
            if opponent is None:
                found = supervisor.measure(case, progress.phase)
            else:
                found = supervisor.measure(case, progress.phase, opponent)
            try:
                if found.samples_ns:  # there after all: an earlier case's code may have made it
                    going.ceilings = delivered.before_a_case(True)
                found = self._companion.measured(
                    going.suite, case, found, going.ceilings, supervisor, progress.phase
                )
            except KeyboardInterrupt:
                told = "not compared: interrupted"  # but measured it was
                going.add(case, replace(found, labels=(*found.labels, told), not_compared=told))
                going.tick()
                raise
            going.add(case, found)
            going.environment.update(supervisor.environment)  # some of it is found out on the way
            going.seed = supervisor.seed
            going.tick()
            progress.finish()
            with suppress(KmrunError):  # what cannot be written now may be at the end, which tells if not
                self._save(self._documents())
        try:
            self._companion.close(going.suite, going.done(), supervisor, progress.phase)
        finally:
            going.tick()

    def _documents(self) -> list[Result]:
        return [going.document(id(going) in self._complete) for going in self._going]


def _dtypes(cases: Sequence[Case]) -> tuple[str, ...]:
    """Return the dtypes whose compute ceiling the cases can be held against, fp32 among them."""
    named = [case.peak.dtype for case in cases if case.peak is not None and case.peak.dtype is not None]
    return tuple(dict.fromkeys(["fp32", *named]))


def _environment(measured: dict[str, Any], folder: str) -> dict[str, Any]:
    return {
        "kmrun": __version__,
        "python": platform.python_version(),
        "os": platform.platform(),
        "machine": platform.machine(),
        **measured,
        "git": git_state(Path(folder)),
    }
