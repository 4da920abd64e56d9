import dataclasses
import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from kmrun.core.case import Argument, Check
from kmrun.measure import checks, inputs
from kmrun.measure.checks import CheckError
from support.sides import make_case, randn

CPU = torch.device("cpu")
F = torch.nn.functional


def judge(case, reference, kernel, seed=1):
    """Return the checks of `kernel` against `reference`, as the judge makes them."""
    named = inputs.build(case, seed, CPU)
    high, same, _ = checks.references(case, reference, named)
    args, kwargs = inputs.call_arguments(case, named)
    got = kernel(*args, **kwargs)
    got = dict(zip(high, got if isinstance(got, tuple) else (got,), strict=True))
    return checks.compare(case, got, high, same, seed)


def gemm(dtype, m=256, k=384, n=320):
    return make_case(randn("a", m, k, dtype=dtype), randn("b", k, n, dtype=dtype))


# ---- honest kernels ----


def sequential_gemm(a, b):
    """One rank-1 update after the other in the dtype's own accumulator: the least exact honest order."""
    total = torch.zeros(a.shape[0], b.shape[1])
    for k in range(a.shape[1]):
        total += a[:, k, None].float() * b[k].float()
    return total.to(a.dtype)


def split_k_gemm(a, b):
    half = a.shape[1] // 2
    return a[:, :half] @ b[:half] + a[:, half:] @ b[half:]


def one_pass_layer_norm(x, w, b):
    wide = x.float()
    mean = wide.mean(-1, keepdim=True)
    variance = (wide * wide).mean(-1, keepdim=True) - mean * mean
    return ((wide - mean) * torch.rsqrt(variance + 1e-5) * w.float() + b.float()).to(x.dtype)


def layer_norm(x, w, b):
    return F.layer_norm(x, x.shape[-1:], w, b)


def online_softmax(x):
    running, total = torch.full(x.shape[:-1], -math.inf), torch.zeros(x.shape[:-1])
    for chunk in x.float().split(37, -1):
        peak = torch.maximum(running, chunk.amax(-1))
        total = total * torch.exp(running - peak) + torch.exp(chunk - peak[..., None]).sum(-1)
        running = peak
    return (torch.exp(x.float() - running[..., None]) / total[..., None]).to(x.dtype)


def softmax(x):
    return torch.softmax(x, -1)


def flash(q, k, v):
    return F.scaled_dot_product_attention(q, k, v)


def eager_attention(q, k, v):
    scores = (q @ k.mT) * q.shape[-1] ** -0.5
    return torch.softmax(scores, -1) @ v


@pytest.mark.parametrize("dtype", ["fp64", "fp32", "bf16", "fp16"])
@pytest.mark.parametrize("seed", [1, 2])
def test_honest_kernels_are_not_accused(dtype, seed):
    row = randn("x", 96, 1000, dtype=dtype)
    norm = make_case(row, randn("w", 1000, dtype=dtype), randn("b", 1000, dtype=dtype))
    heads = make_case(*(randn(name, 2, 4, 128, 64, dtype=dtype) for name in "qkv"))
    found = [
        *judge(gemm(dtype), torch.matmul, split_k_gemm, seed),
        *judge(norm, layer_norm, layer_norm, seed),
        *judge(heads, eager_attention, flash, seed),
        *judge(heads, flash, eager_attention, seed),
        *judge(make_case(row), lambda x: x.sum(-1), lambda x: x.flip(-1).sum(-1), seed),
        *judge(make_case(row), F.gelu, F.gelu, seed),
    ]
    if dtype != "fp64":
        found += judge(gemm(dtype), torch.matmul, sequential_gemm, seed)
        found += judge(norm, layer_norm, one_pass_layer_norm, seed)
        found += judge(make_case(row), softmax, online_softmax, seed)
    assert [checks.sentence(check) for check in found if not check.ok] == []


@pytest.mark.parametrize("init", ["cauchy", "uniform", "hot_value"])
@pytest.mark.parametrize("dtype", ["fp32", "bf16", "fp16"])
def test_honest_kernels_are_not_accused_on_other_distributions(init, dtype):
    options = {"value": 3.0} if init == "hot_value" else {}
    case = make_case(
        Argument("a", init, shape=(128, 256), dtype=dtype, options=options),
        Argument("b", init, shape=(256, 192), dtype=dtype, options=options),
    )
    (check,) = judge(case, torch.matmul, sequential_gemm)
    assert check.ok, checks.sentence(check)
    (check,) = judge(case, lambda a, b: torch.softmax(a, -1), lambda a, b: online_softmax(a))
    assert check.ok, checks.sentence(check)


@pytest.mark.parametrize("width", [1, 2, 3, 5, 65, 127, 129, 255, 257])
def test_odd_widths_make_no_small_unfair_blocks(width):
    case = make_case(randn("x", 67, width), randn("y", 67, width))

    def fused(x, y):
        return torch.addcmul(y, x, y, value=3.0)

    for seed in range(20):
        (check,) = judge(case, lambda x, y: x * y * 3 + y, fused, seed)
        assert check.ok, checks.sentence(check)


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 2**32), count=st.integers(1, 60), scale=st.floats(1e-6, 1e6))
def test_few_elements_and_any_scale_are_judged_fairly(seed, count, scale):
    case = make_case(Argument("x", "randn", shape=(count, 512), dtype="fp32", options={"std": scale}))

    def sequential(x):
        total = torch.zeros(x.shape[0])
        for part in x.split(64, -1):
            total = total + part.sum(-1)
        return total

    (check,) = judge(case, lambda x: x.sum(-1), sequential, seed)
    assert check.ok, checks.sentence(check)


def test_an_output_of_zeros_is_judged():
    case = make_case(randn("x", 64, 64))
    assert judge(case, lambda x: x * 0, lambda x: x * 0)[0].ok
    assert not judge(case, lambda x: x * 0, lambda x: x * 0 + 1e-3)[0].ok


# ---- mutants ----


def without(rows, columns):
    def kernel(a, b):
        out = a @ b
        out[rows, columns] = 0
        return out

    return kernel


@pytest.mark.parametrize("dtype", ["fp32", "bf16", "fp16"])
@pytest.mark.parametrize(
    "kernel",
    [
        lambda a, b: torch.zeros(a.shape[0], b.shape[1], dtype=a.dtype),
        lambda a, b: (a @ b) * 1.1,
        lambda a, b: (a @ b).roll(1, 0),
        without(slice(64, 128), slice(64, 128)),
        without(slice(240, 256), slice(304, 320)),
        without(slice(None), slice(-1, None)),
        without(slice(-1, None), slice(None)),
        without(slice(7, 8), slice(3, 4)),
        lambda a, b: a[:, :-32] @ b[:-32],
    ],
    ids=["zeros", "scaled", "shifted", "tile", "last tile", "last column", "last row", "element", "short k"],
)
def test_wrong_kernels_are_caught(dtype, kernel):
    # One wrong element of value near 0 is no error to speak of: this seed has a large one there.
    (check,) = judge(gemm(dtype), torch.matmul, kernel, seed=1)
    assert not check.ok


@pytest.mark.parametrize(
    ("dtype", "through"),
    [
        ("fp64", torch.float32),
        ("fp32", torch.bfloat16),
        ("fp32", torch.float16),
        ("bf16", torch.float8_e4m3fn),
    ],
)
def test_less_precise_arithmetic_is_caught(dtype, through):
    def lazy(a, b):
        narrow = a.to(through).to(torch.float64), b.to(through).to(torch.float64)
        return (narrow[0] @ narrow[1]).to(a.dtype)

    assert not judge(gemm(dtype), torch.matmul, lazy)[0].ok


def test_a_missing_tile_in_a_large_bf16_output_is_caught():
    case = make_case(randn("x", 2048, 2048, dtype="bf16"))

    def kernel(x):
        out = x * 2
        out[512:560, 1024:1088] = 0
        return out

    (check,) = judge(case, lambda x: x * 2, kernel)
    assert not check.ok
    assert check.metric == "auto/block"
    assert check.worst_index is not None
    assert 512 <= check.worst_index[0] < 560
    assert 1024 <= check.worst_index[1] < 1088
    assert "in a block" in checks.sentence(check)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_one_place_that_is_not_finite_is_caught_and_named(value):
    def kernel(a, b):
        out = a @ b
        out[5, 6] = value
        return out

    (check,) = judge(gemm("fp32"), torch.matmul, kernel)
    assert not check.ok
    assert check.worst_index == (5, 6)
    assert "o is not finite where the fp64 reference is" in checks.sentence(check, "fp64")


def test_masked_outputs_keep_their_infinities_and_nans():
    case = make_case(randn("x", 64, 64))

    def mask(x):
        return x.masked_fill(x > 1, math.inf).masked_fill(x < -1, math.nan)

    assert judge(case, mask, mask)[0].ok
    assert not judge(case, mask, lambda x: mask(x).nan_to_num(0, 0, 0))[0].ok
    assert not judge(case, mask, lambda x: -mask(x))[0].ok


def test_honest_overflow_of_a_narrow_dtype_is_no_error():
    case = make_case(Argument("x", "randn", shape=(64, 64), dtype="fp16", options={"std": 100.0}))
    (check,) = judge(case, lambda x: x * x * 3, lambda x: x * x * 3)
    assert check.ok
    narrow = make_case(Argument("x", "randn", shape=(64, 64), dtype="fp32", options={"std": 400.0}))

    def to_fp8(x):
        return x.to(torch.float8_e4m3fn)

    def saturating(x):
        return x.clamp(-448, 448).to(torch.float8_e4m3fn)

    assert judge(narrow, to_fp8, saturating)[0].ok
    assert not judge(narrow, to_fp8, lambda x: torch.zeros_like(x).to(torch.float8_e4m3fn))[0].ok


def test_integers_and_booleans_are_exact():
    case = make_case(Argument("a", "randint", shape=(64, 64), dtype="int32", options={"high": 100}))
    assert judge(case, lambda a: a * 3, lambda a: a + a + a)[0].ok
    (check,) = judge(case, lambda a: a * 3, lambda a: a * 3 + (a == 7))
    assert not check.ok
    assert check.metric == "exact"
    assert check.error == float((inputs.build(case, 1, CPU)["a"] == 7).sum())
    assert "differs from the reference in" in checks.sentence(check)
    assert not judge(case, lambda a: a > 3, lambda a: a >= 3)[0].ok


def test_complex_outputs_are_compared():
    case = make_case(Argument("x", "randn", shape=(16, 256), dtype="complex64"))
    assert judge(case, torch.fft.fft, torch.fft.fft)[0].ok
    (check,) = judge(case, torch.fft.fft, lambda x: torch.fft.fft(x).conj())
    assert not check.ok
    assert check.worst_index is not None
    assert len(check.worst_index) == 2


def test_tf32_outputs_may_be_as_coarse_as_tf32():
    case = make_case(randn("a", 64, 64, dtype="tf32"), randn("b", 64, 64, dtype="tf32"))

    def tf32(a, b):
        return a.half().float() @ b.half().float()

    assert judge(case, torch.matmul, tf32)[0].ok
    assert not judge(gemm("fp32"), torch.matmul, tf32)[0].ok


def test_several_outputs_are_judged_each():
    case = make_case(randn("x", 64, 64))
    found = judge(case, lambda x: (x + 1, x.argmax(-1)), lambda x: (x + 1, x.argmin(-1)))
    assert [(check.name, check.ok) for check in found] == [("o0", True), ("o1", False)]


def test_an_empty_output_is_right():
    assert judge(make_case(randn("x", 0, 4)), lambda x: x + 1, lambda x: x + 1)[0].ok


# ---- metrics that a suite asks for ----


def off_by(amount):
    return lambda x: x + amount


@pytest.mark.parametrize(
    ("check", "good", "bad"),
    [
        (Check("allclose", rtol=0.0, atol=1e-2), off_by(0.9e-2), off_by(1.1e-2)),
        (Check("allclose", rtol=1e-2), lambda x: x * 1.009, lambda x: x * 1.011),
        (Check("allclose"), off_by(5e-6), off_by(5e-5)),
        (Check("exact"), lambda x: x.clone(), off_by(1e-6)),
        (Check("rel_l2", threshold=1e-2), lambda x: x * 1.009, lambda x: x * 1.011),
        (Check("cosine", threshold=0.99), lambda x: x * 7, lambda x: x.roll(1)),
        (Check("ulp", threshold=2), lambda x: x.nextafter(x * 2), lambda x: x * (1 + 1e-6)),
        (
            Check("matched_ratio", rtol=0.0, atol=1e-6, threshold=0.9),
            lambda x: x + (torch.arange(x.numel()).view(x.shape) % 20 == 0),
            lambda x: x + (torch.arange(x.numel()).view(x.shape) % 5 == 0),
        ),
        (Check("statistical", threshold=5.0), lambda x: x.flip(0), lambda x: x * 1.5),
        (Check("none"), lambda x: x * math.nan, None),
    ],
    ids=lambda value: value.metric if isinstance(value, Check) else "",
)
def test_metrics(check, good, bad):
    case = make_case(randn("x", 64, 64), checks={"*": check})
    (found,) = judge(case, lambda x: x.clone(), good)
    assert found.ok, found
    assert found.metric == check.metric
    if bad is not None:
        (found,) = judge(case, lambda x: x.clone(), bad)
        assert not found.ok, found
        assert checks.sentence(found).startswith("o ")


def test_a_tolerance_switches_outputs_of_its_dtype_only():
    case = make_case(randn("x", 64, 64), tolerance={"float32": Check("allclose", rtol=0.0, atol=1e-2)})
    found = judge(case, lambda x: (x + 0, x.double()), lambda x: (x + 0.5e-2, x.double() + 0.5e-2))
    assert [(check.metric, check.ok) for check in found] == [("allclose", True), ("auto", False)]


def test_the_check_of_an_output_beats_that_of_the_kernel():
    case = make_case(checks={"*": Check("exact"), "o1": Check("none")}, tolerance={"fp32": Check("allclose")})
    assert checks.check_for(case, "o0", torch.float32).metric == "exact"
    assert checks.check_for(case, "o1", torch.float32).metric == "none"


def test_ulp_counts_across_zero():
    case = make_case(checks={"*": Check("ulp", threshold=2.0)})
    tiny = torch.tensor([5e-324, 0.0], dtype=torch.float64)
    (check,) = checks.compare(case, {"o": -tiny}, {"o": tiny}, None, 1)
    assert (check.ok, check.error) == (True, 2.0)


def test_a_property_sees_inputs_and_outputs(tmp_path):
    (tmp_path / "props.py").write_text(
        "def doubled(inputs, outputs): return bool((outputs['o'] == inputs['x'] * 2).all())\n"
        "def broken(inputs, outputs): return outputs['nothing']\n"
    )
    case = make_case(
        folder=str(tmp_path), checks={"*": Check("property", options={"target": "props.py:doubled"})}
    )
    x = torch.ones(3)
    for factor, ok in ((2, True), (3, False)):
        (check,) = checks.compare(case, {"o": x * factor}, {"o": x}, None, 1, inputs={"x": x})
        assert check.ok is ok
    case = dataclasses.replace(case, checks={"*": Check("property", options={"target": "props.py:broken"})})
    with pytest.raises(CheckError, match=r"property props\.py:broken raised KeyError"):
        checks.compare(case, {"o": x}, {"o": x}, None, 1, inputs={"x": x})
