"""The `init` builders: each fills a tensor that exists already, in place, from a generator of its own.

Filling instead of creating is what lets content be refreshed under the same pointers. Low-precision dtypes
are drawn in fp32 and rounded once, as a user would.
"""

import math
from collections.abc import Callable, Mapping
from typing import Any

import torch

from kmrun.measure.dtypes import FP8
from kmrun.measure.faults import SideFault

Filler = Callable[[torch.Tensor, torch.Generator, Mapping[str, Any]], None]

POISON_BYTE = 0xFF
"""All bits set is a NaN in every floating format here (0x80 in the fnuz ones), -1 in signed integers."""


class InputError(SideFault):
    """An argument cannot be built (`input_invalid`, `init_unbuilt`, `input_raised`): the suite's fault."""


def poison(tensor: torch.Tensor) -> None:
    """Overwrite a tensor so that whatever reads it before writing it gives itself away (NaN, -1, True)."""
    with torch.no_grad():
        if tensor.dtype in FP8:
            pattern = 0x80 if "fnuz" in str(tensor.dtype) else POISON_BYTE
            tensor.detach().view(torch.uint8).fill_(pattern)
        elif tensor.dtype.is_floating_point or tensor.dtype.is_complex:
            tensor.detach().fill_(math.nan)
        elif tensor.dtype == torch.bool:
            tensor.detach().fill_(True)
        elif tensor.dtype.is_signed:
            tensor.detach().fill_(-1)
        else:
            tensor.detach().fill_(torch.iinfo(tensor.dtype).max)


def _via_fp32(tensor: torch.Tensor, fill: Callable[[torch.Tensor], Any]) -> None:
    """Apply an in-place `fill`, through an fp32 copy where torch has no such kernel for the dtype."""
    if tensor.dtype in FP8 or not tensor.dtype.is_floating_point:
        draft = torch.empty(tensor.shape, dtype=torch.float32, device=tensor.device)
        fill(draft)
        tensor.copy_(draft)
    else:
        fill(tensor)


def randn(tensor: torch.Tensor, generator: torch.Generator, options: Mapping[str, Any]) -> None:
    """Fill with normal values."""
    mean, std = float(options.get("mean", 0.0)), float(options.get("std", 1.0))
    if std < 0:
        raise InputError("input_invalid", f"init: randn needs std >= 0, not {std}")
    if tensor.dtype.is_complex:
        tensor.normal_(0.0, 1.0, generator=generator).mul_(std).add_(mean)
    else:
        _via_fp32(tensor, lambda draft: draft.normal_(mean, std, generator=generator))


def uniform(tensor: torch.Tensor, generator: torch.Generator, options: Mapping[str, Any]) -> None:
    """Fill with uniform values in [low, high); rounding to a narrow dtype may reach high."""
    low, high = float(options.get("low", 0.0)), float(options.get("high", 1.0))
    if not low <= high:
        raise InputError("input_invalid", f"init: uniform needs low <= high, not {low} and {high}")
    _via_fp32(tensor, lambda draft: draft.uniform_(low, high, generator=generator))


def randint(tensor: torch.Tensor, generator: torch.Generator, options: Mapping[str, Any]) -> None:
    """Fill with uniform integers in [low, high)."""
    low, high = int(options.get("low", 0)), int(options["high"])
    if not low < high:
        raise InputError("input_invalid", f"init: randint needs low < high, not {low} and {high}")
    drawn = torch.empty(tensor.shape, dtype=torch.int64, device=tensor.device)
    tensor.copy_(drawn.random_(low, high, generator=generator))


def bernoulli(tensor: torch.Tensor, generator: torch.Generator, options: Mapping[str, Any]) -> None:
    """Fill with True (or 1) with probability p."""
    p = float(options.get("p", 0.5))
    if not 0.0 <= p <= 1.0:
        raise InputError("input_invalid", f"init: bernoulli needs 0 <= p <= 1, not {p}")
    draft = torch.empty(tensor.shape, dtype=torch.float32, device=tensor.device)
    tensor.copy_(draft.bernoulli_(p, generator=generator))


def arange(tensor: torch.Tensor, generator: torch.Generator, options: Mapping[str, Any]) -> None:
    """Fill with start, start + step, ... in row-major order."""
    start, step = options.get("start", 0), options.get("step", 1)
    count = torch.arange(tensor.numel(), device=tensor.device)
    exact = isinstance(start, int) and isinstance(step, int)
    steps = count * step + start if exact else count.to(torch.float64) * float(step) + float(start)
    tensor.copy_(steps.view(tensor.shape))


def permutation(tensor: torch.Tensor, generator: torch.Generator, options: Mapping[str, Any]) -> None:
    """Fill with a random permutation of 0 .. n-1 along the last dimension."""
    keys = torch.empty(tensor.shape, dtype=torch.float64, device=tensor.device)
    tensor.copy_(keys.uniform_(generator=generator).argsort(dim=-1))


def zeros(tensor: torch.Tensor, generator: torch.Generator, options: Mapping[str, Any]) -> None:
    """Fill with 0."""
    tensor.zero_()


def ones(tensor: torch.Tensor, generator: torch.Generator, options: Mapping[str, Any]) -> None:
    """Fill with 1."""
    tensor.fill_(1)


def empty(tensor: torch.Tensor, generator: torch.Generator, options: Mapping[str, Any]) -> None:
    """Poison: nobody may rely on what scratch space holds."""
    poison(tensor)


def full(tensor: torch.Tensor, generator: torch.Generator, options: Mapping[str, Any]) -> None:
    """Fill with `value`."""
    tensor.fill_(options["value"])


def values(tensor: torch.Tensor, generator: torch.Generator, options: Mapping[str, Any]) -> None:
    """Fill with these very values, repeated in row-major order."""
    given = options["values"]
    exact = all(isinstance(value, int) for value in given)
    row = torch.tensor(list(given), dtype=torch.int64 if exact else torch.float64, device=tensor.device)
    times = -(-tensor.numel() // max(1, row.numel()))
    tensor.copy_(row.repeat(times)[: tensor.numel()].view(tensor.shape))


def cauchy(tensor: torch.Tensor, generator: torch.Generator, options: Mapping[str, Any]) -> None:
    """Fill with heavy tails: outliers as in real activations, clamped to what fp16 can hold."""
    median, scale = float(options.get("median", 0.0)), float(options.get("scale", 1.0))
    if scale <= 0:
        raise InputError("input_invalid", f"init: cauchy needs scale > 0, not {scale}")
    _via_fp32(tensor, lambda draft: draft.cauchy_(median, scale, generator=generator).clamp_(-6e4, 6e4))


def hot_value(tensor: torch.Tensor, generator: torch.Generator, options: Mapping[str, Any]) -> None:
    """Fill with normal values (integers: uniform in 0..2|value|), a share `p` of them replaced by `value`."""
    value, p = options["value"], float(options.get("p", 0.5))
    if not 0.0 <= p <= 1.0:
        raise InputError("input_invalid", f"init: hot_value needs 0 <= p <= 1, not {p}")
    if tensor.dtype.is_floating_point:
        randn(tensor, generator, {})
    else:
        randint(tensor, generator, {"low": 0, "high": max(2, 2 * abs(int(value)) + 1)})
    hot = (
        torch.empty(tensor.shape, dtype=torch.float32, device=tensor.device).uniform_(generator=generator) < p
    )
    if tensor.dtype in FP8:
        tensor.copy_(tensor.to(torch.float32).masked_fill_(hot, float(value)))
    else:
        tensor.masked_fill_(hot, value)


def sorted_values(tensor: torch.Tensor, generator: torch.Generator, options: Mapping[str, Any]) -> None:
    """Fill with uniform values in [low, high), ascending (or descending) along the last dimension."""
    low, high = float(options.get("low", 0.0)), float(options.get("high", 1.0))
    draft = torch.empty(tensor.shape, dtype=torch.float64, device=tensor.device)
    draft.uniform_(low, high, generator=generator)
    tensor.copy_(draft.sort(dim=-1, descending=bool(options.get("descending", False))).values)


def spd(tensor: torch.Tensor, generator: torch.Generator, options: Mapping[str, Any]) -> None:
    """Fill with symmetric positive definite matrices, eigenvalues from 1 to `condition` in even log steps."""
    if tensor.dim() < 2 or tensor.shape[-1] != tensor.shape[-2]:
        raise InputError("input_invalid", f"init: spd needs square matrices, not shape {tuple(tensor.shape)}")
    condition = float(options.get("condition", 100.0))
    if condition < 1:
        raise InputError("input_invalid", f"init: spd needs condition >= 1, not {condition}")
    draft = torch.empty(tensor.shape, dtype=torch.float64, device=tensor.device).normal_(generator=generator)
    basis = torch.linalg.qr(draft).Q
    eigenvalues = torch.logspace(
        0, math.log10(condition), tensor.shape[-1], dtype=torch.float64, device=tensor.device
    )
    product = (basis * eigenvalues) @ basis.mT
    tensor.copy_((product + product.mT) / 2)


def causal_mask(tensor: torch.Tensor, generator: torch.Generator, options: Mapping[str, Any]) -> None:
    """Fill the lower triangle: True (bool) or 1 (integers), or 0 with -inf above it (floating dtypes)."""
    if tensor.dim() < 2:
        raise InputError(
            "input_invalid", f"init: causal_mask needs a matrix, not shape {tuple(tensor.shape)}"
        )
    allowed = torch.ones(tensor.shape[-2:], dtype=torch.bool, device=tensor.device).tril_()
    if tensor.dtype.is_floating_point:
        additive = torch.zeros(allowed.shape, dtype=torch.float32, device=tensor.device)
        tensor.copy_(additive.masked_fill_(~allowed, -math.inf).expand(tensor.shape))
    else:
        tensor.copy_(allowed.expand(tensor.shape))


FILLERS: dict[str, Filler] = {
    "randn": randn,
    "uniform": uniform,
    "randint": randint,
    "bernoulli": bernoulli,
    "arange": arange,
    "permutation": permutation,
    "zeros": zeros,
    "ones": ones,
    "empty": empty,
    "full": full,
    "values": values,
    "cauchy": cauchy,
    "hot_value": hot_value,
    "sorted": sorted_values,
    "spd": spd,
    "causal_mask": causal_mask,
}
"""Builders of one plain tensor, by the word of the suite format."""

NOT_BUILT_YET = frozenset({"indptr", "page_table", "topk_router", "quantize", "pack"})
"""Words that the format knows and this version refuses."""
