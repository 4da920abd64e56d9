"""`extends: other.yaml#kernel`: a kernel starts from another one's keys and replaces those it writes itself.

The other file must lie below the folder of the suite that is read. Places keep pointing to the file in which
a key was written; targets written as `file.py:attr` are made relative to the suite's folder.
"""

import os
from dataclasses import dataclass, field
from pathlib import Path as FilePath
from typing import Any

from kmrun.core.case import Path
from kmrun.core.problem import Problem
from kmrun.source import yaml_loader
from kmrun.source.diagnostics import Diagnostic, InvalidSuite
from kmrun.source.document import Document, Node
from kmrun.source.suggest import listed, meant
from kmrun.source.yaml_ledger import LIMITS

FORM, FILE, KERNEL, CYCLE = "K320", "K321", "K322", "K323"
_TARGET_KEYS = ("target", "setup")


class _Fault(Exception):
    """A problem at the `extends` value being resolved."""

    def __init__(self, code: str, message: str, hint: str = "", part: tuple[int, int] = (0, 0)) -> None:
        super().__init__(message)
        self.code, self.message, self.hint, self.part = code, message, hint, part


@dataclass
class _Resolver:
    suite_path: FilePath
    shown_folder: FilePath
    documents: dict[FilePath, Document]
    budget: int
    foreign: list[Diagnostic] = field(default_factory=list)

    @property
    def folder(self) -> FilePath:
        return self.suite_path.parent

    def expanded(self, kernel: Node, path: FilePath, trail: tuple[tuple[FilePath, str], ...]) -> Node:
        """Return the kernel's node with all that it extends merged in. Raises _Fault."""
        reference = kernel.child("extends")
        if reference is None or not isinstance(kernel.children, dict):
            return kernel
        text = reference.value
        if not isinstance(text, str) or text.count("#") != 1 or text.endswith("#"):
            raise _Fault(FORM, "expected 'other.yaml#kernel'", 'quote it: "other.yaml#kernel"')
        file, _, name = text.partition("#")
        base_path = self._locate(file, path) if file else path
        if (base_path, name) in trail:
            way = " -> ".join(
                f"{step.name}#{kernel_name}" for step, kernel_name in (*trail, (base_path, name))
            )
            raise _Fault(CYCLE, "this kernel extends itself in the end", way)
        base = self._kernel(base_path, name, len(file) + 1)
        base = self.expanded(base, base_path, (*trail, (base_path, name)))
        if base_path.parent != self.folder and path == self.suite_path:
            base = _rebased(base, os.path.relpath(base_path.parent, self.folder))
        elif base_path.parent != path.parent:
            base = _rebased(base, os.path.relpath(base_path.parent, path.parent))
        return self._merged(base, kernel)

    def _locate(self, file: str, path: FilePath) -> FilePath:
        found = (path.parent / file).resolve()
        if not found.is_relative_to(self.folder):
            raise _Fault(
                FILE, f"'{file}' lies outside the suite's folder", "extend files beside or below the suite"
            )
        if not found.is_file():
            raise _Fault(FILE, f"no file '{file}' beside the suite", "")
        return found

    def _kernel(self, path: FilePath, name: str, offset: int) -> Node:
        if path not in self.documents:
            shown = str(self.shown_folder / os.path.relpath(path, self.folder))
            try:
                loaded = yaml_loader.load_file(path, shown)
            except InvalidSuite as error:
                self.foreign.extend(error.diagnostics)
                raise
            if loaded.diagnostics:
                self.foreign.extend(loaded.diagnostics)
                raise InvalidSuite(loaded.diagnostics)
            self.documents[path] = loaded.document
        kernels = self.documents[path].root.child("kernels")
        named: dict[str, Node] = {}
        for node in kernels.children if kernels is not None and isinstance(kernels.children, list) else []:
            label = node.child("name")
            if label is not None and isinstance(label.value, str):
                named.setdefault(label.value, node)
        if name not in named:
            near = meant(name, named)
            hint = f"did you mean '{near}'?" if near else f"kernels there: {listed(named) or 'none'}"
            raise _Fault(KERNEL, f"no kernel '{name}' in {path.name}", hint, (offset, len(name)))
        return named[name]

    def _merged(self, base: Node, kernel: Node) -> Node:
        own = kernel.children
        if not isinstance(base.children, dict) or not isinstance(own, dict):
            raise _Fault(KERNEL, "the kernel to extend is no mapping")
        children = {key: entry for key, entry in base.children.items() if key != "extends"}
        children.update({key: entry for key, entry in own.items() if key != "extends"})
        self.budget -= base.size
        if self.budget < 0:
            raise _Fault("K107", f"more than {LIMITS.nodes:,} values once `extends` is expanded")
        merged = Node(kernel.source, kernel.span, _plain(children), flow=kernel.flow)
        merged.children = children
        merged.size = base.size + kernel.size
        return merged


def resolve(document: Document, path: FilePath) -> tuple[Document, list[Problem], list[Diagnostic], set[int]]:
    """Return the document with `extends` resolved, problems, other files' diagnostics, and the kernels lost.

    `path` is the suite's file; kernels are counted from 0.
    """
    kernels = document.root.child("kernels")
    if (
        kernels is None
        or not isinstance(kernels.children, list)
        or not isinstance(document.root.children, dict)
    ):
        return document, [], [], set()
    if not any(node.child("extends") is not None for node in kernels.children):
        return document, [], [], set()
    resolved = path.resolve()
    folder = FilePath(document.source.name).parent
    budget = LIMITS.nodes - document.root.size
    resolver = _Resolver(resolved, folder, {resolved: document}, budget)
    found: list[Problem] = []
    lost: set[int] = set()
    nodes: list[Node] = []
    for index, kernel in enumerate(kernels.children):
        place: Path = ("kernels", index, "extends")
        label = kernel.child("name")
        start = ((resolved, label.value),) if label is not None and isinstance(label.value, str) else ()
        try:
            nodes.append(resolver.expanded(kernel, resolved, start))
            continue
        except _Fault as fault:
            offset, length = fault.part if fault.part[1] else (None, None)
            found.append(Problem(fault.code, place, fault.message, fault.hint, offset=offset, length=length))
        except InvalidSuite:
            pass  # the other file's own diagnostics are in `foreign`
        lost.add(index)
        nodes.append(kernel)
    return _with_kernels(document, kernels, nodes), found, resolver.foreign, lost


def _with_kernels(document: Document, kernels: Node, nodes: list[Node]) -> Document:
    new_list = Node(kernels.source, kernels.span, [node.value for node in nodes], flow=kernels.flow)
    new_list.children = nodes
    children = dict(document.root.children) if isinstance(document.root.children, dict) else {}
    children["kernels"] = (children["kernels"][0], new_list)
    root = Node(document.root.source, document.root.span, _plain(children), flow=document.root.flow)
    root.children = children
    return Document(document.source, root, document.digest, document.spoiled)


def _plain(children: dict[str, tuple[Node, Node]]) -> dict[str, Any]:
    return {key: node.value for key, (_, node) in children.items()}


def _rebased(node: Node, prefix: str, key: str = "", parent: str = "") -> Node:
    """Return the node with `file.py:attr` targets prefixed, places unchanged."""
    if isinstance(node.children, dict):
        children = {
            name: (label, _rebased(item, prefix, name, key)) for name, (label, item) in node.children.items()
        }
        copy = Node(node.source, node.span, _plain(children), node.style, node.flow)
        copy.children, copy.size, copy.height = children, node.size, node.height
        return copy
    if isinstance(node.children, list):
        items = [_rebased(item, prefix, "", key) for item in node.children]
        copy = Node(node.source, node.span, [item.value for item in items], node.style, node.flow)
        copy.children, copy.size, copy.height = items, node.size, node.height
        return copy
    is_target = key in _TARGET_KEYS or key == "reference" or parent == "versus"
    if not is_target or not isinstance(node.value, str):
        return node
    file, colon, attribute = node.value.partition(".py:")
    if not colon or FilePath(file).is_absolute():
        return node
    moved = os.path.normpath(f"{prefix}/{file}").replace(os.sep, "/")
    return Node(node.source, node.span, f"{moved}.py:{attribute}", node.style, node.flow)
