"""Axis values that were forgotten: to YAML an empty place is null, which an axis may hold when it is written."""

from collections.abc import Iterator

from kmrun.core.case import Path
from kmrun.core.problem import Problem
from kmrun.source.document import Document, Node


def bare_axis_values(document: Document) -> list[Problem]:
    """Return one problem for each value of `matrix` or `cases` of which nothing was written."""
    kernels = document.root.child("kernels")
    found: list[Problem] = []
    for index, kernel in enumerate(_items(kernels)):
        for place, node in _axis_values(kernel):
            if node.value is None and node.children is None and node.span[:2] == node.span[2:]:
                key = place[-1]
                text = f"'{key}' has no value" if isinstance(key, str) else "an empty list item"
                path = ("kernels", index, *place)
                hint = "write null if that is meant"
                found.append(Problem("K310", path, text, hint, on_key=isinstance(key, str)))
    return found


def _axis_values(kernel: Node) -> Iterator[tuple[Path, Node]]:
    """Yield (path in the kernel, value) of what is written for axes, one by one."""
    matrix = kernel.child("matrix")
    for name, (_, values) in _entries(matrix).items():
        for index, item in enumerate(_items(values)):
            yield ("matrix", name, index), item
    for row, entries in enumerate(map(_entries, _items(kernel.child("cases")))):
        for name, (_, value) in entries.items():
            yield ("cases", row, name), value


def _items(node: Node | None) -> list[Node]:
    return node.children if node is not None and isinstance(node.children, list) else []


def _entries(node: Node | None) -> dict[str, tuple[Node, Node]]:
    return node.children if node is not None and isinstance(node.children, dict) else {}
