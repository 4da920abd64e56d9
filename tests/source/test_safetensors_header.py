"""safetensors headers and config.json beside them: exact bytes, a clear error for every bad file."""

import json
import struct

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kmrun.core.llm_model import parameters
from kmrun.errors import InvalidInput, UsageError
from kmrun.source.llm_subject import Wish, read_subject
from kmrun.source.model_catalogue import load_models
from kmrun.source.safetensors_header import read_header
from support.weight_files import safetensors, write

CATALOGUE = load_models()
CONFIG = {
    "model_type": "llama",
    "num_hidden_layers": 2,
    "hidden_size": 16,
    "vocab_size": 32,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "intermediate_size": 64,
    "max_position_embeddings": 128,
}
TENSORS = {
    "model.embed_tokens.weight": ("BF16", (32, 16), 1024),
    "lm_head.weight": ("BF16", (32, 16), 1024),
    **{
        f"model.layers.{layer}.{name}.weight": ("F8_E4M3", (64, 16), 1024)
        for layer in range(2)
        for name in ("self_attn.q_proj", "mlp.up_proj")
    },
    "model.layers.2.mlp.up_proj.weight": ("F8_E4M3", (64, 16), 1024),
    "model.visual.blocks.0.weight": ("BF16", (4, 4), 32),
}
GOOD = safetensors(TENSORS)


def subject(path, **wish):
    return read_subject(Wish(str(path), **wish), CATALOGUE)


def test_a_folder_is_read_to_the_byte(tmp_path) -> None:
    write(tmp_path / "model.safetensors", GOOD)
    write(tmp_path / "config.json", json.dumps(CONFIG).encode())
    found = subject(tmp_path)
    # The third layer is none of the two that decode, and pictures take no part either.
    assert (found.weights.body, found.weights.head) == (4096, 1024)
    assert found.weights.file == 1024 * 7 + 32
    assert found.quant.id == "fp8"
    assert found.model.attention[0].kv_heads == 2


def test_a_file_alone_says_what_is_not_known(tmp_path) -> None:
    found = subject(write(tmp_path / "model.safetensors", GOOD))
    assert found.weights.body == 5 * 1024
    assert any("cache is not known" in said for said in found.assumptions)
    assert parameters(found.model).table == 512


def test_shards_are_added_up(tmp_path) -> None:
    items = list(TENSORS.items())
    write(tmp_path / "a-00001.safetensors", safetensors(dict(items[:3])))
    write(tmp_path / "a-00002.safetensors", safetensors(dict(items[3:])))
    write(tmp_path / "config.json", json.dumps(CONFIG).encode())
    assert subject(tmp_path).weights.file == 1024 * 7 + 32


def _parts(folder, stem: str, of: int, count: int | None = None) -> None:
    names = list(TENSORS)
    for index in range(of if count is None else count):
        part = safetensors({name: TENSORS[name] for name in names[index::of]})
        write(folder / f"{stem}-{index + 1:05d}-of-{of:05d}.safetensors", part)


def test_one_part_stands_for_all(tmp_path) -> None:
    _parts(tmp_path, "model", 3)
    whole = read_subject(Wish(str(tmp_path)), CATALOGUE)
    part = read_subject(Wish(str(tmp_path / "model-00002-of-00003.safetensors")), CATALOGUE)
    assert part.weights == whole.weights
    assert whole.weights.file == sum(size for _, _, size in TENSORS.values())


def test_a_missing_part_is_told(tmp_path) -> None:
    _parts(tmp_path, "model", 3, 2)
    for path in (tmp_path, tmp_path / "model-00001-of-00003.safetensors"):
        with pytest.raises(InvalidInput, match=r"model-00003-of-00003\.safetensors is missing"):
            read_subject(Wish(str(path)), CATALOGUE)


@pytest.mark.parametrize("parts", [1, 3])
def test_weights_that_a_folder_holds_twice_count_once(tmp_path, parts) -> None:
    write(tmp_path / "consolidated.safetensors", GOOD)
    if parts == 1:
        write(tmp_path / "model.safetensors", GOOD)
    else:
        _parts(tmp_path, "model", parts)
    found = read_subject(Wish(str(tmp_path)), CATALOGUE)
    assert found.weights.file == sum(size for _, _, size in TENSORS.values())


def test_parts_of_two_models_in_one_folder_are_named(tmp_path) -> None:
    _parts(tmp_path, "one", 2)
    _parts(tmp_path, "two", 2)
    with pytest.raises(UsageError, match="parts of 2 models"):
        read_subject(Wish(str(tmp_path)), CATALOGUE)
    assert read_subject(Wish(str(tmp_path / "two-00001-of-00002.safetensors")), CATALOGUE)


@pytest.mark.parametrize("name", ["m-00000-of-00000.safetensors", "m-00001-of-99999.safetensors"])
def test_a_part_of_no_number_of_parts_is_refused(tmp_path, name) -> None:
    write(tmp_path / name, GOOD)
    with pytest.raises(InvalidInput, match="is a part of"):
        read_subject(Wish(str(tmp_path / name)), CATALOGUE)


def test_packed_weights_count_as_what_they_hold(tmp_path) -> None:
    packed = {
        "model.layers.0.mlp.up_proj.qweight": ("I32", (2, 64), 512),
        "model.layers.0.mlp.up_proj.scales": ("F16", (1, 64), 128),
    }
    found = subject(write(tmp_path / "awq.safetensors", safetensors(packed)))
    assert parameters(found.model).body == 2 * 64 * 8
    assert found.weights.body == 640


def test_experts_without_a_config_are_one_a_token(tmp_path) -> None:
    experts = {f"model.layers.0.mlp.experts.{index}.w1.weight": ("BF16", (8, 8), 128) for index in range(4)}
    found = subject(write(tmp_path / "moe.safetensors", safetensors({**TENSORS, **experts})))
    assert (found.weights.experts, found.weights.per_token, found.weights.routed) == (4, 1, 512)


def header(entry: object) -> bytes:
    raw = json.dumps(entry).encode()
    return struct.pack("<Q", len(raw)) + raw


def tensor(**change: object) -> bytes:
    return header({"t": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8], **change}}) + bytes(8)


HOSTILE = {
    "empty": b"",
    "seven bytes": b"1234567",
    "2^63 of header": struct.pack("<Q", 1 << 63) + b"{}",
    "2^64 - 1 of header": b"\xff" * 8 + b"{}",
    "truncated header": GOOD[:200],
    "truncated weights": GOOD[:-100],
    "no JSON": struct.pack("<Q", 4) + b"nope",
    "no UTF-8": struct.pack("<Q", 4) + b"\xff\xfe\xfd\xfc",
    "a list": header([1, 2]),
    "deep nesting": struct.pack("<Q", 200_000) + b"[" * 200_000,
    "a number of 10000 digits": struct.pack("<Q", 10_000) + b"9" * 10_000,
    "a tensor that is none": header({"t": 3}),
    "an unknown dtype": tensor(dtype="F3"),
    "a dtype that is a list": tensor(dtype=[]),
    "a shape of text": tensor(shape="2"),
    "a negative shape": tensor(shape=[-2]),
    "a shape of 2^63": tensor(shape=[1 << 63]),
    "a shape whose product is huge": tensor(shape=[1 << 62] * 30),
    "a place outside": tensor(data_offsets=[0, 1 << 62]),
    "a place backwards": tensor(data_offsets=[8, 0]),
    "a place of one number": tensor(data_offsets=[0]),
    "another size than its shape": tensor(shape=[3]),
    "tensors over each other": header(
        {name: {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]} for name in "abcdef"}
    )
    + bytes(8),
}


@pytest.mark.parametrize("content", HOSTILE.values(), ids=HOSTILE.keys())
def test_a_bad_file_gets_a_clear_error(content, tmp_path) -> None:
    with pytest.raises(InvalidInput) as raised:
        read_header(write(tmp_path / "bad.safetensors", content))
    assert "bad.safetensors" in raised.value.sentence
    assert len(raised.value.sentence) < 300 + len(str(tmp_path))


def test_links_in_a_circle_are_no_file(tmp_path) -> None:
    (tmp_path / "a.safetensors").symlink_to(tmp_path / "b.safetensors")
    (tmp_path / "b.safetensors").symlink_to(tmp_path / "a.safetensors")
    with pytest.raises(InvalidInput):
        subject(tmp_path / "a.safetensors")
    with pytest.raises(InvalidInput):
        subject(tmp_path)


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.integers(0, len(GOOD) - 1), st.binary(min_size=1, max_size=8))
def test_a_damaged_file_is_read_or_refused(tmp_path, place, change) -> None:
    path = write(tmp_path / "damaged.safetensors", GOOD[:place] + change + GOOD[place + len(change) :])
    try:
        assert subject(path).weights.file >= 0
    except InvalidInput as error:
        assert error.sentence
