"""The values and the functions of the formula language.

A value is a number, a bool, a string (also a dtype), None, a tuple of values (a list axis), a `TensorValue`.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeGuard

from kmrun.core.dtypes import DTYPES, canonical, find, storage_bytes

Value = Any
"""int | float | bool | str | None | tuple of values | TensorValue."""

MAX_INTEGER = 2**128
"""No real count of bytes or operations comes near; a product of two stays cheap."""


@dataclass(frozen=True, slots=True)
class TensorValue:
    """An argument or an output as formulas see it: `numel(q)`, `nbytes(q)`, `sizeof(q)`."""

    shape: tuple[int, ...]
    dtype: str

    @property
    def numel(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        """Bytes of the elements, packed."""
        return storage_bytes(self.numel, self.dtype)


class Refusal(Exception):
    """A function does not take these values. `index` is the argument at fault, None for the whole call."""

    def __init__(self, sentence: str, index: int | None = None, no_value: bool = False) -> None:
        super().__init__(sentence)
        self.sentence = sentence
        self.index = index
        self.no_value = no_value


@dataclass(frozen=True, slots=True)
class Function:
    """A function of the language. `call` gets the argument values, `least` to `most` of them (None: any)."""

    call: Callable[[Sequence[Value]], Value]
    least: int
    most: int | None
    signature: str


def is_number(value: Value) -> TypeGuard[int | float]:
    """Return whether the value counts as a number (bools count as 0 and 1)."""
    return isinstance(value, int | float)


def kind(value: Value) -> str:
    """Return what to call the value in a message."""
    if isinstance(value, bool):
        return "a bool"
    if is_number(value):
        return "a number"
    if isinstance(value, str):
        return "a dtype" if value in DTYPES else "a string"
    if isinstance(value, tuple):
        return "a list"
    if isinstance(value, TensorValue):
        return "a tensor"
    return "null"


def described(value: Value) -> str:
    """Return a value as a sentence shows it; what has no short form by its kind."""
    if isinstance(value, str):
        return f"'{value}'"
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    return (
        f"{value:g}"
        if isinstance(value, float) and not value.is_integer()
        else (str(value) if is_number(value) else kind(value))
    )


def _number(values: Sequence[Value], index: int, name: str) -> int | float:
    value = values[index]
    if not is_number(value):
        raise Refusal(f"{name} takes numbers, this is {kind(value)}", index)
    return value


def _numbers(values: Sequence[Value], name: str) -> Sequence[int | float]:
    """Return the numbers of one list argument, or of several number arguments."""
    if len(values) == 1 and isinstance(values[0], tuple):
        return _list(values, name)
    return [_number(values, index, name) for index in range(len(values))]


def _list(values: Sequence[Value], name: str) -> Sequence[int | float]:
    (value,) = values
    if not isinstance(value, tuple):
        raise Refusal(f"{name} takes a list, this is {kind(value)}", 0)
    for item in value:
        if not is_number(item):
            raise Refusal(f"{name} takes a list of numbers, this one holds {kind(item)}", 0)
    return value


def _extreme(
    name: str, pick: Callable[[Sequence[int | float]], int | float]
) -> Callable[[Sequence[Value]], Value]:
    def call(values: Sequence[Value]) -> Value:
        numbers = _numbers(values, name)
        if not numbers:
            raise Refusal(f"{name} of an empty list has no value", 0, no_value=True)
        return pick(numbers)

    return call


def _rounded(name: str, way: Callable[[int | float], int]) -> Callable[[Sequence[Value]], Value]:
    return lambda values: way(_number(values, 0, name))


def _cdiv(values: Sequence[Value]) -> Value:
    top, bottom = _number(values, 0, "cdiv"), _number(values, 1, "cdiv")
    for index, number in enumerate((top, bottom)):
        if not isinstance(number, int):
            raise Refusal("cdiv takes integers; for others write ceil(a / b)", index)
    if bottom == 0:
        raise Refusal("division by zero", 1, no_value=True)
    return -(-top // bottom)


def _log2(values: Sequence[Value]) -> Value:
    number = _number(values, 0, "log2")
    if number <= 0:
        raise Refusal(f"log2 of {number} has no value", 0, no_value=True)
    return math.log2(number)


def _sqrt(values: Sequence[Value]) -> Value:
    number = _number(values, 0, "sqrt")
    if number < 0:
        raise Refusal(f"sqrt of {number} has no value", 0, no_value=True)
    return math.sqrt(number)


def _abs(values: Sequence[Value]) -> Value:
    return abs(_number(values, 0, "abs"))


def _sum(values: Sequence[Value]) -> Value:
    return sum(_list(values, "sum"))


def _sumsq(values: Sequence[Value]) -> Value:
    return sum(item * item for item in _list(values, "sumsq"))


def _len(values: Sequence[Value]) -> Value:
    if not isinstance(values[0], tuple):
        raise Refusal(f"len takes a list, this is {kind(values[0])}", 0)
    return len(values[0])


def _unique(values: Sequence[Value]) -> Value:
    if not isinstance(values[0], tuple):
        raise Refusal(f"unique takes a list, this is {kind(values[0])}", 0)
    return tuple(dict.fromkeys(values[0]))


def _bits_of(values: Sequence[Value], name: str) -> int:
    value = values[0]
    spelling = value.dtype if isinstance(value, TensorValue) else value
    if not isinstance(spelling, str) or canonical(spelling) is None:
        shown = f"'{spelling}'" if isinstance(spelling, str) else kind(value)
        raise Refusal(f"{name} takes a dtype or an argument, this is {shown}", 0)
    return find(spelling).bits


def _sizeof(values: Sequence[Value]) -> Value:
    bits = _bits_of(values, "sizeof")
    return bits // 8 if bits % 8 == 0 else bits / 8


def _tensor(values: Sequence[Value], name: str) -> TensorValue:
    value = values[0]
    if not isinstance(value, TensorValue):
        raise Refusal(f"{name} takes an argument or an output that is a tensor, this is {kind(value)}", 0)
    return value


FUNCTIONS: dict[str, Function] = {
    "min": Function(_extreme("min", min), 1, None, "min(a, b, ...) or min(list)"),
    "max": Function(_extreme("max", max), 1, None, "max(a, b, ...) or max(list)"),
    "ceil": Function(_rounded("ceil", math.ceil), 1, 1, "ceil(x)"),
    "floor": Function(_rounded("floor", math.floor), 1, 1, "floor(x)"),
    "cdiv": Function(_cdiv, 2, 2, "cdiv(a, b)"),
    "log2": Function(_log2, 1, 1, "log2(x)"),
    "sqrt": Function(_sqrt, 1, 1, "sqrt(x)"),
    "abs": Function(_abs, 1, 1, "abs(x)"),
    "sum": Function(_sum, 1, 1, "sum(list)"),
    "len": Function(_len, 1, 1, "len(list)"),
    "unique": Function(_unique, 1, 1, "unique(list)"),
    "sumsq": Function(_sumsq, 1, 1, "sumsq(list)"),
    "sizeof": Function(_sizeof, 1, 1, "sizeof(dtype)"),
    "bits": Function(lambda values: _bits_of(values, "bits"), 1, 1, "bits(dtype)"),
    "numel": Function(lambda values: _tensor(values, "numel").numel, 1, 1, "numel(arg)"),
    "nbytes": Function(lambda values: _tensor(values, "nbytes").nbytes, 1, 1, "nbytes(arg)"),
}
"""By name. `unique` keeps the first of equal items; `sizeof` of a sub-byte type is a fraction."""
