"""Small GGUF and safetensors files with true headers and no weights worth the name."""

import json
import struct
from collections.abc import Mapping, Sequence
from pathlib import Path

SIZES = {0: (1, 4), 1: (1, 2), 2: (32, 18), 8: (32, 34), 12: (256, 144), 14: (256, 210), 39: (32, 17)}
"""Number of a GGUF type to the weights and bytes of its block."""

GgufTensor = tuple[str, Sequence[int], int]


def text(value: str) -> bytes:
    raw = value.encode()
    return struct.pack("<Q", len(raw)) + raw


def value(item: object) -> bytes:
    """Return a value with its type before it: bool, int, float, str or a list of one of them."""
    if isinstance(item, bool):
        return struct.pack("<I?", 7, item)
    if isinstance(item, int):
        return struct.pack("<II", 4, item)
    if isinstance(item, float):
        return struct.pack("<If", 6, item)
    if isinstance(item, str):
        return struct.pack("<I", 8) + text(item)
    assert isinstance(item, list)
    items = [value(entry) for entry in item]
    kind = items[0][:4] if items else struct.pack("<I", 4)
    return (
        struct.pack("<I", 9) + kind + struct.pack("<Q", len(items)) + b"".join(entry[4:] for entry in items)
    )


def gguf(metadata: Mapping[str, object], tensors: Sequence[GgufTensor], version: int = 3) -> bytes:
    """Return a GGUF file; all tensors lie at the place 0, and as many bytes follow as they take together."""
    out = b"GGUF" + struct.pack("<IQQ", version, len(tensors), len(metadata))
    for key, item in metadata.items():
        out += text(key) + value(item)
    total = 0
    for name, shape, kind in tensors:
        out += text(name) + struct.pack("<I", len(shape)) + struct.pack(f"<{len(shape)}Q", *shape)
        out += struct.pack("<IQ", kind, 0)
        weights, size = SIZES[kind]
        elements = 1
        for length in shape:
            elements *= length
        total += elements // weights * size
    return out + bytes(total)


def safetensors(tensors: Mapping[str, tuple[str, Sequence[int], int]]) -> bytes:
    """Return a safetensors file of tensors by name: dtype, shape, bytes."""
    header: dict[str, object] = {"__metadata__": {"format": "pt"}}
    place = 0
    for name, (dtype, shape, size) in tensors.items():
        header[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": [place, place + size]}
        place += size
    raw = json.dumps(header).encode()
    return struct.pack("<Q", len(raw)) + raw + bytes(place)


TINY = {
    "general.architecture": "llama",
    "general.name": "Tiny",
    "llama.block_count": 2,
    "llama.embedding_length": 256,
    "llama.attention.head_count": 4,
    "llama.attention.head_count_kv": 2,
    "llama.context_length": 2048,
    "tokenizer.ggml.tokens": [f"token{index}" for index in range(512)],
}
TINY_TENSORS: list[GgufTensor] = [
    ("token_embd.weight", (256, 512), 12),
    ("output.weight", (256, 512), 14),
    *(
        (f"blk.{layer}.{name}.weight", shape, 12)
        for layer in range(2)
        for name, shape in (
            ("attn_q", (256, 256)),
            ("attn_k", (256, 128)),
            ("attn_v", (256, 128)),
            ("attn_output", (256, 256)),
            ("ffn_up", (256, 512)),
            ("ffn_down", (512, 256)),
        )
    ),
    ("output_norm.weight", (256,), 0),
]


def write(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path
