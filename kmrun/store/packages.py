"""Which Python modules a tree holds, wherever in it they lie: an installed copy has no trace of where it came from."""

import os
from collections import deque
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

from kmrun.source.paths import exists
from kmrun.store.repository import toplevel, tracked

_MOST_FOLDERS = 20_000
_NOT_ENTERED = frozenset({"site-packages", "dist-packages", "node_modules", "__pycache__"})
_NO_CODE = frozenset({".git", "__pycache__", "node_modules"})
_ARCHIVES = (".egg", ".whl")
"""What Python imports from, with `env: {PYTHONPATH: ...}`; its name need not be the package's."""
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
    """Return whether a tree may hold a target's code.

    That is a file in a folder of it, a module of Python or compiled, or an archive. A tree too large to be looked
    through may.
    """
    place = target.rpartition(":")[0]
    if place.endswith(".py"):
        path = Path(folder, place)
        return exists(path) and path.is_file()
    package = place.partition(".")[0]
    return any(
        name is None or name == package or name.startswith(f"{package}.") or name.endswith(_ARCHIVES)
        for name in _names(root)
    )


def _names(root: Path) -> Iterator[str | None]:
    """Return the names in a tree, outermost first; None as the last where it is too large.

    Unlike `Path.rglob` this follows links, and passes over what cannot be read.
    """
    waiting, seen = deque([root]), set[tuple[int, int]]()
    while waiting:
        folder = waiting.popleft()
        try:
            stat = folder.stat()
            if (stat.st_dev, stat.st_ino) in seen:
                continue
            seen.add((stat.st_dev, stat.st_ino))
            with os.scandir(folder) as entries:
                inside = sorted(entries, key=lambda entry: entry.name)
        except OSError:
            continue
        yield from (entry.name for entry in inside)
        if len(seen) >= _MOST_FOLDERS:
            yield None
            return
        waiting.extend(
            Path(entry.path) for entry in inside if entry.name not in _NO_CODE and _is_folder(entry)
        )


def _is_folder(entry: "os.DirEntry[str]") -> bool:
    try:
        return entry.is_dir()
    except OSError:  # a link that leads in a circle, or where nobody may look
        return False


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
            and not exists(Path(folder, name, "pyvenv.cfg"))
        )
        yield from (os.path.relpath(Path(folder, name), root) for name in files if name.endswith(".py"))
        if seen >= _MOST_FOLDERS:
            return
