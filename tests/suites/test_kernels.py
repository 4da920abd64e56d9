"""The Triton kernels against torch, in Triton's interpreter where there is no GPU."""

import importlib.util

import pytest
import torch

from kmrun.measure.target import resolve
from kmrun.resources import folder

# Not importorskip: the interpreter has to be chosen before Triton is imported, which the kernels' file does.
pytestmark = pytest.mark.skipif(importlib.util.find_spec("triton") is None, reason="needs triton")

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
F = torch.nn.functional


def kernel(name):
    return resolve(f"kernels/triton_rows.py:{name}", str(folder("suites")))


@pytest.mark.parametrize("columns", [1, 64, 1000])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_rows(columns, dtype):
    generator = torch.Generator().manual_seed(columns)
    x, weight, bias = (
        torch.randn(shape, generator=generator).to(DEVICE, dtype)
        for shape in ((5, columns), columns, columns)
    )
    found = {
        "softmax": (kernel("softmax")(x), torch.softmax(x, -1)),
        "layer_norm": (
            kernel("layer_norm")(x, weight, bias, 1e-5),
            F.layer_norm(x, (columns,), weight, bias, 1e-5),
        ),
        "rms_norm": (kernel("rms_norm")(x, weight, 1e-5), F.rms_norm(x, (columns,), weight, 1e-5)),
        "add": (kernel("add")(x, x), x + x),
    }
    for got, want in found.values():
        torch.testing.assert_close(got, want)
