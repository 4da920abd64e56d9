"""Reading a suite: strict YAML, `extends`, the models, then what these cannot see. Runs none of its code."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path as FilePath
from typing import Any, cast

from pydantic import ValidationError

from kmrun.core.case import Path
from kmrun.core.problem import Problem
from kmrun.schema.suite import FORMAT, Suite
from kmrun.source import extends, schema_errors, yaml_loader
from kmrun.source.bare_values import bare_axis_values
from kmrun.source.diagnostics import Diagnostic, InvalidSuite, Severity
from kmrun.source.document import Document
from kmrun.source.schema_messages import described
from kmrun.source.suggest import meant

VERSION, NOT_A_SUITE = "K300", "K303"


@dataclass(frozen=True)
class ReadSuite:
    """A valid suite, the document it stands in, the file, and the sha256 of its bytes."""

    suite: Suite
    document: Document
    path: FilePath
    digest: str

    @property
    def folder(self) -> str:
        """The folder that the suite's targets are relative to."""
        return str(self.path.parent)


@dataclass(frozen=True)
class Examined:
    """What is known of a suite that may be wrong in places.

    `suite` holds the kernels without mistakes and `indices` where each of them stands in the file; None when
    there is no such kernel or the mistake concerns the whole file.
    """

    document: Document
    path: FilePath
    suite: Suite | None
    indices: tuple[int, ...]
    diagnostics: tuple[Diagnostic, ...]


def read_suite(path: FilePath | str, name: str | None = None) -> ReadSuite:
    """Read and validate a suite file.

    Raises:
        InvalidSuite: with every mistake that was found, in the order of the file.
    """
    examined = examine(FilePath(path), name)
    if examined.diagnostics or examined.suite is None:
        raise InvalidSuite(examined.diagnostics)
    return ReadSuite(examined.suite, examined.document, examined.path, examined.document.digest)


def examine(path: FilePath, name: str | None = None, content: bytes | None = None) -> Examined:
    """Read a suite file, or what it may come to hold, and keep what is right in it.

    Raises:
        InvalidSuite: there is no document at all (missing file, no YAML).
    """
    loaded = (
        yaml_loader.load_file(path, name)
        if content is None
        else yaml_loader.load_bytes(content, name or str(path))
    )
    document = loaded.document
    if problem := _wrong_kind(document.value):
        found = list(loaded.diagnostics)
        if not found or (len(found) > 1 and not _resembles_a_suite(document.value)):
            found = to_diagnostics([problem], document)
        return Examined(document, path, None, (), tuple(found))
    document, problems, foreign, lost = extends.resolve(document, path)
    suite, indices, more = _validated(document, lost)
    bare = bare_axis_values(document)
    more = [*more, *bare]
    problems = [item for item in (*problems, *more) if not is_echo(item, document)]
    found = [*loaded.diagnostics, *foreign, *to_diagnostics(problems, document)]
    spoiled = {place[1] for place in document.spoiled if len(place) > 1 and place[0] == "kernels"}
    spoiled |= {item.path[1] for item in bare}
    if any(place[:1] != ("kernels",) for place in document.spoiled):
        suite, indices = None, ()
    if suite is not None and spoiled & set(indices):
        suite, indices = _only(suite, indices, [index for index in indices if index not in spoiled])
    return Examined(document, path, suite, indices, tuple(found))


def to_diagnostics(problems: Iterable[Problem], document: Document) -> list[Diagnostic]:
    """Give each problem its place: file, line and column of the key, the value or a part of it."""
    result = []
    for item in problems:
        place = document.place(item.path, item.on_key, item.offset, item.length)
        severity = cast(Severity, item.severity)
        diagnostic = Diagnostic(
            place.source.name,
            place.span,
            item.code,
            item.message,
            item.hint,
            item.notes,
            severity,
            place.source,
        )
        result.append(diagnostic)
    return result


def _wrong_kind(value: Any) -> Problem | None:
    """Return the one problem of a document that is no suite of this format, whatever else is wrong in it."""
    if not isinstance(value, dict):
        message = f"a suite is a mapping, found {described(value)}"
        return Problem(NOT_A_SUITE, (), message, "start with: kmrun: 1")
    if "kmrun" not in value:
        near = next((key for key in value if meant(key, ["kmrun"])), None)
        if near is not None:
            return Problem("K301", (near,), f"unknown key '{near}'", "did you mean 'kmrun'?", on_key=True)
        message = "no suite: the key 'kmrun' is missing"
        return Problem("K302", (), message, "a suite starts with the version of its format: kmrun: 1")
    version = value["kmrun"]
    if version is None:
        return None
    if type(version) is not int:
        message = f"the version of the format is a whole number, found {described(version)}"
        return Problem(VERSION, ("kmrun",), message, f"write kmrun: {FORMAT}")
    if version != FORMAT:
        newer = "it needs a newer kmrun" if version > FORMAT else f"write kmrun: {FORMAT}"
        return Problem(VERSION, ("kmrun",), f"this kmrun reads suite format {FORMAT}, not {version}", newer)
    return None


def _resembles_a_suite(value: Any) -> bool:
    """Say whether a document that is no suite was meant as one: only then its other mistakes matter."""
    return isinstance(value, dict) and not Suite.model_fields.keys().isdisjoint(value)


def _validated(document: Document, lost: set[int]) -> tuple[Suite | None, tuple[int, ...], list[Problem]]:
    """Return the suite of the kernels that are right, their indices, and the problems of the others."""
    value = document.value
    count = len(value["kernels"]) if isinstance(value.get("kernels"), list) else 0
    left = [index for index in range(count) if index not in lost]
    if lost and not left:
        return None, (), []
    picked, numbers = _picked(value, left) if lost else (value, left)
    try:
        suite = Suite.model_validate(picked)
    except ValidationError as error:
        found = [renumbered(item, numbers) for item in schema_errors.problems(error, Suite, picked)]
        if any(item.path[:1] != ("kernels",) or len(item.path) < 2 for item in found):
            return None, (), found
        wrong = {item.path[1] for item in found}
        left = [index for index in left if index not in wrong]
        if not left:
            return None, (), found
        suite = Suite.model_validate(_picked(value, left)[0])
    else:
        found = []
    return suite, tuple(left), found


def _picked(value: dict[str, Any], indices: list[int]) -> tuple[dict[str, Any], list[int]]:
    return {**value, "kernels": [value["kernels"][index] for index in indices]}, indices


def renumbered(item: Problem, numbers: list[int] | tuple[int, ...]) -> Problem:
    """Return the problem with its kernel's index in a part of the suite turned into the one in the file."""
    if len(item.path) < 2 or item.path[0] != "kernels" or not isinstance(item.path[1], int):
        return item
    path: Path = ("kernels", numbers[item.path[1]], *item.path[2:])
    return Problem(
        item.code,
        path,
        item.message,
        item.hint,
        item.notes,
        item.on_key,
        item.offset,
        item.length,
        item.severity,
    )


def _only(suite: Suite, indices: tuple[int, ...], wanted: list[int]) -> tuple[Suite | None, tuple[int, ...]]:
    if len(wanted) == len(indices):
        return suite, indices
    if not wanted:
        return None, ()
    kernels = tuple(kernel for index, kernel in zip(indices, suite.kernels, strict=True) if index in wanted)
    return suite.model_copy(update={"kernels": kernels}), tuple(wanted)


def is_echo(item: Problem, document: Document) -> bool:
    """Return whether a problem stands where the loader reported a mistake, or judges a value that holds one."""
    within = any(item.path[: len(place)] == place for place in document.spoiled)
    around = bool(item.path) and any(place[: len(item.path)] == item.path for place in document.spoiled)
    return within or (around and not item.on_key)
