"""Fused Triton kernels: vector add, and one program a row for softmax, layer norm and RMS norm.

Without a GPU they run in Triton's interpreter, which is slow but computes the same: correctness can be tested
anywhere. The switch has to be set before Triton is imported.
"""

import os

import torch

if not torch.cuda.is_available():
    os.environ.setdefault("TRITON_INTERPRET", "1")

import triton
import triton.language as tl


@triton.jit
def _add(x_ptr, y_ptr, out_ptr, count, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < count
    x = tl.load(x_ptr + offsets, mask=inside).to(tl.float32)
    y = tl.load(y_ptr + offsets, mask=inside).to(tl.float32)
    tl.store(out_ptr + offsets, (x + y).to(out_ptr.dtype.element_ty), mask=inside)


def add(x, y):
    """x + y for contiguous tensors of one shape."""
    out = torch.empty_like(x)
    block = 1024 if x.is_cuda else 65536  # an interpreted program costs about the same whatever its size
    _add[(triton.cdiv(x.numel(), block),)](x, y, out, x.numel(), BLOCK=block)
    return out


@triton.jit
def _softmax(x_ptr, out_ptr, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    offsets = tl.arange(0, BLOCK)
    inside = offsets < columns
    x = tl.load(x_ptr + row * columns + offsets, mask=inside, other=-float("inf")).to(tl.float32)
    weights = tl.exp(x - tl.max(x, 0))
    result = weights / tl.sum(weights, 0)
    tl.store(out_ptr + row * columns + offsets, result.to(out_ptr.dtype.element_ty), mask=inside)


@triton.jit
def _layer_norm(x_ptr, weight_ptr, bias_ptr, out_ptr, columns, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    offsets = tl.arange(0, BLOCK)
    inside = offsets < columns
    x = tl.load(x_ptr + row * columns + offsets, mask=inside, other=0.0).to(tl.float32)
    centred = tl.where(inside, x - tl.sum(x, 0) / columns, 0.0)
    scale = 1.0 / tl.sqrt(tl.sum(centred * centred, 0) / columns + eps)
    weight = tl.load(weight_ptr + offsets, mask=inside, other=0.0).to(tl.float32)
    bias = tl.load(bias_ptr + offsets, mask=inside, other=0.0).to(tl.float32)
    result = centred * scale * weight + bias
    tl.store(out_ptr + row * columns + offsets, result.to(out_ptr.dtype.element_ty), mask=inside)


@triton.jit
def _rms_norm(x_ptr, weight_ptr, out_ptr, columns, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    offsets = tl.arange(0, BLOCK)
    inside = offsets < columns
    x = tl.load(x_ptr + row * columns + offsets, mask=inside, other=0.0).to(tl.float32)
    scale = 1.0 / tl.sqrt(tl.sum(x * x, 0) / columns + eps)
    weight = tl.load(weight_ptr + offsets, mask=inside, other=0.0).to(tl.float32)
    tl.store(
        out_ptr + row * columns + offsets, (x * scale * weight).to(out_ptr.dtype.element_ty), mask=inside
    )


def _launch(x):
    """Return the launch of one program a row: (grid, block of columns, warps)."""
    block = triton.next_power_of_2(x.shape[-1])
    warps = 4 if block <= 2048 else 8 if block <= 8192 else 16
    return (x.numel() // x.shape[-1],), block, warps


def softmax(x):
    """Softmax over the last dimension of a contiguous x, one program a row."""
    out = torch.empty_like(x)
    grid, block, warps = _launch(x)
    _softmax[grid](x, out, x.shape[-1], BLOCK=block, num_warps=warps)
    return out


def layer_norm(x, weight, bias, eps):
    """Layer norm over the last dimension of a contiguous x, one program a row."""
    out = torch.empty_like(x)
    grid, block, warps = _launch(x)
    _layer_norm[grid](x, weight, bias, out, x.shape[-1], eps, BLOCK=block, num_warps=warps)
    return out


def rms_norm(x, weight, eps):
    """RMS norm over the last dimension of a contiguous x, one program a row."""
    out = torch.empty_like(x)
    grid, block, warps = _launch(x)
    _rms_norm[grid](x, weight, out, x.shape[-1], eps, BLOCK=block, num_warps=warps)
    return out
