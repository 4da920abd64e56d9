"""Floors where they stand in a suite's text: which number each is, and the text with some of them raised."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path as FilePath
from typing import Any

from kmrun.core.case import Path
from kmrun.core.floors import Floor, Raised, Shown
from kmrun.source.diagnostics import InvalidSuite
from kmrun.source.document import Document, Node, Span
from kmrun.source.number_edit import number_text, replaced
from kmrun.source.suite_plan import read_and_plan
from kmrun.source.yaml_loader import load_bytes


def numbers(document: Document, seen: Iterable[Shown]) -> tuple[list[list[Shown]], list[Path]]:
    """Group what was shown by the number of the text that it is about.

    A number behind an anchor is one, however many clauses use it. Returns the groups, and the paths of numbers
    that stand in another file (`extends`), which are left alone.
    """
    groups: dict[Span, list[Shown]] = {}
    elsewhere: dict[Path, None] = {}
    for one in seen:
        node = _number(document, one.floor)
        if node.source is document.source:
            groups.setdefault(node.span, []).append(one)
        else:
            elsewhere.setdefault(one.floor.path)
    return list(groups.values()), list(elsewhere)


def line_of(document: Document, floor: Floor) -> int:
    """Return the line of a number."""
    return _number(document, floor).span.line


@dataclass(frozen=True, slots=True)
class Edited:
    """A suite's text with floors raised; `left` are those that stay, each with the reason."""

    text: str
    raised: tuple[Raised, ...]
    left: Mapping[Floor, str]


def with_raised(path: FilePath, document: Document, found: Sequence[Raised]) -> Edited:
    """Return the suite's text with the floors raised; every other character is as it was.

    A floor without which the suite would no longer be valid stays: raised to the bound of a clause beside it, it
    would say the same thing twice.

    Raises:
        RuntimeError: the text would read as anything else than the same suite with those numbers.
    """
    content = path.read_bytes()
    text = _text_with(content, document, found)
    if not found or _mistake(path, text) is None:
        return Edited(text, tuple(found), {})
    kept: list[Raised] = []
    left: dict[Floor, str] = {}
    for one in found:
        mistake = _mistake(path, _text_with(content, document, [*kept, one]))
        if mistake is None:
            kept.append(one)
        else:
            left[one.floor] = f"at {one.new:g} the suite would be wrong: {mistake}"
    return Edited(_text_with(content, document, kept), tuple(kept), left)


def _mistake(path: FilePath, text: str) -> str | None:
    """Return what would be wrong with the suite if this were its text."""
    try:
        read_and_plan(path, path.name, text.encode())
    except InvalidSuite as error:
        return next(item.message for item in error.diagnostics if item.severity == "error")
    return None


def _text_with(content: bytes, document: Document, found: Iterable[Raised]) -> str:
    text = content.decode("utf-8")
    mark = "\ufeff" if text.startswith("\ufeff") else ""
    news = {_number(document, one.floor).span: one.new for one in found}
    edits = {_scalar(document, span): number_text(new) for span, new in news.items()}
    changed = mark + replaced(text.removeprefix("\ufeff"), edits)
    # As they stand in the file, before `extends`: what is read back is the text and nothing else.
    before, after = (
        load_bytes(each, document.source.name).document.root for each in (content, changed.encode())
    )
    if _values(before, news) != _values(after, {}):
        raise RuntimeError("the edit would change more than the floors, or not these")
    return changed


def _scalar(document: Document, span: Span) -> Span:
    """Return the span of the number alone: an anchor before it, or a tag, is part of the node."""
    text = document.source.slice(span)
    return span._replace(col=span.col + len(text) - len(text.split()[-1]))


def _values(node: Node, news: Mapping[Span, float]) -> Any:
    """Return the plain values of a tree, those at the spans replaced."""
    if isinstance(node.children, dict):
        return {key: _values(value, news) for key, (_, value) in node.children.items()}
    if isinstance(node.children, list):
        return [_values(value, news) for value in node.children]
    value = news.get(node.span, node.value)
    return type(value), value


def _number(document: Document, floor: Floor) -> Node:
    """Return the node of a number; what holds on any device is a plain number, or that of a map's `*`."""
    node = _node(document, floor.path)
    return node.children["*"][1] if isinstance(node.children, dict) else node


def _node(document: Document, path: Path) -> Node:
    nodes = list(document.nodes(path))
    if len(nodes) != len(path) + 1:
        raise KeyError(path)
    return nodes[-1]
