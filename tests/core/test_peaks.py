"""Peaks and rates of made-up and of real cards."""

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kmrun.core.architecture import merged_rates
from kmrun.core.card import Card, per_device
from kmrun.core.peaks import FIGURES, bandwidth, peaks, rate, rate_name
from kmrun.source.catalogue import load_cards

CARD = Card(
    id="made-up",
    name="Made up",
    vendor="nvidia",
    architecture="none",
    family="none",
    sm_count=10,
    vector_clock_hz=2e9,
    matmul_clock_hz=1e9,
    bus_bits=256,
    pin_bits_per_s=8e9,
    vector_rates={"fp32": 256.0, "fp64": 4.0, "fp16": 256.0},
    matmul_rates={"tf32": 512.0, "fp16": 1024.0, "fp16_fp32acc": 512.0, "fp8": 1024.0, "int8": 2048.0},
)


def test_a_peak_is_rate_times_units_times_the_clock_of_its_unit() -> None:
    assert rate(CARD, "vector", "fp32") == 256 * 10 * 2e9
    assert rate(CARD, "matmul", "tf32") == 512 * 10 * 1e9
    assert bandwidth(CARD) == 256e9


def test_fp32_matmul_is_ieee_arithmetic_and_so_the_vector_roof() -> None:
    assert rate(CARD, "matmul", "fp32") == rate(CARD, "vector", "fp32")
    assert rate(CARD, "matmul", "fp64") == rate(CARD, "vector", "fp64")


def test_accumulation_is_told_apart() -> None:
    assert rate(CARD, "matmul", "fp16", "fp16") == 1024 * 10 * 1e9
    assert rate(CARD, "matmul", "fp16", "fp32") == 512 * 10 * 1e9
    assert rate(CARD, "matmul", "fp16") == rate(CARD, "matmul", "fp16", "fp32")
    assert rate(CARD, "matmul", "fp8_e4m3") == 1024 * 10 * 1e9
    assert rate(CARD, "matmul", "fp8_e4m3", "fp16") is None


def test_another_clock_scales_what_was_derived() -> None:
    assert rate(CARD, "matmul", "tf32", at_clock_hz=1.5e9) == 1.5 * 512 * 10 * 1e9
    assert rate(CARD, "vector", "fp32", at_clock_hz=1e9) == 256 * 10 * 1e9


@pytest.mark.parametrize(
    ("units", "dtype", "acc"),
    [
        ("matmul", "bf16", None),
        ("matmul", "fp4_e2m1", None),
        ("vector", "bf16", None),
        ("vector", "tf32", None),
        ("vector", "int8", None),
        ("matmul", "int8", "fp32"),
        ("matmul", "fp32", "fp16"),
        ("matmul", "fp64", "fp32"),
        ("matmul", "complex64", None),
    ],
)
def test_an_unknown_rate_is_absent_and_never_guessed(units: str, dtype: str, acc: str | None) -> None:
    assert rate(CARD, units, dtype, acc) is None


def test_published_figures_stand_in_only_where_nothing_is_derived() -> None:
    card = dataclasses.replace(
        CARD, published={"fp32_tflops": 1.0, "bf16_tensor_tflops": 3e12, "mem_gb_per_s": 1.0}
    )
    found = peaks(card)
    assert found.values["fp32_tflops"] == 256 * 10 * 2e9
    assert found.provenance["fp32_tflops"] == "derived"
    assert found.values["bf16_tensor_tflops"] == 3e12
    assert found.provenance["bf16_tensor_tflops"] == "published"
    assert found.values["mem_gb_per_s"] == 256e9
    assert "fp4_tensor_tflops" not in found.values
    assert found.scaled()["fp4_tensor_tflops"] is None
    assert rate(card, "matmul", "bf16") == 3e12
    assert rate(card, "matmul", "bf16", at_clock_hz=1e9) is None


def test_without_units_or_clock_nothing_is_derived() -> None:
    bare = dataclasses.replace(CARD, sm_count=None, bus_bits=None)
    assert peaks(bare).values == {}
    assert bandwidth(bare) is None
    assert rate(dataclasses.replace(CARD, vector_clock_hz=None), "matmul", "tf32") == 512 * 10 * 1e9
    assert rate(dataclasses.replace(CARD, vector_clock_hz=None), "vector", "fp32") is None


def test_later_rates_lie_over_earlier_ones_and_none_takes_away() -> None:
    assert merged_rates({"a": 1.0, "b": 2.0}, {"b": 3.0}, {"a": None}) == {"b": 3.0}


def test_one_device_of_a_card_with_two_has_half_of_everything() -> None:
    card = load_cards(environ={}).card("mi250x")
    half = per_device(card)
    assert (half.sm_count, half.devices) == (110, 1)
    for figure, value in peaks(half).values.items():
        assert value == pytest.approx(peaks(card).values[figure] / 2)
    assert per_device(CARD) is CARD


@given(
    units=st.sampled_from(["vector", "matmul"]),
    dtype=st.sampled_from(
        [
            "fp64",
            "fp32",
            "tf32",
            "fp16",
            "bf16",
            "fp8_e5m2",
            "int8",
            "uint8",
            "int4",
            "fp4_e2m1",
            "bool",
            "int64",
        ]
    ),
    acc=st.sampled_from([None, "fp16", "fp32", "fp64", "int32"]),
)
def test_every_rate_name_is_one_that_the_schema_knows(units: str, dtype: str, acc: str | None) -> None:
    from kmrun.schema.architecture import MatmulRates, VectorRates

    name = rate_name(units, dtype, acc)
    model = VectorRates if units == "vector" else MatmulRates
    assert name is None or name in model.model_fields


def test_geforce_halves_what_the_sheets_halve_and_nothing_else() -> None:
    card = load_cards(environ={}).card("rtx-5090")
    fp16, fp32 = (rate(card, "matmul", "fp16", acc) for acc in ("fp16", "fp32"))
    assert fp16 is not None and fp32 is not None
    assert fp16 == 2 * fp32 == 2 * (rate(card, "matmul", "bf16") or 0)
    assert rate(card, "matmul", "fp8_e4m3", "fp16") == 2 * (rate(card, "matmul", "fp8_e4m3") or 0)
    assert rate(card, "matmul", "fp4_e2m1") == pytest.approx(1676e12, rel=0.01)


def test_cdna_does_ieee_fp32_in_its_matrix_units() -> None:
    card = load_cards(environ={}).card("mi210")
    assert rate(card, "matmul", "fp32") == pytest.approx(45.3e12, rel=0.01)
    assert rate(card, "vector", "fp32") == pytest.approx(22.6e12, rel=0.01)


def test_hopper_fp64_matmul_runs_at_the_vector_clock() -> None:
    assert rate(load_cards(environ={}).card("h100-sxm"), "matmul", "fp64") == pytest.approx(66.9e12, rel=0.01)


def test_no_card_has_a_figure_that_is_not_positive() -> None:
    for card in load_cards(environ={}):
        assert all(value > 0 for value in peaks(card).values.values())
        assert set(peaks(card).values) <= set(FIGURES)


def test_where_units_and_clock_are_unknown_a_published_rate_of_the_same_units_gives_the_proportion() -> None:
    published = {"fp64_tflops": 30e12}
    card = dataclasses.replace(
        CARD, sm_count=None, vector_rates={"fp32": 256.0, "fp64": 128.0}, published=published
    )
    assert peaks(card).values == {"fp32_tflops": 60e12, "fp64_tflops": 30e12, "mem_gb_per_s": 256e9}
    assert peaks(card).provenance["fp32_tflops"] == "derived"
    assert rate(card, "vector", "fp32") == 60e12
    assert rate(card, "matmul", "tf32") is None
    assert rate(dataclasses.replace(card, vector_rates={"fp64": 128.0}), "vector", "fp32") is None
