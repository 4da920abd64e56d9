"""Diagnostics: a mistake with its place, a stable code, the reason and the fix; text, JSON or annotations."""

import json
import os
import sys
import textwrap
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal

from kmrun.core.printable import printable
from kmrun.errors import InvalidInput
from kmrun.source.document import Source, Span

Severity = Literal["error", "warning"]
FORMATS = ("text", "json", "github")
_WIDTH = 100
_COLOURS = {"error": "\x1b[1;31m", "warning": "\x1b[1;33m", "bold": "\x1b[1m", "frame": "\x1b[1;34m"}
_RESET = "\x1b[0m"


@dataclass(frozen=True)
class Diagnostic:
    """One mistake. `file` is the name that the user knows; `source` gives the excerpt where there is one."""

    file: str
    span: Span
    code: str
    message: str
    hint: str = ""
    notes: tuple[str, ...] = ()
    severity: Severity = "error"
    source: Source | None = field(default=None, repr=False, compare=False)

    @property
    def place(self) -> str:
        """The file, with line and column where the mistake stands in its text."""
        where = f":{self.span.line}:{self.span.col}"
        return self.file + (where if self.source is not None or self.span.line > 1 else "")

    @property
    def sort_key(self) -> tuple[str, Span, str]:
        """Order of the report: by file, then by place."""
        return (self.file, self.span, self.code)

    def as_record(self) -> dict[str, Any]:
        """Return the object that `--format json` prints."""
        span = self.span
        return {
            "file": self.file,
            "line": span.line,
            "col": span.col,
            "end_line": span.end_line,
            "end_col": span.end_col,
            "code": self.code,
            "severity": self.severity,
            "message": self.message,
            "hint": self.hint,
        }


class InvalidSuite(InvalidInput):
    """A file is wrong in places that are known: `diagnostics`, in the order of the report."""

    def __init__(self, diagnostics: Sequence[Diagnostic]) -> None:
        self.diagnostics = tuple(sorted(diagnostics, key=lambda item: item.sort_key))
        first = self.diagnostics[0]
        super().__init__(f"{first.place}: {first.message}", first.hint)


def render(diagnostics: Iterable[Diagnostic], form: str, colour: bool = False) -> str:
    """Return the diagnostics in one of FORMATS; text has a blank line after each, and no summary."""
    items = list(diagnostics)
    if form == "json":
        return json.dumps([item.as_record() for item in items], indent=2, ensure_ascii=False) + "\n"
    if form == "github":
        return "".join(as_github(item) + "\n" for item in items)
    return "".join(as_text(item, colour) + "\n\n" for item in items)


def as_github(item: Diagnostic) -> str:
    """Return a workflow command that GitHub shows beside the line."""
    span = item.span
    text = item.message if not item.hint else f"{item.message} ({item.hint})"
    rest = {"col": span.col, "endLine": span.end_line, "endColumn": span.end_col}
    return workflow_command(item.severity, text, item.code, item.file, span.line, rest)


def workflow_command(
    level: Severity,
    text: str,
    title: str,
    file: str = "",
    line: int | None = None,
    rest: Mapping[str, int] = MappingProxyType({}),
) -> str:
    """Return an annotation for GitHub; without a file it concerns the whole job."""
    where: dict[str, object] = {"file": file, "line": line or 1, **rest} if file else {}
    properties = ",".join(
        f"{key}={_property(str(value))}" for key, value in {**where, "title": title}.items()
    )
    return f"::{level} {properties}::{_data(text)}"


def as_text(item: Diagnostic, colour: bool = False) -> str:
    """Return place, code and reason, the source line with a caret, then hint and notes."""
    paint = _painter(colour)
    span = item.span
    label = paint(f"{item.severity}[{item.code}]", item.severity)
    lines = [f"{printable(item.place)}: {label}: {printable(item.message)}"]
    if item.source is not None and item.source.line(span.line).strip():
        lines += _excerpt(item, item.source.line(span.line), paint)
    elif item.hint:
        lines += _note(item.hint)
    for note in item.notes:
        lines += _note(note)
    return "\n".join(lines)


def _note(text: str) -> list[str]:
    return textwrap.wrap(
        printable(text), _WIDTH, initial_indent="   = ", subsequent_indent="     ", break_long_words=False
    )


def _excerpt(item: Diagnostic, line: str, paint: Any) -> list[str]:
    span = item.span
    start = min(span.col - 1, len(line))
    end = span.end_col - 1 if span.end_line == span.line else len(line.rstrip())
    end = max(start + 1, min(end, len(line), start + _WIDTH))
    left, right = _window(start, end, len(line))
    before, marked, after = (printable(part) for part in (line[left:start], line[start:end], line[end:right]))
    cut_left, cut_right = "..." if left else "", "..." if right < len(line) else ""
    number = str(span.line)
    gutter = " " * len(number)
    caret = "^" * max(1, _columns(marked))
    pad = " " * (_columns(before) + len(cut_left))
    aside = bool(item.hint) and len(pad) + len(caret) + len(item.hint) < _WIDTH
    hint = f" {printable(item.hint)}" if aside else ""
    bar = paint("|", "frame")
    return [
        f"{gutter} {bar}",
        f"{paint(number, 'frame')} {bar} {cut_left}{before}{marked}{after}{cut_right}",
        f"{gutter} {bar} {pad}{paint(caret, item.severity)}{hint}",
        *(_note(item.hint) if item.hint and not aside else ()),
    ]


def _window(start: int, end: int, length: int) -> tuple[int, int]:
    """Return which part of a long line to show, the marked part in it."""
    if length <= _WIDTH:
        return 0, length
    left = max(0, start - _WIDTH // 2)
    return left, min(length, max(left + _WIDTH, end))


def _columns(text: str) -> int:
    """Return how many terminal columns the text takes."""
    return sum(
        0 if unicodedata.combining(char) else 2 if unicodedata.east_asian_width(char) in "WF" else 1
        for char in text
    )


def _painter(colour: bool) -> Any:
    return lambda text, name: f"{_COLOURS[name]}{text}{_RESET}" if colour else text


def _data(text: str) -> str:
    encoded = text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
    return printable(encoded)


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


def wants_colour() -> bool:
    """Say whether standard output is a terminal that wants colour."""
    return sys.stdout.isatty() and "NO_COLOR" not in os.environ and os.environ.get("TERM") != "dumb"
