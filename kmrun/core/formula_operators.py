"""What the operators of the formula language do with values: rules and limits while evaluating."""

import ast
import math
import operator
from collections.abc import Callable

from kmrun.core.dtypes import canonical
from kmrun.core.formula_error import NO_VALUE, TOO_LARGE, WRONG_TYPE, FormulaError
from kmrun.core.formula_functions import MAX_INTEGER, TensorValue, Value, is_number, kind

MAX_EXPONENT = 1024

Place = tuple[int, int]
"""(offset, length) in characters, inside the formula."""

ARITHMETIC: dict[type[ast.operator], Callable[[Value, Value], Value]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
}

_ORDER: dict[type[ast.cmpop], Callable[[Value, Value], bool]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}


def bounded(value: Value, offset: int, length: int) -> Value:
    """Return the value if it is a number within limits."""
    if isinstance(value, int):
        if -MAX_INTEGER <= value <= MAX_INTEGER:
            return value
        raise FormulaError(TOO_LARGE, "the number is beyond 2 ** 128", offset, length)
    if isinstance(value, float):
        if math.isfinite(value):
            return value
        raise FormulaError(TOO_LARGE, "the number is too large", offset, length)
    raise FormulaError(NO_VALUE, "this has no real value", offset, length)


def comparison(op: ast.cmpop) -> Callable[[Value, Value, Place, Place], bool]:
    """Return the test that an operator stands for; it takes both values and both places."""
    if isinstance(op, ast.Eq | ast.NotEq):
        wanted = isinstance(op, ast.Eq)

        def equality(a: Value, b: Value, place_a: Place, place_b: Place) -> bool:
            for value, place in ((a, place_a), (b, place_b)):
                if isinstance(value, TensorValue):
                    raise FormulaError(WRONG_TYPE, "a tensor cannot be compared", *place)
            return equal(a, b) is wanted

        return equality
    order = _ORDER[type(op)]

    def ordering(a: Value, b: Value, place_a: Place, place_b: Place) -> bool:
        for value, place in ((a, place_a), (b, place_b)):
            if not is_number(value):
                raise not_a_number(value, *place)
        return order(a, b)

    return ordering


def equal(a: Value, b: Value) -> bool:
    """Return whether two values are equal; spellings of one dtype are."""
    if isinstance(a, str) and isinstance(b, str) and a != b:
        dtype = canonical(a)
        return dtype is not None and dtype == canonical(b)
    return bool(a == b)


def check_power(base: int | float, exponent: int | float, place: Place) -> None:
    """Refuse a power before it is computed: 10 ** 10 ** 10 would take all memory."""
    if abs(exponent) > MAX_EXPONENT:
        raise FormulaError(TOO_LARGE, f"an exponent beyond {MAX_EXPONENT}", *place)
    if isinstance(base, int) and isinstance(exponent, int) and exponent > 0:
        bits = (abs(base).bit_length() - 1) * exponent  # a lower bound of the result's
        if bits > MAX_INTEGER.bit_length():
            raise FormulaError(TOO_LARGE, "the number is beyond 2 ** 128", *place)


def condition(value: Value, offset: int, length: int) -> bool:
    """Return the truth of a value, as Python sees it."""
    if isinstance(value, TensorValue):
        raise FormulaError(WRONG_TYPE, "a tensor is no condition", offset, length)
    return bool(value)


def not_a_number(value: Value, offset: int, length: int) -> FormulaError:
    """Return the error for arithmetic on something else."""
    hint = "numel(x) and nbytes(x) give an argument's size" if isinstance(value, TensorValue) else ""
    if isinstance(value, tuple):
        hint = "sum, min, max, len and sumsq make a number of a list"
    return FormulaError(WRONG_TYPE, f"a number is needed here, this is {kind(value)}", offset, length, hint)
