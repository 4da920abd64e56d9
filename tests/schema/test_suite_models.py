"""The suite models: short forms, tags, and what they refuse."""

from typing import Any

import pytest
from pydantic import ValidationError

from kmrun.schema.arguments import Call, Randn, options
from kmrun.schema.suite import Compile, Kernel, MatmulPeak, Pow2, Suite


def kernel(**keys: Any) -> Kernel:
    """Return a kernel with these keys."""
    return Kernel.model_validate({"name": "k", "target": "m:f", **keys})


def error_types(**keys: Any) -> list[str]:
    """Return the types of pydantic's errors for a kernel with these keys, echoes of the first left out."""
    with pytest.raises(ValidationError) as caught:
        kernel(**keys)
    first, *others = [item["type"] for item in caught.value.errors()]
    return [first, *(item for item in others if item != "too_short")]


def test_the_smallest_suite() -> None:
    suite = Suite.model_validate({"kmrun": 1, "suite": "s", "kernels": [{"name": "k", "target": "m:f"}]})
    assert suite.kernels[0].bytes is None
    assert suite.kernels[0].mode == "forward"


def test_a_string_stands_for_a_target() -> None:
    short = kernel(
        reference="torch:add", versus={"eager": "f.py:g", "two": {"target": "a.b:c", "graph": True}}
    )
    assert short.reference is not None and short.reference.target == "torch:add"
    assert short.versus["eager"].target == "f.py:g"
    assert short.versus["two"].graph is True


def test_clauses_know_their_kind_and_bound() -> None:
    clauses = kernel(contract=[{"min_roof": {"h100-sxm": 0.5}}, {"max_ms": 3, "when": "n > 1"}]).contract
    assert [(item.kind, item.bound) for item in clauses] == [("min_roof", {"h100-sxm": 0.5}), ("max_ms", 3.0)]


def test_compile_true_false_and_options() -> None:
    assert kernel(compile=True).compile == Compile()
    assert kernel(compile={"mode": "max-autotune"}).compile == Compile(mode="max-autotune")
    assert kernel(compile=False).compile is False
    assert kernel().compile is None


def test_axes() -> None:
    axes = kernel(matrix={"s": {"pow2": [1, 8]}, "d": [64, "x", True, None, [1, None]]}).matrix
    assert axes["s"] == Pow2(pow2=(1, 8))
    assert axes["d"] == (64, "x", True, None, (1, None))


def test_peaks_and_builders() -> None:
    made = kernel(
        peak={"units": "matmul", "in": "bf16"},
        args={"x": {"init": "randn", "shape": ["n", 4], "dtype": "fp32", "std": "1 / n"}},
        kwargs={"w": {"init": "call", "target": "f.py:pack", "from": ["x"]}},
    )
    assert isinstance(made.peak, MatmulPeak) and made.peak.dtype == "bf16"
    assert isinstance(made.args["x"], Randn) and isinstance(made.kwargs["w"], Call)
    assert options(made.args["x"]) == {"mean": 0.0, "std": "1 / n"}
    assert options(made.kwargs["w"]) == {"target": "f.py:pack", "from": ("x",), "visible": "both"}


def test_private_keys_are_left_out() -> None:
    assert kernel(**{"x-note": object()}).name == "k"


@pytest.mark.parametrize(
    "keys",
    [
        {"reference": 3},
        {"flops": None},
        {"flops": True},
        {"flops": " "},
        {"args": None},
        {"tags": "ci"},
        {"args": {"x": {"init": "randn", "shape": [1]}}},
        {"args": {"x": {"init": "randn"}}},
        {"args": {"x": {"init": "randn", "like": "y", "shape": [1]}}},
        {"args": {"x": 3}},
        {"args": {"x y": {"init": "value", "value": 1}}},
        {"contract": [{"min_roof": 1.01}]},
        {"contract": [{"min_roof": float("nan")}]},
        {"contract": [{}]},
        {"peak": {"tflops": 0}},
        {"peak": {"units": "tensor"}},
        {"matrix": {"s": {"pow2": [1]}}},
        {"cases": []},
        {"cases": [None]},
        {"requires": {}},
        {"timing": {}},
        {"timeout_s": {}},
        {"tolerance": {"fp32": {}}},
        {"timing": {"min_time_ms": 2, "max_time_ms": 1}},
        {"peak": {"tflops": 1, "units": "matmul"}},
        {"check": {"metric": "none"}},
        {"compile": {"mode": "fast"}},
        {"cases": [{"s": [[1]]}]},
        {"compile": "yes"},
        {"graph": 1},
        {"target": "torch.add"},
        {"target": "a b:c"},
        {"target": "f.py:"},
        {"check": {"metric": "rel_l2"}},
        {"seed": -1},
        {"seed": True},
        {"requires": {"min_cc": "8"}},
        {"timing": {"rel_ci": 1}},
        {"versus": "torch:add"},
        {"mode": "back"},
        {"kwargs": {"v": {"init": "value", "value": {"a": 1}}}},
        {"outputs": {}},
        {"ragged": {"lens": {"dist": "normal", "count": 3}}},
    ],
)
def test_one_mistake_is_one_error(keys: dict[str, Any]) -> None:
    assert len(error_types(**keys)) == 1
