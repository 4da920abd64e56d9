"""The language against Python itself, and against arbitrary text."""

import math
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from kmrun.core.formula import FormulaError, TensorValue, compile_formula
from kmrun.core.formula_functions import MAX_INTEGER

NAMES = {"a": 7, "b": 3, "x": 0.5, "flag": True, "word": "abc"}
SCOPE: dict[str, Any] = {**NAMES, "items": (1, 2, 2), "t": TensorValue((4, 4), "fp32"), "dtype": "bf16"}
PYTHON: dict[str, Any] = {
    "__builtins__": {},
    "min": min,
    "max": max,
    "abs": abs,
    "sqrt": math.sqrt,
    "ceil": math.ceil,
    "floor": math.floor,
    "cdiv": lambda top, bottom: -(-top // bottom),
}

atoms = st.one_of(
    st.sampled_from(["a", "b", "x", "flag"]),
    st.integers(0, 10**6).map(str),
    st.floats(0.01, 1e6, allow_nan=False).map(repr),
)


def _compound(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    binary = st.sampled_from(["+", "-", "*", "/", "//", "%", "<", "<=", ">", ">=", "==", "!=", "and", "or"])
    return st.one_of(
        st.tuples(inner, binary, inner).map(lambda parts: f"({parts[0]} {parts[1]} {parts[2]})"),
        st.tuples(inner, binary, inner, binary, inner).map(" ".join),
        inner.map(lambda part: f"-{part}"),
        inner.map(lambda part: f"(not {part})"),
        st.tuples(inner, inner, inner).map(lambda parts: f"({parts[0]} if {parts[1]} else {parts[2]})"),
        st.tuples(inner, st.integers(0, 4)).map(lambda parts: f"({parts[0]}) ** {parts[1]}"),
        st.tuples(st.sampled_from(["min", "max"]), inner, inner).map(
            lambda parts: f"{parts[0]}({parts[1]}, {parts[2]})"
        ),
        st.tuples(st.sampled_from(["abs", "ceil", "floor"]), inner).map(
            lambda parts: f"{parts[0]}({parts[1]})"
        ),
    )


expressions = st.recursive(atoms, _compound, max_leaves=12)


@given(expressions)
@settings(max_examples=400, deadline=None)
def test_safe_expressions_mean_what_they_mean_in_python(text: str) -> None:
    try:
        got = compile_formula(text).evaluate(NAMES)
    except FormulaError as refused:
        assert refused.code in ("K204", "K206")
        try:
            expected = eval(text, dict(PYTHON), dict(NAMES))
        except (ZeroDivisionError, OverflowError, ValueError):
            return
        # Python had a value: then an intermediate one was beyond the limits, or it is not a real number.
        assert refused.code == "K204" or isinstance(expected, complex)
        return
    expected = eval(text, dict(PYTHON), dict(NAMES))
    assert type(got) is type(expected)
    assert got == expected


WORDS = (
    "min sum numel sizeof cdiv bf16 ( ) , + - * / // % ** < == and or not if else 1 0 2.5 'abc' 1e9 true in ."
)
words = st.lists(st.sampled_from([*SCOPE, *WORDS.split(" ")]), max_size=25).map(" ".join)


@given(st.one_of(st.text(max_size=60), words))
@settings(max_examples=800, deadline=None)
def test_any_text_ends_in_a_bounded_value_or_a_formula_error(text: str) -> None:
    try:
        formula = compile_formula(text)
        formula.check_names(SCOPE)
        value = formula.evaluate(SCOPE)
    except FormulaError as refused:
        assert refused.code in {f"K20{digit}" for digit in range(1, 8)}
        assert 0 <= refused.offset <= len(text)
        assert refused.length >= 1
        assert refused.offset + refused.length <= max(len(text), 1)
        assert refused.sentence
        return
    if isinstance(value, bool) or value is None:
        return
    if isinstance(value, int):
        assert abs(value) <= MAX_INTEGER
    elif isinstance(value, float):
        assert math.isfinite(value)
    else:
        assert isinstance(value, str | tuple | TensorValue)


@given(st.integers(-(10**30), 10**30), st.integers(-(10**30), 10**30))
@settings(deadline=None)
def test_integers_stay_exact(a: int, b: int) -> None:
    scope = {"a": a, "b": b}
    assert compile_formula("a + b - b").evaluate(scope) == a
    if b:
        assert compile_formula("a // b * b + a % b").evaluate(scope) == a
