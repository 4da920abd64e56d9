"""Suites as YAML text, planned: what the tests of the plan start from."""

import yaml

from kmrun.core.case import Case
from kmrun.core.problem import Problem
from kmrun.plan import Expansion, expand
from kmrun.schema.suite import Suite

CARDS = ("h100-sxm", "rtx-4090", "rtx-3090", "mi300x")

KERNEL = """
name: k
target: a:b
reference: a:ref
matrix: {dtype: [fp32, bf16]}
cases: [{b: 1, s: 512}, {b: 2, s: 1024}]
args: {x: {init: randn, shape: [b, s], dtype: dtype}}
outputs: {o: {like: x}}
flops: 2 * b * s
peak: {units: matmul, in: dtype}
"""
"""A kernel without mistakes; tests replace single keys of it."""


def suite_of(*kernels: str, **top: str) -> Suite:
    """Return the suite of these kernels, each the YAML of one."""
    document = {"kmrun": 1, "suite": "t", "kernels": [yaml.safe_load(kernel) for kernel in kernels]}
    return Suite.model_validate(document | {key: yaml.safe_load(text) for key, text in top.items()})


def plan(kernel: str, *others: str, cards: tuple[str, ...] | None = CARDS, **top: str) -> Expansion:
    """Return the expansion of kernels written as YAML."""
    return expand(suite_of(kernel, *others, **top), "/suite", cards)


def plan_with(**keys: str | None) -> Expansion:
    """Return the expansion of KERNEL with these keys replaced (None: removed)."""
    kernel = yaml.safe_load(KERNEL)
    for key, text in keys.items():
        kernel.pop(key, None)
        if text is not None:
            kernel[key] = yaml.safe_load(text)
    return plan(yaml.safe_dump(kernel, sort_keys=False))


def only_problem(expansion: Expansion) -> Problem:
    """Return the one problem there is."""
    assert len(expansion.problems) == 1, expansion.problems
    return expansion.problems[0]


def ids(expansion: Expansion) -> list[str]:
    """Return the case ids of a plan without errors."""
    assert not expansion.has_errors, expansion.problems
    return [case.id for case in expansion.cases]


def only_case(expansion: Expansion) -> Case:
    """Return the one case of a plan without errors."""
    assert not expansion.has_errors, expansion.problems
    (case,) = expansion.cases
    return case
