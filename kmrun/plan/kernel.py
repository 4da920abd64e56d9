"""One kernel of a suite, prepared: its names, formulas and settings, read once for all its points."""

from collections.abc import Callable, Collection, Mapping
from typing import Any

from kmrun.core.case import Check, Path
from kmrun.core.formula import Scope, Value
from kmrun.plan import settings
from kmrun.plan.arguments import Arguments
from kmrun.plan.axes import Axes
from kmrun.plan.contract import Contract
from kmrun.plan.definition import Definition, Work, in_order
from kmrun.plan.expression import Expressions
from kmrun.plan.figures import Figures, compile_peak
from kmrun.plan.names import Names, collect
from kmrun.plan.outputs import output_definitions
from kmrun.plan.ragged import compile_ragged
from kmrun.plan.repeats import check_repeats
from kmrun.plan.report import BAD_GRADIENT, NO_EFFECT, Report
from kmrun.plan.rows import check_rows
from kmrun.schema.arguments import Builder, Call, ListOf, TensorBuilder
from kmrun.schema.suite import Defaults, Kernel


class PreparedKernel:
    """Everything of a kernel that does not depend on the point; mistakes went to `report`."""

    def __init__(
        self,
        kernel: Kernel,
        path: Path,
        defaults: Defaults,
        default_tolerance: Mapping[str, Check],
        folder: str,
        known_cards: Collection[str] | None,
        report: Report,
    ) -> None:
        self.kernel = kernel
        self.path = path
        self.report = report
        self._errors_before = report.error_count
        self.names = collect(kernel, path, report)
        self.axes = Axes(kernel, path, known_cards, report)
        self.expressions = _expressions(self.names, report)
        self.seed = settings.seed(kernel, defaults)
        self.arguments = Arguments(kernel, path, self.expressions)
        self.definitions = self._definitions()
        self.excludes = [
            self.expressions.condition((*path, "exclude", index, "when"), exclude.when)
            for index, exclude in enumerate(kernel.exclude)
        ]
        self.figures = Figures(kernel, path, self.expressions)
        self.peak = compile_peak(kernel, path, self.expressions)
        self.contract = Contract(kernel, path, known_cards, self.expressions)
        self.own_tolerance = settings.tolerances(kernel.tolerance, (*path, "tolerance"), report)
        self.reference = settings.reference(kernel, path, self.arguments)
        compute = kernel.reference.compute if kernel.reference is not None else None
        self.compute = (
            self.expressions.dtype((*path, "reference", "compute"), compute) if compute is not None else None
        )
        settings.check_mutates(kernel, path, self.arguments)
        check_repeats(kernel, path, self.names, report)
        self._check_mode()
        self.can_evaluate = check_rows(kernel, path, self.expressions.used, self.names.unusable, report)
        self.common = self._common(defaults, default_tolerance, folder)
        # A word that names nothing may well be what an unusable name was meant to be.
        report.tell_unknown(but=len(self.names.unusable))

    @property
    def has_errors(self) -> bool:
        """Whether anything but a warning was found in this kernel so far."""
        return self.report.error_count > self._errors_before

    @property
    def undefined(self) -> frozenset[str]:
        """Names whose definition is wrong: what needs them cannot be judged."""
        names = {*self.names.lets, *self.names.arguments, *self.names.outputs, *self.kernel.ragged}
        return frozenset(names - {definition.name for definition in self.definitions})

    def _definitions(self) -> list[Definition]:
        found: list[Definition] = []
        for name, spec in self.kernel.ragged.items():
            place = (*self.path, "ragged", name)
            ragged = compile_ragged(name, spec, place, self.seed, self.expressions)
            if ragged is not None:
                found.append(Definition(name, place, ragged[0], _from_scope(ragged[1])))
        for name, source in self.kernel.let.items():
            place = (*self.path, "let", name)
            expression = self.expressions.compile(place, source)
            if expression is not None:
                wanted = frozenset(expression.formula.names)
                found.append(Definition(name, place, wanted, _from_scope(expression.evaluate)))
        found += self.arguments.definitions()
        if self.kernel.outputs is not None:
            found += output_definitions(self.kernel.outputs, (*self.path, "outputs"), self.arguments)
        # A name with two meanings makes circles that are none.
        return in_order(found, Report() if self.names.unusable else self.report)

    def _check_mode(self) -> None:
        if self.kernel.mode == "forward" and "grad" in self.kernel.model_fields_set:
            hint = "say mode: backward or forward_backward, or take it out"
            sentence = "no gradient comes in: the mode is forward"
            self.report.warning(NO_EFFECT, (*self.path, "grad"), sentence, hint, on_key=True)
        if self.kernel.mode == "forward" or any(map(_asks_gradient, self.arguments.builders.values())):
            return
        self.report.error(
            BAD_GRADIENT,
            (*self.path, "mode"),
            f"mode: {self.kernel.mode} needs an argument with requires_grad: true",
            "mark the arguments whose gradients are wanted",
        )

    def _common(
        self, defaults: Defaults, default_tolerance: Mapping[str, Check], folder: str
    ) -> dict[str, Any]:
        kernel = self.kernel
        first_call, case = settings.timeouts(kernel, defaults)
        return {
            "kernel": kernel.name,
            "shown_axes": self.names.axes,
            "folder": folder,
            "implementation": settings.implementation(kernel),
            "versus": settings.versus(kernel, self.path, self.arguments),
            "mutates": kernel.mutates,
            "mode": kernel.mode,
            "grad": kernel.grad,
            "checks": settings.checks(kernel),
            "tolerance": {**default_tolerance, **self.own_tolerance},
            "unlisted_device": kernel.unlisted_device or defaults.unlisted_device or "report",
            "timing": settings.timing(kernel, defaults),
            "first_call_timeout_s": first_call,
            "case_timeout_s": case,
            "requires": settings.requires(kernel),
            "seed": self.seed,
            "tags": kernel.tags,
            "place": self.path,
        }


def _expressions(names: Names, report: Report) -> Expressions:
    everything = {*names.axes, *names.lets, *names.arguments, *names.outputs}
    return Expressions(
        everything,
        {*names.axes, *names.lets},
        names.opaque,
        report,
        names.axes,
        names.reserved,
        {*names.arguments, *names.outputs},
    )


def _from_scope(find: Callable[[Scope], Value]) -> Callable[[Work], Value]:
    return lambda work: find(work.scope)


def _asks_gradient(builder: Builder) -> bool:
    if isinstance(builder, ListOf):
        return any(map(_asks_gradient, builder.items))
    return isinstance(builder, TensorBuilder | Call) and builder.requires_grad
