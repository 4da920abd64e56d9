"""A suite read and planned: what `check`, `list` and `run` start from, every mistake of a file in one go."""

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from kmrun.core.problem import Problem
from kmrun.errors import UnknownName, UsageError
from kmrun.plan import Expansion, expand
from kmrun.plan.axes import DEVICE_KINDS
from kmrun.plan.report import UNKNOWN_CARD, UNKNOWN_DEVICE
from kmrun.source.catalogue import Catalogue, load_cards
from kmrun.source.diagnostics import Diagnostic, InvalidSuite
from kmrun.source.suite_reader import Examined, ReadSuite, examine, renumbered, to_diagnostics


@dataclass(frozen=True)
class PlannedSuite:
    """A suite without errors and its cases; `warnings` are for the reader of the output."""

    read: ReadSuite
    expansion: Expansion
    warnings: tuple[Diagnostic, ...]


def read_and_plan(path: Path | str, name: str | None = None, content: bytes | None = None) -> PlannedSuite:
    """Read, validate and expand a suite file. Runs none of its code.

    `content` is what the file is tried out with instead of what it holds.

    Raises:
        InvalidSuite: with all mistakes of reading, and those of planning in the kernels that could be read.
    """
    examined = examine(Path(path), name, content)
    expansion, planned = _planned(examined)
    found = [*examined.diagnostics, *planned]
    if any(item.severity == "error" for item in found) or examined.suite is None or expansion is None:
        raise InvalidSuite(found)
    read = ReadSuite(examined.suite, examined.document, examined.path, examined.document.digest)
    return PlannedSuite(read, expansion, tuple(found))


def _planned(examined: Examined) -> tuple[Expansion | None, Sequence[Diagnostic]]:
    if examined.suite is None:
        return None, ()
    cards = load_cards()
    expansion = expand(examined.suite, str(examined.path.parent), cards.ids)
    problems = [
        _with_card_named(renumbered(item, examined.indices), examined, cards) for item in expansion.problems
    ]
    if examined.diagnostics:
        # What the whole suite leaves unused cannot be told while some of its kernels are not read.
        problems = [item for item in problems if item.path[:1] == ("kernels",)]
    return expansion, to_diagnostics(problems, examined.document)


def _with_card_named(item: Problem, examined: Examined, cards: Catalogue) -> Problem:
    """Return the problem with the id of the card that the name stands for, or the ids it may stand for.

    Suites name cards by their ids alone, so that a clause reads the same everywhere; people use other names.
    """
    if item.code == UNKNOWN_CARD:
        name = item.path[-1]
    elif item.code == UNKNOWN_DEVICE:
        name = list(examined.document.nodes(item.path))[-1].value
    else:
        return item
    if str(name).casefold() in DEVICE_KINDS:
        return item
    try:
        hint = f"write '{cards.find(str(name)).id}'"
    except UsageError as error:
        hint = error.hint
    except UnknownName:
        return item
    return dataclasses.replace(item, hint=hint)
