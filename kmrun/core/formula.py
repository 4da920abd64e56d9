"""The formula language of suites: a small whitelist over Python's `ast`, compiled once, evaluated often.

Numbers, names, strings to compare with, `+ - * / // % **`, comparisons, `and or not`, `x if c else y`, and
calls of `formula_functions.FUNCTIONS`. Integers stay exact, `/` is true division. Two strings that spell the
same dtype are equal. Nothing else of Python exists here: no attributes, subscripts, comprehensions, lambdas.

Every text ends in a value or a `FormulaError`, quickly: length, nodes, nesting, exponents and magnitudes are
bounded, in between too, so that neither a loop nor a huge number can be built.
"""

import ast
import functools
import operator
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field

from kmrun.core.dtypes import DTYPES, canonical
from kmrun.core.formula_error import (
    BAD_CALL,
    FORBIDDEN,
    NO_VALUE,
    SYNTAX,
    TOO_LARGE,
    UNKNOWN_NAME,
    WRONG_TYPE,
    FormulaError,
    did_you_mean,
)
from kmrun.core.formula_functions import FUNCTIONS, Function, Refusal, TensorValue, Value, is_number
from kmrun.core.formula_operators import (
    ARITHMETIC,
    Place,
    bounded,
    check_power,
    comparison,
    condition,
    not_a_number,
)
from kmrun.core.formula_syntax import KEYWORDS, scan

__all__ = [
    "FUNCTIONS",
    "KEYWORDS",
    "Formula",
    "FormulaError",
    "Scope",
    "TensorValue",
    "Value",
    "compile_formula",
]

MAX_NODES = 250
MAX_DEPTH = 60

Scope = Mapping[str, Value]
"""Names to values: axes, let names, arguments, outputs."""

_Evaluator = Callable[[Scope], Value]

_CONSTANTS = {"true": True, "false": False, "null": None}


@dataclass(frozen=True, slots=True)
class Formula:
    """A compiled formula. `names` maps each free name to the offset where it first stands, in text order."""

    text: str
    names: Mapping[str, int]
    _evaluate: _Evaluator = field(repr=False, compare=False)

    def evaluate(self, scope: Scope) -> Value:
        """Return the value with these names bound.

        Raises:
            FormulaError: K201 unknown name, K204 too large, K205 wrong type, K206 no value.
        """
        return self._evaluate(scope)

    def check_names(self, known: Collection[str]) -> None:
        """Make sure that every name is one of `known`, also in branches not taken.

        Raises:
            FormulaError: K201, at the first unknown name.
        """
        for error in self.unknown_names(known):
            raise error

    def unknown_names(self, known: Collection[str]) -> list[FormulaError]:
        """Return one error (K201) for each name that is not one of `known`, in text order."""
        return [
            _unknown_name(name, offset, known) for name, offset in self.names.items() if name not in known
        ]


def compile_formula(source: str | int | float | bool) -> Formula:
    """Return the formula that this text, or this plain YAML number or bool, stands for.

    Raises:
        FormulaError: K202 syntax, K203 not in the language, K204 too large, K207 wrong call.
    """
    if not isinstance(source, str):
        bounded(source, 0, 1)
        return Formula(str(source), {}, lambda scope: source)
    return _compile_text(source)


@functools.lru_cache(maxsize=16_384)
def _compile_text(source: str) -> Formula:
    """Compile a text once: in a large suite the same few formulas stand everywhere."""
    scan(source)
    text = source.translate(_BLANKS)
    lead = len(text) - len(text.lstrip(" "))
    try:
        tree = ast.parse(text[lead:].rstrip(" "), mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        # The order of words was right: left are an `if` without its `else`, or `not` after an operator.
        raise _does_not_parse(text, lead) from None
    return _Compiler(text, lead).compile(tree.body)


_BLANKS = str.maketrans("\t\r\n", "   ")


def _does_not_parse(text: str, lead: int) -> FormulaError:
    if text.split().count("if") != text.split().count("else"):
        hint = "a choice reads: x if condition else y"
    else:
        hint = "put brackets around the part after an operator"
    return FormulaError(SYNTAX, "this does not read as a formula", lead, len(text.strip()), hint)


def _unknown_name(name: str, offset: int, known: Collection[str]) -> FormulaError:
    hint = did_you_mean(name, known) or did_you_mean(name, [*DTYPES, *_CONSTANTS])
    return FormulaError(UNKNOWN_NAME, f"unknown name '{name}' in formula", offset, len(name), hint, known)


class _Compiler:
    """Turns the tree into nested closures; refuses every node that is not named here."""

    def __init__(self, text: str, lead: int) -> None:
        self.text = text
        self.lead = lead
        self.names: dict[str, int] = {}
        self.nodes = 0

    def compile(self, body: ast.expr) -> Formula:
        evaluate = self.visit(body, 1)
        in_order = dict(sorted(self.names.items(), key=lambda item: item[1]))
        return Formula(self.text, in_order, evaluate)

    def place(self, node: ast.expr) -> Place:
        """Return (offset, length) of a node in characters; `ast` counts UTF-8 bytes."""
        start, end = node.col_offset, node.end_col_offset or node.col_offset
        if not self.text.isascii():
            raw = self.text[self.lead :].encode()
            start, end = len(raw[:start].decode()), len(raw[:end].decode())
        return self.lead + start, end - start

    def visit(self, node: ast.expr, depth: int) -> _Evaluator:
        self.nodes += 1
        if self.nodes > MAX_NODES:
            raise FormulaError(
                TOO_LARGE, f"more than {MAX_NODES} terms", *self.place(node), "name its parts in 'let'"
            )
        if depth > MAX_DEPTH:
            raise FormulaError(TOO_LARGE, f"more than {MAX_DEPTH} terms inside each other", *self.place(node))
        match node:
            case ast.Constant(value=value):
                return self.constant(node, value)
            case ast.Name(id=name):
                return self.name(node, name)
            case ast.UnaryOp(op=op, operand=operand):
                return self.unary(node, op, operand, depth)
            case ast.BinOp(left=left, op=op, right=right) if type(op) in ARITHMETIC:
                return self.arithmetic(node, left, op, right, depth)
            case ast.BoolOp(op=op, values=values):
                return self.boolean(isinstance(op, ast.And), values, depth)
            case ast.Compare():
                return self.comparison(node, depth)
            case ast.IfExp(test=test, body=body, orelse=orelse):
                return self.choice(test, body, orelse, depth)
            case ast.Call():
                return self.call(node, depth)
            case _:
                raise FormulaError(FORBIDDEN, "this is not part of the formula language", *self.place(node))

    def constant(self, node: ast.Constant, value: object) -> _Evaluator:
        if isinstance(value, int | float):
            bounded(value, *self.place(node))
        elif not (value is None or isinstance(value, str)):
            raise FormulaError(FORBIDDEN, "this is not part of the formula language", *self.place(node))
        return lambda scope: value

    def name(self, node: ast.Name, name: str) -> _Evaluator:
        offset, length = self.place(node)
        if name in _CONSTANTS:
            constant = _CONSTANTS[name]
            return lambda scope: constant
        if name in FUNCTIONS:
            raise FormulaError(
                BAD_CALL, f"'{name}' is a function", offset, length, f"call it: {FUNCTIONS[name].signature}"
            )
        dtype = canonical(name)
        if dtype is not None:
            return lambda scope: dtype
        self.names.setdefault(name, offset)
        self.names[name] = min(offset, self.names[name])

        def look_up(scope: Scope) -> Value:
            try:
                return scope[name]
            except KeyError:
                raise _unknown_name(name, offset, list(scope)) from None

        return look_up

    def unary(self, node: ast.UnaryOp, op: ast.unaryop, operand: ast.expr, depth: int) -> _Evaluator:
        inner = self.visit(operand, depth + 1)
        offset, length = self.place(operand)
        if isinstance(op, ast.Not):
            return lambda scope: not condition(inner(scope), offset, length)
        if not isinstance(op, ast.USub | ast.UAdd):
            raise FormulaError(FORBIDDEN, "this is not part of the formula language", *self.place(node))
        apply = operator.neg if isinstance(op, ast.USub) else operator.pos

        def signed(scope: Scope) -> Value:
            value = inner(scope)
            if not is_number(value):
                raise not_a_number(value, offset, length)
            return apply(value)

        return signed

    def arithmetic(
        self, node: ast.BinOp, left: ast.expr, op: ast.operator, right: ast.expr, depth: int
    ) -> _Evaluator:
        first, second = self.visit(left, depth + 1), self.visit(right, depth + 1)
        apply = ARITHMETIC[type(op)]
        power = isinstance(op, ast.Pow)
        whole, left_place, right_place = self.place(node), self.place(left), self.place(right)

        def compute(scope: Scope) -> Value:
            a, b = first(scope), second(scope)
            if not is_number(a):
                raise not_a_number(a, *left_place)
            if not is_number(b):
                raise not_a_number(b, *right_place)
            if power:
                check_power(a, b, right_place)
            try:
                return bounded(apply(a, b), *whole)
            except ZeroDivisionError:
                place = left_place if power else right_place
                raise FormulaError(NO_VALUE, "division by zero", *place) from None
            except OverflowError:
                raise FormulaError(TOO_LARGE, "the number is too large", *whole) from None

        return compute

    def boolean(self, all_of: bool, values: list[ast.expr], depth: int) -> _Evaluator:
        parts = [(self.visit(value, depth + 1), *self.place(value)) for value in values]

        def decide(scope: Scope) -> Value:
            result: Value = None
            for evaluate, offset, length in parts:
                result = evaluate(scope)
                if condition(result, offset, length) is not all_of:
                    break
            return result

        return decide

    def comparison(self, node: ast.Compare, depth: int) -> _Evaluator:
        operands = [node.left, *node.comparators]
        evaluators = [self.visit(operand, depth + 1) for operand in operands]
        places = [self.place(operand) for operand in operands]
        tests = [comparison(op) for op in node.ops]

        def compare(scope: Scope) -> Value:
            a = evaluators[0](scope)
            for index, test in enumerate(tests):
                b = evaluators[index + 1](scope)
                if not test(a, b, places[index], places[index + 1]):
                    return False
                a = b
            return True

        return compare

    def choice(self, test: ast.expr, body: ast.expr, orelse: ast.expr, depth: int) -> _Evaluator:
        # Visited in text order, so that the first mistake is the one reported.
        then = self.visit(body, depth + 1)
        decide = self.visit(test, depth + 1)
        otherwise = self.visit(orelse, depth + 1)
        offset, length = self.place(test)
        return lambda scope: then(scope) if condition(decide(scope), offset, length) else otherwise(scope)

    def call(self, node: ast.Call, depth: int) -> _Evaluator:
        if not isinstance(node.func, ast.Name) or node.keywords:
            raise FormulaError(FORBIDDEN, "this is not part of the formula language", *self.place(node))
        name = node.func.id
        function = FUNCTIONS.get(name)
        if function is None:
            hint = did_you_mean(name, FUNCTIONS) or "the functions are: " + " ".join(FUNCTIONS)
            raise FormulaError(
                BAD_CALL, f"unknown function '{name}' in formula", *self.place(node.func), hint
            )
        count = len(node.args)
        if count < function.least or (function.most is not None and count > function.most):
            sentence = f"{name} does not take {count} argument{'' if count == 1 else 's'}"
            raise FormulaError(BAD_CALL, sentence, *self.place(node), f"it reads: {function.signature}")
        evaluators = [self.visit(argument, depth + 1) for argument in node.args]
        places = [self.place(argument) for argument in node.args]
        return _call(function, evaluators, self.place(node), places)


def _call(
    function: Function,
    evaluators: list[_Evaluator],
    whole: Place,
    places: list[Place],
) -> _Evaluator:
    def run(scope: Scope) -> Value:
        values = [evaluate(scope) for evaluate in evaluators]
        try:
            result = function.call(values)
        except Refusal as refusal:
            place = whole if refusal.index is None else places[min(refusal.index, len(places) - 1)]
            raise FormulaError(
                NO_VALUE if refusal.no_value else WRONG_TYPE, refusal.sentence, *place
            ) from None
        return result if isinstance(result, tuple) else bounded(result, *whole)

    return run
