"""The JSON document of `kmrun llm`: one row a card, the unit in every key."""

from collections.abc import Sequence
from typing import Any

from kmrun.core.llm_answer import Answer, Question
from kmrun.core.llm_cache import state_bytes
from kmrun.core.llm_ceiling import Decode, read_bytes
from kmrun.core.llm_model import parameters
from kmrun.source.llm_subject import Subject

VERSION = 1


def document(
    subject: Subject, question: Question, answers: Sequence[Answer], assumptions: Sequence[str]
) -> dict[str, Any]:
    """Return the document: the model, what was asked, every assumption, and the rows in their order."""
    load, counts = question.load, parameters(subject.model)
    return {
        "kmrun_llm": VERSION,
        "model": {
            "id": subject.model.id,
            "parameters": round(counts.total),
            "parameters_read_per_token": round(counts.read_per_token),
            "quant": subject.quant.id,
            "weight_bytes": round(subject.weights.file),
            "read_bytes_per_pass": round(read_bytes(load)),
            "recurrent_state_bytes": round(state_bytes(subject.model)),
            "max_context": subject.model.max_context,
            "exact": subject.weights.exact,
        },
        "context": load.context,
        "fit_context": question.context,
        "batch": load.batch,
        "kv_bits": load.kv_bits,
        "num_gpus": load.cards,
        "draft": load.draft,
        "overhead_bytes_per_gpu": round(question.overhead),
        "assumptions": list(assumptions),
        "rows": [row(item, load.batch) for item in answers],
    }


def row(item: Answer, batch: int = 1) -> dict[str, Any]:
    """Return one card's row; null where a figure of the card is not published."""
    speed = item.tok_per_s
    low, high = item.seen or (None, None)
    return {
        "card": item.card.id,
        "fits": item.fit.fits,
        "needed_bytes": round(item.fit.needed),
        "usable_bytes": None if item.fit.usable is None else round(item.fit.usable),
        "max_context": item.fit.max_context,
        "decode_tok_per_s_ceiling": speed,
        "per_stream_tok_per_s_ceiling": None if speed is None else speed / batch,
        "tensor_parallel_tok_per_s_ceiling": _speed(item.tensor),
        "layer_split_tok_per_s_ceiling": _speed(item.layers),
        "all_reduce_s": item.tensor.times.link if item.tensor else None,
        "prefill_tok_per_s_ceiling": item.prefill_tok_per_s,
        "ttft_s_floor": item.first_token.seconds if item.first_token else None,
        "bound": item.decode.times.bound if item.decode else None,
        "seen_low": low,
        "seen_high": high,
        "cost_per_hour": item.usd_per_h,
        "tok_per_s_per_dollar": item.tok_per_s_per_usd,
        "cost_per_million_tokens_floor": item.usd_per_million,
        "tok_per_joule_at_tdp": item.tok_per_joule,
        "memory_roof_gb_per_s": None if item.memory is None else item.memory / 1e9,
        "compute_roof_tflop_per_s": None if item.roof is None else item.roof.flop_per_s / 1e12,
        "compute_roof_arithmetic": None if item.roof is None else item.roof.arithmetic,
        "compute_roof_head_room": None if item.roof is None else item.roof.head_room,
    }


def _speed(ceiling: Decode | None) -> float | None:
    return None if ceiling is None else ceiling.tok_per_s
