"""Ragged axes: lists of lengths, drawn on the host from the suite's seed: their sum is known before a run.

The draws rest on `random.Random.random` alone: the one method whose sequence Python keeps for a seed.
"""

import random
from collections.abc import Callable
from typing import assert_never

from kmrun.core.case import Path
from kmrun.core.formula import Scope
from kmrun.core.formula_functions import described
from kmrun.plan.expression import Expression, Expressions, needs
from kmrun.plan.parts import compile_all
from kmrun.plan.report import BAD_OPTION, Failure
from kmrun.schema.suite import Ragged, RaggedFixed, RaggedList, RaggedUniform, RaggedZipf

MAX_COUNT = 65_536
"""Sequences in one batch; more would make the plan itself slow."""

MAX_TOTAL = 2_000_000
"""Lengths of one axis over all points."""

Lengths = tuple[int, ...]
Draw = Callable[[Scope], Lengths]


def compile_ragged(
    name: str, spec: Ragged, path: Path, seed: int, expressions: Expressions
) -> tuple[frozenset[str], Draw] | None:
    """Return the names that a ragged axis needs and what draws its lengths; None when it is wrong."""
    compiled = _compiled(name, spec, path, seed, expressions)
    if compiled is None:
        return None
    wanted, draw = compiled
    total = 0

    def counted(scope: Scope) -> Lengths:
        nonlocal total
        lengths = draw(scope)
        total += len(lengths)
        if total > MAX_TOTAL:
            raise Failure(BAD_OPTION, path, f"over all cases '{name}' has more than {MAX_TOTAL} lengths")
        return lengths

    return wanted, counted


def _compiled(
    name: str, spec: Ragged, path: Path, seed: int, expressions: Expressions
) -> tuple[frozenset[str], Draw] | None:
    match spec:
        case RaggedList():
            listed = compile_all(spec.values, (*path, "values"), expressions)
            if listed is None:
                return None
            return needs(*listed), lambda scope: tuple([_length(item, scope) for item in listed])
        case RaggedFixed():
            value = expressions.compile((*path, "value"), spec.value)
            count = expressions.compile((*path, "count"), spec.count)
            if value is None or count is None:
                return None
            return needs(value, count), lambda scope: (_length(value, scope),) * _count(count, scope)
        case RaggedUniform() | RaggedZipf():
            return _compiled_range(name, spec, path, seed, expressions)
    assert_never(spec)


def _compiled_range(
    name: str, spec: RaggedUniform | RaggedZipf, path: Path, seed: int, expressions: Expressions
) -> tuple[frozenset[str], Draw] | None:
    low = expressions.compile((*path, "low"), spec.low)
    high = expressions.compile((*path, "high"), spec.high)
    count = expressions.compile((*path, "count"), spec.count)
    if low is None or high is None or count is None:
        return None
    exponent = spec.exponent if isinstance(spec, RaggedZipf) else None
    cache: dict[tuple[int, int, int], Lengths] = {}

    def draw(scope: Scope) -> Lengths:
        first, last, number = _length(low, scope), _length(high, scope), _count(count, scope)
        if last < first:
            raise high.whole(BAD_OPTION, f"high is {last}, below low, which is {first}")
        key = (first, last, number)
        if key not in cache:
            rng = random.Random(f"{seed}:{name}:{first}:{last}:{number}:{exponent}")
            cache[key] = tuple([_draw_one(rng.random(), first, last, exponent) for _ in range(number)])
        return cache[key]

    return needs(low, high, count), draw


def _draw_one(u: float, low: int, high: int, exponent: float | None) -> int:
    """Return one length for u in [0, 1): uniform, or a bounded power law by its inverse."""
    span = high - low + 1
    if exponent is None:
        return low + int(u * span)
    tail = 1.0 - exponent
    rank = (1.0 - u * (1.0 - float(span + 1) ** tail)) ** (1.0 / tail)
    return low + min(int(rank), span) - 1


def _length(expression: Expression, scope: Scope) -> int:
    value = expression.evaluate(scope)
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise expression.whole(
            BAD_OPTION, f"a length must be a whole number from 0 on, this is {described(value)}"
        )
    return value


def _count(expression: Expression, scope: Scope) -> int:
    value = _length(expression, scope)
    if not 1 <= value <= MAX_COUNT:
        raise expression.whole(BAD_OPTION, f"count must be from 1 to {MAX_COUNT}, this is {value}")
    return value
