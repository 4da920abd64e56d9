"""Which of kmrun's functions the site's page calls: what `kmrun compare` and `kmrun llm` do, between words and text."""

from kmrun.cli import comparing, llm_question, prices, roof_choice, terminal
from kmrun.core import (
    compare,
    llm_answer,
    llm_cache,
    llm_ceiling,
    llm_model,
    llm_quant,
    llm_work,
    peaks,
    roofline,
)
from kmrun.core.card import Card
from kmrun.report import llm_table, numbers, terminal_plot
from kmrun.report.site_lead import lead
from kmrun.report.site_script import script
from kmrun.source import card_names, llm_subject, model_catalogue

_CALLED = (
    Card, compare.compare, compare.peak_title, roofline.attainable, roofline.ridge_point,
    comparing.columns, comparing.caption, comparing.remarks, comparing.ordered,
    roof_choice.chosen_roof, prices.prices, terminal.positive,
    llm_model.Model, llm_model.Attention, llm_model.Recurrent, llm_model.FeedForward, llm_model.Experts,
    llm_quant.Quant, llm_ceiling.Load, llm_ceiling.pass_flops, llm_ceiling.read_bytes, llm_work.prefill_flops,
    llm_answer.Question, llm_answer.answer,
    llm_question.Inquiry, llm_question.ordered, llm_question.assumed, llm_question.tokens,
    llm_question.in_range, llm_question.kv_bits, llm_question.overhead,
    llm_subject.Wish, llm_subject.of_shapes, llm_subject.of_size, llm_subject.parse_params,
    lead, llm_table.columns, llm_table.title, llm_table.lacking, llm_table.assumed,
    card_names.exact, model_catalogue.compact, model_catalogue.bare,
    numbers.readable, numbers.count, terminal_plot.rate_text,
)  # fmt: skip
_CONSTANTS = (
    (compare.__name__, "PEAK_NAMES"),
    (comparing.__name__, "_SORTS"),
    (llm_cache.__name__, "KV_BITS"),
    (llm_question.__name__, "_SORTS"),
    (llm_question.__name__, "MOST_BATCH"),
    (llm_question.__name__, "MOST_CARDS"),
    (llm_question.__name__, "MOST_DRAFT"),
    (llm_table.__name__, "CLOSING"),
    (peaks.__name__, "COMPUTE_FIGURES"),
    ("kmrun.errors", "UsageError"),
    ("kmrun.errors", "UnknownName"),
)


def formulas() -> str:
    """Return the functions as JavaScript."""
    return script(_CALLED, _CONSTANTS)
