"""A suite read and planned: what `check`, `list` and `run` start from, every mistake of a file in one go."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from kmrun.core.problem import Problem
from kmrun.plan import Expansion, expand
from kmrun.source.catalogue import load_cards
from kmrun.source.diagnostics import Diagnostic, InvalidSuite
from kmrun.source.suite_reader import Examined, ReadSuite, examine, renumbered, to_diagnostics


@dataclass(frozen=True)
class PlannedSuite:
    """A suite without errors and its cases; `warnings` are for the reader of the output."""

    read: ReadSuite
    expansion: Expansion
    warnings: tuple[Diagnostic, ...]


def read_and_plan(path: Path | str, name: str | None = None) -> PlannedSuite:
    """Read, validate and expand a suite file. Runs none of its code.

    Raises:
        InvalidSuite: with all mistakes of reading, and those of planning in the kernels that could be read.
    """
    examined = examine(Path(path), name)
    expansion, planned = _planned(examined)
    found = [*examined.diagnostics, *planned]
    if any(item.severity == "error" for item in found) or examined.suite is None or expansion is None:
        raise InvalidSuite(found)
    read = ReadSuite(examined.suite, examined.document, examined.path, examined.document.digest)
    return PlannedSuite(read, expansion, tuple(found))


def _planned(examined: Examined) -> tuple[Expansion | None, Sequence[Diagnostic]]:
    if examined.suite is None:
        return None, ()
    expansion = expand(examined.suite, str(examined.path.parent), load_cards().ids)
    problems: list[Problem] = [renumbered(item, examined.indices) for item in expansion.problems]
    if examined.diagnostics:
        # What the whole suite leaves unused cannot be told while some of its kernels are not read.
        problems = [item for item in problems if item.path[:1] == ("kernels",)]
    return expansion, to_diagnostics(problems, examined.document)
