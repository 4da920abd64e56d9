"""The other version of a case: what it is compared with, and by which rule. Plain data."""

from dataclasses import dataclass

from kmrun.core.case import Case
from kmrun.core.gate import Gate


@dataclass(frozen=True, slots=True)
class Tree:
    """Where one version of the code lies.

    `root` is the outermost folder that belongs to it, an absolute path. `caches` is a folder of its own for what
    compilers keep (Triton, Inductor, extensions); None leaves the user's.
    """

    root: str
    caches: str | None = None


@dataclass(frozen=True, slots=True)
class Opponent:
    """The other version of a case, `case` as that version's suite has it; `gate` says what it is called."""

    case: Case
    gate: Gate
    own: Tree
    """The tree of the version under test."""
    other: Tree
