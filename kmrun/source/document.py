"""A document that was read: values for the models, and for every key and value the place where it stands."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

from kmrun.core.case import Path

LINE_END = re.compile("\r\n|[\n\r\x85\u2028\u2029]")
"""What the YAML parser counts as the end of a line."""


class Span(NamedTuple):
    """From `line`:`col` to `end_line`:`end_col`, counted from 1 in characters, the end not included."""

    line: int
    col: int
    end_line: int
    end_col: int


@dataclass(frozen=True)
class Source:
    """The text of one file, under the name that the user knows it by."""

    name: str
    text: str

    @cached_property
    def lines(self) -> list[str]:
        """The lines, without their ends."""
        return LINE_END.split(self.text)

    def line(self, number: int) -> str:
        """Return the line of that number, counted from 1; empty past the end."""
        return self.lines[number - 1] if 0 < number <= len(self.lines) else ""

    def slice(self, span: Span) -> str:
        """Return the text of a span."""
        if span.line == span.end_line:
            return self.line(span.line)[span.col - 1 : span.end_col - 1]
        middle = [self.line(number) for number in range(span.line + 1, span.end_line)]
        first, last = self.line(span.line)[span.col - 1 :], self.line(span.end_line)[: span.end_col - 1]
        return "\n".join([first, *middle, last])


class Node:
    """A value of the document, its place and what lies inside it.

    `children` is None for a scalar, a list of nodes for a sequence, a dict of (key node, value node) for a
    mapping. `size` counts the nodes below and including this one, aliases expanded; `height` the levels. An
    alias shares its anchor's node.
    """

    __slots__ = ("children", "flow", "height", "size", "source", "span", "style", "value")

    def __init__(self, source: Source, span: Span, value: Any, style: str = "", flow: bool = False) -> None:
        self.source = source
        self.span = span
        self.value = value
        self.style = style
        self.flow = flow
        self.size = 1
        self.height = 1
        self.children: list[Node] | dict[str, tuple[Node, Node]] | None = None

    def child(self, key: str | int) -> "Node | None":
        """Return the value node at a key or an index; None where there is none."""
        if isinstance(self.children, dict):
            entry = self.children.get(key) if isinstance(key, str) else None
            return entry[1] if entry else None
        if isinstance(self.children, list) and isinstance(key, int) and key < len(self.children):
            return self.children[key]
        return None

    def key(self, key: str | int) -> "Node | None":
        """Return the key node of a mapping's entry."""
        if isinstance(self.children, dict) and isinstance(key, str):
            entry = self.children.get(key)
            return entry[0] if entry else None
        return None


@dataclass(frozen=True)
class Place:
    """A span in a file."""

    source: Source
    span: Span


@dataclass(frozen=True)
class Document:
    """A file as read. `value` is plain dicts, lists and scalars; `root` the same with places."""

    source: Source
    root: Node
    digest: str = ""
    spoiled: frozenset[Path] = field(default_factory=frozenset)
    """Paths at which the loader already reported a mistake."""

    @property
    def value(self) -> Any:
        """The plain value of the whole document."""
        return self.root.value

    def nodes(self, path: Path) -> Iterator[Node]:
        """Yield the nodes from the root down the path, as far as the document goes."""
        node: Node | None = self.root
        for step in path:
            if node is None:
                return
            yield node
            node = node.child(step)
        if node is not None:
            yield node

    def place(
        self, path: Path, on_key: bool = False, offset: int | None = None, length: int | None = None
    ) -> Place:
        """Return where a path stands: its value, or its key; of a string's part the place inside the string.

        Where the path leads nowhere (a missing key), the place is that of the nearest thing around it.
        A block mapping is shown by its first key, since its text may be long.
        """
        nodes = list(self.nodes(path))
        node = nodes[-1]
        if on_key and len(nodes) == len(path) + 1 and path:
            key = nodes[-2].key(path[-1])
            if key is not None:
                return Place(key.source, key.span)
        if offset is not None and isinstance(node.value, str):
            inner = _inside(node, offset, 1 if length is None else length)
            return Place(node.source, inner or node.span)
        return Place(node.source, _shown(node))


def _shown(node: Node) -> Span:
    if not node.flow and node.children:
        if isinstance(node.children, dict):
            first = min((key for key, _ in node.children.values()), key=lambda item: item.span)
            return first.span if first.source is node.source else node.span
        return _shown(node.children[0])
    return node.span


def _inside(node: Node, offset: int, length: int) -> Span | None:
    """Return the place of a part of a scalar's value, None where escapes hide it."""
    positions = _positions(node)
    if positions is None or offset >= len(positions):
        return None
    first = positions[offset]
    last = positions[min(offset + max(length, 1), len(positions)) - 1]
    if first is None or last is None:
        return None
    return Span(first[0], first[1], last[0], last[1] + 1)


def _positions(node: Node) -> list[tuple[int, int] | None] | None:
    """Return (line, column) of every character of a scalar's value, by walking value and source side by side.

    Folding changes white space only, so all other characters must meet in order; a double-quoted scalar with
    escapes is given up.
    """
    raw = node.source.slice(node.span)
    if node.style in ("'", '"'):
        if node.style == '"' and "\\" in raw:
            return None
        raw = raw[1:-1]
    line, col = node.span.line, node.span.col + (1 if node.style in ("'", '"') else 0)
    at: list[tuple[int, int] | None] = []
    text: str = node.value
    index = 0
    skipping = node.style in ("|", ">")
    for position, char in enumerate(raw):
        if skipping:
            skipping = char != "\n"
        elif index < len(text) and not char.isspace():
            while index < len(text) and text[index].isspace():
                at.append((line, max(col - 1, 1)))
                index += 1
            escaped_quote = node.style == "'" and char == "'" and raw[position - 1 : position] == "'"
            if (
                index < len(text)
                and text[index] == char
                and not (escaped_quote and _odd_quotes(raw, position))
            ):
                at.append((line, col))
                index += 1
        line, col = (line + 1, 1) if char == "\n" else (line, col + 1)
    return at


def _odd_quotes(raw: str, position: int) -> bool:
    """Say whether the quote at `position` is the second of a pair that stands for one."""
    run = 0
    while position - 1 - run >= 0 and raw[position - 1 - run] == "'":
        run += 1
    return run % 2 == 1
