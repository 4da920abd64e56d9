"""What `run` and `time` share: from checked suites and settings to a printed scorecard and an exit code."""

import re
import sys
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import cast, get_args

import typer

from kmrun.cli.against_saved import AgainstSaved
from kmrun.cli.app import explained
from kmrun.cli.baselining import AgainstBaseline, Saving
from kmrun.cli.companion import Companion
from kmrun.cli.other_version import against_version, in_tree, root_of
from kmrun.cli.session import Job, Outcome, Session, Supervising
from kmrun.cli.streams import in_json, say
from kmrun.cli.terminal import file_named
from kmrun.cli.written import Written
from kmrun.core.card import Card, per_device
from kmrun.core.case import Case
from kmrun.core.entries import Locate
from kmrun.core.floors import could_rise
from kmrun.core.measurement import RunDevice
from kmrun.core.result import Result
from kmrun.core.verdict import exit_code
from kmrun.device.expected import expected_device
from kmrun.errors import EnvironmentLacks, KmrunError, UsageError
from kmrun.measure.run_options import Isolation, RunOptions
from kmrun.measure.sessions import take_session
from kmrun.measure.supervisor import Supervisor
from kmrun.plan import select
from kmrun.plan.selection import runs_on
from kmrun.report.numbers import count
from kmrun.report.progress import Line, Progress
from kmrun.report.table import coloured, encodable, plain, render
from kmrun.report.view import view
from kmrun.source import diagnostics
from kmrun.source.catalogue import Catalogue, load_cards
from kmrun.source.document import Document
from kmrun.source.suite_files import find_suites
from kmrun.source.suite_plan import PlannedSuite, read_and_plan
from kmrun.store import results as documents

_DEVICE = re.compile(r"auto|cpu|cuda(:\d+)?")


@dataclass(frozen=True, slots=True)
class Settings:
    """What the command line says, apart from which suites."""

    device: str = "auto"
    pattern: str | None = None
    tags: tuple[str, ...] = ()
    seed: int | None = None
    quick: bool = False
    flush_l2: bool = True
    hot_and_cold: bool = False
    lock_clocks: bool = False
    isolation: str = "auto"
    allow_inconclusive: bool = False
    card: str | None = None
    overlays: tuple[str, ...] = ()
    save: str | None = None
    junit: str | None = None
    markdown: str | None = None
    html: str | None = None
    save_baseline: bool = False
    against_baseline: bool = False
    compare: str | None = None
    against: str | None = None
    build: str | None = None
    as_json: bool = False


def run_suites(words: Sequence[str], settings: Settings) -> int:
    """Check every suite, then run them all; return the exit code.

    Raises:
        KmrunError: a suite or an option is wrong, or the environment lacks something; nothing was measured.
    """
    _refuse_empty(settings)
    planned = check_suites(words)
    for item in planned:
        warnings = diagnostics.render(item.warnings, "text", sys.stderr.isatty())
        say(encodable(warnings, sys.stderr.encoding))
    jobs = jobs_of(planned, settings)
    if settings.against is None:
        if settings.build is not None:
            raise UsageError("--build goes with --against", "without it nothing has to be built twice")
        return run_jobs(jobs, settings)
    companion_of(settings)
    with against_version(planned, settings.against, settings.build or "", say) as companion:
        return run_jobs(jobs, settings, companion)


def _refuse_empty(settings: Settings) -> None:
    """Refuse a value that a variable that is not set has left empty: the option would silently do nothing.

    Raises:
        UsageError: there is one.
    """
    for option, value in (
        ("--against", settings.against),
        ("--build", settings.build),
        ("--card", settings.card),
    ):
        if value == "":
            raise UsageError(
                f"{option}: an empty value", "a variable that is not set leaves that: leave it out"
            )


def check_suites(words: Sequence[str]) -> list[PlannedSuite]:
    """Read and plan every suite before any of them runs.

    Raises:
        InvalidSuite: with the mistakes of all files.
    """
    planned: list[PlannedSuite] = []
    wrong: list[diagnostics.Diagnostic] = []
    for path, name in find_suites(words):
        try:
            # Sides work in the suite's folder, so what they are told is absolute.
            planned.append(read_and_plan(path.absolute(), name))
        except diagnostics.InvalidSuite as error:
            wrong += error.diagnostics
    if wrong:
        raise diagnostics.InvalidSuite(list(dict.fromkeys(wrong)))
    return planned


def jobs_of(planned: Sequence[PlannedSuite], settings: Settings, *, in_files: bool = True) -> list[Job]:
    """Return what a session needs of planned suites: the cases that `-k` and `--tag` leave.

    Raises:
        UsageError: they leave none, on whatever device.
    """
    every = [case for item in planned for case in item.expansion.cases]
    chosen = select(every, pattern=settings.pattern, tags=settings.tags).cases
    if not chosen:
        raise UsageError("no case has both what -k and what --tag ask for", "`kmrun list` shows the cases")
    wanted = {id(case) for case in chosen}
    return [
        Job(
            name=item.read.suite.suite,
            file=item.read.document.source.name if in_files else None,
            digest=item.read.digest,
            folder=str(item.read.path.parent.resolve()),
            cases_for=_cases_for(
                [
                    in_tree(case, item.read.suite.env, root_of(item)) if item.read.suite.env else case
                    for case in item.expansion.cases
                    if id(case) in wanted
                ]
            ),
            locate=locate_in(item.read.document) if in_files else lambda path: None,
        )
        for item in planned
    ]


def _cases_for(cases: Sequence[Case]) -> Callable[[RunDevice, str | None], Sequence[Case]]:
    """Return the function that picks a device's cases, once the device is known."""
    return lambda device, card: [case for case in cases if runs_on(case, device.kind, card)]


def locate_in(document: Document) -> Locate:
    """Return the function that turns a document path into file and line."""

    def locate(path: tuple[str | int, ...]) -> tuple[str, int]:
        place = document.place(path)
        return place.source.name, place.span.line

    return locate


def run_jobs(jobs: Sequence[Job], settings: Settings, companion: Companion | None = None) -> int:
    """Measure, print and save; return the exit code.

    Raises:
        KmrunError: an option is wrong, or nothing could be measured.
    """
    companion = companion or companion_of(settings)
    written = Written(
        several=len(jobs) > 1,
        save=settings.save,
        junit_file=settings.junit,
        markdown_file=settings.markdown,
        html_file=settings.html,
        overlays=[Path(overlay) for overlay in settings.overlays],
        allow_inconclusive=settings.allow_inconclusive,
    )
    options, catalogue = _options(settings), load_cards([Path(overlay) for overlay in settings.overlays])
    asked = per_device(catalogue.find(settings.card)) if settings.card else None

    def open_supervisor(folder: str) -> AbstractContextManager[Supervising]:
        return make_supervisor(settings.device, options, folder)

    session = Session(
        open_supervisor=open_supervisor,
        match_card=lambda device: match_card(catalogue, device, asked),
        progress=_progress,
        save=written.after_case,
        command=("kmrun", *sys.argv[1:]),
        companion=companion,
        flush_l2=settings.flush_l2,
        expected=lambda: expected_device(settings.device),
    )
    outcome = session.run(jobs)
    try:
        written.at_end(outcome.results, code_of(outcome, settings))
    except KmrunError as error:
        outcome.stopped = outcome.stopped or error  # told once all that was measured is printed
    try:
        code = report(outcome, settings, several=len(jobs) > 1)
        for note in (*companion.notes, *_floors_to_raise(outcome.results, settings.save)):
            say(f"{note}\n")
        return code
    finally:
        written.announce(outcome.results, to_stderr=settings.as_json)


def companion_of(settings: Settings) -> Companion:
    """Return what accompanies the run: a baseline to write or to hold it against, a saved result, or nothing.

    Raises:
        UsageError: more than one was asked for, or the saved result cannot be read.
    """
    asked = {
        "--save-baseline": settings.save_baseline,
        "--against-baseline": settings.against_baseline,
        "--compare": settings.compare is not None,
        "--against": settings.against is not None,
    }
    chosen = [option for option, wanted in asked.items() if wanted]
    if len(chosen) > 1:
        raise UsageError(f"{' and '.join(chosen)} at once", "a run has one opponent")
    if settings.save_baseline:
        return Saving(take=take_session, say=say, partial=bool(settings.pattern or settings.tags))
    if settings.against_baseline:
        return AgainstBaseline(take=take_session, say=say)
    if settings.compare is not None:
        return AgainstSaved(path=file_named(settings.compare, "--compare"), take=take_session, say=say)
    return Companion()


def make_supervisor(device: str, options: RunOptions, folder: str) -> AbstractContextManager[Supervising]:
    """Return the supervisor of a run; the one place where measuring begins."""
    return Supervisor(device, options, folder, tell=say)


def match_card(catalogue: Catalogue, device: RunDevice, asked: Card | None) -> Card | None:
    """Return the card of a device: the one asked for, else what its driver's name says; None for a CPU.

    Raises:
        UsageError: a card was asked for, but this is a CPU, or a slice of a GPU.
    """
    if device.kind == "cpu":
        if asked is not None:
            raise UsageError(f"--card {asked.id} is a GPU, but this run is on the CPU", "leave --card out")
        return None
    if device.is_mig:
        # The driver shows a slice the whole card's bus and clocks: its published peaks are no roof of the slice.
        if asked is not None:
            raise UsageError(f"--card {asked.id}: a MIG slice has no published roof", "leave --card out")
        return None
    if asked is not None:
        return asked
    matched = catalogue.match_driver(
        device.name, device.sm_count, device.memory_bytes, device.compute_capability
    )
    if matched.card is None and matched.candidates:
        names = ", ".join(matched.candidates)
        say(f"warning: {device.name} may be {names}: say which with --card, for its roof\n")
    return matched.card


def code_of(outcome: Outcome, settings: Settings) -> int:
    """Return the exit code of a run: that of the error that ended it early, else what the verdicts come to.

    A run that a person ended and that then could not be written, too, is an interrupted one.
    """
    if outcome.stopped is not None and not outcome.interrupted:
        # A traceback, of a fault of kmrun's own, ends the process with 1.
        return outcome.stopped.exit_code if isinstance(outcome.stopped, KmrunError) else 1
    if not outcome.interrupted and not any(result.cases for result in outcome.results):
        return EnvironmentLacks.exit_code
    judged = exit_code(
        outcome.judgements,
        allow_inconclusive=settings.allow_inconclusive,
        interrupted=outcome.interrupted,
    )
    return judged or outcome.undone


def report(outcome: Outcome, settings: Settings, *, several: bool) -> int:
    """Print what a run came to, and return the exit code.

    Raises:
        Exception: what ended the run, when there is nothing to print or after printing it.
    """
    code = code_of(outcome, settings)
    empty = not any(result.cases for result in outcome.results)
    if settings.as_json:
        if outcome.results or several:
            text = documents.render(outcome.results, several=several)
            typer.echo(in_json(text, sys.stdout.encoding), nl=False)
    elif not empty:
        typer.echo(_scorecards(outcome.results, code if outcome.stopped is None else None), nl=False)
    if outcome.stopped is not None and outcome.interrupted and isinstance(outcome.stopped, KmrunError):
        say(explained(outcome.stopped))
    elif outcome.stopped is not None:
        raise outcome.stopped
    if empty and outcome.interrupted:
        say("interrupted before a case was measured\n")
    elif empty:
        raise EnvironmentLacks("no case of these suites is for this device", "`kmrun list` shows them all")
    return code


def _floors_to_raise(results: Sequence[Result], saved: str | None) -> list[str]:
    """Return what to say of promises that could be higher; only `--save` leaves what would raise them."""
    return [
        f"{count(number, 'floor')} could be raised: kmrun floors {result.suite.file} --result {saved}"
        for result in results
        if saved is not None and result.suite.file is not None and (number := could_rise(result.cases))
    ]


def _scorecards(results: Sequence[Result], code: int | None) -> str:
    paint = coloured if sys.stdout.isatty() and diagnostics.wants_colour() else plain
    shown = [result for result in results if result.cases]
    texts = [render(view(result), code if result is shown[-1] else None, paint=paint) for result in shown]
    return encodable("\n".join(texts), sys.stdout.encoding)


def _progress(total: int) -> Progress:
    return Line(sys.stderr, total) if sys.stderr.isatty() else Progress()


def _options(settings: Settings) -> RunOptions:
    if settings.isolation not in get_args(Isolation):
        names = ", ".join(get_args(Isolation))
        raise UsageError(f"--isolation {settings.isolation}: no such isolation", f"one of {names}")
    if not _DEVICE.fullmatch(settings.device):
        hint = "one of auto, cpu, cuda, cuda:N; torch calls AMD cards cuda, too"
        raise UsageError(f"--device {settings.device}: no such device", hint)
    if settings.hot_and_cold and not settings.flush_l2:
        raise UsageError("--hot-and-cold times both, --no-flush-l2 only hot", "leave one of them out")
    return RunOptions(
        isolation=cast(Isolation, settings.isolation),
        seed=settings.seed,
        quick=settings.quick,
        flush_l2=settings.flush_l2,
        hot_and_cold=settings.hot_and_cold,
        lock_clocks=settings.lock_clocks,
        # Not with --compare: the saved run was none.
        compared=settings.against is not None or settings.save_baseline or settings.against_baseline,
    )
