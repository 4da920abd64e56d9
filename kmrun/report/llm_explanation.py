"""The arithmetic behind `kmrun llm`, with the numbers put in and the source of every term."""

import textwrap
from collections.abc import Iterator, Sequence

from kmrun.core.card import Card
from kmrun.core.llm_answer import Answer, Question
from kmrun.core.llm_cache import STATE_BYTES, cache_bytes, groups, kind_of, state_bytes, state_traffic
from kmrun.core.llm_ceiling import in_practice, pass_flops, read_bytes, ridge_batch, sequence_bytes
from kmrun.core.llm_fit import usable_share
from kmrun.core.llm_link import ACTIVATION_BYTES, all_reduce_factor
from kmrun.core.llm_model import attention_params, mlp_params, parameters, recurrent_params
from kmrun.core.llm_quant import expected_distinct
from kmrun.core.llm_seen import band
from kmrun.core.llm_work import attention_flops, matrix_flops
from kmrun.core.peaks import bandwidth
from kmrun.report.columns import WIDTH
from kmrun.report.llm_table import amount, gigabytes
from kmrun.source.llm_subject import Subject

_LABEL = 14


def explanation(subject: Subject, question: Question, answers: Sequence[Answer]) -> str:
    """Return the terms of the model, then those of every card."""
    lines = ["", "The model"]
    for label, said in _model(subject, question):
        lines += _wrapped(label, said)
    for item in answers:
        count = "" if question.load.cards == 1 else f"{question.load.cards} x "
        lines += ["", f"{count}{item.card.id}"]
        for label, said in _card(question, item):
            lines += _wrapped(label, said)
    return "\n".join(lines) + "\n"


def _wrapped(label: str, said: str) -> list[str]:
    indent = " " * (_LABEL + 2)
    first = f"  {label.ljust(_LABEL)}"
    return textwrap.wrap(
        said,
        WIDTH,
        initial_indent=first,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )


def _model(subject: Subject, question: Question) -> Iterator[tuple[str, str]]:
    load, model, counts = question.load, subject.model, parameters(subject.model)
    weights = load.weights
    yield from _shapes(subject)
    parts = [f"body {amount(counts.body)}"]
    if counts.head_read:
        tied = "the tied table, once as head" if counts.tied else "head"
        parts.append(f"{tied} {amount(counts.head_read)}")
    if counts.routed:
        parts.append(f"experts {amount(counts.routed)} x {weights.per_token}/{weights.experts}")
    looked_up = (0 if counts.tied else counts.table) + counts.lookups
    rest = f"; {amount(looked_up)} are looked up, not read" if looked_up else ""
    yield (
        "parameters",
        f"{' + '.join(parts)} = {amount(counts.read_per_token)} of {amount(counts.total)}{rest} "
        "[zeux.io 2024; scaling-book, Inference]",
    )
    if weights.exact:
        bits = "the file's own bytes"
    else:
        outside = subject.quant.outside_bits if counts.routed else None
        bits = f"{subject.quant.ceiling_bits:g} bits" + (
            f", {outside:g} outside the experts" if outside else ""
        )
    fewest = (
        f", {weights.per_token} of {weights.experts} experts, the fewest of any batch"
        if weights.routed
        else ""
    )
    yield (
        "weights read",
        f"{bits}: {gigabytes(weights.read(weights.per_token))} a pass{fewest}",
    )
    yield "weights held", _held(subject)
    context = load.context or 0
    yield from _cache(question, context)
    if model.recurrent:
        elements = sum(group.state_elements for group in model.recurrent)
        yield (
            "state",
            f"{elements} elements x {STATE_BYTES} B, read and written: {gigabytes(state_traffic(model))} a token "
            "[Mamba-2 2405.21060; gated delta rule 2412.06464]",
        )
    yield (
        "read a pass",
        f"{gigabytes(weights.read(weights.per_token))} + {load.batch} x {gigabytes(sequence_bytes(load))} "
        f"= {gigabytes(read_bytes(load))}",
    )
    heads = sum(group.layers * group.heads for group in model.attention)
    yield (
        "decode FLOP",
        f"2 x {amount(counts.read_per_token)} + attention over {context} tokens of {heads} heads, "
        f"x {load.batch} sequences x {load.draft + 1} = {pass_flops(load):.4g} a pass [Kaplan 2001.08361]",
    )
    prompt = question.context
    yield (
        "prefill FLOP",
        f"{prompt} tokens: 2 x {amount(counts.multiplied)} x {prompt} + 2 x {amount(counts.head_read)} (one row of "
        f"logits) = {matrix_flops(model, prompt):.4g}; causal attention {attention_flops(model, prompt):.4g} "
        "[FlashAttention-2 2307.08691]",
    )


def _shapes(subject: Subject) -> Iterator[tuple[str, str]]:
    """Say how the parameters follow from the shapes; nothing where they were counted."""
    model = subject.model
    if model.counted is not None:
        return
    hidden = model.hidden
    parts = [
        f"{group.layers} x {amount(attention_params(group, hidden))} of {kind_of(group)} ({group.heads} heads)"
        for group in model.attention
    ]
    parts += [
        f"{group.layers} x {amount(recurrent_params(group, hidden))} of {group.kind}"
        for group in model.recurrent
    ]
    parts += [
        f"{group.layers} x {amount(mlp_params(group.width, group.gated, hidden))} of MLP ({hidden} to {group.width})"
        for group in model.ffn
    ]
    if model.experts is not None:
        moe = model.experts
        one = amount(mlp_params(moe.width, moe.gated, moe.latent or hidden))
        shared = (
            f" + shared {amount(mlp_params(moe.shared_width, moe.gated, hidden))}" if moe.shared_width else ""
        )
        parts.append(f"{moe.layers} x ({moe.number} experts of {one}{shared})")
    parts.append(f"table {model.vocab} x {hidden}" + (", tied" if model.tied else ", and a head as large"))
    yield "shapes", "; ".join(parts)


def _held(subject: Subject) -> str:
    if subject.weights.exact:
        return f"{gigabytes(subject.weights.file)}, all tensors of the file"
    if subject.quant.outside_bits and subject.model.experts:
        return f"{gigabytes(subject.weights.file)}, the experts and the rest in their own bits"
    counts = parameters(subject.model)
    total, tables = amount(counts.total), counts.table + counts.head + counts.lookups
    if subject.quant.table_bits and tables:
        return (
            f"{amount(counts.total - tables)} x {subject.quant.file_bits:g} bits + embedding and head of "
            f"{amount(tables)} x {subject.quant.table_bits:g} bits = {gigabytes(subject.weights.file)}"
        )
    source = f" [{subject.quant.source}]" if subject.quant.source else ""
    return f"{total} x {subject.quant.file_bits:g} bits of a whole file = {gigabytes(subject.weights.file)}{source}"


def _cache(question: Question, context: int) -> Iterator[tuple[str, str]]:
    load, model = question.load, question.load.model
    for index, group in enumerate(groups(model, context)):
        size = gigabytes(group.elements * load.kv_bits / 8)
        each = f"{group.elements_per_token} elements a token x {load.kv_bits:g} bits"
        yield (
            "cache" if index == 0 else "",
            f"{group.kind}: {group.layers} layers, {each} x {group.tokens} tokens = {size} a sequence"
            + (
                " [Pope 2211.05102; GQA 2305.13245; MLA 2405.04434; windows 2310.06825]" if index == 0 else ""
            ),
        )
    if load.context is None and model.attention:
        full = gigabytes(cache_bytes(model, question.context, load.kv_bits))
        yield "", f"no --ctx: an empty cache, the most favourable; {question.context} tokens would add {full}"


def _card(question: Question, item: Answer) -> Iterator[tuple[str, str]]:
    load, cards = question.load, question.load.cards
    yield "fit", _fit(question, item)
    if item.memory is None or item.decode is None:
        yield "memory roof", "no bandwidth is published"
        return
    yield "memory roof", _memory(item.card, item.memory)
    roof = item.roof
    if roof is None:
        yield "compute roof", "no figure is published: memory alone bounds decoding"
    else:
        why = f" x {roof.head_room:.3f} ({roof.why})" if roof.why else ""
        stands = (
            "; the card's own figure is not published, a faster one stands for it" if roof.bounded else ""
        )
        yield (
            "compute roof",
            f"{roof.arithmetic}, the fastest for {question.quant.id}: {roof.sheet / 1e12:.4g} TFLOP/s{why} = "
            f"{roof.flop_per_s / 1e12:.4g}{stands}",
        )
    over = "" if cards == 1 else f" / {cards}"
    times = item.decode.times
    memory = f"{gigabytes(read_bytes(load))} / {item.memory / 1e9:.6g} GB/s{over} = {_time(times.memory)}"
    compute = "" if times.compute is None else f", {pass_flops(load):.4g} FLOP{over} = {_time(times.compute)}"
    made = _count(item.decode.tokens, "token")
    yield (
        "decode",
        f"max({memory}{compute}): {made} a pass, {_rate(item.decode.tok_per_s)} tok/s",
    )
    if roof is not None:
        ridge = ridge_batch(load, item.memory, roof)
        said = (
            "at no batch: each sequence's cache keeps memory the bound"
            if ridge is None
            else f"from batch {ridge:.0f} on"
        )
        yield "ridge", f"arithmetic bounds decoding {said} [scaling-book, Inference]"
    if item.tensor and item.layers:
        yield from _layouts(question, item)
    prompt = question.context
    if item.prefill_tok_per_s and item.first_token:
        which = f"{prompt} tokens" if load.context else "any length of prompt, without its attention"
        yield "prefill", f"{which}: {_rate(item.prefill_tok_per_s)} tok/s"
    if item.first_token:
        first = item.first_token
        compute = "" if first.compute is None else f", arithmetic {_time(first.compute)}"
        yield (
            "first token",
            f"{prompt} tokens: max(weights once {_time(first.memory)}{compute}) = {_time(first.seconds)}",
        )
    yield from _practice(question, item)
    if item.usd_per_h is not None and item.usd_per_million is not None:
        yield (
            "cost",
            f"{item.usd_per_h:g} $/h / ({_rate(item.decode.tok_per_s)} tok/s x 3600 s) x 1e6 = "
            f"{item.usd_per_million:.4g} $ for a million decoded tokens, at least",
        )
    if item.tok_per_joule is not None:
        yield (
            "energy",
            f"{_rate(item.decode.tok_per_s)} tok/s / {item.watts:g} W = {item.tok_per_joule:.3g} tok/J",
        )


def _fit(question: Question, item: Answer) -> str:
    load, found = question.load, item.fit
    cache = cache_bytes(load.model, question.context, load.kv_bits)
    needed = (
        f"{gigabytes(load.weights.file)} + {load.batch} x ({gigabytes(cache)} of cache at {question.context} + "
        f"{gigabytes(state_bytes(load.model))} of state) + {load.cards} x {question.overhead / 1e9:g} GB = "
        f"{gigabytes(found.needed)}"
    )
    if found.usable is None or item.card.memory_bytes is None:
        return f"{needed}; the card is sold with several sizes of memory"
    if item.card.id in question.local:
        share = " as the driver reports"
    else:
        part = usable_share(item.card)
        share = "" if part == 1 else f" x {part:g} (shared with the CPU)"
    have = f"{load.cards} x {item.card.memory_bytes / 1e9:.1f} GB{share} = {gigabytes(found.usable)}"
    longest = f"longest context {found.max_context}" if found.max_context else "no context fits"
    return f"{needed} of {have}; {longest}"


def _memory(card: Card, roof: float) -> str:
    if bandwidth(card) != roof:
        return f"{roof / 1e9:.6g} GB/s, the larger or unrounded one of the published; no head-room"
    if card.bus_bits and card.pin_bits_per_s:
        derived = f"{card.bus_bits} bits x {card.pin_bits_per_s / 1e9:g} Gbit/s / 8"
        return f"{derived} = {roof / 1e9:.6g} GB/s; no head-room: the data rate is fixed"
    return f"{roof / 1e9:.6g} GB/s as published; no head-room: the data rate is fixed"


def _layouts(question: Question, item: Answer) -> Iterator[tuple[str, str]]:
    load, card = question.load, item.card
    model = load.model
    if item.tensor is None or item.layers is None:
        return
    link = item.tensor.times.link
    if link is None or card.link_bytes_per_s is None:
        sums = "whose sums no published link figure bounds"
    else:
        size = (
            f"{model.layers} layers x {item.tensor.tokens:g} tokens x {model.hidden} x {ACTIVATION_BYTES} B"
        )
        wire = f"{card.link_bytes_per_s / 2e9:g} GB/s ({card.link}, one direction)"
        factor = all_reduce_factor(card, load.cards)
        sums = f"2 sums x {size} x {factor:g} / {wire} = {_time(link)} of all-reduce"
    yield (
        "tensor",
        f"every layer over all cards, {sums} [Megatron 1909.08053]: {_rate(item.tensor.tok_per_s)} tok/s",
    )
    streams = min(load.batch, load.cards)
    yield (
        "layers",
        f"one stage after the other, {streams} of {load.cards} stages busy: {_time(item.layers.times.seconds)} a pass, "
        f"{_rate(item.layers.tok_per_s)} tok/s",
    )


def _practice(question: Question, item: Answer) -> Iterator[tuple[str, str]]:
    load = question.load
    if item.seen is None or item.memory is None:
        return
    found = band(read_bytes(load) / load.cards, load.cards)
    base = in_practice(load, item.card, item.memory, item.roof)
    weights = load.weights
    note = ""
    if load.batch > 1:
        note = ", nothing overlapping"
        if weights.routed and weights.per_token:
            met = expected_distinct(weights.experts, weights.per_token, load.batch)
            note += f", {met:.1f} of {weights.experts} experts met [MoE-CAP 2412.07067]"
    yield (
        "seen",
        f"{_rate(base)} tok/s{note} x {found.low:.2f} to {found.high:.2f} ({found.results} published results): "
        f"{_rate(item.seen[0])} to {_rate(item.seen[1])} tok/s; no part of the ceiling",
    )


def _count(number: float, noun: str) -> str:
    return f"{number:g} {noun}" if number == 1 else f"{number:g} {noun}s"


def _time(seconds: float) -> str:
    for factor, unit in ((1.0, "s"), (1e-3, "ms"), (1e-6, "us")):
        if seconds >= factor:
            return f"{seconds / factor:.4g} {unit}"
    return f"{seconds * 1e9:.3g} ns"


def _rate(value: float) -> str:
    return f"{value:.1f}" if value < 1000 else f"{value:.0f}"
