"""What makes one argument at a point."""

from collections.abc import Callable
from dataclasses import dataclass

from kmrun.core.case import Argument
from kmrun.core.formula import Scope


@dataclass(frozen=True, slots=True)
class Maker:
    """Makes one argument once `needs` are in scope; raises `report.Failure` where it cannot."""

    needs: frozenset[str]
    make: Callable[[Scope], Argument]
