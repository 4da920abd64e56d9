"""Two sizes of a format: the least that its name allows, and that of a whole file."""

import csv
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kmrun.core.llm_model import Parameters, parameters
from kmrun.core.llm_quant import expected_distinct, plain_format, weights
from kmrun.source.model_catalogue import load_models, sources
from kmrun.source.model_files import read_quants

with (Path(__file__).parent / "llm" / "quants.csv").open(newline="", encoding="utf-8") as table:
    ROWS = list(csv.DictReader(table))
CATALOGUE = load_models()
NAMES = {
    "nvfp4 (gguf)": "nvfp4",
    "fp8 (per-tensor / per-channel)": "fp8",
    "fp8 (128x128 block)": "fp8-block",
    "int8 (per-channel)": "int8",
    "int4 g128 (AWQ/GPTQ)": "int4-g128",
    "int4 g32 (gpt-fast)": "int4-g32",
    "mlx 4-bit g64": "mlx-4bit",
    "nf4 (double quant)": "nf4",
}
BLOCKS_OF_MIXES = ("q2_k", "q3_k", "q4_k", "q5_k", "q6_k", "iq2_s")
"""Blocks whose name people give to a mix; files of that name may hold smaller blocks (IQ2_S: IQ2_XS)."""

NO_FORMATS = ("q8_k", "nf4 (no double quant)", "exl2 n bpw")
"""An activation format; a file size of nf4; a size that the name itself says."""

FORMATS = [
    row for row in ROWS if row["row"] == "format" and row["quant"] not in (*BLOCKS_OF_MIXES, *NO_FORMATS)
]
FILES = [row for row in ROWS if row["row"] == "file"]
SIZES = {
    "Llama-2-7B": "llama-2-7b",
    "Llama-2-13B": "llama-2-13b",
    "Llama-2-70B": "llama-2-70b",
    "Llama-3-70B": "llama-3-70b",
    "Llama-3.1-8B": "llama-3.1-8b",
    "Llama-3.1-70B": "llama-3.1-70b",
    "Llama-3.1-405B": "llama-3.1-405b",
    "gpt-oss-20b": "gpt-oss-20b",
    "gpt-oss-120b": "gpt-oss-120b",
    "Qwen3-30B-A3B": "qwen3-30b-a3b",
    "Mistral-Nemo-12B": "mistral-nemo-12b-2407",
    "DeepSeek-R1-671B": "deepseek-r1-671b",
}


@pytest.mark.parametrize("row", FORMATS, ids=lambda row: row["quant"])
def test_a_pure_format_reads_the_bits_of_its_block(row) -> None:
    quant = CATALOGUE.quant(NAMES.get(row["quant"], row["quant"]))
    assert quant.ceiling_bits == pytest.approx(float(row["bits_per_weight"]), rel=1e-4)


@pytest.mark.parametrize("row", FILES, ids=lambda row: f"{row['quant']} {row['file_model']}")
def test_no_published_file_is_smaller_than_its_ceiling(row) -> None:
    quant = CATALOGUE.find_quant("int4-g128" if row["quant"].startswith("AWQ") else row["quant"])
    # Sizes are printed with three digits, so a file of pure blocks may seem a little smaller than they are.
    assert float(row["file_bits_per_weight"]) >= quant.ceiling_bits * 0.999


@pytest.mark.parametrize(
    "row",
    [row for row in FILES if row["file_model"] in SIZES],
    ids=lambda row: f"{row['quant']} {row['file_model']}",
)
def test_the_bytes_held_are_those_of_published_files(row) -> None:
    quant = CATALOGUE.find_quant("int4-g128" if row["quant"].startswith("AWQ") else row["quant"])
    counts = parameters(CATALOGUE.model(SIZES[row["file_model"]]))
    held = weights(counts, quant).file * 8 / counts.total
    # Very small mixes keep a large table in more bits, so their size depends most on the model.
    assert held == pytest.approx(float(row["file_bits_per_weight"]), rel=0.03 if held > 4 else 0.13)


def test_a_mix_reads_its_smallest_published_file() -> None:
    for quant in read_quants(sources()[1]).values():
        if quant.mix:
            files = [float(row["file_bits_per_weight"]) for row in FILES if row["quant"].lower() == quant.id]
            assert quant.ceiling_bits == min(files)
            assert min(files) <= quant.file_bits <= max(files)


def test_kernelmeters_names_are_the_usual_mixes() -> None:
    usual = {
        "q3": "q3_k_m",
        "q4": "q4_k_m",
        "q5": "q5_k_m",
        "q6": "q6_k",
        "q8": "q8_0",
        "f16": "f16",
        "bf16": "bf16",
    }
    assert {name: CATALOGUE.find_quant(name).id for name in usual} == usual


def test_only_the_experts_of_gpt_oss_are_in_mxfp4() -> None:
    counts = parameters(CATALOGUE.model("gpt-oss-120b"))
    held = weights(counts, CATALOGUE.quant("mxfp4"))
    rest = counts.body + counts.head
    assert held.read(4) == pytest.approx(counts.routed * 4 / 128 * 4.25 / 8 + rest * 8.5 / 8)
    dense = parameters(CATALOGUE.model("llama-3.1-8b"))
    assert weights(dense, CATALOGUE.quant("mxfp4")).read(0) == pytest.approx(dense.read_per_token * 4.25 / 8)


@pytest.mark.parametrize(("quant", "bits"), [("fp8", 8), ("awq", 4.15625), ("nvfp4", 4.5), ("nf4", 4.5)])
def test_servers_formats_leave_embedding_and_head_in_16_bits(quant, bits) -> None:
    counts = parameters(CATALOGUE.model("llama-3.1-8b"))
    found = weights(counts, CATALOGUE.find_quant(quant))
    assert found.file == pytest.approx((counts.body * bits + 2 * 128256 * 4096 * 16) / 8)
    assert found.head <= 128256 * 4096 * bits / 8


def test_a_whole_awq_file_is_the_published_one() -> None:
    counts = parameters(CATALOGUE.model("llama-2-70b"))
    held = weights(counts, CATALOGUE.find_quant("awq")).file * 8 / counts.total
    assert held == pytest.approx(4.2461, rel=1e-3)


def test_bytes_a_parameter_are_a_format_of_their_own() -> None:
    held = weights(Parameters(body=70e9), plain_format(0.58))
    assert held.read(0) == held.file == pytest.approx(40.6e9)
    assert "fp4" in plain_format(0.5).arithmetic
    assert plain_format(2.0).arithmetic == ("fp16", "bf16")


def test_distinct_experts_are_those_of_the_paper() -> None:
    found = [round(expected_distinct(128, 8, batch)) for batch in (1, 4, 16, 32, 64)]
    assert found == [8, 29, 82, 112, 126]
    assert expected_distinct(1, 0, 8) == 0


@given(st.integers(1, 512), st.data(), st.integers(1, 4096))
def test_distinct_experts_lie_between_one_token_and_all(experts, data, tokens) -> None:
    used = data.draw(st.integers(1, experts))
    found = expected_distinct(experts, used, tokens)
    assert used * (1 - 1e-9) <= found <= experts * (1 + 1e-9)
    assert found <= expected_distinct(experts, used, tokens + 1) * (1 + 1e-9)
