import math

import pytest
import torch

from kmrun.core.case import Argument, Implementation, Output, Reference
from kmrun.measure import checks, inputs
from kmrun.measure.references import ReferenceFault
from support.sides import make_case, randn

CPU = torch.device("cpu")


def eager_attention(q, k, v):
    return torch.softmax((q @ k.mT) / math.sqrt(q.shape[-1]), -1) @ v


def test_the_reference_computes_in_fp64_and_leaves_its_inputs_alone():
    case = make_case(randn("x", 8, dtype="bf16"), Argument("n", "value", options={"value": 2}))
    named = inputs.build(case, 1, CPU)
    seen = []

    def reference(x, n):
        seen.append(x.dtype)
        return x * n

    high, same, remarks = checks.references(case, reference, named)
    assert seen == [torch.bfloat16, torch.float64]
    assert (high["o"].dtype, same["o"].dtype, remarks) == (torch.float64, torch.bfloat16, [])


def test_a_reference_without_fp64_falls_back_and_says_so():
    case = make_case(randn("x", 8, dtype="bf16"))

    def reference(x):
        if x.dtype == torch.float64:
            raise RuntimeError("\"thing\" not implemented for 'Double'")
        return x * 2

    high, _, remarks = checks.references(case, reference, inputs.build(case, 1, CPU))
    assert high["o"].dtype == torch.float32
    assert remarks == [
        "the reference has no fp64 form (\"thing\" not implemented for 'Double'): computed in fp32"
    ]


def test_a_reference_that_raises_is_the_suites_fault():
    case = make_case(randn("x", 8))
    with pytest.raises(ReferenceFault) as caught:
        checks.references(case, lambda x: x.no_such_method(), inputs.build(case, 1, CPU))
    assert (caught.value.code, caught.value.fault) == ("reference_raised", "suite")
    assert "the reference torch:add raised AttributeError" in caught.value.sentence
    with pytest.raises(ReferenceFault) as caught:
        checks.references(case, lambda x: None, inputs.build(case, 1, CPU))
    assert (caught.value.code, caught.value.fault) == ("reference_output", "suite")


def test_a_mutating_reference_works_on_copies():
    case = make_case(randn("p", 8), randn("g", 8), mutates=("p",), outputs=(Output("p", (8,), "fp32"),))
    named = inputs.build(case, 1, CPU)
    before = named["p"].clone()
    high, same, _ = checks.references(case, lambda p, g: (p.add_(g), None)[1], named)
    assert torch.equal(named["p"], before)
    assert torch.equal(same["p"], before + named["g"])
    assert high["p"].dtype == torch.float64


def chunked(axis, **changes):
    reference = Reference(Implementation("reference", "torch:add"), chunk=axis)
    return make_case(
        randn("x", 6, 5), randn("w", 5, 4), axes={"b": 6, "d": 5}, reference=reference, **changes
    )


def test_slices_along_an_axis_make_the_whole():
    sizes = []

    def reference(x, w):
        sizes.append(tuple(x.shape))
        return x @ w

    for declared in (None, (Output("o", (6, 4), "fp32"),)):
        case = chunked("b", outputs=declared)
        named = inputs.build(case, 1, CPU)
        high, _, _ = checks.references(case, reference, named)
        torch.testing.assert_close(high["o"], named["x"].double() @ named["w"].double())
    assert sizes == [(6, 5), *[(1, 5)] * 6] * 2


def test_the_plan_may_say_which_dimension_is_sliced():
    reference = Reference(Implementation("reference", "torch:add"), chunk="b", chunk_dims={"w": 1, "o": 1})
    case = make_case(randn("x", 4, 4), randn("w", 4, 4), axes={"b": 4}, reference=reference)
    named = inputs.build(case, 1, CPU)
    high, _, _ = checks.references(case, torch.matmul, named)
    torch.testing.assert_close(high["o"], named["x"].double() @ named["w"].double())


def test_an_axis_that_the_reference_mixes_is_refused():
    with pytest.raises(
        ReferenceFault, match=r"reference.chunk: b: output o in slices is not what it is as a whole"
    ):
        checks.references(chunked("b"), lambda x, w: x - x.mean(0), inputs.build(chunked("b"), 1, CPU))
    with pytest.raises(ReferenceFault, match="does not grow along d"):
        checks.references(chunked("d"), torch.matmul, inputs.build(chunked("d"), 1, CPU))


def test_gradients_of_the_reference_are_compared():
    case = make_case(
        *(randn(name, 2, 64, 32, dtype="bf16", requires_grad=True) for name in "qkv"), mode="backward"
    )
    named = inputs.build(case, 1, CPU)
    forward = torch.nn.functional.scaled_dot_product_attention(*named.values())
    grads = inputs.draw_grads(case, {"o": forward}, 1)
    high, same, _ = checks.references(case, eager_attention, named, grads)
    assert list(high) == list(same) == ["grad_q", "grad_k", "grad_v"]
    got = dict(zip(high, torch.autograd.grad(forward, list(named.values()), grads["o"]), strict=True))
    found = checks.compare(case, got, high, same, 1)
    assert [checks.sentence(check) for check in found if not check.ok] == []
    got["grad_k"] = got["grad_k"] * 0.9
    assert [check.ok for check in checks.compare(case, got, high, same, 1)] == [True, False, True]
