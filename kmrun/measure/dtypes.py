"""The dtype words of a suite as torch dtypes, and what the comparison needs to know of each."""

import functools

import torch

from kmrun.core.dtypes import canonical
from kmrun.measure.faults import SideFault

_TORCH: dict[str, torch.dtype] = {
    "fp64": torch.float64,
    "fp32": torch.float32,
    # TF32 is a way of multiplying fp32 numbers, not a storage format.
    "tf32": torch.float32,
    "fp16": torch.float16,
    "bf16": torch.bfloat16,
    "fp8_e4m3": torch.float8_e4m3fn,
    "fp8_e4m3fn": torch.float8_e4m3fn,
    "fp8_e4m3fnuz": torch.float8_e4m3fnuz,
    "fp8_e5m2": torch.float8_e5m2,
    "fp8_e5m2fnuz": torch.float8_e5m2fnuz,
}
"""kmrun's words that differ from torch's own names."""

E8M0: torch.dtype | None = getattr(torch, "float8_e8m0fnu", None)
"""Powers of two without a sign; torch has them since 2.7."""
if E8M0 is not None:
    _TORCH["fp8_e8m0"] = E8M0

_SHORT = {dtype: name for name, dtype in reversed(_TORCH.items()) if name != "tf32"}
_FNUZ = {torch.float8_e4m3fn: torch.float8_e4m3fnuz, torch.float8_e5m2: torch.float8_e5m2fnuz}

FP8 = frozenset(dtype for name, dtype in _TORCH.items() if name.startswith("fp8"))


def torch_dtype(name: str, device: torch.device | None = None) -> torch.dtype:
    """Return the storage dtype that `name` (`bf16`, `bfloat16`, `torch.bfloat16`) stands for on `device`.

    `fp8_e4m3` and `fp8_e5m2` become the fnuz formats on the AMD generations that know only those (gfx94x).

    Raises:
        SideFault: torch has no such dtype (`dtype_unknown`).
    """
    plain = canonical(name) or name
    dtype = _TORCH.get(plain) or getattr(torch, plain, None)
    if not isinstance(dtype, torch.dtype):
        raise SideFault("dtype_unknown", f"dtype {name!r} is not known to this torch ({torch.__version__})")
    if plain in ("fp8_e4m3", "fp8_e5m2") and device is not None and _wants_fnuz(device):
        return _FNUZ[dtype]
    return dtype


def _wants_fnuz(device: torch.device) -> bool:
    if device.type != "cuda" or torch.version.hip is None:
        return False
    return str(torch.cuda.get_device_properties(device).gcnArchName).startswith("gfx94")


def short_name(dtype: torch.dtype) -> str:
    """Return kmrun's own word for a torch dtype: `bf16` for `torch.bfloat16`."""
    return _SHORT.get(dtype, str(dtype).removeprefix("torch."))


def epsilon(dtype: torch.dtype) -> float:
    """Return the spacing of the numbers at 1.0; for complex numbers that of their parts."""
    return float(torch.finfo(dtype).eps)


def lower(dtype: torch.dtype) -> torch.dtype | None:
    """Return the next coarser dtype that someone might secretly compute in; None below the 8-bit formats."""
    return {
        torch.float64: torch.float32,
        torch.float32: torch.bfloat16,
        torch.float16: torch.bfloat16,
        torch.bfloat16: torch.float8_e4m3fn,
    }.get(dtype)


def wider(dtype: torch.dtype, compute: torch.dtype) -> torch.dtype:
    """Return what `dtype` becomes when a reference computes in `compute`: integers and bools stay."""
    if dtype.is_complex:
        return torch.complex128 if compute == torch.float64 else torch.complex64
    if not dtype.is_floating_point:
        return dtype
    return compute if dtype.itemsize <= compute.itemsize else dtype


@functools.cache
def has_arithmetic(dtype: torch.dtype) -> bool:
    """Say whether torch can turn numbers of this dtype into others: packed and quantized formats it cannot."""
    try:
        torch.empty(1, dtype=dtype, device="cpu").to(torch.complex128 if dtype.is_complex else torch.float64)
    except RuntimeError:
        return False
    return True


def computable(tensor: torch.Tensor) -> torch.Tensor:
    """Return a tensor with the same values in a dtype that torch has every operation for.

    8-bit floats are for storage alone, and complex half has next to nothing.
    """
    if tensor.dtype == torch.complex32:
        return tensor.to(torch.complex64)
    is_narrow = tensor.dtype.is_floating_point and tensor.dtype.itemsize == 1
    return tensor.to(torch.float32) if is_narrow else tensor


def unusable(tensor: torch.Tensor) -> str | None:
    """Say what a tensor is whose numbers cannot be copied, hashed or compared; None for an ordinary one."""
    if tensor.device.type == "meta":
        return "a meta tensor, not a dense one"
    if tensor.layout != torch.strided or tensor.is_nested:
        layout = "nested" if tensor.is_nested else str(tensor.layout).removeprefix("torch.").removeprefix("_")
        return f"a {layout} tensor, not a dense one"
    if tensor.is_quantized:
        return "a quantized tensor, not plain numbers (those are `.int_repr()`, or `.dequantize()`)"
    if not has_arithmetic(tensor.dtype):
        dtype = short_name(tensor.dtype)
        return f"a tensor of {dtype}, which torch cannot compute with (its bytes are `.view(torch.uint8)`)"
    return None
