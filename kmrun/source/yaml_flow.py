"""Finding text that a comma has split: `{e: min(m, n)}` reads as two keys, `[f(a, b)]` as two items."""

import re
from collections.abc import Callable

from kmrun.source.document import Node, Span

Report = Callable[[Span, str, str | int], None]
"""Called once for each split text, with its place, the text as it was meant, and its key or index."""

_OPEN, _CLOSE = "([", ")]"
_WORD = re.compile(r"[A-Za-z_][\w-]*")


def join_items(items: list[Node], report: Report) -> list[Node]:
    """Return the items of a flow sequence, those that a comma split put together again."""
    result: list[Node] = []
    index = 0
    while index < len(items):
        last = index
        balance = _balance(items[index])
        while balance > 0 and last + 1 < len(items) and _is_plain(items[last + 1]):
            last += 1
            balance += _balance(items[last])
        if last > index and balance == 0:
            result.append(_joined(items[index], items[last], report, len(result)))
        else:
            result.extend(items[index : last + 1])
        index = last + 1
    return result


def join_entries(entries: list[tuple[Node, Node]], report: Report) -> list[tuple[Node, Node]]:
    """Return the entries of a flow mapping, values that a comma split put together again.

    What follows the comma was read as a key without a value, which is what tells it from a real key.
    """
    result: list[tuple[Node, Node]] = []
    index = 0
    while index < len(entries):
        key, value = entries[index]
        last = index
        balance = _balance(value)
        while _is_plain(value) and last + 1 < len(entries) and _continues(balance, *entries[last + 1]):
            last += 1
            balance += _balance(entries[last][0])
        if last > index:
            value = _joined(value, entries[last][0], report, key.value)
        result.append((key, value))
        index = last + 1
    return result


def _continues(balance: int, key: Node, value: Node) -> bool:
    """Say whether an entry is the rest of the text before it, in which `balance` parentheses are open."""
    if not has_no_value(key, value):
        return False
    return balance > 0 or not (_WORD.fullmatch(str(key.value)) or ":" in str(key.value))


def has_no_value(key: Node, value: Node) -> bool:
    """Say whether a key stands alone, without its colon and value."""
    place = value.span
    return value.value is None and value.children is None and not key.style and place[:2] == place[2:]


def _is_plain(node: Node) -> bool:
    return node.children is None and not node.style


def _balance(node: Node) -> int:
    if not _is_plain(node) or not isinstance(node.value, str):
        return 0
    return sum((char in _OPEN) - (char in _CLOSE) for char in node.value)


def _between(first: Node, last: Node) -> Span:
    return Span(first.span.line, first.span.col, last.span.end_line, last.span.end_col)


def _joined(first: Node, last: Node, report: Report, step: str | int) -> Node:
    span = _between(first, last)
    text = first.source.slice(span)
    report(span, text, step)
    return Node(first.source, span, text)
