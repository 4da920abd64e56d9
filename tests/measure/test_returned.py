"""Kernels in place or not, references in place or not: every natural spelling is understood, the rest refused."""

import dataclasses

import pytest
import torch

from kmrun.core.case import Argument, Output
from kmrun.measure import checks, inputs, outputs
from kmrun.measure.references import ReferenceFault
from support.sides import make_case, randn

CPU = torch.device("cpu")


def judged(case, reference, kernel):
    """Return the names of what was compared, whether it was right, and the remarks of the reference."""
    named = inputs.build(case, 1, CPU)
    before = {name: value.clone() for name, value in named.items() if isinstance(value, torch.Tensor)}
    high, same, remarks = checks.references(case, reference, named)
    assert all(torch.equal(named[name], value) for name, value in before.items())
    if case.outputs is None:
        case = dataclasses.replace(case, outputs=outputs.learn(same))
    # The second drawing goes by the names that the first one gave.
    again, _, _ = checks.references(case, reference, inputs.build(case, 2, CPU))
    assert list(again) == list(high)
    args, kwargs = inputs.call_arguments(case, named)
    got = outputs.collect(case, kernel(*args, **kwargs), named)
    found = checks.compare(case, got, high, same, 1)
    return [each.name for each in found], all(each.ok for each in found), remarks


def add_(x, y):
    x.add_(y)


def add_and_return(x, y):
    return x.add_(y)


def two(x, y):
    """Write to x, return another output."""
    x.add_(y)
    return y * 2


def two_with_alias(x, y):
    return x.add_(y), y * 2


X, Y = randn("x", 8, 8), randn("y", 8, 8)
IN_PLACE = make_case(X, Y, mutates=("x",))


@pytest.mark.parametrize("kernel", [add_, add_and_return])
@pytest.mark.parametrize("reference", [add_, add_and_return, torch.add])
def test_a_kernel_in_place_is_held_against_a_function_or_another_in_place(kernel, reference):
    assert judged(IN_PLACE, reference, kernel) == (["x"], True, [])


def test_what_no_call_wrote_is_wrong():
    names, right, _ = judged(IN_PLACE, torch.add, lambda x, y: x + y)
    assert (names, right) == (["x"], False)
    names, right, _ = judged(IN_PLACE, add_, lambda x, y: None)
    assert (names, right) == (["x"], False)


@pytest.mark.parametrize("kernel", [two, two_with_alias])
@pytest.mark.parametrize("reference", [two, two_with_alias])
def test_outputs_beside_a_mutated_argument(kernel, reference):
    assert judged(IN_PLACE, reference, kernel) == (["x", "o"], True, [])


def test_declared_outputs_come_first_then_the_new_values():
    case = dataclasses.replace(IN_PLACE, outputs=(Output("o", (8, 8), "fp32"),))

    def functional(x, y):
        return y * 2, x + y

    for reference in (functional, two, two_with_alias):
        assert judged(case, reference, two) == (["o", "x"], True, [])
    names, right, _ = judged(case, functional, lambda x, y: y * 2)
    assert (names, right) == (["o", "x"], False)


def test_a_declared_output_may_be_the_mutated_argument_itself():
    case = dataclasses.replace(IN_PLACE, outputs=(Output("o", (8, 8), "fp32"),))
    names, right, _ = judged(case, add_and_return, add_and_return)
    assert (names, right) == (["o", "x"], True)


def test_scratch_that_the_reference_does_not_have_is_not_compared_and_said():
    case = make_case(X, randn("scratch", 3), mutates=("scratch",))

    def kernel(x, scratch):
        scratch.fill_(7)
        return x * 2

    names, right, remarks = judged(case, lambda x, scratch: x * 2, kernel)
    assert (names, right) == (["o"], True)
    assert remarks == [
        "what the kernel writes to scratch is not compared: the reference neither writes nor returns it"
    ]


def test_tensors_of_a_mutated_list_are_outputs_each():
    items = [{"init": "randn", "shape": (n,), "dtype": "fp32"} for n in (3, 5)]
    case = make_case(Argument("params", "list", options={"items": items}), mutates=("params",))

    def step(params):
        for each in params:
            each.mul_(0.5)

    assert judged(case, step, step) == (["params.0", "params.1"], True, [])
    assert judged(case, lambda params: [each * 0.5 for each in params], step)[:2] == (
        ["params.0", "params.1"],
        True,
    )
    assert judged(case, step, lambda params: params[0].mul_(0.5))[1] is False


@pytest.mark.parametrize(
    ("reference", "says"),
    [
        (lambda x, y: None, "the reference torch:add neither returned anything nor wrote to 'x'"),
        (
            lambda x, y: (y * 2, x + y),
            "returned 2 tensors and left 'x' as it was, so it cannot be told which",
        ),
        (lambda x, y: [], "neither returned anything nor wrote"),
    ],
)
def test_what_cannot_be_told_is_the_suite_s_fault(reference, says):
    with pytest.raises(ReferenceFault) as caught:
        checks.references(IN_PLACE, reference, inputs.build(IN_PLACE, 1, CPU))
    assert (caught.value.code, caught.value.fault) == ("reference_output", "suite")
    assert says in caught.value.sentence
    assert "the kernel" not in caught.value.sentence


def test_a_reference_without_outputs_is_the_suite_s_fault():
    case = make_case(X)
    for nothing, says in (
        ([], "returned no tensor: nothing to compare"),
        (None, "returned None; if it writes"),
    ):
        with pytest.raises(ReferenceFault, match=f"the reference torch:add {says}"):
            checks.references(case, lambda x, it=nothing: it, inputs.build(case, 1, CPU))
    with pytest.raises(outputs.OutputError, match="the kernel returned no tensor"):
        outputs.collect(case, [], inputs.build(case, 1, CPU))


def test_a_reference_that_writes_to_an_input_must_say_so():
    case = make_case(X)
    named = inputs.build(case, 1, CPU)
    before = named["x"].clone()

    def scratch(x):
        doubled = x * 2
        x.zero_()
        return doubled

    with pytest.raises(ReferenceFault) as caught:
        checks.references(case, scratch, named)
    assert (caught.value.code, caught.value.fault) == ("input_mutated", "suite")
    assert "the reference torch:add wrote to its input 'x'; declare `mutates: [x]`" in caught.value.sentence
    assert torch.equal(named["x"], before)
    # An in-place operation that leaves all as it was hurts nobody.
    high, _, _ = checks.references(case, lambda x: x.mul_(1.0) + 0, named)
    assert torch.equal(high["o"], before.double())


def test_copies_lie_in_memory_as_what_was_drawn():
    case = make_case(randn("x", 4, 6, layout="transposed"), Argument("n", "zeros", shape=(4,), dtype="int32"))
    named = inputs.build(case, 1, CPU)
    seen = []

    def reference(x, n):
        seen.append(
            (x.stride(), x.data_ptr() == named["x"].data_ptr(), n.data_ptr() == named["n"].data_ptr())
        )
        return x + n[:, None]

    checks.own_reference(case, reference, named)
    assert seen == [(named["x"].stride(), False, False)]


def test_other_numbers_than_declared_are_the_suite_s_fault():
    case = make_case(X, outputs=(Output("o", (8, 8), "fp32"),))
    with pytest.raises(ReferenceFault, match="o is complex64, declared fp32"):
        checks.references(case, lambda x: torch.complex(x.float(), x.float()), inputs.build(case, 1, CPU))
