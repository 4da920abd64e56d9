"""Which Python modules a tree holds, wherever in it they lie: an installed copy has no trace of where it came from."""

import os
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

from kmrun.store.repository import toplevel, tracked

_MOST_FOLDERS = 20_000
_NOT_ENTERED = frozenset({"site-packages", "dist-packages", "node_modules", "__pycache__"})
_OF_OTHERS = frozenset(
    {"third_party", "thirdparty", "3rdparty", "vendor", "vendored", "_vendor", "external", "extern", "deps"}
)
"""Folders of packages that a tree only carries along: which copy of them is used is the user's business."""


def module_in(root: Path, module: str) -> str | None:
    """Return the file of a tree which a dotted module or its package could be; None where it has none."""
    package, path = module.partition(".")[0], module.replace(".", "/")
    ends = [f"/{stem}{end}" for stem in dict.fromkeys((package, path)) for end in ("/__init__.py", ".py")]
    return next((file for file in _files(root) if f"/{file}".endswith(tuple(ends))), None)


def code_in(root: Path, folder: str, target: str) -> bool:
    """Return whether a tree may hold a target's code: a file in a folder of it, or a module of Python or compiled."""
    place = target.rpartition(":")[0]
    if place.endswith(".py"):
        return Path(folder, place).is_file()
    package = place.partition(".")[0]
    return module_in(root, place) is not None or any(
        any(root.rglob(each)) for each in (package, f"{package}.*")
    )


def packages_in(root: Path) -> frozenset[str]:
    """Return the names of the top-level packages that are a tree's own."""
    folders = {os.path.split(file)[0] for file in _files(root) if file.endswith("/__init__.py")}
    return frozenset(
        Path(folder).name
        for folder in folders
        if os.path.split(folder)[0] not in folders and not _OF_OTHERS & set(Path(folder).parts)
    )


@lru_cache(maxsize=8)
def _files(root: Path) -> tuple[str, ...]:
    """Return the Python files of a tree, relative to it: those that git tracks, else all that are found."""
    if toplevel(root) == root.resolve():
        return tracked(root, "*.py")
    return tuple(_found(root))


def _found(root: Path) -> Iterator[str]:
    for seen, (folder, inside, files) in enumerate(os.walk(root), 1):
        inside[:] = sorted(
            name
            for name in inside
            if name not in _NOT_ENTERED
            and not name.startswith(".")
            and not Path(folder, name, "pyvenv.cfg").exists()
        )
        yield from (os.path.relpath(Path(folder, name), root) for name in files if name.endswith(".py"))
        if seen >= _MOST_FOLDERS:
            return
