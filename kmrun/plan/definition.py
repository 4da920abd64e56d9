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
    """Return the definitions so that each stands after what it needs; report circles, which are left out."""
    by_name = {definition.name: definition for definition in definitions}
    ordered: list[Definition] = []
    done: set[str] = set()
    for start in by_name.values():
        _visit(start, by_name, done, [], ordered, report)
    return ordered


def _visit(
    start: Definition,
    by_name: Mapping[str, Definition],
    done: set[str],
    trail: list[str],
    ordered: list[Definition],
    report: Report,
) -> None:
    if start.name in done:
        return
    if start.name in trail:
        circle = [*trail[trail.index(start.name) :], start.name]
        report.error(CIRCLE, start.path, f"'{start.name}' is defined by itself: {' -> '.join(circle)}")
        return
    for name in sorted(start.needs):
        if name in by_name:
            _visit(by_name[name], by_name, done, [*trail, start.name], ordered, report)
    done.add(start.name)
    ordered.append(start)


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
