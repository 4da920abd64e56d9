"""Where a version's code came from, and whether that proves that two versions were compared. Plain data."""

from dataclasses import dataclass

from kmrun.core.measurement import Finding
from kmrun.measure.provenance import Home


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a side got its target from.

    Attributes:
        file: the file of the target's module; None for what is no file, such as a built-in module.
        home: in which tree that lies.
        loads_own: whether any code of this side's own tree was loaded.
        foreign: files of the other tree that were loaded, modules and libraries.
        own_copy: the target's top-level package, where this side's tree has one of that name.
        root: this side's tree.
        installed: top-level packages that were loaded from neither tree, and their files. Once held against what the
            tree has, only those that it has a copy of.
    """

    file: str | None
    home: Home
    foreign: tuple[str, ...]
    own_copy: str | None
    root: str
    loads_own: bool = True
    installed: tuple[tuple[str, str], ...] = ()


def wrong_tree(new: Origin, old: Origin, name: str) -> Finding | None:
    """Return what is wrong with where two versions came from; None where each ran its own code.

    A target that neither tree has, `torch.nn.functional` say, is no error: it is the same code on both sides.
    """
    for who, seen in (("this version", new), (name, old)):
        if seen.foreign:
            more = f" and {len(seen.foreign) - 1} more" if len(seen.foreign) > 1 else ""
            return _finding(f"{who} loaded {seen.foreign[0]}{more}, which is the other version's code")
        if seen.home != "own" and seen.own_copy is not None:
            return _finding(f"{who} loaded {seen.file}, not the {seen.own_copy!r} that {seen.root} has")
        if seen.installed:
            package, file = seen.installed[0]
            return _finding(f"{who} loaded {file}, not the {package!r} that {seen.root} has")
    if old.home != "own" and old.file != new.file:
        return _finding(f"{name} loaded {old.file}, which is not in {old.root}")
    return None


def _finding(sentence: str) -> Finding:
    hint = "`build:` runs a command in each tree, `env: {PYTHONPATH: '{root}/...'}` finds its code"
    return Finding("wrong_tree", sentence, "environment", "error", hint)
