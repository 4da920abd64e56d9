"""GGUF headers: exact bytes of a good file, a clear error for every bad one."""

import struct

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kmrun.core.llm_cache import cache_bytes
from kmrun.core.llm_model import Attention, parameters
from kmrun.errors import InvalidInput
from kmrun.source.gguf_header import read_header
from kmrun.source.llm_subject import Wish, read_subject
from kmrun.source.model_catalogue import load_models
from support.weight_files import TINY, TINY_TENSORS, gguf, text, write

CATALOGUE = load_models()
GOOD = gguf(TINY, TINY_TENSORS)


def subject(path, **wish):
    return read_subject(Wish(str(path), **wish), CATALOGUE)


def test_a_file_is_read_to_the_byte(tmp_path) -> None:
    found = subject(write(tmp_path / "tiny.gguf", GOOD))
    table, layer = 256 * 512, 2 * 256 * 256 + 2 * 256 * 128 + 2 * 256 * 512
    assert found.weights.exact
    assert found.weights.head == table // 256 * 210
    assert found.weights.body == 2 * layer // 256 * 144 + 4 * 256
    assert found.weights.file == found.weights.head + found.weights.body + table // 256 * 144
    assert found.quant.id == "q4_k_m"
    counts = parameters(found.model)
    assert (counts.table, counts.head, counts.body) == (table, table, 2 * layer + 256)
    assert found.model.attention == (Attention(layers=2, heads=4, kv_heads=2, head_dim=64, v_head_dim=64),)
    assert (found.model.vocab, found.model.max_context, found.model.id) == (512, 2048, "Tiny")
    assert cache_bytes(found.model, 1, 16) == 2 * 2 * 2 * 64 * 2


def test_without_a_head_the_table_is_read_once(tmp_path) -> None:
    tied = [item for item in TINY_TENSORS if item[0] != "output.weight"]
    found = subject(write(tmp_path / "tied.gguf", gguf(TINY, tied)))
    assert found.weights.head == 256 * 512 // 256 * 144
    assert found.weights.file == found.weights.head + found.weights.body


def test_experts_are_read_in_part(tmp_path) -> None:
    metadata = {**TINY, "llama.expert_count": 8, "llama.expert_used_count": 2}
    tensors = [*TINY_TENSORS, *((f"blk.{layer}.ffn_up_exps.weight", (256, 512, 8), 39) for layer in range(2))]
    found = subject(write(tmp_path / "moe.gguf", gguf(metadata, tensors)))
    routed = 2 * 256 * 512 * 8 // 32 * 17
    assert (found.weights.routed, found.weights.experts, found.weights.per_token) == (routed, 8, 2)
    assert found.weights.read(2) == found.weights.body + found.weights.head + routed / 4


def test_layers_that_only_draft_are_held_and_not_read(tmp_path) -> None:
    metadata = {**TINY, "llama.nextn_predict_layers": 1}
    found = subject(write(tmp_path / "mtp.gguf", gguf(metadata, TINY_TENSORS)))
    plain = subject(write(tmp_path / "tiny.gguf", GOOD))
    assert found.model.layers == 1
    assert found.weights.body < plain.weights.body
    assert found.weights.file == plain.weights.file


def test_windows_by_pattern_by_architecture_and_by_layer(tmp_path) -> None:
    def kinds(**metadata):
        architecture = metadata.pop("architecture", "llama")
        renamed = {
            key.replace("llama.", f"{architecture}.", 1): item
            for key, item in {**TINY, **{f"llama.{key}": item for key, item in metadata.items()}}.items()
        }
        renamed["general.architecture"] = architecture
        renamed[f"{architecture}.block_count"] = 6
        path = write(tmp_path / "window.gguf", gguf(renamed, TINY_TENSORS))
        return [(group.layers, group.window, group.kv_heads) for group in subject(path).model.attention]

    window = {"attention.sliding_window": 128}
    pattern = {"attention.sliding_window_pattern": [True, True, False, True, True, True]}
    assert kinds(**window, **pattern) == [(5, 128, 2), (1, None, 2)]
    assert kinds(**window, architecture="gpt-oss") == [(3, 128, 2), (3, None, 2)]
    assert kinds(**window, architecture="gemma3") == [(5, 128, 2), (1, None, 2)]
    assert kinds(**{"attention.head_count_kv": [0, 0, 2, 0, 0, 4]}) == [(1, None, 2), (1, None, 4)]
    assert kinds() == [(6, None, 2)]


def test_an_mla_file_and_a_hybrid_one(tmp_path) -> None:
    mla = {
        **TINY,
        "llama.attention.kv_lora_rank": 512,
        "llama.rope.dimension_count": 64,
        "llama.attention.q_lora_rank": 1536,
    }
    found = subject(write(tmp_path / "mla.gguf", gguf(mla, TINY_TENSORS)))
    assert cache_bytes(found.model, 1, 16) == 2 * (512 + 64) * 2
    hybrid = {
        **TINY,
        "llama.full_attention_interval": 2,
        "llama.ssm.inner_size": 4096,
        "llama.ssm.state_size": 128,
        "llama.ssm.time_step_rank": 32,
        "llama.ssm.group_count": 16,
        "llama.ssm.conv_kernel": 4,
    }
    found = subject(write(tmp_path / "hybrid.gguf", gguf(hybrid, TINY_TENSORS)))
    assert [group.layers for group in found.model.attention] == [1]
    assert found.model.recurrent[0].state_elements == 32 * 128 * 128 + 3 * 8192


def test_a_model_in_parts_is_the_sum_of_them(tmp_path) -> None:
    half = len(TINY_TENSORS) // 2
    write(tmp_path / "m-00001-of-00002.gguf", gguf(TINY, TINY_TENSORS[:half]))
    write(tmp_path / "m-00002-of-00002.gguf", gguf({}, TINY_TENSORS[half:]))
    whole = subject(write(tmp_path / "tiny.gguf", GOOD))
    assert subject(tmp_path / "m-00001-of-00002.gguf").weights == whole.weights
    (tmp_path / "m-00002-of-00002.gguf").unlink()
    with pytest.raises(InvalidInput, match="is missing"):
        subject(tmp_path / "m-00001-of-00002.gguf")


def test_another_format_can_be_asked_for(tmp_path) -> None:
    found = subject(write(tmp_path / "tiny.gguf", GOOD), quant="q8_0")
    assert not found.weights.exact
    assert found.weights.file == pytest.approx(parameters(found.model).total * 8.5 / 8, rel=0.001)


def test_what_the_formats_own_package_writes_is_read_as_it_reads_it(tmp_path) -> None:
    package = pytest.importorskip("gguf")
    numpy = pytest.importorskip("numpy")
    path = tmp_path / "real.gguf"
    writer = package.GGUFWriter(path, "llama")
    writer.add_block_count(1)
    writer.add_embedding_length(256)
    writer.add_head_count(4)
    writer.add_token_list([f"token{index}" for index in range(20_000)])
    blocks = numpy.zeros((64, 144), dtype=numpy.uint8)
    writer.add_tensor("blk.0.attn_q.weight", blocks, raw_dtype=package.GGMLQuantizationType.Q4_K)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    theirs = {item.name: int(item.n_bytes) for item in package.GGUFReader(path).tensors}
    ours = read_header(path)
    assert {item.name: item.bytes for item in ours.tensors} == theirs
    assert ours.lengths["tokenizer.ggml.tokens"] == 20_000


def bad(**change) -> bytes:
    return gguf({**TINY, **change}, TINY_TENSORS)


HUGE = struct.pack("<Q", 1 << 63)
HOSTILE = {
    "empty": b"",
    "four bytes": b"GGUF",
    "another magic": b"GGML" + GOOD[4:],
    "version 1": b"GGUF" + struct.pack("<I", 1) + GOOD[8:],
    "big-endian": b"GGUF" + struct.pack(">I", 3) + GOOD[8:],
    "2^63 tensors": GOOD[:8] + HUGE + GOOD[16:],
    "2^63 pairs": GOOD[:16] + HUGE + GOOD[24:],
    "a key of 2^63 bytes": GOOD[:24] + HUGE + GOOD[32:],
    "an unknown kind of value": GOOD[:24] + text("k") + struct.pack("<I", 99) + GOOD[40:],
    "an array of 2^63 items": GOOD[:24] + text("k") + struct.pack("<II", 9, 4) + HUGE + GOOD[60:],
    "an array of 2^63 texts": GOOD[:24] + text("k") + struct.pack("<II", 9, 8) + HUGE + GOOD[60:],
    "arrays in arrays in arrays": GOOD[:24]
    + text("k")
    + struct.pack("<IIQ", 9, 9, 1)
    + struct.pack("<IQ", 9, 1) * 200,
    "half of it": GOOD[: len(GOOD) // 2],
    "no weights": gguf(TINY, TINY_TENSORS)[:-1000],
    "no tensors": gguf(TINY, []),
    "nothing but a table": gguf(TINY, TINY_TENSORS[:1]),
    "no layers": bad(**{"llama.block_count": 0}),
    "too many layers": bad(**{"llama.block_count": 1 << 23}),
    "layers that are no number": bad(**{"llama.block_count": float("nan")}),
    "an infinite width": bad(**{"llama.embedding_length": float("inf")}),
    "heads for fewer layers": bad(**{"llama.attention.head_count": [4]}),
}


@pytest.mark.parametrize("content", HOSTILE.values(), ids=HOSTILE.keys())
def test_a_bad_file_gets_a_clear_error(content, tmp_path) -> None:
    with pytest.raises(InvalidInput) as raised:
        subject(write(tmp_path / "bad.gguf", content))
    assert "bad.gguf" in raised.value.sentence


def test_a_tensor_of_an_impossible_shape_or_type(tmp_path) -> None:
    shape = struct.pack("<I", 4) + struct.pack("<4Q", *[1 << 62] * 4)
    head = b"GGUF" + struct.pack("<IQQ", 3, 1, 0) + text("t")
    for tail in (
        shape + struct.pack("<IQ", 0, 0),
        struct.pack("<I", 1 << 31),
        struct.pack("<IQIQ", 1, 8, 77, 0),
    ):
        with pytest.raises(InvalidInput, match=r"bad\.gguf gives tensor 't'"):
            read_header(write(tmp_path / "bad.gguf", head + tail + bytes(64)))


def test_no_file_and_a_folder_are_said_as_such(tmp_path) -> None:
    (tmp_path / "folder.gguf").mkdir()
    with pytest.raises(InvalidInput, match="is no file"):
        read_header(tmp_path / "folder.gguf")
    with pytest.raises(InvalidInput, match="there is no"):
        subject(tmp_path / "absent.gguf")


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.integers(0, 2500), st.binary(min_size=1, max_size=16), st.integers(0, 8000))
def test_a_damaged_header_is_read_or_refused(tmp_path, place, change, cut) -> None:
    damaged = GOOD[:place] + change + GOOD[place + len(change) :]
    path = write(tmp_path / "damaged.gguf", damaged[: max(4, len(damaged) - cut)])
    try:
        assert subject(path).weights.file >= 0
    except InvalidInput as error:
        assert "\n" not in error.sentence.strip()
