"""Whose mistake it is when a formula has no value at some points: the formula's, or one axis value's.

A formula that fails everywhere is wrong itself. One that fails at some points only met a value that it was
not made for: then the axis is told, once, at the first row that carries such a value.
"""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from kmrun.core.case import Path
from kmrun.core.formula import Formula, Value
from kmrun.core.formula_error import WRONG_TYPE
from kmrun.plan.axes import Axes, Point
from kmrun.plan.definition import Definition, closure
from kmrun.plan.ids import shown_value
from kmrun.plan.maker import exact
from kmrun.plan.report import UNKNOWN_DTYPE, Failure, Report, place_in_kernel

_WORD = re.compile(r"[A-Za-z_][A-Za-z_0-9]*")


@dataclass(slots=True)
class Group:
    """All points at which the same place failed; `failure` is the first one's."""

    failure: Failure
    points: list[int] = field(default_factory=list)


class Blame:
    """Collects failures while points are evaluated, then reports each mistake once."""

    def __init__(self) -> None:
        self.groups: dict[Path, Group] = {}

    def note(self, failure: Failure, point: int) -> None:
        """Remember that a place failed at a point."""
        self.groups.setdefault(failure.path, Group(failure)).points.append(point)

    def tell(
        self,
        report: Report,
        axes: Axes,
        shown_axes: Sequence[str],
        points: Sequence[Point],
        clean: Iterable[int],
        definitions: Sequence[Definition],
        texts: Mapping[Path, Formula],
    ) -> None:
        """Report all groups. `clean` are the points at which nothing failed."""
        good = [points[index] for index in clean]
        told: list[tuple[str, frozenset[int]]] = []
        for path, group in self.groups.items():
            formula = texts.get(path)
            related = _related_axes(group.failure, formula, shown_axes, definitions)
            failing = frozenset(group.points)
            if any(name in related.names and failing <= at for name, at in told):
                continue
            axis = _guilty(
                related, [points[index] for index in group.points], good, group.failure.code, axes.word_axes
            )
            first = points[group.points[0]]
            place = axes.place(first, axis) if axis is not None else None
            if axis is None or place is None:
                _tell_formula(report, group.failure, formula, first, shown_axes, bool(good))
                if related.name is not None:
                    told.append((related.name, failing))
                continue
            told.append((axis, failing))
            notes = (f"in {place_in_kernel(path)}: {formula.text}",) if formula is not None else ()
            shown, sentence = _shown(first.axes[axis]), group.failure.sentence
            if shown not in sentence:
                sentence = f"'{axis}' is {shown} here: {sentence}"
            report.error(group.failure.code, place, sentence, group.failure.hint, notes=notes)


@dataclass(frozen=True, slots=True)
class _Related:
    """Axes that a failure depends on: `exact` if its span is just an axis, `near` those in the span.

    `names` are all names that it depends on, `name` the one that is its whole span: a wrong `let` is met by
    each formula that uses it.
    """

    exact: str | None
    near: tuple[str, ...]
    every: tuple[str, ...]
    names: frozenset[str] = frozenset()
    name: str | None = None


def _related_axes(
    failure: Failure, formula: Formula | None, shown_axes: Sequence[str], definitions: Sequence[Definition]
) -> _Related:
    if formula is None:
        return _Related(None, (), ())
    text = formula.text
    if failure.span is not None:
        offset, length = failure.span
        text = text[offset : offset + length]
    in_span = [word for word in _WORD.findall(text) if word in formula.names]
    near = closure(in_span, definitions)
    every = closure(formula.names, definitions)
    name = text.strip() if text.strip() in formula.names else None
    return _Related(
        exact=name if name in shown_axes else None,
        near=tuple(axis for axis in shown_axes if axis in near),
        every=tuple(axis for axis in shown_axes if axis in every),
        names=every,
        name=name,
    )


def _guilty(
    related: _Related,
    failing: Sequence[Point],
    good: Sequence[Point],
    code: str,
    word_axes: Collection[str],
) -> str | None:
    """Return the axis whose value did it, None when the formula or no single axis did."""
    if not good:
        # An axis of words (dtypes, layouts) is right as it is: the formula should not compute with it. So is one
        # of numbers or lists where the formula wants another kind of value.
        if related.exact in word_axes:
            return None
        if code in (WRONG_TYPE, UNKNOWN_DTYPE) and not any(
            isinstance(point.axes.get(related.exact or ""), str) for point in failing
        ):
            return None
        return related.exact
    candidates = related.near or related.every
    separating = [
        axis
        for axis in candidates
        if not {exact(point.axes.get(axis)) for point in failing}
        & {exact(point.axes.get(axis)) for point in good}
    ]
    if related.exact in separating:
        return related.exact
    return separating[0] if len(separating) == 1 else None


def _tell_formula(
    report: Report,
    failure: Failure,
    formula: Formula | None,
    point: Point,
    shown_axes: Sequence[str],
    others_are_fine: bool,
) -> None:
    notes: tuple[str, ...] = ()
    values = [f"{axis}={shown_value(point.axes[axis])}" for axis in shown_axes if axis in point.axes]
    if others_are_fine and values:
        notes = (f"first at {', '.join(values)}",)
    span = failure.span if formula is not None else None
    report.error(failure.code, failure.path, failure.sentence, failure.hint, span=span, notes=notes)


def _shown(value: Value) -> str:
    return f"'{value}'" if isinstance(value, str) else shown_value(value)
