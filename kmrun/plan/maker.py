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
    if isinstance(value, tuple):
        return tuple([exact(item) for item in value])
    return (value.__class__, value)
