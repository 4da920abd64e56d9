"""Points: what `matrix` crosses and `cases` couple. A row that pins a matrix axis leaves that crossing."""

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kmrun.core.case import Path
from kmrun.core.dtypes import canonical
from kmrun.core.formula import Value
from kmrun.core.formula_error import did_you_mean
from kmrun.plan.maker import exact
from kmrun.plan.names import DEVICE
from kmrun.plan.report import BAD_RANGE, SAME_CASE, TOO_MANY_CASES, UNKNOWN_DEVICE, Report
from kmrun.schema.suite import Kernel, Linear, Pow2

MAX_POINTS = 100_000
"""Points of one suite; one of more is a mistake, or should be split."""

DEVICE_KINDS = ("cpu", "gpu", "cuda", "rocm")


@dataclass(frozen=True, slots=True)
class Point:
    """One combination of axis values.

    `row` is its index in `cases`, `picks` the index of each matrix axis that its row did not pin.
    """

    axes: dict[str, Value]
    device: str | None
    row: int | None
    picks: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class _Row:
    index: int | None
    device: str | None
    values: Mapping[str, Value]


class Axes:
    """The axes of one kernel, read once: values of the matrix, rows with their ranges spread out."""

    def __init__(self, kernel: Kernel, path: Path, known_cards: Iterable[str] | None, report: Report) -> None:
        self.path = path
        self.report = report
        self.ranged: set[tuple[int | None, str]] = set()
        errors = report.error_count
        self.matrix = self._read_matrix(kernel)
        self.rows = self._read_rows(kernel, known_cards)
        self._unify_dtypes()
        self._good = report.error_count == errors

    def points(self, limit: int = MAX_POINTS) -> list[Point]:
        """Return all points: row by row, the last matrix axis fastest.

        Empty when the axes are wrong, or make more than `limit` points (which is reported).
        """
        if not self._good or not self._count_fits(limit):
            return []
        return [point for row in self.rows for point in self._cross(row)]

    def place(self, point: Point, axis: str) -> Path | None:
        """Return where the value that this axis has at this point was written; None for a ragged axis."""
        if point.row is not None and (point.row, axis) in self.ranged:
            return (*self.path, "cases", point.row, axis)
        if axis in point.picks:
            ranged = (None, axis) in self.ranged
            return (*self.path, "matrix", axis) if ranged else (*self.path, "matrix", axis, point.picks[axis])
        if point.row is not None and axis in self.rows_keys[point.row]:
            return (*self.path, "cases", point.row, axis)
        return None

    @property
    def rows_keys(self) -> Mapping[int | None, Mapping[str, Value]]:
        """Rows by their index in the document."""
        return {row.index: row.values for row in self.rows}

    def _cross(self, row: _Row) -> Iterable[Point]:
        crossed = [name for name in self.matrix if name not in row.values]
        indices = [range(len(self.matrix[name])) for name in crossed]
        for chosen in itertools.product(*indices):
            picks = dict(zip(crossed, chosen, strict=True))
            axes = dict(row.values)
            for name, index in picks.items():
                axes[name] = self.matrix[name][index]
            yield Point(axes, row.device, row.index, picks)

    def _count_fits(self, limit: int) -> bool:
        total = 0
        for row in self.rows:
            product = 1
            for name, values in self.matrix.items():
                product *= 1 if name in row.values else len(values)
            total += product
        if total > limit:
            self.report.error(
                TOO_MANY_CASES,
                (*self.path, "matrix" if self.matrix else "cases"),
                f"this expands to {total} cases; at most {MAX_POINTS} are planned in one suite",
                "couple axes in 'cases' instead of crossing them",
                on_key=True,
            )
            return False
        return True

    def _read_matrix(self, kernel: Kernel) -> dict[str, tuple[Value, ...]]:
        matrix: dict[str, tuple[Value, ...]] = {}
        for name, spec in kernel.matrix.items():
            place = (*self.path, "matrix", name)
            if isinstance(spec, Pow2 | Linear):
                self.ranged.add((None, name))
                matrix[name] = _spread(spec, place, self.report)
            else:
                matrix[name] = tuple(spec)
                self._check_repeats(spec, place)
        return matrix

    def _check_repeats(self, values: Sequence[Value], place: Path) -> None:
        seen: set[Value] = set()
        for index, value in enumerate(values):
            spelled = canonical(value) if isinstance(value, str) else None
            key = exact(spelled or value)
            if key in seen:
                self.report.error(
                    SAME_CASE, (*place, index), f"'{place[-1]}' has this value already", "remove one"
                )
            seen.add(key)

    def _read_rows(self, kernel: Kernel, known_cards: Iterable[str] | None) -> list[_Row]:
        if kernel.cases is None:
            return [_Row(None, None, {})]
        cards = None if known_cards is None else frozenset(known_cards)
        rows: list[_Row] = []
        for index, row in enumerate(kernel.cases):
            place = (*self.path, "cases", index)
            device = self._device(row[DEVICE], (*place, DEVICE), cards) if DEVICE in row else None
            ranges = {name: spec for name, spec in row.items() if isinstance(spec, Pow2 | Linear)}
            fixed = {name: value for name, value in row.items() if name not in ranges and name != DEVICE}
            if len(ranges) > 1:
                name = list(ranges)[1]
                self.report.error(
                    BAD_RANGE,
                    (*place, name),
                    "a second range in one row",
                    "nothing is crossed silently: put one of them into 'matrix'",
                )
                continue
            if not ranges:
                rows.append(_Row(index, device, fixed))
                continue
            ((name, spec),) = ranges.items()
            self.ranged.add((index, name))
            order = [key for key in row if key != DEVICE]
            for value in _spread(spec, (*place, name), self.report):
                values = {**fixed, name: value}
                rows.append(_Row(index, device, {key: values[key] for key in order}))
        return rows

    def _device(self, value: Any, place: Path, cards: frozenset[str] | None) -> str | None:
        if isinstance(value, str) and (value in DEVICE_KINDS or cards is None or value in cards):
            return value
        hint = ""
        if isinstance(value, str):
            is_kind = value.casefold() in DEVICE_KINDS
            hint = did_you_mean(value, DEVICE_KINDS if is_kind else (*DEVICE_KINDS, *(cards or ())))
        shown = f"'{value}'" if isinstance(value, str) else "this"
        self.report.error(
            UNKNOWN_DEVICE,
            place,
            f"{shown} is no device",
            hint or "write cpu, gpu, cuda, rocm or a card's id",
        )
        return None

    @property
    def word_axes(self) -> frozenset[str]:
        """Axes that hold nothing but strings: dtypes, or two words and more."""
        return frozenset(
            name
            for name, items in self._values().items()
            if all(isinstance(item, str) for item in items)
            and (len(set(items)) > 1 or canonical(items[0]) is not None)
        )

    def _values(self) -> dict[str, list[Value]]:
        values: dict[str, list[Value]] = {name: list(items) for name, items in self.matrix.items()}
        for row in self.rows:
            for name, value in row.values.items():
                values.setdefault(name, []).append(value)
        return {name: items for name, items in values.items() if items}

    def _unify_dtypes(self) -> None:
        """Give every axis that holds nothing but dtypes their canonical names."""
        names = frozenset(
            name
            for name, items in self._values().items()
            if all(isinstance(item, str) and canonical(item) is not None for item in items)
        )
        if names:
            for name in names.intersection(self.matrix):
                self.matrix[name] = tuple(canonical(item) for item in self.matrix[name])
            self.rows = [
                _Row(
                    row.index,
                    row.device,
                    {
                        name: canonical(value) if name in names and isinstance(value, str) else value
                        for name, value in row.values.items()
                    },
                )
                for row in self.rows
            ]


def may_meet(one: str | None, other: str | None) -> bool:
    """Return whether two rows' devices can be one machine's device: then their case ids must differ."""
    if one is None or other is None or one == other:
        return True
    if "cpu" in (one, other):
        return False
    if "gpu" in (one, other):
        return True
    kinds = {"cuda", "rocm"}
    # Two kinds or two cards are never one device; a card is of one kind, and which one is not known here.
    return (one in kinds) != (other in kinds)


def _spread(spec: Pow2 | Linear, place: Path, report: Report) -> tuple[int, ...]:
    """Return the points of a range, both ends included."""
    if isinstance(spec, Pow2):
        first, last = spec.pow2
        for index, end in enumerate((first, last)):
            if end < 1 or end & (end - 1):
                report.error(BAD_RANGE, (*place, "pow2", index), f"{end} is not a power of two")
                return ()
        if last < first:
            report.error(BAD_RANGE, (*place, "pow2"), "the last power is below the first", "swap them")
            return ()
        return tuple(2**power for power in range(first.bit_length() - 1, last.bit_length()))
    first, last, step = spec.linear
    if step < 1:
        report.error(BAD_RANGE, (*place, "linear", 2), "the step must be 1 or more")
        return ()
    if last < first:
        report.error(BAD_RANGE, (*place, "linear"), "the last value is below the first", "swap them")
        return ()
    if (last - first) // step >= MAX_POINTS:
        report.error(TOO_MANY_CASES, (*place, "linear"), f"more than {MAX_POINTS} values")
        return ()
    return tuple(range(first, last + 1, step))
