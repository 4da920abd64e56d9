"""Whether the code that a case names can be there at all, told from files alone: nothing is imported, nothing is run.

Only what certainly fails to load is called absent: whatever is unsure may exist.
"""

import ast
import os
import sys
import warnings
from collections.abc import Iterator
from functools import lru_cache
from importlib.machinery import BuiltinImporter, FrozenImporter, PathFinder
from pathlib import Path

from kmrun.core.case import Case, Implementation

_MOST_BYTES = 1 << 20
"""A longer file takes longer to read than it is worth."""

_BUILTINS = frozenset({"globals", "locals", "vars", "exec", "eval", "setattr"})
_OF_MODULES = frozenset({"modules", "__dict__"})
"""Functions and attributes by which a module can come to hold what no statement of its own binds."""

_STANDARD = (BuiltinImporter, FrozenImporter, PathFinder)
_FINDS_NO_MORE = frozenset({"_distutils_hack", "_pytest.assertion.rewrite"})
"""Modules of finders that find what Python's own find, too, but for `distutils`."""


def may_exist(case: Case) -> bool:
    """Return False when the kernel or the reference of a case certainly cannot be loaded, True when unsure.

    It is unsure of a folder that is not absolute, which means another place to each process.
    """
    needed = [case.implementation, *([case.reference.implementation] if case.reference is not None else [])]
    return all(_may_load(each, case.folder) for each in needed)


def _may_load(implementation: Implementation, folder: str) -> bool:
    place, _, attributes = implementation.target.rpartition(":")
    if not Path(folder).is_absolute():
        return True
    if place.endswith(".py"):
        return _may_bind(Path(folder, place), attributes.partition(".")[0])
    return "PYTHONPATH" in implementation.env or _may_find(place.partition(".")[0], folder)


def _may_bind(path: Path, name: str) -> bool:
    try:
        if not path.is_file():
            return False
        seen = path.stat()
        if seen.st_size > _MOST_BYTES:
            return True
        bound = _bound(path, (seen.st_mtime_ns, seen.st_size))
    except OSError:
        return True
    return bound is None or name in bound or (name.startswith("__") and name.endswith("__"))


@lru_cache(maxsize=64)
def _bound(path: Path, stamp: tuple[int, int]) -> frozenset[str] | None:
    """Return the names that a module binds: none when it is no Python, None where it may bind any.

    `stamp` tells a file from what it was before.

    Raises:
        OSError: it cannot be read.
    """
    source = path.read_bytes()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what the source's author is warned of is the import's to tell
            tree = ast.parse(source)
    except (SyntaxError, ValueError):
        return frozenset()
    except (MemoryError, RecursionError):  # nested too deeply for here, with this much of the stack left
        return None
    everything = list(ast.walk(tree))
    called = {node.id for node in everything if isinstance(node, ast.Name)}
    called |= {each.name for node in everything if isinstance(node, ast.ImportFrom) for each in node.names}
    reached = called | {node.attr for node in everything if isinstance(node, ast.Attribute)}
    names = {name for node in _at_top_level(tree) for name in _names_of(node)}
    names |= {name for node in everything if isinstance(node, ast.Global) for name in node.names}
    dynamic = _BUILTINS & called or _OF_MODULES & reached or "*" in called
    return None if dynamic or {"__getattr__", "__path__"} & names else frozenset(names)


def _at_top_level(tree: ast.Module) -> Iterator[ast.AST]:
    """Walk what runs in the module's own scope: all but the bodies of functions and classes."""
    waiting: list[ast.AST] = [tree]
    while waiting:
        node = waiting.pop()
        yield node
        inside = set(node.body) if isinstance(node, _SCOPES) else set()
        waiting.extend(child for child in ast.iter_child_nodes(node) if child not in inside)


_SCOPES = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


def _names_of(node: ast.AST) -> Iterator[str]:
    """Return the names that a node binds in its scope."""
    if isinstance(node, _SCOPES):
        yield node.name
    elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
        yield node.id
    elif isinstance(node, ast.alias):
        yield node.asname or node.name.partition(".")[0]
    elif isinstance(node, ast.MatchAs | ast.MatchStar | ast.ExceptHandler) and node.name is not None:
        yield node.name
    elif isinstance(node, ast.MatchMapping) and node.rest is not None:
        yield node.rest


def _may_find(package: str, folder: str) -> bool:
    """Return whether Python may find a top-level module or package from a suite's folder."""
    if package in sys.modules or package in sys.stdlib_module_names or package in sys.builtin_module_names:
        return True
    # A side starts in the suite's folder: for it, relative folders lie there.
    inherited = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    paths = [folder, *(str(Path(folder, entry)) for entry in inherited), *sys.path]
    if PathFinder.find_spec(package, paths) is not None or FrozenImporter.find_spec(package) is not None:
        return True
    return any(_another_may_find(finder, package) for finder in sys.meta_path if finder not in _STANDARD)


def _another_may_find(finder: object, package: str) -> bool:
    """Return whether a finder that some package installed may find a module: it is not asked, it may build one."""
    home = finder.__module__ if isinstance(finder, type) else type(finder).__module__
    known = [getattr(sys.modules.get(home), name, None) for name in ("MAPPING", "NAMESPACES")]
    if home.startswith("__editable__") and all(isinstance(each, dict) for each in known):
        return any(package == name.partition(".")[0] for each in known for name in each or ())
    return home not in _FINDS_NO_MORE
