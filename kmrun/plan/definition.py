"""What a kernel defines by name, in the order in which it can be evaluated."""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field

from kmrun.core.case import Argument, Output, Path
from kmrun.core.formula import Value
from kmrun.plan.report import CIRCLE, Report


@dataclass(slots=True)
class Work:
    """One point while it is evaluated: the names known so far, and what was built of them."""

    scope: dict[str, Value]
    arguments: dict[str, Argument] = field(default_factory=dict)
    outputs: dict[str, Output] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Definition:
    """A ragged axis, let name, argument or output: `define` returns its value once `needs` are in scope.

    It raises `report.Failure` where there is none.
    """

    name: str
    path: Path
    needs: frozenset[str]
    define: Callable[[Work], Value]


def in_order(definitions: Iterable[Definition], report: Report) -> list[Definition]:
    """Return the definitions so that each stands after what it needs.

    Circles are reported once; their members and all that needs them are left out.
    """
    ordering = _Ordering({definition.name: definition for definition in definitions}, report)
    for definition in ordering.by_name.values():
        ordering.visit(definition, [])
    return ordering.ordered


class _Ordering:
    def __init__(self, by_name: Mapping[str, Definition], report: Report) -> None:
        self.by_name = by_name
        self.report = report
        self.ordered: list[Definition] = []
        self.judged: dict[str, bool] = {}

    def visit(self, definition: Definition, trail: list[str]) -> bool:
        """Put the definition after all that it needs; return whether it could be."""
        name = definition.name
        if name in self.judged:
            return self.judged[name]
        if name in trail:
            circle = " -> ".join([*trail[trail.index(name) :], name])
            self.report.error(
                CIRCLE, definition.path, f"'{name}' is defined by itself: {circle}", on_key=True
            )
            return False
        good = True
        for need in sorted(definition.needs):
            if need in self.by_name:
                good = self.visit(self.by_name[need], [*trail, name]) and good
        if name not in self.judged:
            self.judged[name] = good
            if good:
                self.ordered.append(definition)
        return self.judged[name]


def closure(names: Collection[str], definitions: Iterable[Definition]) -> frozenset[str]:
    """Return the names that these need, directly or through other definitions, themselves included."""
    by_name = {definition.name: definition for definition in definitions}
    found: set[str] = set()
    waiting = list(names)
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            if name in by_name:
                waiting.extend(by_name[name].needs)
    return frozenset(found)
