"""Parser events to nodes, with a stack of our own: values by the core schema, each with its place."""

from typing import Any

import yaml

from kmrun.core.case import Path
from kmrun.source import yaml_flow, yaml_mappings, yaml_scalars
from kmrun.source.document import Node, Span
from kmrun.source.yaml_ledger import Ledger

_CORE = "tag:yaml.org,2002:"
_NO_TAG = "leave the tag out, or quote the text"
_KINDS: dict[str, type | tuple[type, ...]] = {"int": int, "float": (int, float), "bool": bool}


class _Frame:
    """An open container. `entries` holds a mapping's pairs until it closes, `key` the one that waits."""

    __slots__ = ("entries", "items", "key", "node", "step")

    def __init__(self, node: Node, step: str | int, is_mapping: bool) -> None:
        self.node = node
        self.step = step
        self.entries: list[tuple[Node, Node]] | None = [] if is_mapping else None
        self.items: list[Node] = []
        self.key: Node | None = None


class Builder:
    """Builds one document; mistakes and costs go to the ledger."""

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger
        self.source = ledger.source
        self.root: Node | None = None
        self._anchors: dict[str, Node] = {}
        self._open: set[int] = set()
        self._stack: list[_Frame] = []

    def read(self, parser: Any) -> None:
        """Take all events of a parser; `root` is then the document, None when there is none.

        Raises:
            InvalidSuite: a limit is passed, or there is a second document.
            yaml.MarkedYAMLError: the text is no YAML.
        """
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
                    message, hint = "a second document in one file", "one file is one suite"
                    self.ledger.stop(_span(event), "K112", message, hint)
            elif kind is yaml.StreamEndEvent:
                return

    def _scalar(self, event: Any) -> Node:
        node = Node(self.source, _span(event), event.value, event.style or "")
        self.ledger.spend(1, node.span)
        if event.anchor is not None:
            self._anchors[event.anchor] = node
        if self._stack and self._stack[-1].entries is not None and self._stack[-1].key is None:
            return node  # a key: always text
        if event.tag is not None and event.tag != "!":
            node.value = self._tagged(event, node)
        elif not node.style:
            value = yaml_scalars.resolve(event.value)
            if isinstance(value, yaml_scalars.Refusal):
                self._mistake(node.span, value.code, value.message, value.hint)
                value = value.stand_in
            node.value = value
        return node

    def _tagged(self, event: Any, node: Node) -> Any:
        name = event.tag.removeprefix(_CORE) if event.tag.startswith(_CORE) else ""
        if name == "str":
            return event.value
        value = yaml_scalars.resolve(event.value)
        kind = _KINDS.get(name)
        if kind is not None and isinstance(value, kind) and (kind is bool or not isinstance(value, bool)):
            return float(value) if name == "float" and isinstance(value, int) else value
        self._mistake(node.span, "K109", f"the tag {_tag(event.tag)} means nothing here", _NO_TAG)
        return event.value

    def _start(self, event: Any, is_mapping: bool) -> None:
        node = Node(self.source, _span(event), {} if is_mapping else [], flow=bool(event.flow_style))
        self.ledger.spend(1, node.span)
        self.ledger.check_depth(len(self._stack) + 1, node.span)
        if event.tag is not None and event.tag not in ("!", _CORE + ("map" if is_mapping else "seq")):
            self._mistake(node.span, "K109", f"the tag {_tag(event.tag)} means nothing here", _NO_TAG)
        if event.anchor is not None:
            self._anchors[event.anchor] = node
        self._open.add(id(node))
        self._stack.append(_Frame(node, self._step(), is_mapping))

    def _end(self, event: Any) -> None:
        frame = self._stack.pop()
        node = frame.node
        node.span = Span(node.span.line, node.span.col, event.end_mark.line + 1, event.end_mark.column + 1)
        self._open.discard(id(node))
        if frame.entries is None:
            items = yaml_flow.join_items(frame.items, self._split) if node.flow else frame.items
            node.children = items
            node.value = [item.value for item in items]
        else:
            entries = yaml_flow.join_entries(frame.entries, self._split) if node.flow else frame.entries
            children = yaml_mappings.joined(entries, self._path(), self.ledger)
            node.children = children
            node.value = {key: item.value for key, (_, item) in children.items()}
            items = [item for _, item in children.values()]
        node.size = 1 + sum(item.size for item in items)
        node.height = 1 + max((item.height for item in items), default=0)
        self._add(node)

    def _alias(self, event: Any) -> None:
        span = _span(event)
        node = self._anchors.get(event.anchor)
        if node is None:
            hint = f"anchors here: {', '.join(sorted(self._anchors)) or 'none'}"
            self._mistake(span, "K108", f"no anchor '&{event.anchor}' above this alias", hint)
        elif id(node) in self._open:
            self._mistake(span, "K108", f"'*{event.anchor}' stands inside its own anchor: endless")
            node = None
        else:
            self.ledger.check_depth(len(self._stack) + node.height, span, expanded=True)
            self.ledger.spend(node.size, span)
        self._add(node if node is not None else Node(self.source, span, None))

    def _add(self, node: Node) -> None:
        if not self._stack:
            self.root = node
            return
        frame = self._stack[-1]
        if frame.entries is None:
            frame.items.append(node)
            self.ledger.check_entries(len(frame.items), frame.node.span)
        elif frame.key is None:
            frame.key = self._as_key(node)
        else:
            frame.entries.append((frame.key, node))
            frame.key = None
            self.ledger.check_entries(len(frame.entries), frame.node.span)

    def _as_key(self, node: Node) -> Node:
        """Return the key node; one that is no plain text is reported and stands under an impossible name."""
        if node.children is None and isinstance(node.value, str) and node.value:
            return node
        if isinstance(node.value, bool | int | float) and node.children is None:
            return Node(node.source, node.span, node.source.slice(node.span))  # an alias of a number
        found = self.ledger.found
        if not any(node.span.line <= one.span.line <= node.span.end_line for one in found):
            hint = 'a template in braces must be quoted: "{{ ... }}"' if node.flow else "keys are plain words"
            self.ledger.mistake(node.span, self._path()[:-1], "K113", "a key must be a word", hint)
        return Node(node.source, node.span, f"{yaml_mappings.NO_KEY}{len(found)}")

    def _step(self) -> str | int:
        if not self._stack:
            return 0
        frame = self._stack[-1]
        if frame.entries is None:
            return len(frame.items)
        return str(frame.key.value) if frame.key is not None else ""

    def _path(self) -> Path:
        return (*(frame.step for frame in self._stack[1:]), *([self._step()] if self._stack else []))

    def _mistake(self, span: Span, code: str, message: str, hint: str = "") -> None:
        self.ledger.mistake(span, self._path(), code, message, hint)

    def _split(self, span: Span, text: str, step: str | int) -> None:
        """Report a text that a comma has split; its container has just left the stack."""
        message = "a comma splits this text, since it stands unquoted between brackets"
        hint = f'quote it: "{text}"' if '"' not in text else f"quote it: '{text}'"
        if step == "shape" and text.startswith("(") and text.endswith(")"):
            message, hint = "a shape is a list", f"write [{text[1:-1]}]"
        self.ledger.mistake(span, (*self._path(), step), "K104", message, hint)


def _span(event: Any) -> Span:
    start, end = event.start_mark, event.end_mark
    return Span(start.line + 1, start.column + 1, end.line + 1, end.column + 1)


def _tag(tag: str) -> str:
    return "!!" + tag.removeprefix(_CORE) if tag.startswith(_CORE) else tag
