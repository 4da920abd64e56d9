"""What makes one argument at a point."""

from collections.abc import Callable
from dataclasses import dataclass

from kmrun.core.case import Argument
from kmrun.core.formula import Scope, Value


@dataclass(frozen=True, slots=True)
class Maker:
    """Makes one argument once `needs` are in scope; raises `report.Failure` where it cannot."""

    needs: frozenset[str]
    make: Callable[[Scope], Argument]


def exact(value: Value) -> Value:
    """Return a key that tells values apart which only count as equal: 4 and 4.0, 1 and true, in lists too."""
    if not isinstance(value, tuple):
        return (value.__class__, value)
    kinds = tuple([item.__class__ for item in value])
    return (kinds, tuple([exact(item) for item in value]) if tuple in kinds else value)
