"""What an element type holds, held against torch's own numbers; overlap of strides, held against counting."""

import itertools

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from kmrun.core.dtypes import DTYPES
from kmrun.measure.dtypes import torch_dtype
from kmrun.plan.fit import limits, misfit, most_exact_count, spans_overlap
from support.planning import only_problem, plan_with

FLOATS = ["fp64", "fp32", "tf32", "bf16", "fp16", "fp8_e4m3fn", "fp8_e4m3fnuz", "fp8_e5m2", "fp8_e5m2fnuz"]
INTEGERS = ["int64", "int32", "int16", "int8", "uint64", "uint32", "uint16", "uint8"]


@pytest.mark.parametrize("dtype", FLOATS)
def test_floating_limits_are_those_of_torch(dtype: str) -> None:
    info = torch.finfo(torch_dtype(dtype))
    assert limits(dtype) == (info.min, info.max)


@pytest.mark.parametrize("dtype", INTEGERS)
def test_integer_limits_are_those_of_torch(dtype: str) -> None:
    info = torch.iinfo(torch_dtype(dtype))
    assert limits(dtype) == (info.min, info.max)


@pytest.mark.parametrize("dtype", list(DTYPES))
def test_the_ends_fit_and_what_lies_beyond_does_not(dtype: str) -> None:
    least, most = limits(dtype)
    assert misfit(least, dtype) == misfit(most, dtype) == misfit(0, dtype) == ""
    beyond = most * 2 if most * 2 != float("inf") else None
    assert beyond is None or misfit(beyond, dtype)


@pytest.mark.parametrize("dtype", ["fp16", "bf16", "fp8_e4m3fn", "fp8_e5m2", "int8", "uint8"])
def test_so_many_numbers_are_told_apart(dtype: str) -> None:
    most = most_exact_count(dtype)
    held = torch.arange(most).to(torch_dtype(dtype))
    assert len(set(held.to(torch.float64).tolist())) == most
    if torch_dtype(dtype).is_floating_point:
        one_more = torch.arange(most + 1).to(torch_dtype(dtype)).to(torch.float64)
        assert len(set(one_more.tolist())) < most + 1


def places(strides: tuple[int, ...], shape: tuple[int, ...]) -> list[int]:
    """Return the place of each element."""
    indices = itertools.product(*map(range, shape))
    return [sum(step * at for step, at in zip(strides, index, strict=True)) for index in indices]


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 6)), max_size=3))
def test_what_overlaps_holds_a_place_twice(dimensions: list[tuple[int, int]]) -> None:
    strides, shape = tuple(one for one, _ in dimensions), tuple(one for _, one in dimensions)
    found = places(strides, shape)
    doubled = len(set(found)) < len(found)
    if len(shape) < 3:
        assert spans_overlap(strides, shape) == doubled
    else:
        assert doubled or not spans_overlap(strides, shape)


@pytest.mark.parametrize(
    "argument",
    [
        "{init: full, value: 127, shape: [b, s], dtype: int8}",
        "{init: full, value: s == s, shape: [b, s], dtype: bool}",
        "{init: full, value: s / 64, shape: [b, 512], dtype: int8}",
        "{init: values, values: [255, 0], shape: [b, s], dtype: uint8}",
        "{init: arange, shape: [256], dtype: uint8, step: b / b}",
        "{init: arange, shape: [1], start: -128, step: 1000, dtype: int8}",
        "{init: permutation, shape: [4, 256], dtype: uint8}",
        "{init: permutation, shape: [2049], dtype: fp16}",
        "{init: randint, high: 2, shape: [b, s], dtype: bool}",
        "{init: randint, low: -3, high: 256, shape: [b, s], dtype: bf16}",
        "{init: sorted, low: 0.5, high: 256, shape: [b, s], dtype: uint8}",
        "{init: sorted, low: 0, high: 0, shape: [b, s], dtype: uint8}",
        "{init: randn, mean: 65504, std: 0, shape: [b, s], dtype: fp16}",
        "{init: hot_value, value: -128, shape: [b, s], dtype: int8}",
        "{init: causal_mask, shape: [s, s], dtype: fp8_e5m2}",
        "{init: randn, shape: [4, 4], dtype: fp32, layout: {strides: [1, 4]}}",
        "{init: randn, shape: [4, 1], dtype: fp32, layout: {strides: [2, 0]}}",
        "{init: randn, shape: [2, 3], dtype: fp32, layout: {strides: [3, 2]}}",
    ],
)
def test_what_just_fits_is_accepted(argument: str) -> None:
    expansion = plan_with(
        args=f"{{x: {argument}, y: {{init: ones, shape: [b, s], dtype: dtype}}}}", flops=None, peak=None
    )
    assert expansion.problems == ()


def test_the_dtype_that_is_too_narrow_is_told_at_the_axis_that_brings_it() -> None:
    problem = only_problem(
        plan_with(matrix="{dtype: [int32, int8]}", args="{x: {init: arange, shape: [b, s], dtype: dtype}}")
    )
    assert problem.path == ("kernels", 0, "matrix", "dtype", 1)
