"""Cards side by side."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kmrun.core.card import Card
from kmrun.core.compare import FP16, PEAK_NAMES, compare, figure_roof, packed_fp16, peak_title, sentence
from kmrun.core.peaks import COMPUTE_FIGURES
from kmrun.source.catalogue import load_cards

rates = st.floats(min_value=1e9, max_value=1e16)


def make_card(name: str, bandwidth: float = 1e12, peak: float | None = 10e12) -> Card:
    published = {"mem_gb_per_s": bandwidth} | ({} if peak is None else {"fp32_tflops": peak})
    return Card(id=name, name=name, vendor="aws", architecture="x", family="x", published=published)


FP32 = figure_roof("fp32_tflops")


def test_every_compute_figure_has_one_name_to_ask_for_it() -> None:
    assert sorted(PEAK_NAMES.values()) == sorted(COMPUTE_FIGURES)
    assert [peak_title(PEAK_NAMES[name]) for name in ("fp32", "fp16", "fp16-fp32acc")] == [
        "fp32",
        "fp16 tensor",
        "fp16 tensor (fp32 accumulate)",
    ]


def test_ratios_are_against_the_first_card_that_can_be_judged() -> None:
    cards = [make_card("blind", peak=None), make_card("slow"), make_card("fast", 3e12)]
    found = compare(cards, FP32, 1.0)
    assert [item.ratio for item in found] == [None, 1.0, 3.0]
    assert (found[0].ridge, found[0].bound) == (None, None)


def test_value_is_what_a_dollar_buys() -> None:
    (found,) = compare([make_card("a")], FP32, 2.0, {"a": 0.5})
    assert (found.attainable, found.usd_per_h, found.value) == (2e12, 0.5, 4e12)
    (found,) = compare([make_card("a")], FP32, None, {"a": 0.5})
    assert (found.attainable, found.usd_per_h, found.value) == (None, 0.5, None)


@pytest.mark.parametrize(
    ("cards", "intensity", "said"),
    [
        ([make_card("a")], 1.0, "a is memory-bound here: bandwidth is what you are buying."),
        (
            [make_card("a"), make_card("b")],
            1.0,
            "Every card is memory-bound here: bandwidth is what you are buying.",
        ),
        (
            [make_card("a"), make_card("b")],
            50.0,
            "Every card is compute-bound here: arithmetic is what you are buying.",
        ),
        (
            [make_card("a"), make_card("b"), make_card("c", peak=None)],
            1.0,
            "Every card with known figures is memory-bound here: bandwidth is what you are buying.",
        ),
        (
            [make_card("a"), make_card("b", 1e11)],
            50.0,
            "Memory-bound here: b (bandwidth counts); compute-bound: a (arithmetic counts).",
        ),
        ([make_card("a", peak=None)], 1.0, ""),
        ([make_card("a")], None, ""),
    ],
)
def test_the_sentence(cards: list[Card], intensity: float | None, said: str) -> None:
    assert sentence(compare(cards, FP32, intensity)) == said


def test_the_cheapest_is_named_once_there_are_two_prices() -> None:
    cards = [make_card("a"), make_card("b", 3e12)]
    assert sentence(compare(cards, FP32, 1.0, {"a": 1, "b": 2})).endswith(" Cheapest throughput: b.")
    assert "Cheapest" not in sentence(compare(cards, FP32, 1.0, {"a": 1}))


@given(bandwidths=st.lists(rates, min_size=1, max_size=5), peak=rates, intensity=st.floats(1e-3, 1e4))
def test_no_card_stands_above_its_roofs(bandwidths: list[float], peak: float, intensity: float) -> None:
    cards = [make_card(f"c{index}", speed, peak) for index, speed in enumerate(bandwidths)]
    for item in compare(cards, FP32, intensity):
        assert item.attainable is not None and item.bandwidth is not None and item.ridge is not None
        assert item.attainable <= peak
        assert item.attainable <= intensity * item.bandwidth
        assert item.bound == ("mem" if intensity < item.ridge else "comp")


@pytest.mark.parametrize(("name", "tflops"), [("rx-6900-xt", 46.1), ("p100-sxm2", 21.2)])
def test_packed_vector_math_stands_in_where_there_are_no_fp16_matrix_units(name, tflops):
    card = load_cards().find(name)
    assert figure_roof(FP16)(card) / 1e12 == pytest.approx(tflops, rel=0.01)
    assert packed_fp16(card) == figure_roof(FP16)(card)
    assert packed_fp16(load_cards().find("h100-sxm")) is None
