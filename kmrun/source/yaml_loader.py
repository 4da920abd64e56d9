"""Strict YAML: PyYAML's C parser gives events, everything else is ours: core schema, marks, merges, budgets.

Nothing that reads two ways is accepted, and nothing that grows: sizes are counted as aliases and merges
expand, so a bomb ends as soon as its sum passes the limit.
"""

import gc
import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path as FilePath
from typing import Any

import yaml
from yaml.reader import ReaderError

from kmrun.core.case import Path
from kmrun.source import yaml_flow, yaml_scalars, yaml_syntax
from kmrun.source.diagnostics import Diagnostic, InvalidSuite
from kmrun.source.document import Document, Node, Source, Span

_Parser: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_CORE = "tag:yaml.org,2002:"
_FIRST = Span(1, 1, 1, 1)


@dataclass(frozen=True, slots=True)
class Limits:
    """What a document may cost."""

    file_bytes: int = 2 * 1024 * 1024
    nodes: int = 500_000
    depth: int = 60
    entries: int = 20_000
    """Of one mapping or list as written."""
    mistakes: int = 100
    """After so many the rest is not looked for."""


LIMITS = Limits()


@dataclass(frozen=True)
class Loaded:
    """A document and the mistakes found while reading it (the document stands in for what was wrong)."""

    document: Document
    diagnostics: tuple[Diagnostic, ...]


def load_file(path: FilePath, name: str | None = None, limits: Limits = LIMITS) -> Loaded:
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
        raise _refused(name, "K107", f"larger than {limits.file_bytes // 1024} KiB", "split the suite")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        col = error.start - content.rfind(b"\n", 0, error.start)
        raise InvalidSuite(
            [Diagnostic(name, Span(line, col, line, col + 1), "K110", "not UTF-8", "save the file as UTF-8")]
        ) from None
    source = Source(name, text)
    with _no_garbage_collection():
        return _Builder(source, limits).build(hashlib.sha256(content).hexdigest())


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


class _Frame:
    """An open container. `entries` holds a mapping's pairs until it closes, `key` the one that waits."""

    __slots__ = ("anchor", "entries", "items", "key", "node", "step")

    def __init__(self, node: Node, anchor: str | None, step: str | int, is_mapping: bool) -> None:
        self.node = node
        self.anchor = anchor
        self.step = step
        self.entries: list[tuple[Node, Node]] | None = [] if is_mapping else None
        self.items: list[Node] = []
        self.key: Node | None = None


class _Builder:
    """Builds one document from parser events, with its own stack."""

    def __init__(self, source: Source, limits: Limits) -> None:
        self.source = source
        self.limits = limits
        self.found: list[Diagnostic] = []
        self.spoiled: set[Path] = set()
        self.anchors: dict[str, Node] = {}
        self.open: set[int] = set()
        self.stack: list[_Frame] = []
        self.root: Node | None = None
        self.count = 0

    def build(self, digest: str) -> Loaded:
        try:
            self._read(_Parser(self.source.text))
        except ReaderError as error:
            raise InvalidSuite([self._unreadable(error)]) from None
        except yaml.MarkedYAMLError as error:
            raise InvalidSuite([*self.found, yaml_syntax.explain(error, self.source)]) from None
        if self.root is None or (self.root.value is None and not self.found):
            raise _refused(
                self.source.name, "K111", "the file is empty", "`kmrun init file.py:fn` writes a suite"
            )
        document = Document(self.source, self.root, digest, frozenset(self.spoiled))
        return Loaded(document, tuple(self.found))

    def _read(self, parser: Any) -> None:
        documents = 0
        while True:
            event = parser.get_event()
            kind = type(event)
            if kind is yaml.ScalarEvent:
                self._add(self._scalar(event))
            elif kind is yaml.MappingStartEvent or kind is yaml.SequenceStartEvent:
                self._start(event, kind is yaml.MappingStartEvent)
            elif kind is yaml.MappingEndEvent or kind is yaml.SequenceEndEvent:
                self._end(event)
            elif kind is yaml.AliasEvent:
                self._alias(event)
            elif kind is yaml.DocumentStartEvent:
                documents += 1
                if documents > 1:
                    self._stop(_span(event), "K112", "a second document in one file", "one file is one suite")
            elif kind is yaml.StreamEndEvent:
                return

    # -- events ---------------------------------------------------------------------------------------------

    def _scalar(self, event: Any) -> Node:
        node = Node(self.source, _span(event), event.value, event.style or "")
        self._spend(node)
        if event.anchor is not None:
            self.anchors[event.anchor] = node
        if self._expects_key():
            return node
        if event.tag is not None and event.tag != "!":
            node.value = self._tagged(event, node)
        elif not node.style:
            node.value = self._plain(event.value, node)
        return node

    def _start(self, event: Any, is_mapping: bool) -> None:
        node = Node(self.source, _span(event), {} if is_mapping else [], flow=bool(event.flow_style))
        self._spend(node)
        if len(self.stack) >= self.limits.depth:
            self._stop(node.span, "K107", f"nested deeper than {self.limits.depth} levels")
        expected = _CORE + ("map" if is_mapping else "seq")
        if event.tag is not None and event.tag not in ("!", expected):
            self._mistake(
                node.span, "K109", f"the tag {_tag(event.tag)} means nothing here", "leave the tag out"
            )
        if event.anchor is not None:
            self.anchors[event.anchor] = node
        self.open.add(id(node))
        self.stack.append(_Frame(node, event.anchor, self._step(), is_mapping))

    def _end(self, event: Any) -> None:
        frame = self.stack.pop()
        node = frame.node
        node.span = Span(node.span.line, node.span.col, event.end_mark.line + 1, event.end_mark.column + 1)
        self.open.discard(id(node))
        if frame.entries is None:
            items = yaml_flow.join_items(frame.items, self._split) if node.flow else frame.items
            node.children = items
            node.value = [item.value for item in items]
            inner = items
        else:
            entries = yaml_flow.join_entries(frame.entries, self._split) if node.flow else frame.entries
            node.children = self._mapping(entries)
            node.value = {key: item.value for key, (_, item) in node.children.items()}
            inner = [item for _, item in node.children.values()]
        node.size = 1 + sum(item.size for item in inner)
        node.height = 1 + max((item.height for item in inner), default=0)
        self._add(node)

    def _alias(self, event: Any) -> None:
        span = _span(event)
        node = self.anchors.get(event.anchor)
        if node is None:
            names = ", ".join(sorted(self.anchors)) or "none"
            self._mistake(
                span, "K108", f"no anchor '&{event.anchor}' above this alias", f"anchors here: {names}"
            )
        elif id(node) in self.open:
            self._mistake(span, "K108", f"'*{event.anchor}' stands inside its own anchor: endless", "")
            node = None
        else:
            if len(self.stack) + node.height > self.limits.depth:
                self._stop(
                    span, "K107", f"nested deeper than {self.limits.depth} levels once aliases are expanded"
                )
            self.count += node.size
            self._check_count(span)
        self._add(node if node is not None else Node(self.source, span, None))

    # -- putting together -----------------------------------------------------------------------------------

    def _expects_key(self) -> bool:
        return bool(self.stack) and self.stack[-1].entries is not None and self.stack[-1].key is None

    def _step(self) -> str | int:
        if not self.stack:
            return 0
        frame = self.stack[-1]
        if frame.entries is None:
            return len(frame.items)
        return str(frame.key.value) if frame.key is not None else ""

    def _path(self) -> Path:
        return (*(frame.step for frame in self.stack[1:]), *([self._step()] if self.stack else []))

    def _add(self, node: Node) -> None:
        if not self.stack:
            self.root = node
            return
        frame = self.stack[-1]
        if len(frame.items if frame.entries is None else frame.entries) >= self.limits.entries:
            self._stop(frame.node.span, "K107", f"more than {self.limits.entries:,} entries in one place")
        if frame.entries is None:
            frame.items.append(node)
        elif frame.key is None:
            frame.key = self._as_key(node)
        else:
            frame.entries.append((frame.key, node))
            frame.key = None

    def _as_key(self, node: Node) -> Node:
        """Return the key node; one that is no plain text is reported and stands under an impossible name."""
        if node.children is None and isinstance(node.value, str) and node.value:
            return node
        if isinstance(node.value, bool | int | float) and node.children is None:
            return Node(node.source, node.span, node.source.slice(node.span))
        if any(node.span.line <= one.span.line <= node.span.end_line for one in self.found):
            return Node(node.source, node.span, f"\0{len(self.found)}")
        hint = 'a template in braces must be quoted: "{{ ... }}"' if node.flow else "keys are plain words"
        self._mistake(node.span, "K113", "a key must be a word", hint)
        self.spoiled.add(self._path()[:-1])
        return Node(node.source, node.span, f"\0{len(self.found)}")

    def _mapping(self, entries: list[tuple[Node, Node]]) -> dict[str, tuple[Node, Node]]:
        result: dict[str, tuple[Node, Node]] = {}
        written: set[str] = set()
        merged = False
        for key, node in entries:
            name: str = key.value
            if name == "<<" and not key.style:
                if merged:
                    self._mistake(key.span, "K114", "a second '<<' in one mapping", "write <<: [*a, *b]")
                merged = True
                self._merge(node, result)
            elif name in written:
                first = result[name][0].span.line
                self._mistake(
                    key.span, "K102", f"the key '{name}' stands twice", f"first on line {first}", (name,)
                )
            elif not name.startswith("\0"):
                written.add(name)
                result[name] = (key, node)
        return result

    def _merge(self, node: Node, result: dict[str, tuple[Node, Node]]) -> None:
        """Expand a merge key in place: what is there already wins, and each entry looked at is paid for."""
        sources = node.children if isinstance(node.children, list) else [node]
        for source in sources:
            if not isinstance(source.children, dict):
                self._mistake(
                    node.span, "K114", "'<<' takes a mapping or a list of mappings", "write <<: *anchor"
                )
                return
            for name, entry in source.children.items():
                self.count += 1
                if name not in result:
                    result[name] = entry
                    self.count += entry[1].size
                self._check_count(node.span)

    # -- scalars --------------------------------------------------------------------------------------------

    def _plain(self, text: str, node: Node) -> Any:
        value = yaml_scalars.resolve(text)
        if not isinstance(value, yaml_scalars.Refusal):
            return value
        self._mistake(node.span, value.code, value.message, value.hint)
        return value.stand_in

    def _tagged(self, event: Any, node: Node) -> Any:
        if event.tag == _CORE + "str":
            return event.value
        value = yaml_scalars.resolve(event.value)
        kinds: dict[str, type | tuple[type, ...]] = {"int": int, "float": (int, float), "bool": bool}
        kind = kinds.get(event.tag.removeprefix(_CORE)) if event.tag.startswith(_CORE) else None
        if kind is not None and isinstance(value, kind) and (kind is bool or not isinstance(value, bool)):
            return float(value) if event.tag.endswith("float") else value  # type: ignore[arg-type]
        self._mistake(node.span, "K109", f"the tag {_tag(event.tag)} means nothing here", "leave the tag out")
        return event.value

    # -- budgets and mistakes -------------------------------------------------------------------------------

    def _spend(self, node: Node) -> None:
        self.count += 1
        self._check_count(node.span)

    def _check_count(self, span: Span) -> None:
        if self.count > self.limits.nodes:
            limit = f"{self.limits.nodes:,}"
            self._stop(span, "K107", f"more than {limit} values once aliases and merges are expanded")

    def _split(self, span: Span, text: str, step: str | int) -> None:
        quoted = f'"{text}"' if '"' not in text else f"'{text}'"
        message = "a comma splits this text, since it stands unquoted between brackets"
        self._mistake(span, "K104", message, f"quote it: {quoted}", (step,))

    def _mistake(self, span: Span, code: str, message: str, hint: str = "", below: Path = ()) -> None:
        self.found.append(Diagnostic(self.source.name, span, code, message, hint, source=self.source))
        self.spoiled.add((*self._path(), *below))
        if len(self.found) >= self.limits.mistakes:
            raise InvalidSuite(self.found)

    def _stop(self, span: Span, code: str, message: str, hint: str = "") -> None:
        raise InvalidSuite(
            [*self.found, Diagnostic(self.source.name, span, code, message, hint, source=self.source)]
        )

    def _unreadable(self, error: ReaderError) -> Diagnostic:
        before = self.source.text[: error.position] if isinstance(error.position, int) else ""
        line, col = before.count("\n") + 1, len(before) - before.rfind("\n")
        reason = f"a character that YAML does not allow ({error.reason})"
        return Diagnostic(
            self.source.name, Span(line, col, line, col + 1), "K110", reason, source=self.source
        )


def _span(event: Any) -> Span:
    start, end = event.start_mark, event.end_mark
    return Span(start.line + 1, start.column + 1, end.line + 1, end.column + 1)


def _tag(tag: str) -> str:
    return "!!" + tag.removeprefix(_CORE) if tag.startswith(_CORE) else tag
