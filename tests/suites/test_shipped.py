"""Every shipped suite: valid, right on a CPU (kernel, rivals and reference agree), with promises."""

import importlib.util

import pytest
import torch

from kmrun.core.case import Case, Implementation
from kmrun.measure import checks, inputs, outputs, selftest
from kmrun.measure.target import resolve
from kmrun.plan.selection import runs_on
from kmrun.resources import folder
from kmrun.source.suite_plan import read_and_plan

SUITES = sorted(folder("suites").glob("*.yaml"))
CPU = torch.device("cpu")


def cases_of(path):
    return read_and_plan(path).expansion.cases


CASES = {
    f"{path.stem}/{case.id}": case for path in SUITES for case in cases_of(path) if runs_on(case, "cpu", None)
}


def clone(named):
    return {
        name: value.detach().clone().requires_grad_(value.requires_grad)
        if isinstance(value, torch.Tensor)
        else value
        for name, value in named.items()
    }


def run_once(case: Case, implementation: Implementation, named, grads):
    """Return the outputs (or gradients) of one call on copies of the arguments, as a side makes them."""
    function = resolve(implementation.target, case.folder)
    named, buffers = clone(named), outputs.allocate(case, CPU)
    args, kwargs = inputs.call_arguments_for(case, implementation, named, buffers)
    found = outputs.collect(case, function(*args, **kwargs), named, buffers)
    return found if case.mode == "forward" else outputs.gradients(case, found, named, grads)


@pytest.mark.parametrize("path", SUITES, ids=lambda path: path.stem)
def test_a_shipped_suite_is_a_contract(path):
    planned = read_and_plan(path)
    assert planned.warnings == ()
    on_cpu = [case for case in planned.expansion.cases if runs_on(case, "cpu", None)]
    on_gpu = [case for case in planned.expansion.cases if runs_on(case, "cuda", None)]
    assert {case.kernel for case in on_cpu} == {case.kernel for case in on_gpu}
    for case in planned.expansion.cases:
        assert case.reference is not None
        assert case.flops is not None
        assert case.bytes is not None
        assert not {clause.kind for clause in case.clauses} & {"max_ms", "max_host_us"}
    for kernel in {case.kernel for case in planned.expansion.cases}:
        assert any(case.clauses for case in planned.expansion.cases if case.kernel == kernel)


def test_attention_has_ten_cases_on_a_cpu():
    assert len([name for name in CASES if name.startswith("attention/")]) >= 10


@pytest.mark.parametrize("name", CASES)
def test_kernel_and_rivals_are_right(name):
    case = CASES[name]
    if (
        case.requires is not None
        and case.requires.module
        and not importlib.util.find_spec(case.requires.module)
    ):
        pytest.skip(f"needs {case.requires.module}")
    assert case.reference is not None
    function = resolve(case.reference.implementation.target, case.folder)
    for seed in (1, 2):
        named, grads = inputs.build(case, seed, CPU), {}
        if case.mode != "forward":
            args, kwargs = inputs.call_arguments_for(case, case.reference.implementation, named)
            forward = outputs.collect(case, function(*args, **kwargs), named)
            grads = inputs.draw_grads(case, forward, seed)
        high, same, remarks = checks.references(case, function, named, grads)
        assert remarks == []
        assert selftest.run(case, high, same) == []
        for implementation in (case.implementation, *case.versus):
            got = run_once(case, implementation, named, grads)
            wrong = [check for check in checks.compare(case, got, high, same, seed) if not check.ok]
            assert [f"{implementation.name}: {checks.sentence(check)}" for check in wrong] == []
