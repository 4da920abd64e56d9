import pytest
import torch

from kmrun.core.case import Argument, Check
from kmrun.measure import checks, inputs, selftest
from support.sides import make_case, randn

CPU = torch.device("cpu")


def found(case, reference, which=selftest.run):
    high, same, _ = checks.references(case, reference, inputs.build(case, 1, CPU))
    return which(case, high, same)


HONEST = {
    "gemm": lambda x: x @ x.mT,
    "softmax": lambda x: torch.softmax(x, -1),
    "softmax over one column": lambda x: torch.softmax(x[:, :1], -1),
    "all zeros": lambda x: x * 0,
    "all ones": lambda x: torch.ones_like(x),
    "one element": lambda x: x.sum(),
    "one row": lambda x: x.sum(0),
    "mask": lambda x: x > 0,
    "mask all true": lambda x: x == x,
    "argmax": lambda x: x.argmax(-1),
    "relu of negatives": lambda x: torch.relu(-x.abs()),
    "nearly constant": lambda x: 1 + 0.001 * x,
    "rows alike": lambda x: x[:1].expand(x.shape).contiguous(),
    "constant with -inf": lambda x: torch.zeros_like(x).masked_fill(x > 0, -torch.inf),
    "one spike": lambda x: torch.nn.functional.one_hot(x.argmax(-1), x.shape[-1]).to(x.dtype),
    "complex": lambda x: torch.fft.fft(x.float()),
}


@pytest.mark.parametrize("name", HONEST)
@pytest.mark.parametrize("dtype", ["fp32", "bf16", "fp16"])
def test_the_default_check_is_never_accused(name, dtype):
    assert found(make_case(randn("x", 96, 160, dtype=dtype)), HONEST[name]) == []


@pytest.mark.parametrize(
    "check",
    [
        Check("allclose", rtol=1e-2, atol=1e-3),
        Check("rel_l2", threshold=1e-2),
        Check("cosine", threshold=0.999),
        Check("ulp", threshold=64),
        Check("matched_ratio", rtol=1e-3, atol=1e-5, threshold=0.99),
        Check("exact"),
        Check("none"),
        Check("statistical", threshold=5),
    ],
    ids=lambda check: check.metric,
)
def test_sound_tolerances_are_not_accused(check):
    assert found(make_case(randn("x", 96, 160), checks={"*": check}), lambda x: x * 2) == []


@pytest.mark.parametrize(
    ("check", "says"),
    [
        (
            Check("allclose", rtol=0.0, atol=100.0),
            "zeros, a constant, rows in the wrong order and a missing tile",
        ),
        (Check("rel_l2", threshold=0.5), "a missing tile would pass"),
        (Check("cosine", threshold=0.95), "a missing tile would pass"),
        (Check("matched_ratio", rtol=0.0, atol=0.1, threshold=0.9), "a missing tile would pass"),
    ],
    ids=lambda value: value.metric if isinstance(value, Check) else "",
)
def test_worthless_tolerances_are_found(check, says):
    (sentence,) = found(make_case(randn("x", 96, 160), checks={"*": check}), lambda x: x * 2)
    assert sentence.startswith(f"the tolerance of o ({check.metric}) is worthless: ")
    assert says in sentence


def test_an_absolute_tolerance_above_all_values_is_found():
    case = make_case(randn("x", 64, 4096), tolerance={"fp32": Check("allclose", rtol=0.0, atol=1e-1)})
    (sentence,) = found(case, lambda x: torch.softmax(x, -1))
    assert "zeros" in sentence


def test_results_below_the_range_of_the_dtype_are_found():
    case = make_case(randn("x", 96, 160, dtype="fp16"))
    (sentence,) = found(
        case, lambda x: x.double().mul(1e-8).to(x.dtype) if x.dtype != torch.float64 else x * 1e-8
    )
    assert "zeros" in sentence


def test_a_tolerance_as_wide_as_the_next_dtype_is_remarked():
    wide = make_case(randn("x", 96, 160), tolerance={"fp32": Check("allclose", rtol=1e-2, atol=1e-2)})
    assert found(wide, lambda x: x * 2, selftest.lower_precision) == [
        "the tolerance of o is so wide that bf16 would pass"
    ]
    narrow = make_case(randn("x", 96, 160), tolerance={"fp32": Check("allclose", rtol=1e-5, atol=1e-5)})
    assert found(narrow, lambda x: x * 2, selftest.lower_precision) == []
    assert found(make_case(randn("x", 96, 160)), lambda x: x * 2, selftest.lower_precision) == []


def test_integer_inputs_are_tested_too():
    case = make_case(Argument("x", "randint", shape=(64, 64), dtype="int32", options={"high": 50}))
    assert found(case, lambda x: x * 2) == []
    loose = make_case(*case.arguments, checks={"*": Check("allclose", rtol=0.0, atol=1000.0)})
    assert len(found(loose, lambda x: x * 2)) == 1
