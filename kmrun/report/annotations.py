"""Broken and undecided cases as GitHub annotations, each at the line of the clause that decided it."""

from collections.abc import Callable, Sequence

from kmrun.core.result import CaseResult, Result
from kmrun.report.places import place_of
from kmrun.report.words import word_of
from kmrun.source.diagnostics import Severity, workflow_command

MOST = 10
"""GitHub shows so many annotations of one level a step, and drops the rest without a word."""

Relocate = Callable[[str], str]
"""Turns a file as the suite was named into a path from the repository's root, which GitHub needs."""


def annotations(results: Sequence[Result], relocate: Relocate = lambda file: file) -> list[str]:
    """Return the workflow commands: errors for what is broken, warnings for what is undecided."""
    errors, warnings = [], []
    for result in results:
        for case in result.cases:
            if case.verdict in ("fail", "error"):
                errors.append(_command("error", case, relocate))
            elif case.verdict == "inconclusive":
                warnings.append(_command("warning", case, relocate))
    return [*_at_most(errors, "error", "broken"), *_at_most(warnings, "warning", "undecided")]


def _command(level: Severity, case: CaseResult, relocate: Relocate) -> str:
    place = place_of(case)
    file, line = (relocate(place[0]), place[1]) if place else ("", None)
    sentences = dict.fromkeys(reason.sentence for reason in case.reasons)
    text = "; ".join(sentences) or word_of(case)
    return workflow_command(level, text, f"{word_of(case)} {case.id}", file, line)


def _at_most(commands: list[str], level: Severity, word: str) -> list[str]:
    if len(commands) <= MOST:
        return commands
    left = len(commands) - (MOST - 1)
    text = f"{left} more cases are {word}: the job's log and its summary have them all"
    return [*commands[: MOST - 1], workflow_command(level, text, f"{left} more")]
