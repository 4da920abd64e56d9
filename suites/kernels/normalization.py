"""Softmax, layer norm and RMS norm of our own, and naive versions to measure them against.

All three are bound by memory: what counts is how often a row travels between memory and the arithmetic units.
The kernels here take a few rows at a time on a CPU, so that intermediate results stay in its cache; on a GPU
each is one fused Triton kernel (triton_rows.py). Statistics are computed in fp32, whatever the dtype of x is.
naive versions are loops over rows, as one writes them first.
"""

import torch

EPS = 1e-5
CACHE_BYTES = 1 << 19
"""What the fp32 rows of a block may occupy: half a megabyte fits the second-level cache of most cores."""


def _by_blocks(x, function):
    """Apply `function` (a block of fp32 rows to results) to x [rows, columns], a cacheful at a time."""
    out = torch.empty_like(x)
    step = max(1, CACHE_BYTES // (4 * x.shape[-1]))
    for rows, results in zip(x.split(step), out.split(step), strict=True):
        results.copy_(function(rows.float()))
    return out


def softmax(x):
    """Softmax over the last dimension of x [rows, columns], safe for large values."""
    if x.is_cuda:
        from .triton_rows import softmax as fused

        return fused(x)

    def block(rows):
        weights = torch.sub(rows, rows.amax(-1, keepdim=True)).exp_()
        return weights.div_(weights.sum(-1, keepdim=True))

    return _by_blocks(x, block)


def layer_norm(x, weight, bias):
    """Layer norm of the rows of x [rows, columns]; weight and bias: [columns]."""
    if x.is_cuda:
        from .triton_rows import layer_norm as fused

        return fused(x, weight, bias, EPS)
    scale, shift = weight.float(), bias.float()

    def block(rows):
        centred = rows - rows.mean(-1, keepdim=True)
        variance = centred.square().mean(-1, keepdim=True)
        return centred.mul_(torch.rsqrt(variance.add_(EPS))).mul_(scale).add_(shift)

    return _by_blocks(x, block)


def rms_norm(x, weight):
    """RMS norm of the rows of x [rows, columns]; weight: [columns]."""
    if x.is_cuda:
        from .triton_rows import rms_norm as fused

        return fused(x, weight, EPS)
    scale = weight.float()

    def block(rows):
        mean_square = rows.square().mean(-1, keepdim=True)
        return torch.mul(rows, torch.rsqrt(mean_square.add_(EPS))).mul_(scale)

    return _by_blocks(x, block)


def softmax_reference(x):
    """torch's own."""
    return torch.softmax(x, dim=-1)


def layer_norm_reference(x, weight, bias):
    """torch's own."""
    return torch.nn.functional.layer_norm(x, x.shape[-1:], weight, bias, EPS)


def rms_norm_reference(x, weight):
    """torch's own."""
    return torch.nn.functional.rms_norm(x, x.shape[-1:], weight, EPS)


def softmax_by_rows(x):
    """One row after the other: the naive version."""
    out = torch.empty_like(x)
    for row, result in zip(x, out, strict=True):
        weights = torch.exp(row - row.max())
        result.copy_(weights / weights.sum())
    return out


def layer_norm_by_rows(x, weight, bias):
    """One row after the other: the naive version."""
    out = torch.empty_like(x)
    for row, result in zip(x, out, strict=True):
        wide = row.float()
        deviation = wide - wide.mean()
        result.copy_(deviation / torch.sqrt((deviation**2).mean() + EPS) * weight + bias)
    return out


def rms_norm_by_rows(x, weight):
    """One row after the other: the naive version."""
    out = torch.empty_like(x)
    for row, result in zip(x, out, strict=True):
        wide = row.float()
        result.copy_(wide / torch.sqrt((wide**2).mean() + EPS) * weight)
    return out
