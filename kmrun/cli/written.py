"""What a run writes beside what it prints: result file, JUnit report, Markdown, and what GitHub shows."""

import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

import typer

from kmrun.cli.report_page import PageFile, results_page
from kmrun.cli.streams import say
from kmrun.cli.terminal import file_named
from kmrun.core.result import Result
from kmrun.errors import UsageError
from kmrun.report import annotations, junit, markdown
from kmrun.source.catalogue import load_cards
from kmrun.store import results as documents
from kmrun.store.targets import TargetFile

SUMMARY_BYTES = 1 << 20
"""GitHub refuses a step's summary above this."""


class Written:
    """The files of a run. All are found writable before anything is measured, and none is ever half written."""

    def __init__(
        self,
        *,
        several: bool = False,
        save: str | None = None,
        junit_file: str | None = None,
        markdown_file: str | None = None,
        html_file: str | None = None,
        overlays: Sequence[Path] = (),
        allow_inconclusive: bool = False,
        environment: Mapping[str, str] = os.environ,
    ) -> None:
        """Prepare the files that were asked for.

        Raises:
            UsageError: one of them cannot be written, or holds something else.
        """
        self._environment = environment
        self._allow_inconclusive = allow_inconclusive
        self._save = None
        if save is not None:
            self._save = documents.ResultFile(file_named(save, "--save"), several=several)
        self._junit, self._markdown, self._page = None, None, None
        self._overlays = overlays
        if junit_file is not None:
            path = file_named(junit_file, "--junit")
            self._junit = TargetFile(path, "--junit", "JUnit report", junit.is_junit)
        if markdown_file is not None:
            path = file_named(markdown_file, "--markdown")
            self._markdown = TargetFile(path, "--markdown", "report of kmrun", markdown.is_markdown)
        if html_file == "-":
            raise UsageError("--html -: standard output is for the scorecard", "name a file")
        if html_file is not None:
            self._page = PageFile(html_file, "--html")

    def after_case(self, results: Sequence[Result]) -> None:
        """Write the files as of now: a run that is killed leaves reports that say that they are partial.

        Raises:
            UsageError: a file can no longer be written; the others are.
        """
        with ExitStack() as each:  # the last first, and all of them when one fails, too
            if self._markdown is not None:
                each.callback(self._markdown.replace, markdown.render(results))
            if self._junit is not None:
                text = junit.render(results, allow_inconclusive=self._allow_inconclusive)
                each.callback(self._junit.replace, text)
            if self._save is not None:
                each.callback(self._save.write, results)

    def at_end(self, results: Sequence[Result], code: int) -> None:
        """Write the final Markdown, with the exit code, GitHub's summary of the step, and the page.

        Raises:
            UsageError: a file can no longer be written; the others are.
        """
        text = markdown.render(results, code)
        summary = self._environment.get("GITHUB_STEP_SUMMARY")
        with ExitStack() as each:  # the last first, and all of them when one fails, too
            if summary and results:
                each.callback(_append, Path(summary), text)
            if self._page is not None and results:
                each.callback(self._write_page, self._page, results)
            if self._markdown is not None:
                each.callback(self._markdown.replace, text)

    def _write_page(self, page: PageFile, results: Sequence[Result]) -> None:
        page.write(results_page(results, load_cards(self._overlays)))

    def announce(self, results: Sequence[Result], *, to_stderr: bool = False) -> None:
        """Print GitHub's annotations in a job of GitHub's; it reads standard error as well as output."""
        if self._environment.get("GITHUB_ACTIONS") == "true":
            stream = sys.stderr if to_stderr else sys.stdout
            for line in annotations.annotations(results, self._from_root):
                typer.echo(line, file=stream)

    def _from_root(self, file: str) -> str:
        """Return a suite's file as a path from the root of the checkout, where it lies in it."""
        workspace = self._environment.get("GITHUB_WORKSPACE")
        if not workspace:
            return file
        root, path = Path(workspace).resolve(), Path(file)
        # A link that leads out of the checkout lies in it all the same.
        for place in (path.resolve(), path.parent.resolve() / path.name):
            if place.is_relative_to(root):
                return place.relative_to(root).as_posix()
        return file


def _at_once(path: str, flags: int) -> int:
    """Open a file; a FIFO without a reader is refused, and not waited for."""
    descriptor = os.open(path, flags | os.O_NONBLOCK, 0o666)
    os.set_blocking(descriptor, True)
    return descriptor


def _append(path: Path, text: str) -> None:
    """Append to the summary of the step; one that cannot be written is no reason to lose a run."""
    try:
        there = path.stat().st_size if path.exists() else 0
        if there + len(text.encode()) > SUMMARY_BYTES:
            text = f"{markdown.MARK}\n\nkmrun's report is too long for a summary: --markdown FILE has it.\n"
        with open(path, "a", encoding="utf-8", newline="\n", opener=_at_once) as stream:
            stream.write(text)
    except OSError as error:
        say(f"warning: GITHUB_STEP_SUMMARY {path}: {(error.strerror or str(error)).lower()}\n")
