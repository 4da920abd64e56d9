"""Which roof a format has on a card, and how much head-room it is given."""

from dataclasses import replace

import pytest

from kmrun.core.llm_roof import BOOST, compute_roof, head_room, memory_roof
from kmrun.core.peaks import bandwidth
from kmrun.source.catalogue import load_cards
from kmrun.source.model_catalogue import load_models

CARDS = load_cards()
QUANTS = load_models()


def roof(card: str, quant: str):
    return compute_roof(CARDS.card(card), QUANTS.find_quant(quant).arithmetic)


@pytest.mark.parametrize(
    ("card", "quant", "arithmetic", "tflops"),
    [
        ("rtx-4090", "q4_k_m", "int8", 660.6),  # llama.cpp's integer path, not the halved fp16
        ("rtx-4090", "f16", "fp16", 330.3),  # fp16 accumulation, twice the rate of fp32 accumulation
        ("rtx-4090", "fp8", "fp8", 660.6),
        ("rtx-5090", "nvfp4", "fp4", 1676),
        ("rtx-5090", "mxfp4", "fp4", 1676),
        ("a100-sxm-80gb", "fp8", "fp16", 311.9),  # no FP8 units
        ("a100-sxm-80gb", "q4_k_m", "int8", 623.7),
        ("h100-sxm", "bf16", "fp16", 989.4),
        ("b200", "nvfp4", "fp4", 9001),
        ("mi300x", "fp8", "fp8", 2614.9),
        ("rx-7900-xtx", "q4_0", "int8", 122.9),  # RDNA3 does integers no faster than fp16
        ("gtx-1080-ti", "q4_0", "int8", 4 * 11.34),  # DP4A
        ("p100-sxm2", "q4_0", "fp16", 21.2),  # no DP4A
        ("m2-ultra", "f16", "fp16", 54.4),
    ],
)
def test_the_fastest_arithmetic_that_the_weights_admit(card, quant, arithmetic, tflops) -> None:
    found = roof(card, quant)
    assert found.arithmetic == arithmetic or found.sheet == pytest.approx(roof(card, quant).sheet)
    assert found.sheet / 1e12 == pytest.approx(tflops, rel=0.005)
    assert not found.bounded


def test_head_room_is_for_clocks_above_the_sheet_s() -> None:
    assert head_room(CARDS.card("rtx-5090"))[0] == BOOST
    assert head_room(CARDS.card("h100-sxm"))[0] == pytest.approx(1980 / 1830)
    assert head_room(CARDS.card("a100-sxm-80gb")) == (1.0, "")
    assert head_room(CARDS.card("m3-ultra")) == (1.0, "")
    assert roof("rtx-5090", "bf16").flop_per_s >= 242.2e12  # the fastest that was measured


def test_at_the_driver_s_highest_clock_there_is_none() -> None:
    card = replace(CARDS.card("rtx-5090"), matmul_clock_hz=3.09e9, vector_clock_hz=3.09e9)
    found = compute_roof(card, ("fp16",), at_highest_clock=True)
    assert found is not None
    assert found.flop_per_s == found.sheet == pytest.approx(1024 * 170 * 3.09e9)


def test_a_faster_figure_stands_for_one_that_nobody_published() -> None:
    found = roof("gb10", "q4_k_m")
    assert (found.arithmetic, found.bounded) == ("fp4", True)
    thor = roof(
        "jetson-t5000", "q4_k_m"
    )  # tensor cores whose integer rate nobody published: not the vector units'
    assert (thor.arithmetic, thor.bounded) == ("fp4", True)
    assert roof("m5-max-40c", "q4_k_m") is None


def test_narrower_arithmetic_is_never_slower_where_both_are_known() -> None:
    for card in CARDS:
        known = {kind: compute_roof(card, (kind,)) for kind in ("bf16", "fp16", "int8", "fp8", "fp4")}
        sheet = {kind: item.sheet for kind, item in known.items() if item is not None and not item.bounded}
        if card.id not in ("b300", "gb300"):  # Blackwell Ultra gave its integer units up
            assert sheet.get("int8", 1e99) >= sheet.get("fp16", 0.0), card.id
        assert sheet.get("fp8", 1e99) >= sheet.get("bf16", 0.0), card.id
        assert sheet.get("fp4", 1e99) >= sheet.get("fp8", 0.0), card.id


def test_every_card_has_a_memory_roof_and_none_below_its_sheet() -> None:
    for card in CARDS:
        known, printed = memory_roof(card), bandwidth(card)
        assert known is not None and printed is not None
        assert printed <= known <= 1.13 * printed


def test_rounded_prints_are_unrounded_and_the_larger_of_two_counts() -> None:
    found = {
        key: memory_roof(CARDS.card(key))
        for key in ("m2-ultra", "m3-ultra", "m5-pro", "b200", "h200-sxm", "rtx-4090")
    }
    assert found == pytest.approx(
        {
            "m2-ultra": 819.2e9,
            "m3-ultra": 819.2e9,
            "m5-pro": 307.2e9,
            "b200": 8183.808e9,
            "h200-sxm": 4893.696e9,
            "rtx-4090": 1008e9,
        }
    )
