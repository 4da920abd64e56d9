"""What `init: value` passes: formulas, names, dtypes, strings, bools, null, and tuples of these.

A text is a formula when it reads as one whose names are known, or one that counts with a number (`1 / pp`). A
bare word that names nothing is a string, unless it looks like a slip of a known name. Quotes inside the text make
it a string in any case: "'mean'".
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from kmrun.core.case import Path
from kmrun.core.dtypes import canonical
from kmrun.core.formula import FormulaError, Scope, TensorValue, Value, compile_formula
from kmrun.core.formula_error import UNKNOWN_NAME, nearest
from kmrun.plan.expression import Expressions, needs
from kmrun.plan.report import BAD_OPTION, WORD_NONE

_WORD = re.compile(r"[A-Za-z_][A-Za-z_0-9]*")
_ARITHMETIC = re.compile(r"\b\d[\d.]*\s+[-+*/%]|[-+*/%]\s+\d")  # what is counted with is no mere text
_LEAST_FOR_A_SLIP = 4  # a shorter word is near to far too many


@dataclass(frozen=True, slots=True)
class Passed:
    """A value to pass; `is_dtype` when a dtype was meant, which the callee gets as torch's own."""

    value: Value
    is_dtype: bool = False


@dataclass(frozen=True, slots=True)
class PassedValue:
    """How the value of one argument is found at a point."""

    needs: frozenset[str]
    find: Callable[[Scope], Passed]


def compile_value(value: Any, path: Path, expressions: Expressions) -> PassedValue | None:
    """Return how to find the value that is written at `path`, None when it is wrong (and reported)."""
    if isinstance(value, tuple):
        parts = [compile_value(item, (*path, index), expressions) for index, item in enumerate(value)]
        good = [part for part in parts if part is not None]
        if len(good) != len(parts):
            return None
        return PassedValue(
            frozenset().union(*(part.needs for part in good)),
            lambda scope: Passed(tuple(part.find(scope).value for part in good)),
        )
    if not isinstance(value, str):
        return _constant(Passed(value))
    return _text(value, path, expressions)


def _constant(passed: Passed) -> PassedValue:
    return PassedValue(frozenset(), lambda scope: passed)


def _text(text: str, path: Path, expressions: Expressions) -> PassedValue | None:
    dtype = canonical(text)
    if text not in expressions.names and dtype is not None:
        return _constant(Passed(dtype, is_dtype=True))
    if text not in expressions.names and not _is_formula(text, expressions):
        if text.casefold() == "none":
            hint = f"write null, or \"'{text}'\" for the word"
            expressions.report.warning(WORD_NONE, path, f"this passes the text '{text}', not null", hint)
        return _constant(Passed(text))
    expression = expressions.compile(path, text)
    if expression is None:
        return None
    is_name = text in expressions.names

    def find(scope: Scope) -> Passed:
        found = expression.evaluate(scope)
        if isinstance(found, TensorValue):
            raise expression.whole(BAD_OPTION, "a tensor cannot be passed as a value")
        return Passed(found, is_name and isinstance(found, str) and canonical(found) == found)

    return PassedValue(needs(expression), find)


def _is_formula(text: str, expressions: Expressions) -> bool:
    """Return whether the text is meant as a formula; a wrong one is then told as such."""
    words = _WORD.findall(text)
    if any(word in expressions.names for word in words):
        return True
    try:
        compile_formula(text).check_names(expressions.names)
    except FormulaError as error:
        if error.code == UNKNOWN_NAME and _ARITHMETIC.search(text):
            return True
        if error.code != UNKNOWN_NAME or not _WORD.fullmatch(text) or len(text) < _LEAST_FOR_A_SLIP:
            return False
        near = nearest(text, expressions.names)
        return near is not None and abs(len(near) - len(text)) <= 1 and len(near) >= _LEAST_FOR_A_SLIP
    return not _WORD.fullmatch(text)
