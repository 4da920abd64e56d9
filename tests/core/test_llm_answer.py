"""One card's answer: every card of the database has one, and its figures agree with each other."""

import math

import pytest

from kmrun.core.llm_answer import DEFAULT_CONTEXT, Question, answer
from kmrun.core.llm_ceiling import Load
from kmrun.core.llm_fit import OVERHEAD_BYTES
from kmrun.core.llm_model import parameters
from kmrun.core.llm_quant import weights
from kmrun.source.catalogue import load_cards
from kmrun.source.model_catalogue import load_models

CARDS = load_cards()
CATALOGUE = load_models()


def question(name: str, quant: str, prices=None, **how) -> Question:
    model, form = CATALOGUE.model(name), CATALOGUE.find_quant(quant)
    return Question(Load(model, weights(parameters(model), form), **how), form, OVERHEAD_BYTES, prices or {})


@pytest.mark.parametrize(
    "quant", ["f32", "f16", "bf16", "q4_0", "q4_k_m", "fp8", "int8", "int4-g128", "nvfp4", "nf4", "mlx-4bit"]
)
def test_every_card_has_an_answer_in_every_kind_of_format(quant) -> None:
    asked = question("llama-3.1-8b", quant)
    for card in CARDS:
        found = answer(asked, card)
        assert found.tok_per_s is not None and 0 < found.tok_per_s < 1e4, card.id
        for value in (found.prefill_tok_per_s, found.first_token.seconds if found.first_token else None):
            assert value is None or (value > 0 and math.isfinite(value)), card.id
        assert found.seen is not None and 0 < found.seen[0] < found.seen[1] < found.tok_per_s


def test_a_card_whose_arithmetic_nobody_published_still_has_a_decode_ceiling() -> None:
    found = answer(question("llama-3.1-8b", "q4"), CARDS.card("m5-pro"))
    assert found.roof is None and found.prefill_tok_per_s is None
    assert found.tok_per_s == pytest.approx(307.2e9 / found.decode.times.memory / 307.2e9)


def test_money_and_energy_are_of_all_cards_together() -> None:
    asked = question("llama-3.3-70b", "fp8", {"h100-sxm": 2.5}, cards=4)
    found = answer(asked, CARDS.card("h100-sxm"))
    assert (found.usd_per_h, found.watts) == (10.0, 2800.0)
    assert found.usd_per_million == pytest.approx(10.0 / 3600 / found.tok_per_s * 1e6)
    assert found.tok_per_s_per_usd == pytest.approx(found.tok_per_s / 10)
    assert found.tok_per_joule == pytest.approx(found.tok_per_s / 2800)
    unpriced = answer(asked, CARDS.card("m2-ultra"))
    assert (unpriced.usd_per_h, unpriced.usd_per_million, unpriced.tok_per_joule) == (None, None, None)


def test_drafted_tokens_have_no_band() -> None:
    assert answer(question("llama-3.1-8b", "q4", draft=2), CARDS.card("rtx-4090")).seen is None


def test_without_a_context_the_usual_one_must_fit() -> None:
    assert question("llama-3.1-8b", "q4").context == DEFAULT_CONTEXT
    assert question("llama-3.1-8b", "q4", context=100).context == 100


def test_a_local_device_gives_all_that_its_driver_reports() -> None:
    asked = question("llama-3.1-8b", "q4")
    card = CARDS.card("gb10")
    shared = answer(asked, card).fit.usable
    here = answer(asked._replace(local=frozenset(("gb10",))), card).fit.usable
    assert here == card.memory_bytes and shared < here
