"""From `module:attr` or `file.py:attr` in a suite to the callable itself, with every way to fail told apart.

A file target becomes a module of a package made for its folder, under a name that is stable between runs and
registered in `sys.modules`: pickling, dataclasses, `inspect.getsource` and `from .sibling import x` work.
"""

import contextlib
import difflib
import hashlib
import importlib
import importlib.util
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

from kmrun.core.measurement import FaultKind
from kmrun.measure.faults import SideFault, traceback_tail, what_it_did


class TargetError(SideFault):
    """A target cannot be had.

    Codes: `target_missing` (its own file, module or attribute is absent: suite), `module_missing` (something
    that it imports is not installed: environment), `not_callable` (suite), `import_raised` (kernel).
    """


def resolve(spec: str, folder: str) -> Callable[..., Any]:
    """Import what `spec` names and return it; `folder` is the suite's, and goes first on `sys.path`.

    Args:
        spec: `module:attr`, `module:attr.attr`, `file.py:attr`; files are relative to `folder`.
        folder: absolute path of the suite file's directory.

    Raises:
        TargetError: see there.
    """
    place, _, attributes = spec.rpartition(":")
    if not place or not attributes:
        raise TargetError(
            "target_missing", f"target {spec!r} is not of the form module:function or file.py:function"
        )
    _put_first_on_path(folder)
    with _user_imports(spec, place):
        module = (
            _load_file(spec, place, folder) if place.endswith(".py") else _load_module(spec, place, folder)
        )
        found = _walk(spec, module, attributes.split("."))
    if not callable(found):
        kind = type(found).__name__
        raise TargetError("not_callable", f"target {spec!r} is a {kind}, not something that can be called")
    return found  # type: ignore[no-any-return]


def _put_first_on_path(folder: str) -> None:
    if sys.path[:1] != [folder]:
        if folder in sys.path:
            sys.path.remove(folder)
        sys.path.insert(0, folder)
        importlib.invalidate_caches()


@contextlib.contextmanager
def _user_imports(spec: str, place: str) -> Iterator[None]:
    """Turn whatever user code raises while it is imported into the TargetError that names the fault."""
    try:
        yield
    except (TargetError, KeyboardInterrupt):
        raise
    except ModuleNotFoundError as error:
        missing = error.name or str(error)
        sentence = f"{spec} needs the module {missing!r}, which is not installed"
        raise TargetError("module_missing", sentence, "environment", traceback_tail(error)) from error
    except BaseException as error:
        fault: FaultKind = "kernel"
        code, sentence = "import_raised", f"importing {place} {what_it_did(error)}"
        if isinstance(error, ImportError) and "shared object file" in str(error):
            code, fault = "module_missing", "environment"
            sentence = f"{spec} needs a library that is not here: {str(error).splitlines()[0]}"
        raise TargetError(code, sentence, fault, traceback_tail(error)) from error


def _load_file(spec: str, place: str, folder: str) -> ModuleType:
    path = Path(folder, place)
    if path.is_dir():
        raise TargetError("target_missing", f"target {spec!r}: {path} is a folder, not a Python file")
    if not path.is_file():
        files = (other for other in sorted(Path(folder).glob("**/*.py"))[:500] if other.is_file())
        beside = [str(other.relative_to(folder)) for other in files]
        raise TargetError("target_missing", f"target {spec!r}: no file {path}{_near(place, beside)}")
    path = path.resolve()
    package = _package_for(path.parent)
    name = f"{package}.{path.stem.replace('.', '_')}"
    if name in sys.modules:
        return sys.modules[name]
    loading = importlib.util.spec_from_file_location(name, path)
    if loading is None or loading.loader is None:
        raise TargetError("target_missing", f"target {spec!r}: {path} cannot be loaded as Python")
    module = importlib.util.module_from_spec(loading)
    sys.modules[name] = module
    try:
        loading.loader.exec_module(module)
    except BaseException:
        # A half-made module must not pass for a whole one at the next try.
        del sys.modules[name]
        raise
    return module


def _package_for(directory: Path) -> str:
    """Register (once) a package whose modules are the files of `directory`, named after its path."""
    digest = hashlib.blake2b(os.fsencode(directory), digest_size=4).hexdigest()
    name = f"kmrun_suite_{digest}"
    if name not in sys.modules:
        package = ModuleType(name, f"Files of {directory}, loaded by kmrun.")
        package.__path__ = [str(directory)]
        sys.modules[name] = package
    return name


def _load_module(spec: str, place: str, folder: str) -> ModuleType:
    try:
        return importlib.import_module(place)
    except ModuleNotFoundError as error:
        own = place == error.name or place.startswith(f"{error.name}.")
        if not own:
            raise
        first = error.name == place.split(".")[0]
        # Modules of Python's own and of packages are not what a suite's author meant by a name nearby.
        beside = {"torch", *(path.stem for path in Path(folder).glob("*.py"))}
        hint = _near(place, beside if first else _submodules(place))
        hint = hint or (
            "; modules are looked for beside the suite and where Python is told to: set "
            "`env: {PYTHONPATH: ...}`, install its package, or say `requires: {module: ...}`"
        )
        raise TargetError("target_missing", f"target {spec!r}: no module {error.name!r}{hint}") from error


def _submodules(place: str) -> Iterable[str]:
    package, _, _ = place.rpartition(".")
    return [name for name in sys.modules if name.startswith(f"{package}.")]


def _walk(spec: str, module: ModuleType, attributes: list[str]) -> Any:
    found: Any = module
    for position, name in enumerate(attributes):
        try:
            found = getattr(found, name)
        except AttributeError as error:
            if position == 0 and (submodule := _try_submodule(module, name)) is not None:
                found = submodule
                continue
            where = ".".join([spec.rpartition(":")[0], *attributes[:position]])
            hint = _near(name, [other for other in dir(found) if not other.startswith("__")])
            raise TargetError("target_missing", f"target {spec!r}: {where} has no {name!r}{hint}") from error
    return found


def _try_submodule(module: ModuleType, name: str) -> ModuleType | None:
    """`torch.nn:functional.relu`: a submodule that nothing imported yet is no attribute, but is meant."""
    if not hasattr(module, "__path__"):
        return None
    full = f"{module.__name__}.{name}"
    if importlib.util.find_spec(full) is None:
        return None
    return importlib.import_module(full)


def _near(name: str, known: Iterable[str]) -> str:
    near = difflib.get_close_matches(name, sorted(known), n=3, cutoff=0.6)
    return f"; did you mean {' or '.join(repr(other) for other in near)}?" if near else ""
