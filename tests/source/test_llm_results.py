"""No published result beats its ceiling, and the ceilings are near enough to be worth something."""

import csv
import statistics

import pytest

from kmrun.core.llm_seen import ONE_CARD, SEVERAL_CARDS, band, spread
from support.llm_results import FILE, NOT_DECODING, UNLISTED, published

RESULTS = list(published())
DECODES = [item for item in RESULTS if item.figure("decode_tok_s")]
PROMPTS = [item for item in RESULTS if item.figure("prefill_tok_s") or item.figure("total_tok_s")]


def test_every_row_without_drafting_is_asked() -> None:
    with FILE.open(newline="", encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["spec_decode"] == "no"]
    assert len(RESULTS) == len(rows)
    made = sorted({item.row["hardware"] for item in RESULTS if item.row["hardware"] in UNLISTED})
    assert made == ["Arc 140V", "Arc Pro B60 (dual card)", "EPYC 9274F", "EPYC 9374F", "Radeon 780M"]
    unstated = [item.row["hardware"] for item in RESULTS if not item.row["quant"]]
    assert unstated == ["Arc Pro B60 (dual card)", "MI325X", "MI355X"]


@pytest.mark.parametrize("item", DECODES, ids=lambda item: item.name)
def test_no_decode_result_lands_above_its_ceiling(item) -> None:
    assert item.figure("decode_tok_s") <= item.decode.tok_per_s


@pytest.mark.parametrize("item", PROMPTS, ids=lambda item: item.name)
def test_no_prompt_result_lands_above_its_ceiling(item) -> None:
    if item.prefill is None:
        pytest.skip("no arithmetic figure is published of the card")
    assert (item.figure("total_tok_s") or item.figure("prefill_tok_s")) <= item.prefill


def test_ceilings_are_tight() -> None:
    ratios = [item.figure("decode_tok_s") / item.decode.tok_per_s for item in DECODES if item.alone]
    assert len(ratios) > 60
    assert statistics.median(ratios) >= 0.6


@pytest.mark.parametrize(
    "item", [item for item in DECODES if item.row["batch"] == "1"], ids=lambda item: item.name
)
def test_what_ran_is_not_called_impossible(item) -> None:
    prompt, generated = (int(item.row[column] or 0) for column in ("prompt_len", "gen_len_or_ctx"))
    assert item.fit(max(512, prompt + generated)).fits is not False


def test_bands_are_those_of_the_results() -> None:
    ratios = [
        (item.read_gb, item.figure("decode_tok_s") / item.decode.tok_per_s)
        for item in DECODES
        if item.alone and NOT_DECODING not in item.row["note"]
    ]
    low = 0.0
    for known in ONE_CARD:
        found = [ratio for size, ratio in ratios if low <= size < known.to_gb]
        assert (len(found), *spread(found)) == (known.results, known.low, known.high)
        low = known.to_gb
    several = [
        item.figure("decode_tok_s") / item.decode.tok_per_s
        for item in DECODES
        if item.row["batch"] == "1" and item.row["split"] == "tp"
    ]
    assert (len(several), *spread(several)) == (
        SEVERAL_CARDS.results,
        SEVERAL_CARDS.low,
        SEVERAL_CARDS.high,
    )


def test_a_band_belongs_to_what_is_read() -> None:
    assert band(1e9).to_gb == 3
    assert band(3e9).to_gb == 6
    assert band(1e12) is ONE_CARD[-1]
    assert band(1e9, cards=2) is SEVERAL_CARDS


def test_drafting_beats_the_plain_ceiling_and_not_its_own() -> None:
    drafted = [
        item
        for item in published(speculative=True, only=("llama-2-70b", "qwen3.6-27b"))
        if item.row["spec_decode"].startswith("yes")
    ]
    assert drafted
    for item in drafted:
        speed = item.figure("decode_tok_s")
        assert speed > item.decode.tok_per_s
        assert speed <= 2 * item.decode.tok_per_s
