"""Where the YAML parser gives up: the likely slip, at the place of the slip and not where it was noticed."""

import re
from typing import Any

import yaml

from kmrun.source.diagnostics import Diagnostic
from kmrun.source.document import Source, Span

_Scanner: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_KEY = re.compile(r"^(\s*(?:- +)*)([^\s#'\"\[\]{},&*!|>%@`-][^#]*?)\s*:(\s|$)")


def explain(error: yaml.MarkedYAMLError, source: Source) -> Diagnostic:
    """Return one diagnostic for a scanner or parser error."""
    problem = error.problem or "not YAML"
    if tab := _tab_before(error.problem_mark, source):
        return tab
    at = _mark(error.problem_mark, source) or _mark(error.context_mark, source) or (1, 1)
    opened = _mark(error.context_mark, source) or at
    context = error.context or ""
    line = source.line(at[0])

    if "maximum nesting depth" in problem:
        return _diagnostic(source, at, 1, "nested too deeply to read", code="K107")
    if "cannot start any token" in problem:
        return _bad_start(source, at, line)
    if tab := _tab_indent(source, (at[0], opened[0])):
        return tab
    if "quoted scalar" in context:
        message = (
            "this quote is never closed" if "end of stream" in problem else f"{problem} in a quoted string"
        )
        place = opened if "end of stream" in problem else at
        return _diagnostic(source, place, 1, message, "close it on the same line" if place == opened else "")
    if "expected node content" in problem:
        return _no_item(source, _innermost_open(source, error.problem_mark) or opened, at)
    if "flow" in context and ("did not find expected" in problem):
        return _unclosed(source, opened, at)
    if "scanning an alias" in context or "scanning an anchor" in context:
        line = source.line(opened[0])
        return _quote_it(source, opened, line, f"a plain value cannot start with '{line[opened[1] - 1]}'")
    if "could not find expected ':'" in problem:
        return _missing_colon(source, opened)
    if "mapping values are not allowed" in problem:
        return _stray_colon(source, at)
    if "block sequence entries are not allowed" in problem:
        return _diagnostic(
            source, at, 1, "a list cannot start here", "start it on a line of its own, or write [a, b]"
        )
    if "did not find expected key" in problem or "did not find expected '-'" in problem:
        return _indentation(source, at, opened)
    if "expected <document start>" in problem or "did not find expected <document start>" in problem:
        return _indentation(source, at, opened)
    return _diagnostic(source, at, 1, f"not valid YAML: {problem}" + (f" {context}" if context else ""))


def _mark(mark: yaml.Mark | None, source: Source) -> tuple[int, int] | None:
    if mark is None:
        return None
    line, col = mark.line + 1, mark.column + 1
    while line > 1 and not source.line(line).strip():
        line -= 1
        col = len(source.line(line)) + 1
    return line, max(1, min(col, len(source.line(line)) + 1))


def _diagnostic(
    source: Source, at: tuple[int, int], length: int, message: str, hint: str = "", code: str = "K101"
) -> Diagnostic:
    span = Span(at[0], at[1], at[0], at[1] + length)
    return Diagnostic(source.name, span, code, message, hint, source=source)


def _tab_indent(source: Source, numbers: tuple[int, ...]) -> Diagnostic | None:
    for number in numbers:
        line = source.line(number)
        indent = line[: len(line) - len(line.lstrip())]
        if "\t" in indent:
            hint = "indent with spaces"
            return _diagnostic(
                source, (number, indent.index("\t") + 1), 1, "a tab in the indentation", hint, "K106"
            )
    return None


def _tab_before(mark: yaml.Mark | None, source: Source) -> Diagnostic | None:
    """Return the tab at which the parser stopped, or that only white space parts from there."""
    if mark is None:
        return None
    line = source.line(mark.line + 1)
    before = line[: mark.column + 1]
    if "\t" not in before or before.strip():
        return None
    at = (mark.line + 1, before.index("\t") + 1)
    if line.strip():
        return _diagnostic(source, at, 1, "a tab in the indentation", "indent with spaces", "K106")
    return _diagnostic(source, at, 1, "a tab in a line without text", "leave the line empty", "K106")


def _bad_start(source: Source, at: tuple[int, int], line: str) -> Diagnostic:
    char = line[at[1] - 1 : at[1]]
    if char == "\t":
        return _diagnostic(source, at, 1, "a tab in the indentation", "indent with spaces", "K106")
    return _quote_it(source, at, line, f"a plain value cannot start with '{char}'")


def _quote_it(source: Source, at: tuple[int, int], line: str, message: str) -> Diagnostic:
    found = re.match(r"[^,\]}#]*", line[at[1] - 1 :])
    text = found[0].strip() if found else ""
    return _diagnostic(
        source, at, 1, message, f"quote it: '{text}'" if "'" not in text else f'quote it: "{text}"'
    )


def _innermost_open(source: Source, end: yaml.Mark | None) -> tuple[int, int] | None:
    """Return where the innermost bracket was opened that is not closed before the mark."""
    opened: list[tuple[int, int]] = []
    try:
        for token in yaml.scan(source.text, Loader=_Scanner):
            mark = token.start_mark
            if end is not None and (mark.line, mark.column) >= (end.line, end.column):
                break
            if isinstance(token, yaml.FlowMappingStartToken | yaml.FlowSequenceStartToken):
                opened.append((mark.line + 1, mark.column + 1))
            elif isinstance(token, yaml.FlowMappingEndToken | yaml.FlowSequenceEndToken) and opened:
                opened.pop()
    except yaml.MarkedYAMLError:
        pass  # further on there is another slip; what was opened up to here is known
    return opened[-1] if opened else None


def _no_item(source: Source, opened: tuple[int, int], at: tuple[int, int]) -> Diagnostic:
    found = source.line(at[0])[at[1] - 1 : at[1]]
    if found == ",":
        return _diagnostic(source, at, 1, "a value is missing before this ','", "take one ',' out")
    return _unclosed(source, opened, at)


def _unclosed(source: Source, opened: tuple[int, int], at: tuple[int, int]) -> Diagnostic:
    bracket = source.line(opened[0])[opened[1] - 1 : opened[1]]
    found = source.line(at[0])[at[1] - 1 : at[1]]
    if at[0] == opened[0] and found and found in "[{":
        inside = "a formula or a text with brackets must be quoted here"
        return _diagnostic(source, at, 1, f"'{found}' inside a plain value between brackets", inside)
    closing = {"[": "]", "{": "}"}.get(bracket, "")
    if at[0] == opened[0] and found and found in "]}" and found != closing:
        return _diagnostic(source, at, 1, f"'{found}' closes a '{bracket}'", f"write '{closing}' here")
    if at[0] == opened[0] and at[1] <= len(source.line(at[0]).rstrip()):
        return _diagnostic(source, at, 1, f"expected ',' or '{closing}' here", "a comma is missing")
    return _diagnostic(source, opened, 1, f"this '{bracket}' is never closed", f"add the '{closing}'")


def _missing_colon(source: Source, at: tuple[int, int]) -> Diagnostic:
    line = source.line(at[0])
    start = len(line) - len(line.lstrip()) + 1
    col = max(at[1], start)
    word = line[col - 1 :].strip()
    key = re.match(r"[\w-]+", word)
    if word.startswith("-"):
        return _no_space_after_dash(source, (at[0], col), word)
    if word.startswith(("{", "[")) or re.match(rf"\s{{{col - 1}}}- ", source.line(at[0] - 1)):
        return _diagnostic(source, (at[0], col), 1, "a list item without its '-'", f"write '- {word}'")
    hint = f"write '{key[0]}: ...'" if key else "write 'key: value'"
    return _diagnostic(source, (at[0], col), len(key[0]) if key else 1, "a key without its ':'", hint)


def _no_space_after_dash(source: Source, at: tuple[int, int], word: str) -> Diagnostic:
    return _diagnostic(source, at, 1, "no space after the '-'", f"write '- {word[1:]}'", "K105")


def _stray_colon(source: Source, at: tuple[int, int]) -> Diagnostic:
    line = source.line(at[0])
    if _KEY.match(line[: at[1]]) and re.search(r":\s", line[: at[1] - 1]):
        value = re.search(r":\s+", line[: at[1] - 1])
        col = value.end() + 1 if value else at[1]
        text = line[col - 1 :].strip()
        hint = f"quote the value: '{text}'" if "'" not in text else f'quote the value: "{text}"'
        return _diagnostic(source, (at[0], col), len(text), "a value that contains ': ' must be quoted", hint)
    previous = at[0] - 1
    while previous > 0 and (
        not source.line(previous).strip() or source.line(previous).lstrip().startswith("#")
    ):
        previous -= 1
    above = source.line(previous)
    body = re.sub(r"^\s*(- +)*", "", above)
    if body and not re.search(r":(\s|$)", body):
        return _missing_colon(source, (previous, len(above) - len(body) + 1))
    start = len(line) - len(line.lstrip()) + 1
    length = max(1, at[1] - start)
    hint = "indent it like the line above"
    return _diagnostic(source, (at[0], start), length, "this key is indented too far", hint, "K105")


def _indentation(source: Source, at: tuple[int, int], opened: tuple[int, int]) -> Diagnostic:
    line = source.line(at[0])
    start = len(line) - len(line.lstrip()) + 1
    if at[1] > start:
        previous = line[: at[1] - 1].rstrip()
        if previous.endswith(("'", '"')):
            return _diagnostic(source, at, 1, "text after the closing quote", "quote the whole value")
        return _diagnostic(source, at, 1, "unexpected text here")
    if re.match(r"-\w", line[start - 1 :]):
        return _no_space_after_dash(source, (at[0], start), line[start - 1 :].strip())
    key = re.match(r"- |[\w-]+", line[start - 1 :])
    length = len(key[0].rstrip()) if key else 1
    if line[start - 1 : start + 1] == "- ":
        message, hint = (
            "a list item where a key was expected",
            "indent it like the other items of its list",
        )
    else:
        message, hint = (
            "this line is not aligned with the lines that it belongs to",
            "indent it like its neighbours",
        )
    if start < opened[1] and line[start - 1 : start + 1] != "- ":
        hint = f"the block of line {opened[0]} starts at column {opened[1]}"
    return _diagnostic(source, (at[0], start), length, message, hint, "K105")
