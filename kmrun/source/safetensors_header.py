"""The header of a safetensors file: names, shapes and places of its tensors; no weight is read.

The format is eight bytes of length and so many bytes of JSON (huggingface/safetensors README, "Format"). The file is
untrusted: lengths are held against the file's own size before anything is read or summed.
"""

import json
import math
from pathlib import Path
from typing import TypeGuard

from kmrun.errors import InvalidInput
from kmrun.source.weight_tensors import Tensor

LONGEST_HEADER = 100_000_000
"""The format's own limit on the JSON."""

_BITS = {
    "F64": 64, "F32": 32, "F16": 16, "BF16": 16, "F8_E4M3": 8, "F8_E5M2": 8, "F8_E8M0": 8, "F4": 4, "F6_E2M3": 6,
    "F6_E3M2": 6, "I64": 64, "I32": 32, "I16": 16, "I8": 8, "U64": 64, "U32": 32, "U16": 16, "U8": 8, "BOOL": 8,
    "C64": 64,
}  # fmt: skip
_FORMATS = {
    "F32": "f32", "F16": "f16", "BF16": "bf16", "F8_E4M3": "fp8", "F8_E5M2": "fp8", "I8": "int8", "I32": "int4-g128",
    "U8": "nvfp4", "F4": "nvfp4", "U32": "mlx-4bit",
}  # fmt: skip
_MOST_DIMENSIONS = 32


def read_header(path: Path) -> list[Tensor]:
    """Return the tensors of the file.

    Raises:
        InvalidInput: it is no safetensors file, truncated, or its header contradicts itself.
    """
    try:
        if not path.is_file():
            raise InvalidInput(f"{path} is no file")
        with path.open("rb") as file:
            size = path.stat().st_size
            head = file.read(8)
            if len(head) < 8:
                raise InvalidInput(f"{path} is too short for a safetensors file")
            length = int.from_bytes(head, "little")
            if length > LONGEST_HEADER:
                raise InvalidInput(
                    f"{path} claims a header of {length} bytes", "it is no safetensors file, or damaged"
                )
            if 8 + length > size:
                raise InvalidInput(f"{path} is truncated: {length} bytes of header, {size} bytes in all")
            text = file.read(length)
    except OSError as error:
        raise InvalidInput(f"cannot read {path}: {error.strerror or error}") from None
    try:
        header = json.loads(text)
    except (ValueError, RecursionError):
        raise InvalidInput(
            f"{path}: the header is no JSON", "it is no safetensors file, or damaged"
        ) from None
    if not isinstance(header, dict):
        raise InvalidInput(f"{path}: the header is no JSON object")
    data = size - 8 - length
    tensors = [_tensor(path, name, entry, data) for name, entry in header.items() if name != "__metadata__"]
    if sum(tensor.bytes for tensor in tensors) > data:
        raise InvalidInput(
            f"{path}: its tensors overlap: more bytes than the file has", "the file is damaged"
        )
    return tensors


def _tensor(path: Path, name: str, entry: object, data: int) -> Tensor:
    where = f"{path}: tensor '{name[:80]}'"
    if not isinstance(entry, dict):
        raise InvalidInput(f"{where} is no JSON object")
    dtype, shape, place = entry.get("dtype"), entry.get("shape"), entry.get("data_offsets")
    bits = _BITS.get(dtype) if isinstance(dtype, str) else None
    if bits is None:
        raise InvalidInput(f"{where} has the unknown dtype {dtype!r}")
    if not _sizes(shape) or len(shape) > _MOST_DIMENSIONS:
        raise InvalidInput(f"{where} has no shape of whole numbers")
    if not _sizes(place) or len(place) != 2 or not place[0] <= place[1] <= data:
        raise InvalidInput(f"{where} lies outside the file", "the file is truncated or damaged")
    elements = math.prod(shape)
    size = place[1] - place[0]
    if elements * bits != size * 8:
        raise InvalidInput(f"{where}: its shape in {dtype} does not take {size} bytes")
    return Tensor(name, _FORMATS.get(str(dtype), str(dtype).lower()), elements, size)


def _sizes(value: object) -> TypeGuard[list[int]]:
    return isinstance(value, list) and all(
        isinstance(item, int) and not isinstance(item, bool) and 0 <= item < 1 << 63 for item in value
    )
