"""The page's figures and texts are those of Python: every card, every model, several settings, no difference."""

import json
import random
from itertools import product

import pytest

from kmrun.cli import comparing, llm_question
from kmrun.cli.roof_choice import chosen_roof
from kmrun.core.compare import PEAK_NAMES, compare
from kmrun.core.llm_answer import Question, answer
from kmrun.core.llm_cache import KV_BITS
from kmrun.core.llm_ceiling import Load
from kmrun.report import llm_table
from kmrun.report.llm_document import row
from kmrun.report.site_lead import lead
from kmrun.source.catalogue import load_cards
from kmrun.source.llm_subject import Wish, read_subject
from kmrun.source.model_catalogue import load_models
from web.pages import watched

CARDS = list(load_cards())
MODELS = load_models()
PRICES = {card.id: 0.25 + index * 0.37 for index, card in enumerate(CARDS)}
INTENSITIES = (None, 0.33, 60.0, 1e4)
SETTINGS = (
    {"ctx": None},
    {"ctx": 32768, "quant": "fp8", "batch": 16, "kv": "fp8", "priced": True, "watt": True},
    {
        "ctx": 8192,
        "quant": "every",
        "batch": 5,
        "gpus": 8,
        "kv": "q8_0",
        "draft": 3,
        "overhead": 1.25e9,
        "priced": True,
    },
)
"""Of each model. `every` takes another format for each model, so that all have their turn."""
EVERY_PAIR = 1
"""The setting that asks most is tried with each model on each card; the others with each model on every third card,
from one after another, so that all cards have their turn there, too."""
SIZES = ("70b", "1.5b", "900m", "671b", "7000000000")

COMPARE = """([peaks, intensities, prices]) => {
  const cards = [...catalogue.cards.values()];
  const found = [];
  for (const peak of peaks) for (const ai of intensities) for (const priced of [false, true]) {
    const asked = {
      peak: roof_choice$chosen_roof(peak, false), ai, cards, sort: null,
      prices: py.dict(priced ? Object.entries(prices) : []),
    };
    const result = work.compare(asked, []);
    found.push({
      caption: result.caption,
      columns: result.columns.map((column) => [column.head, column.unit, ...column.cells]),
      remarks: [result.lead, ...result.remarks].filter(Boolean),
      figures: result.standings.map((item) => [
        item.bandwidth, item.peak, item.ridge, item.attainable, item.ratio, item.bound, item.usd_per_h, item.value,
      ]),
    });
  }
  return JSON.stringify(found);
}"""

LLM = """([questions, prices]) => {
  const answer = ([model, wish]) => {
    const asked = {
      cards: wish.cards?.map((id) => catalogue.cards.get(id)) ?? [...catalogue.cards.values()], model,
      quant: settings.ALL.quant.read(wish.quant ?? ""), ctx: wish.ctx, batch: wish.batch ?? 1,
      gpus: wish.gpus ?? 1, kv: wish.kv ?? "fp16", draft: wish.draft ?? 0, overhead: wish.overhead ?? 5e8,
      prices: py.dict(wish.priced ? Object.entries(prices) : []), watt: wish.watt ? "1" : "", "sort-llm": null,
    };
    const problems = [];
    const result = work.llm(asked, problems);
    return {
      problems,
      caption: result.caption,
      lead: result.lead,
      columns: result.columns.map((column) => [column.head, column.unit, ...column.cells]),
      remarks: result.remarks,
      figures: result.answers.map((item) => [
        item.fit.fits, item.fit.needed, item.fit.usable, item.fit.max_context, item.tok_per_s,
        item.tensor && item.tensor.tok_per_s, item.layers && item.layers.tok_per_s, item.prefill_tok_per_s,
        item.first_token && item.first_token.seconds, item.decode && item.decode.times.bound, item.seen,
        item.usd_per_h, item.tok_per_s_per_usd, item.usd_per_million, item.tok_per_joule, item.memory,
        item.roof && item.roof.flop_per_s, item.roof && item.roof.arithmetic,
      ]),
    };
  };
  // Begun here and fetched later: the browser counts while Python does.
  globalThis.answers = new Promise((done, failed) => setTimeout(() => {
    try { done(JSON.stringify(questions.map(answer))); } catch (error) { failed(error); }
  }));
}"""


@pytest.fixture(scope="module")
def page(browser, site):
    with watched(browser) as opened:
        yield opened.open(site)


def as_read(columns):
    return [[column.head, column.unit, *column.cells] for column in columns]


def test_compare_every_card_and_roof(page):
    answered = json.loads(page.evaluate(COMPARE, [list(PEAK_NAMES), list(INTENSITIES), PRICES]))
    asked = list(product(PEAK_NAMES, INTENSITIES, (False, True)))
    assert len(answered) == len(asked) == 9 * 4 * 2
    for (peak, ai, priced), found in zip(asked, answered, strict=True):
        choice = chosen_roof(peak, False)
        standings = compare(CARDS, choice.roof, ai, PRICES if priced else {})
        assert found["caption"] == ("What the cards have" if ai is None else comparing.caption(ai, choice))
        assert found["columns"] == as_read(comparing.columns(standings, ai, choice))
        assert found["remarks"] == comparing.remarks(standings, choice)
        assert found["figures"] == [
            [
                item.bandwidth,
                item.peak,
                item.ridge,
                item.attainable,
                item.ratio,
                item.bound,
                item.usd_per_h,
                item.value,
            ]
            for item in standings
        ]


def expected(name, wish):
    subject = read_subject(Wish(name, wish.get("quant")), MODELS)
    load = Load(
        model=subject.model,
        weights=subject.weights,
        kv_bits=llm_question.kv_bits(wish.get("kv", "fp16")),
        context=wish["ctx"],
        batch=wish.get("batch", 1),
        cards=wish.get("gpus", 1),
        draft=wish.get("draft", 0),
    )
    question = Question(load, subject.quant, wish.get("overhead", 5e8), PRICES if wish.get("priced") else {})
    cards = [card for card in CARDS if card.id in wish.get("cards", PRICES)]
    answers = [answer(question, card) for card in cards]
    said = [
        *subject.assumptions,
        *llm_question.assumed(question, cards, wish.get("kv", "fp16"), subject),
    ]
    watt = bool(wish.get("watt"))
    main, layouts, costs = llm_table.columns(question, answers, watt)
    place = [column.head for column in main].index("seen")
    return {
        "problems": [],
        "caption": llm_table.title(subject, question),
        "lead": lead(answers),
        "columns": as_read([*main[:place], *layouts, *main[place:], *costs]),
        "remarks": [
            *llm_table.lacking(answers, question),
            llm_table.CLOSING,
            llm_table.assumed(answers, said, watt),
        ],
        "figures": [figures(item, load.batch) for item in answers],
    }


def figures(item, batch):
    """What `kmrun llm --json` prints of a card, unrounded."""
    document = row(item, batch)
    return [
        document["fits"],
        item.fit.needed,
        item.fit.usable,
        document["max_context"],
        document["decode_tok_per_s_ceiling"],
        document["tensor_parallel_tok_per_s_ceiling"],
        document["layer_split_tok_per_s_ceiling"],
        document["prefill_tok_per_s_ceiling"],
        document["ttft_s_floor"],
        document["bound"],
        None if item.seen is None else list(item.seen),
        document["cost_per_hour"],
        document["tok_per_s_per_dollar"],
        document["cost_per_million_tokens_floor"],
        document["tok_per_joule_at_tdp"],
        item.memory,
        item.roof and item.roof.flop_per_s,
        document["compute_roof_arithmetic"],
    ]


def test_every_format_has_its_turn():
    assert len(MODELS.quant_ids) <= len(MODELS.model_ids)


def compared(page, questions):
    page.evaluate(LLM, [questions, PRICES])
    wanted = [expected(name, wish) for name, wish in questions]
    # JavaScript writes a whole double as an integer, with as few digits as read back the same.
    found = json.loads(page.evaluate("answers"), parse_int=float)
    assert len(found) == len(wanted)
    for question, mine, theirs in zip(questions, wanted, found, strict=True):
        for part, value in mine.items():
            assert theirs[part] == value, (question, part)


@pytest.mark.parametrize("setting", range(len(SETTINGS)))
def test_llm_every_card_and_model(page, setting):
    questions = []
    for index, name in enumerate((*MODELS.model_ids, *SIZES)):
        wish = dict(SETTINGS[setting])
        if setting != EVERY_PAIR:
            wish["cards"] = [card.id for card in CARDS[index % 3 :: 3]]
        if wish.get("quant") == "every":
            wish["quant"] = MODELS.quant_ids[index % len(MODELS.quant_ids)]
        questions.append((name, wish))
    compared(page, questions)


def test_llm_settings_at_random(page):
    draw = random.Random(6)
    questions = []
    for _ in range(250):
        wish = {
            "ctx": draw.choice([None, draw.randint(1, 9000), draw.randint(1, 2**24)]),
            "quant": draw.choice([*MODELS.quant_ids, "4.25bpw", "6.5bpw"]),
            "batch": draw.choice([1, draw.randint(1, 300), draw.randint(1, 2**20)]),
            "gpus": draw.choice([1, 1, 2, draw.randint(1, 2**14)]),
            "kv": draw.choice(list(KV_BITS)),
            "draft": draw.choice([0, 0, draw.randint(1, 256)]),
            "overhead": draw.choice([5e8, draw.uniform(0, 1e13)]),
            "priced": draw.random() < 0.5,
            "watt": draw.random() < 0.5,
            "cards": [card.id for card in CARDS if draw.random() < 0.03] or ["h100-sxm"],
        }
        questions.append((draw.choice([*MODELS.model_ids, f"{draw.uniform(0.1, 900):.4g}b"]), wish))
    compared(page, questions)
