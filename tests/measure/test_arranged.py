"""Tensors laid out as the suite says, empty ones among them: inputs, and the buffers of outputs."""

from typing import Any

import pytest
import torch

from kmrun.core.case import Argument, Output
from kmrun.core.plain import from_plain, to_plain
from kmrun.measure import inputs, outputs
from kmrun.measure.builders import FILLERS
from support.sides import make_case, randn

CPU = torch.device("cpu")
_OPTIONS: dict[str, dict[str, Any]] = {
    "randint": {"high": 3},
    "full": {"value": 3},
    "values": {"values": (1, 2)},
    "hot_value": {"value": 3},
}


@pytest.mark.parametrize("init", FILLERS)
@pytest.mark.parametrize("shape", [(0, 0), (3, 0, 0)])
def test_every_builder_makes_an_empty_tensor(init: str, shape: tuple[int, ...]) -> None:
    dtype = "int64" if init == "permutation" else "fp32"
    argument = Argument("x", init, shape=shape, dtype=dtype, options=_OPTIONS.get(init, {}))
    made = inputs.build(make_case(argument), 1, CPU)["x"]
    assert made.shape == shape


@pytest.mark.parametrize(
    ("layout", "strides"),
    [
        (None, (8, 1)),
        ("contiguous", (8, 1)),
        ("transposed", (1, 4)),
        ({"strides": (16, 1)}, (16, 1)),
    ],
)
def test_a_buffer_lies_as_its_output_says(layout: Any, strides: tuple[int, ...]) -> None:
    output = from_plain(Output, to_plain(Output("o", (4, 8), "fp32", "out", layout=layout)))
    buffer = outputs.allocate(make_case(randn("x"), outputs=(output,)), CPU)["out"]
    assert (buffer.shape, buffer.stride()) == ((4, 8), strides)
    assert buffer.isnan().all()
