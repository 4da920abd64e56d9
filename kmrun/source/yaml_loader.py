"""Strict YAML: PyYAML's C parser gives events, everything else is ours: core schema, marks, merges, budgets.

Nothing that reads two ways is accepted, and nothing that grows: sizes are counted as aliases and merges
expand, so a bomb ends as soon as its sum passes the limit.
"""

import gc
import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from yaml.reader import ReaderError

from kmrun.source import yaml_syntax
from kmrun.source.diagnostics import Diagnostic, InvalidSuite
from kmrun.source.document import Document, Source, Span
from kmrun.source.yaml_builder import Builder
from kmrun.source.yaml_ledger import LIMITS, Ledger, Limits

_Parser: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_FIRST = Span(1, 1, 1, 1)


@dataclass(frozen=True)
class Loaded:
    """A document and the mistakes found while reading it (the document stands in for what was wrong)."""

    document: Document
    diagnostics: tuple[Diagnostic, ...]


def load_file(path: Path, name: str | None = None, limits: Limits = LIMITS) -> Loaded:
    """Read a YAML file.

    Raises:
        InvalidSuite: the file is missing, unreadable, too large, no UTF-8 or no YAML at all.
    """
    shown = name or str(path)
    try:
        if path.exists() and not path.is_file():
            raise _refused(shown, "K001", "not a regular file")
        with path.open("rb") as stream:
            content = stream.read(limits.file_bytes + 1)
    except FileNotFoundError:
        raise _refused(shown, "K001", "no such file") from None
    except OSError as error:
        raise _refused(shown, "K001", f"cannot be read: {error.strerror or error}") from None
    return load_bytes(content, shown, limits)


def load_bytes(content: bytes, name: str, limits: Limits = LIMITS) -> Loaded:
    """Read YAML from bytes. Raises InvalidSuite as `load_file` does."""
    if len(content) > limits.file_bytes:
        raise _refused(name, "K107", f"larger than {limits.file_bytes // 1024} KiB", "split the file")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        col = error.start - content.rfind(b"\n", 0, error.start)
        raise InvalidSuite(
            [Diagnostic(name, Span(line, col, line, col + 1), "K110", "not UTF-8", "save the file as UTF-8")]
        ) from None
    source = Source(name, text)
    ledger = Ledger(source, limits)
    builder = Builder(ledger)
    with _no_garbage_collection():
        try:
            builder.read(_Parser(text))
        except ReaderError as error:
            raise InvalidSuite([_unreadable(error, source)]) from None
        except yaml.MarkedYAMLError as error:
            raise InvalidSuite([*ledger.found, yaml_syntax.explain(error, source)]) from None
    root = builder.root
    if root is None or (root.value is None and not ledger.found):
        raise _refused(name, "K111", "the file is empty", "`kmrun init file.py:fn` writes a suite")
    digest = hashlib.sha256(content).hexdigest()
    return Loaded(Document(source, root, digest, frozenset(ledger.spoiled)), tuple(ledger.found))


def _unreadable(error: ReaderError, source: Source) -> Diagnostic:
    before = source.text[: error.position] if isinstance(error.position, int) else ""
    line, col = before.count("\n") + 1, len(before) - before.rfind("\n")
    reason = f"a character that YAML does not allow ({error.reason})"
    return Diagnostic(source.name, Span(line, col, line, col + 1), "K110", reason, source=source)


def _refused(name: str, code: str, message: str, hint: str = "") -> InvalidSuite:
    return InvalidSuite([Diagnostic(name, _FIRST, code, message, hint)])


@contextmanager
def _no_garbage_collection() -> Iterator[None]:
    """Many small objects and no cycle among them: the collector would only walk them again and again."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
