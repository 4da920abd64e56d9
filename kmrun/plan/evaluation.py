"""The points of one kernel, evaluated: a case for each that is left, each mistake told once."""

import dataclasses
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from kmrun.core.case import Case, Reference
from kmrun.core.dtypes import find
from kmrun.core.formula import Scope
from kmrun.core.formula_error import UNKNOWN_NAME
from kmrun.plan.axes import MAX_POINTS, Point, may_meet
from kmrun.plan.blame import Blame
from kmrun.plan.definition import Definition, Work, closure
from kmrun.plan.ids import case_id
from kmrun.plan.kernel import PreparedKernel
from kmrun.plan.report import BAD_OPTION, SAME_CASE, Failure
from kmrun.plan.traffic import needed_bytes, tensors
from kmrun.plan.usage import report_unused

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Excluded:
    """A point that an `exclude` took away, and why."""

    id: str
    reason: str


@dataclass(frozen=True, slots=True)
class PlannedKernel:
    """The cases of a kernel (none when it has errors) and what was excluded."""

    cases: tuple[Case, ...]
    excluded: tuple[Excluded, ...]
    has_errors: bool


def evaluate(prepared: PreparedKernel, limit: int = MAX_POINTS) -> PlannedKernel:
    """Return the cases of a prepared kernel, at most `limit`; mistakes go to its report."""
    return _Evaluation(prepared).run(limit)


class _Evaluation:
    def __init__(self, prepared: PreparedKernel) -> None:
        self.prepared = prepared
        self.blame = Blame()
        self.exclude_hits = [0] * len(prepared.excludes)
        self.references: dict[str | None, Reference | None] = {}
        self.argument_names = prepared.names.arguments
        self.output_names = prepared.names.outputs

    def run(self, limit: int) -> PlannedKernel:
        prepared = self.prepared
        points = prepared.axes.points(limit) if prepared.can_evaluate else []
        first, rest = self._stages()
        undefined = prepared.undefined
        cases: list[Case] = []
        excluded: list[Excluded] = []
        clean: list[int] = []
        for index, point in enumerate(points):
            work = Work(dict(point.axes))
            bad = set(undefined)
            self._define(first, work, bad, index)
            reason = self._exclusion(work.scope, bad, index)
            if reason is not None:
                excluded.append(Excluded(self._id(work.scope), reason))
                continue
            self._define(rest, work, bad, index)
            case = self._case(point, work, bad, index)
            if case is not None:
                clean.append(index)
                cases.append(case)
        self.blame.tell(
            prepared.report,
            prepared.axes,
            prepared.names.axes,
            points,
            clean,
            prepared.definitions,
            prepared.expressions.texts,
        )
        if not prepared.has_errors:
            self._check_ids(cases, [points[index] for index in clean])
        if not prepared.has_errors:
            report_unused(prepared, cases, self.exclude_hits)
        good = not prepared.has_errors
        return PlannedKernel(tuple(cases) if good else (), tuple(excluded), not good)

    def _stages(self) -> tuple[list[Definition], list[Definition]]:
        """Return what the excludes need, and the rest: an excluded point need not make sense."""
        definitions = self.prepared.definitions
        named = [name for it in self.prepared.excludes if it is not None for name in it.formula.names]
        early = closure(named, definitions)
        first = [definition for definition in definitions if definition.name in early]
        return first, [definition for definition in definitions if definition.name not in early]

    def _define(self, definitions: Iterable[Definition], work: Work, bad: set[str], index: int) -> None:
        for definition in definitions:
            if bad and not bad.isdisjoint(definition.needs):
                bad.add(definition.name)
                continue
            try:
                work.scope[definition.name] = definition.define(work)
            except Failure as failure:
                self.blame.note(failure, index)
                bad.add(definition.name)

    def _exclusion(self, scope: Scope, bad: set[str], index: int) -> str | None:
        """Return the reason of the first exclude that takes the point away; all are tried for their use."""
        reason: str | None = None
        for number, when in enumerate(self.prepared.excludes):
            if when is None or not bad.isdisjoint(when.formula.names):
                continue
            try:
                hit = when.holds(scope)
            except Failure as failure:
                self.blame.note(failure, index)
                bad.add("")  # nothing is called so: the point is spoiled, no definition is
                continue
            if hit:
                self.exclude_hits[number] += 1
                reason = reason or self.prepared.kernel.exclude[number].reason
        return reason

    def _case(self, point: Point, work: Work, bad: set[str], index: int) -> Case | None:
        prepared, scope = self.prepared, work.scope
        failed = False

        def attempt(find: Callable[[], T]) -> T | None:
            nonlocal failed
            try:
                return find()
            except Failure as failure:
                # All names are known here, so an unknown one is one whose definition failed and was noted.
                if failure.code != UNKNOWN_NAME:
                    self.blame.note(failure, index)
            failed = True
            return None

        complete = bad.isdisjoint(self.argument_names) and bad.isdisjoint(self.output_names)
        arguments = tuple([work.arguments[name] for name in self.argument_names]) if complete else ()
        outputs = None
        if complete and prepared.kernel.outputs is not None:
            outputs = tuple([work.outputs[name] for name in self.output_names])
        held = tensors(arguments)
        flops = attempt(lambda: prepared.figures.flops(scope))
        moved = attempt(lambda: prepared.figures.bytes(scope, arguments, held, outputs)) if complete else None
        peak = attempt(lambda: prepared.peak(scope))
        clauses = attempt(lambda: prepared.contract.applying(scope))
        reference = attempt(lambda: self._reference(scope))
        if failed or bad or moved is None or clauses is None:
            return None
        axes = {name: scope[name] for name in prepared.names.axes}
        return Case(
            id=case_id(prepared.kernel.name, prepared.names.axes, axes),
            axes=axes,
            device=point.device,
            arguments=arguments,
            outputs=outputs,
            reference=reference,
            bytes=moved[0],
            bytes_auto=moved[1],
            flops=flops,
            peak=peak,
            clauses=clauses,
            needed_bytes=needed_bytes(
                held,
                outputs,
                mode=prepared.kernel.mode,
                compute=reference.compute if reference is not None else None,
                has_reference=reference is not None,
                chunks=_chunks(reference, scope),
            ),
            **prepared.common,
        )

    def _reference(self, scope: Scope) -> Reference | None:
        prepared = self.prepared
        if prepared.reference is None or prepared.compute is None:
            return prepared.reference
        compute = prepared.compute.resolve(scope)
        if not find(compute).is_float or find(compute).bits < 16:
            sentence = f"a reference cannot compute in {compute}"
            raise prepared.compute.whole(BAD_OPTION, sentence, "fp64 and fp32 are the usual ones")
        if compute not in self.references:
            self.references[compute] = dataclasses.replace(prepared.reference, compute=compute)
        return self.references[compute]

    def _id(self, scope: Scope) -> str:
        shown = [name for name in self.prepared.names.axes if name in scope]
        return case_id(self.prepared.kernel.name, shown, scope)

    def _check_ids(self, cases: Sequence[Case], points: Sequence[Point]) -> None:
        seen: dict[str, list[Point]] = {}
        path = self.prepared.path
        for case, point in zip(cases, points, strict=True):
            others = seen.setdefault(case.id, [])
            twin = next((other for other in others if may_meet(other.device, point.device)), None)
            others.append(point)
            if twin is not None:
                place = (*path, "cases", point.row) if point.row is not None else (*path, "matrix")
                hint = f"row {twin.row + 1} of 'cases' makes it already" if twin.row is not None else ""
                self.prepared.report.error(SAME_CASE, place, f"the case {case.id} exists already", hint)


def _chunks(reference: Reference | None, scope: Scope) -> int:
    if reference is None or reference.chunk is None:
        return 1
    count = scope.get(reference.chunk)
    return count if isinstance(count, int) else 1
