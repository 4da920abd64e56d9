"""Which tree a side's code comes from, and the proof that it came from no other. No torch.

Two versions of a package have one name. What makes a side import the other version's copy is mostly an editable
install: its finder, or a path on `sys.path`, leads into one checkout whichever side asks. So a side first turns
every such path that leads into the other tree towards its own, and later shows where what it loaded came from.
"""

import os
import sys
from collections.abc import Iterable, MutableMapping
from pathlib import Path
from typing import Any, Literal

from kmrun.measure.faults import OWN_CODE

Home = Literal["own", "other", "elsewhere"]

_INSTALLED = frozenset({"site-packages", "dist-packages"})
_LAYOUTS = ("", "src", "python")
"""Folders of a tree in which packages usually lie."""

_CACHES = {
    "TRITON_CACHE_DIR": "triton",
    "TORCHINDUCTOR_CACHE_DIR": "inductor",
    "TORCH_EXTENSIONS_DIR": "extensions",
}


class Provenance:
    """The two trees as one side sees them: its own, and the other version's."""

    def __init__(self, own: str, other: str) -> None:
        self.own, self.other = Path(own).resolve(), Path(other).resolve()
        self._before = frozenset(_loaded_files())

    def turn_imports(self) -> None:
        """Make imports that would come out of the other tree come out of this one."""
        sys.path[:] = [self.turned(entry) for entry in sys.path]
        # What setuptools writes for an editable install that is no plain folder.
        for finder in [module for name, module in sys.modules.items() if name.startswith("__editable__")]:
            mapping = getattr(finder, "MAPPING", None)
            if isinstance(mapping, dict):
                mapping.update({package: self.turned(place) for package, place in mapping.items()})
        inherited = os.environ.get("PYTHONPATH")
        if inherited:  # for compilers that work in processes of their own
            os.environ["PYTHONPATH"] = os.pathsep.join(map(self.turned, inherited.split(os.pathsep)))
        if self.own != self.other:
            places = [str(self.own / layout) for layout in _LAYOUTS if (self.own / layout).is_dir()]
            sys.path[:0] = [place for place in places if place not in sys.path]
        sys.path_importer_cache.clear()

    def turned(self, place: str) -> str:
        """Return the counterpart in this tree of a path into the other one, where there is one."""
        if self.home(place) != "other":
            return place
        counterpart = self.own / Path(place).resolve().relative_to(self.other)
        return str(counterpart) if counterpart.exists() else place

    def home(self, place: str | os.PathLike[str]) -> Home:
        """Say in which tree a path lies: the innermost counts, what is installed inside a tree lies elsewhere."""
        path = Path(place).resolve()
        roots: list[tuple[Home, Path]] = [("own", self.own), ("other", self.other)]
        around = [(name, root) for name, root in roots if path.is_relative_to(root)]
        if not around or path.is_relative_to(OWN_CODE):
            return "elsewhere"
        # Where both trees are one, it is this side's own: `max` keeps the first of equals.
        name, root = max(around, key=lambda found: len(found[1].parts))
        inside = path.relative_to(root).parts
        installed = bool(_INSTALLED & set(inside)) or _is_environment(path, root)
        return "elsewhere" if installed else name

    def foreign(self) -> list[str]:
        """Return the files of the other tree that this side has loaded since it settled in."""
        return sorted(file for file in set(_loaded_files()) - self._before if self.home(file) == "other")

    def loads_own(self) -> bool:
        """Say whether this side has loaded any file of its own tree since it settled in."""
        return any(self.home(file) == "own" for file in set(_loaded_files()) - self._before)

    def installed(self) -> list[tuple[str, str]]:
        """Return the top-level packages that this side has loaded from neither tree since it settled in, with files."""
        found = []
        for name, module in list(sys.modules.items()):
            file: Any = getattr(module, "__file__", None)
            if "." in name or name in sys.stdlib_module_names or not hasattr(module, "__path__"):
                continue
            if isinstance(file, str) and file not in self._before and self.home(file) == "elsewhere":
                found.append((name, file))
        return sorted(found)

    def holds(self, package: str) -> bool:
        """Say whether this tree has a top-level package or module of that name."""
        return any(
            (self.own / layout / package).is_dir() or (self.own / layout / f"{package}.py").is_file()
            for layout in _LAYOUTS
        )


def separate_caches(folder: str, environment: MutableMapping[str, str] = os.environ) -> None:
    """Give what compiles at run time a cache below `folder`: neither version may find the other's code."""
    for variable, name in _CACHES.items():
        environment[variable] = str(Path(folder, name))


def _is_environment(path: Path, root: Path) -> bool:
    """Whether a path lies in the interpreter's own environment, itself inside the tree (`.venv`)."""
    prefix = Path(sys.prefix).resolve()
    return prefix != root and prefix.is_relative_to(root) and path.is_relative_to(prefix)


def _loaded_files() -> Iterable[str]:
    for module in list(sys.modules.values()):
        file: Any = getattr(module, "__file__", None)
        if isinstance(file, str):
            yield file  # resolved only where it matters: there are thousands
    maps = Path("/proc/self/maps")
    if maps.exists():  # libraries that no module stands for: `torch.ops.load_library`, ctypes
        for line in maps.read_text(errors="replace").splitlines():
            place = line.partition("/")
            if place[1] and ".so" in place[2]:
                yield f"/{place[2]}"


def search_first(paths: str) -> None:
    """Put the folders of a `PYTHONPATH` first on `sys.path`, as an interpreter that starts with it would."""
    for place in reversed([place for place in paths.split(os.pathsep) if place]):
        if place in sys.path:
            sys.path.remove(place)
        sys.path.insert(0, place)
