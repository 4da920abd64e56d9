"""The element types that a suite can name: one canonical name each, its spellings, size and kind.

`tf32` is a dtype of its own here: fp32 storage, TF32 math. `fp8_e4m3` stands for the device's own format
(`fp8_e4m3fn` on NVIDIA and CDNA4, `fp8_e4m3fnuz` on CDNA3); sizes do not depend on which.
"""

from dataclasses import dataclass
from typing import Literal

Kind = Literal["float", "int", "uint", "bool", "complex"]


@dataclass(frozen=True, slots=True)
class Dtype:
    """An element type. `bits` is what one element occupies; `mantissa_bits` counts explicit bits."""

    name: str
    bits: int
    kind: Kind
    mantissa_bits: int | None = None

    @property
    def is_float(self) -> bool:
        """True for real floating types, the ones that carry gradients."""
        return self.kind == "float"


DTYPES: dict[str, Dtype] = {
    dtype.name: dtype
    for dtype in (
        Dtype("fp64", 64, "float", 52),
        Dtype("fp32", 32, "float", 23),
        Dtype("tf32", 32, "float", 10),
        Dtype("bf16", 16, "float", 7),
        Dtype("fp16", 16, "float", 10),
        Dtype("fp8_e4m3", 8, "float", 3),
        Dtype("fp8_e5m2", 8, "float", 2),
        Dtype("fp8_e4m3fn", 8, "float", 3),
        Dtype("fp8_e4m3fnuz", 8, "float", 3),
        Dtype("fp8_e5m2fnuz", 8, "float", 2),
        Dtype("fp8_e8m0", 8, "float", 0),
        Dtype("fp6_e3m2", 6, "float", 2),
        Dtype("fp6_e2m3", 6, "float", 3),
        Dtype("fp4_e2m1", 4, "float", 1),
        Dtype("int64", 64, "int"),
        Dtype("int32", 32, "int"),
        Dtype("int16", 16, "int"),
        Dtype("int8", 8, "int"),
        Dtype("int4", 4, "int"),
        Dtype("uint64", 64, "uint"),
        Dtype("uint32", 32, "uint"),
        Dtype("uint16", 16, "uint"),
        Dtype("uint8", 8, "uint"),
        Dtype("uint4", 4, "uint"),
        Dtype("bool", 8, "bool"),
        Dtype("complex64", 64, "complex"),
        Dtype("complex128", 128, "complex"),
    )
}
"""Canonical name to element type, widest floats first."""

ALIASES: dict[str, str] = {
    "float64": "fp64",
    "f64": "fp64",
    "float32": "fp32",
    "f32": "fp32",
    "float16": "fp16",
    "f16": "fp16",
    "bfloat16": "bf16",
    "float8_e4m3": "fp8_e4m3",
    "float8_e5m2": "fp8_e5m2",
    "float8_e4m3fn": "fp8_e4m3fn",
    "float8_e4m3fnuz": "fp8_e4m3fnuz",
    "float8_e5m2fnuz": "fp8_e5m2fnuz",
    "float8_e8m0fnu": "fp8_e8m0",
    "float6_e3m2": "fp6_e3m2",
    "float6_e2m3": "fp6_e2m3",
    "float4_e2m1": "fp4_e2m1",
    "i64": "int64",
    "i32": "int32",
    "i16": "int16",
    "i8": "int8",
    "i4": "int4",
    "u64": "uint64",
    "u32": "uint32",
    "u16": "uint16",
    "u8": "uint8",
    "u4": "uint4",
}
"""Other spellings that are accepted bare. `torch.` may stand before any of torch's own names."""

_TORCH_ONLY = {
    "double": "fp64",
    "float": "fp32",
    "half": "fp16",
    "long": "int64",
    "int": "int32",
    "short": "int16",
    "cfloat": "complex64",
    "cdouble": "complex128",
    "float4_e2m1fn_x2": "fp4_e2m1",
}
# Accepted only after `torch.`: bare `half`, `int` or `short` are everyday words, and an axis may want them.

_TORCH_NAMES = {name for name in ALIASES if len(name) > 3} | {
    name for name in DTYPES if not name.startswith(("fp", "bf", "tf"))
}


def canonical(spelling: str) -> str | None:
    """Return the canonical name of a dtype spelling, or None when it is no dtype.

    `bf16`, `bfloat16` and `torch.bfloat16` are one thing.
    """
    if spelling in DTYPES:
        return spelling
    if spelling in ALIASES:
        return ALIASES[spelling]
    if spelling.startswith("torch."):
        bare = spelling.removeprefix("torch.")
        if bare in _TORCH_ONLY:
            return _TORCH_ONLY[bare]
        if bare in _TORCH_NAMES:
            return ALIASES.get(bare, bare)
    return None


def is_dtype(spelling: str) -> bool:
    """Return whether the text spells a dtype."""
    return canonical(spelling) is not None


def find(spelling: str) -> Dtype:
    """Return the element type of a spelling.

    Raises:
        KeyError: it is no dtype.
    """
    name = canonical(spelling)
    if name is None:
        raise KeyError(spelling)
    return DTYPES[name]


def storage_bytes(elements: int, spelling: str) -> int:
    """Return the bytes that so many elements occupy, packed: sub-byte types share bytes."""
    return -(-elements * find(spelling).bits // 8)
