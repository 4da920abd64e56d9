"""The header of a GGUF file: its metadata and its tensors; no weight is read.

Format: ggml's docs/gguf.md. The file is untrusted: every count and length is held against what is left of the
file before anything is read, and the whole header against limits that no model reaches. (The package `gguf` needs
numpy, and believes what a file says of itself.)
"""

import math
import mmap
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from kmrun.errors import InvalidInput
from kmrun.source.weight_tensors import Tensor

Value = int | float | bool | str | list["Value"]

MOST_TENSORS = 1 << 18
MOST_PAIRS = 1 << 16
MOST_ITEMS = 1 << 24
"""Items of all arrays together: vocabularies have a quarter of a million."""

LONGEST_NAME = 1 << 16
KEPT_ITEMS = 1 << 14
"""Longer arrays (vocabularies) are skipped; only their length is kept."""

_NUMBERS = {
    0: "<B",
    1: "<b",
    2: "<H",
    3: "<h",
    4: "<I",
    5: "<i",
    6: "<f",
    7: "<?",
    10: "<Q",
    11: "<q",
    12: "<d",
}
_STRING, _ARRAY = 8, 9
_TYPES: Mapping[int, tuple[str, int, int]] = {
    0: ("f32", 1, 4), 1: ("f16", 1, 2), 2: ("q4_0", 32, 18), 3: ("q4_1", 32, 20), 6: ("q5_0", 32, 22),
    7: ("q5_1", 32, 24), 8: ("q8_0", 32, 34), 9: ("q8_1", 32, 36), 10: ("q2_k", 256, 84), 11: ("q3_k", 256, 110),
    12: ("q4_k", 256, 144), 13: ("q5_k", 256, 176), 14: ("q6_k", 256, 210), 15: ("q8_k", 256, 292),
    16: ("iq2_xxs", 256, 66), 17: ("iq2_xs", 256, 74), 18: ("iq3_xxs", 256, 98), 19: ("iq1_s", 256, 50),
    20: ("iq4_nl", 32, 18), 21: ("iq3_s", 256, 110), 22: ("iq2_s", 256, 82), 23: ("iq4_xs", 256, 136),
    24: ("i8", 1, 1), 25: ("i16", 1, 2), 26: ("i32", 1, 4), 27: ("i64", 1, 8), 28: ("f64", 1, 8),
    29: ("iq1_m", 256, 56), 30: ("bf16", 1, 2), 34: ("tq1_0", 256, 54), 35: ("tq2_0", 256, 66),
    39: ("mxfp4", 32, 17), 40: ("nvfp4", 64, 36), 41: ("q1_0", 128, 18), 42: ("q2_0", 64, 18),
}  # fmt: skip
"""Number of a tensor type to its name, and the weights and bytes of its block (ggml-common.h)."""


@dataclass(frozen=True, slots=True)
class GgufHeader:
    """Metadata by key (arrays of more than `KEPT_ITEMS` are their length alone), and the tensors."""

    metadata: Mapping[str, Value]
    tensors: tuple[Tensor, ...]
    lengths: Mapping[str, int]
    """Key of an array to its length."""


def read_header(path: Path) -> GgufHeader:
    """Return the header of the file.

    Raises:
        InvalidInput: it is no GGUF file of version 2 or 3, truncated, or its header is impossible.
    """
    try:
        if not path.is_file():
            raise InvalidInput(f"{path} is no file")
        with path.open("rb") as file:
            if file.read(4) != b"GGUF":
                raise InvalidInput(f"{path} is no GGUF file", "it does not begin with 'GGUF'")
            with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as view:
                return _Reader(view, str(path)).header()
    except OSError as error:
        raise InvalidInput(f"cannot read {path}: {error.strerror or error}") from None


class _Reader:
    def __init__(self, view: mmap.mmap, where: str) -> None:
        self._view = view
        self._size = len(view)
        self._at = 4
        self._where = where
        self._items = 0
        self._lengths: dict[str, int] = {}

    def header(self) -> GgufHeader:
        version = self._number("<I")
        if version not in (2, 3):
            hint = "big-endian files are not read" if version > 0xFFFF else "versions 2 and 3 are known"
            raise self._error(f"has version {version}", hint)
        tensors, pairs = self._number("<Q"), self._number("<Q")
        # The least that one takes: a name's length, its type and a byte; or name, dimensions, type and place.
        if tensors > min(MOST_TENSORS, self._left // 24) or pairs > min(MOST_PAIRS, self._left // 13):
            raise self._error(f"claims {tensors} tensors and {pairs} pairs of metadata in {self._size} bytes")
        metadata: dict[str, Value] = {}
        for _ in range(pairs):
            key = self._text(LONGEST_NAME)
            metadata[key] = self._value(self._number("<I"), key, 0)
        listed = tuple(self._tensor() for _ in range(tensors))
        size = sum(tensor.bytes for tensor in listed)
        if size > self._left:
            raise self._error(f"lists tensors of {size} bytes with {self._left} left for them")
        return GgufHeader(metadata, listed, self._lengths)

    @property
    def _left(self) -> int:
        return self._size - self._at

    def _error(self, what: str, hint: str = "the file is truncated or damaged") -> InvalidInput:
        return InvalidInput(f"{self._where} {what}", hint)

    def _take(self, size: int) -> int:
        """Return where the next so many bytes begin, and step over them."""
        if size > self._left:
            raise self._error(f"ends within its header: {size} bytes wanted at {self._at} of {self._size}")
        start = self._at
        self._at += size
        return start

    def _number(self, code: str) -> int:
        number: int = struct.unpack_from(code, self._view, self._take(struct.calcsize(code)))[0]
        return number

    def _text(self, longest: int) -> str:
        length = self._number("<Q")
        if length > longest:
            raise self._error(f"has a string of {length} bytes at {self._at}")
        start = self._take(length)
        return self._view[start : start + length].decode("utf-8", "replace")

    def _value(self, kind: int, key: str, depth: int) -> Value:
        if kind in _NUMBERS:
            return self._number(_NUMBERS[kind])
        if kind == _STRING:
            return self._text(self._left)
        if kind == _ARRAY and depth < 4:
            return self._array(key, depth)
        raise self._error(f"has a value of unknown type {kind} at {self._at}")

    def _array(self, key: str, depth: int) -> Value:
        kind, count = self._number("<I"), self._number("<Q")
        code = _NUMBERS.get(kind)
        least = struct.calcsize(code) if code else 8
        self._items += count
        if count * least > self._left or self._items > MOST_ITEMS:
            raise self._error(f"has an array of {count} items at {self._at}")
        self._lengths.setdefault(key, count)
        if count <= KEPT_ITEMS:
            return [self._value(kind, key, depth + 1) for _ in range(count)]
        if code:
            self._take(count * least)
        elif kind == _STRING:
            self._skip_texts(count)
        else:
            for _ in range(count):
                self._value(kind, key, depth + 1)
        return count

    def _skip_texts(self, count: int) -> None:
        # A vocabulary: the one loop here whose time can be felt.
        view, at, size = self._view, self._at, self._size
        unpack = struct.Struct("<Q").unpack_from
        for _ in range(count):
            if at + 8 > size:
                break
            at += 8 + unpack(view, at)[0]
        if at > size:
            raise self._error("ends within its header, in an array of strings")
        self._at = at

    def _tensor(self) -> Tensor:
        name = self._text(LONGEST_NAME)
        dimensions = self._number("<I")
        if dimensions > 8:
            raise self._error(f"gives tensor '{name[:80]}' {dimensions} dimensions")
        shape = [self._number("<Q") for _ in range(dimensions)]
        kind = self._number("<I")
        self._number("<Q")  # where its data lies
        if kind not in _TYPES:
            raise self._error(
                f"gives tensor '{name[:80]}' the unknown type {kind}", "a newer format than is known"
            )
        label, weights, size = _TYPES[kind]
        elements = math.prod(shape)
        if elements >= 1 << 60 or (shape and shape[0] % weights):
            raise self._error(f"gives tensor '{name[:80]}' the impossible shape {shape}")
        return Tensor(name, label, elements, elements // weights * size)
