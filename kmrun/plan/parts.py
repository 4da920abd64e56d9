"""The parts that argument builders share: shape, own keys, layout, each evaluated per point."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kmrun.core.case import Path
from kmrun.core.formula import Scope
from kmrun.core.formula_functions import described, is_number
from kmrun.plan.builders import formula_options
from kmrun.plan.expression import Expression, Expressions, needs
from kmrun.plan.report import BAD_OPTION, BAD_SHAPE, Failure
from kmrun.schema.arguments import Builder, Strides, options

MAX_ELEMENTS = 2**48


@dataclass(frozen=True, slots=True)
class Shape:
    """Dimensions as formulas; each must come to a whole number from 1 on.

    `least` is 0 for those that are an axis or a plain 0: an empty tensor is meant there. A computed 0 is a slip.
    """

    path: Path
    dimensions: tuple[Expression, ...]
    least: tuple[int, ...]

    @property
    def needs(self) -> frozenset[str]:
        """The names that the dimensions mention."""
        return needs(*self.dimensions)

    def evaluate(self, scope: Scope) -> tuple[int, ...]:
        """Return the sizes at one point.

        Raises:
            Failure: a dimension is no such number, or the tensor is beyond any memory.
        """
        sizes = tuple([dimension.evaluate(scope) for dimension in self.dimensions])
        for size, dimension, least in zip(sizes, self.dimensions, self.least, strict=True):
            if type(size) is not int or size < least:
                hint = "'//' divides to whole numbers" if isinstance(size, float) else ""
                if type(size) is int and size == 0:
                    hint = "only an axis, or a plain 0, may make an empty tensor"
                sentence = f"a dimension must be a whole number from {least} on, this is {described(size)}"
                raise dimension.whole(BAD_SHAPE, sentence, hint)
        if math.prod(sizes) > MAX_ELEMENTS:
            raise Failure(BAD_SHAPE, self.path, f"a tensor of {math.prod(sizes)} elements fits nowhere")
        return sizes


def compile_shape(sources: Sequence[int | float | str], path: Path, expressions: Expressions) -> Shape | None:
    """Return the shape written at `path`, None when a dimension is wrong (and reported)."""
    found = compile_all(sources, path, expressions)
    if found is None:
        return None
    may_be_empty = expressions.axes | {"0"}
    return Shape(path, found, tuple(int(one.formula.text.strip() not in may_be_empty) for one in found))


def compile_all(
    sources: Sequence[int | float | str], path: Path, expressions: Expressions
) -> tuple[Expression, ...] | None:
    """Return a list of formulas, None when one is wrong; all wrong ones are reported."""
    found = [expressions.compile((*path, index), source) for index, source in enumerate(sources)]
    good = tuple(expression for expression in found if expression is not None)
    return good if len(good) == len(found) else None


class Options:
    """A builder's own keys: formulas among them become numbers, the rest stays as written."""

    def __init__(
        self,
        fixed: Mapping[str, Any],
        computed: Mapping[str, Expression | tuple[Expression, ...]],
        written: frozenset[str],
    ) -> None:
        self.fixed = fixed
        self.computed = computed
        self.written = written
        self.needs = needs(*(part for item in computed.values() for part in _parts(item)))
        self._constant: Mapping[str, Any] | None = None

    def evaluate(self, scope: Scope) -> Mapping[str, Any]:
        """Return all keys with their values at one point; the very same mapping where nothing varies.

        Raises:
            Failure: a value is no number.
        """
        if self._constant is not None:
            return self._constant
        found = dict(self.fixed)
        for key, item in self.computed.items():
            found[key] = (
                tuple(_number(part, scope) for part in item)
                if isinstance(item, tuple)
                else _number(item, scope)
            )
        if not self.needs:
            self._constant = found
        return found

    def whole(
        self, key: str, code: str, sentence: str, hint: str, path: Path, index: int | None = None
    ) -> Failure:
        """Return the failure of one key (of its item `index`), at its formula where it has one.

        A key that was left out has no place: then it is the one that clashes with it, or the builder.
        """
        if key not in self.written:
            others = [other for other in self.computed if other in self.written]
            if len(others) != 1:
                return Failure(code, path, sentence, hint)
            key = others[0]
        item = self.computed.get(key)
        if isinstance(item, tuple) and index is not None:
            item = item[index]
        if isinstance(item, Expression):
            return item.whole(code, sentence, hint)
        return Failure(code, (*path, key), sentence, hint)


def compile_options(builder: Builder, path: Path, expressions: Expressions) -> Options | None:
    """Return the builder's own keys, None when a formula among them is wrong (and reported)."""
    formulas = formula_options(type(builder))
    fixed: dict[str, Any] = {}
    computed: dict[str, Expression | tuple[Expression, ...]] = {}
    good = True
    for key, value in options(builder).items():
        if key not in formulas or value is None:
            fixed[key] = value
            continue
        item = (
            compile_all(value, (*path, key), expressions)
            if isinstance(value, tuple)
            else expressions.compile((*path, key), value)
        )
        if item is None:
            good = False
        else:
            computed[key] = item
    return Options(fixed, computed, frozenset(builder.model_fields_set)) if good else None


@dataclass(frozen=True, slots=True)
class Layout:
    """How a tensor lies in memory: None, a word, or strides in elements."""

    word: str | None
    strides: tuple[Expression, ...] | None

    @property
    def needs(self) -> frozenset[str]:
        """The names that the strides mention."""
        return needs(*self.strides) if self.strides is not None else frozenset()

    def evaluate(self, scope: Scope) -> Any:
        """Return what `core.case.Argument.layout` holds.

        Raises:
            Failure: a stride is no whole number from 0 on.
        """
        if self.strides is None:
            return self.word
        values: list[int] = []
        for stride in self.strides:
            value = stride.evaluate(scope)
            if type(value) is not int or value < 0:
                sentence = f"a stride is a whole number from 0 on, this is {described(value)}"
                raise stride.whole(BAD_OPTION, sentence)
            values.append(value)
        return {"strides": tuple(values)}


def compile_layout(written: Strides | str | None, path: Path, expressions: Expressions) -> Layout | None:
    """Return the layout written at `path`, None when a stride is wrong (and reported)."""
    if not isinstance(written, Strides):
        return Layout(written, None)
    strides = compile_all(written.strides, (*path, "strides"), expressions)
    return None if strides is None else Layout(None, strides)


def _parts(item: Expression | tuple[Expression, ...]) -> tuple[Expression, ...]:
    return item if isinstance(item, tuple) else (item,)


def _number(expression: Expression, scope: Scope) -> int | float:
    value = expression.evaluate(scope)
    if not is_number(value):
        raise expression.whole(BAD_OPTION, f"a number is needed here, this is {described(value)}")
    return value
