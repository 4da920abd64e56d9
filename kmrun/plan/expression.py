"""A formula at its place in the document, and all the formulas of one kernel."""

import re
from collections.abc import Collection
from dataclasses import dataclass

from kmrun.core.case import Path
from kmrun.core.dtypes import ALIASES, DTYPES, canonical
from kmrun.core.formula import Formula, FormulaError, Scope, Value, compile_formula
from kmrun.core.formula_error import WRONG_TYPE, did_you_mean
from kmrun.core.formula_functions import described, is_number, kind
from kmrun.plan.report import UNKNOWN_DTYPE, Failure, Report

_WORD = re.compile(r"[A-Za-z_][A-Za-z_0-9]*")
_OF_TENSOR = re.compile(r"\b(?:nbytes|numel)\s*\(\s*$")


@dataclass(frozen=True, slots=True)
class Expression:
    """A formula and where it was written."""

    path: Path
    formula: Formula

    def evaluate(self, scope: Scope) -> Value:
        """Return the value at one point.

        Raises:
            Failure: the formula has no value there.
        """
        try:
            return self.formula.evaluate(scope)
        except FormulaError as error:
            raise Failure(
                error.code, self.path, error.sentence, error.hint, (error.offset, error.length)
            ) from None

    def holds(self, scope: Scope) -> bool:
        """Return whether the condition holds at one point; numbers count as Python counts them.

        Raises:
            Failure: it has no value there, or one that is no condition: a forgotten comparison.
        """
        value = self.evaluate(scope)
        if value is not None and not is_number(value):
            sentence = f"a condition is needed here, this is {kind(value)}"
            raise self.whole(WRONG_TYPE, sentence, "compare it: ==, !=, <, <=, >, >=")
        return bool(value)

    def whole(self, code: str, sentence: str, hint: str = "") -> Failure:
        """Return a failure that concerns the value of the whole formula."""
        return Failure(code, self.path, sentence, hint, (0, len(self.formula.text)))


@dataclass(frozen=True, slots=True)
class DtypeRef:
    """A dtype as written: a name in scope (`dtype: dtype`), a choice between dtypes, or a dtype itself."""

    path: Path
    fixed: str | None
    expression: Expression | None

    def resolve(self, scope: Scope) -> str:
        """Return the canonical name at one point.

        Raises:
            Failure: the name does not hold a dtype there.
        """
        if self.fixed is not None:
            return self.fixed
        assert self.expression is not None
        value = self.expression.evaluate(scope)
        found = canonical(value) if isinstance(value, str) else None
        if found is None:
            shown = described(value)
            hint = did_you_mean(value, [*DTYPES, *ALIASES]) if isinstance(value, str) else ""
            raise self.expression.whole(UNKNOWN_DTYPE, f"{shown} is not a dtype", hint)
        return found

    def whole(self, code: str, sentence: str, hint: str = "") -> Failure:
        """Return a failure that concerns this dtype."""
        if self.expression is not None:
            return self.expression.whole(code, sentence, hint)
        return Failure(code, self.path, sentence, hint)


class Expressions:
    """Compiles the formulas of one kernel against its names, and remembers who uses which name.

    `names` is what formulas may mention; `shown` the part of it that an error lists, `tensors` what it lists where
    a tensor is asked for. `opaque` are arguments
    whose size nobody knows before the run. `axes` are the names that are axes, `reserved` those that
    no formula can mean.
    """

    def __init__(
        self,
        names: Collection[str],
        shown: Collection[str],
        opaque: Collection[str],
        report: Report,
        axes: Collection[str] = (),
        reserved: Collection[str] = (),
        tensors: Collection[str] = (),
    ) -> None:
        self.reserved = frozenset(reserved)
        self.names = frozenset(names)
        self.axes = frozenset(axes)
        self.shown = tuple(sorted(shown))
        self.tensors = tuple(sorted(tensors))
        self.opaque = frozenset(opaque)
        self.report = report
        self.used: set[str] = set()
        self.texts: dict[Path, Formula] = {}

    def compile(self, path: Path, source: str | int | float | bool) -> Expression | None:
        """Return the formula at `path`, or None when it is wrong (which is then reported)."""
        try:
            formula = compile_formula(source)
        except FormulaError as error:
            # A name that is reserved was told where it was given; here it only reads as something else.
            if self.reserved.isdisjoint(_WORD.findall(str(source))):
                self.report.formula(path, error)
            return None
        self.used.update(formula.names)
        unknown = formula.unknown_names(self.names)
        for slip in unknown:
            word = formula.text[slip.offset : slip.offset + slip.length]
            span = (slip.offset, slip.length)
            notes = self._names_at(formula.text[: slip.offset])
            self.report.unknown(word, slip.code, path, slip.sentence, slip.hint, span=span, notes=notes)
        if unknown:
            return None
        for name in self.opaque.intersection(formula.names):
            self.report.error(
                "K205",
                path,
                f"the size of '{name}' is unknown before 'init: call' has run",
                "write the size out of axes",
                span=(formula.names[name], len(name)),
            )
            return None
        self.texts[path] = formula
        return Expression(path, formula)

    def _names_at(self, before: str) -> tuple[str, ...]:
        """Return the note on the names that may stand after the text `before`: arguments in `nbytes(`."""
        shown = self.tensors if _OF_TENSOR.search(before) else self.shown
        return (f"names here: {', '.join(shown)}",) if shown else ()

    def condition(self, path: Path, source: str | int | float) -> Expression | None:
        """Return the formula of a `when`, or None when it is wrong, or the same at every point."""
        expression = self.compile(path, source)
        if expression is not None and not expression.formula.names:
            hint = "a condition compares axes: s > 4096"
            self.report.error(WRONG_TYPE, path, "this condition names nothing that varies", hint)
            return None
        return expression

    def dtype(self, path: Path, text: str) -> DtypeRef | None:
        """Return the dtype at `path`, or None when it is wrong. Names of axes win, then dtypes."""
        if text in self.names:
            return DtypeRef(path, None, self.compile(path, text))
        fixed = canonical(text)
        if fixed is not None:
            return DtypeRef(path, fixed, None)
        if text.replace("_", "").isalnum():
            hint = (
                did_you_mean(text, [*self.shown, *DTYPES, *ALIASES])
                or "dtypes are spelled fp32, bf16, int8, ..."
            )
            message = f"'{text}' is neither a dtype nor a name here"
            self.report.unknown(text, UNKNOWN_DTYPE, path, message, hint)
            return None
        expression = self.compile(path, text)
        return DtypeRef(path, None, expression) if expression is not None else None

    def use(self, name: str) -> None:
        """Remember that something other than a formula needs the name."""
        self.used.add(name)


def needs(*parts: Expression | DtypeRef | None) -> frozenset[str]:
    """Return the names that these mention."""
    names: set[str] = set()
    for part in parts:
        expression = part.expression if isinstance(part, DtypeRef) else part
        if expression is not None:
            names.update(expression.formula.names)
    return frozenset(names)
