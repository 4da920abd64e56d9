"""The answer for one card: does the model fit, and how fast can it be there."""

from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

from kmrun.core.card import Card
from kmrun.core.llm_ceiling import (
    Decode,
    Load,
    Times,
    decode,
    in_practice,
    layer_split,
    prefill,
    prefill_rate,
    read_bytes,
    tensor_parallel,
)
from kmrun.core.llm_fit import Fit, fit, usable_bytes
from kmrun.core.llm_quant import Quant
from kmrun.core.llm_roof import ComputeRoof, compute_roof, memory_roof
from kmrun.core.llm_seen import band

DEFAULT_CONTEXT = 4096
"""The context whose cache must fit, and the prompt of the first token, where none is asked for."""


class Question(NamedTuple):
    """What is asked of every card. `overhead` is bytes on each card; `prices` are $/h by card id.

    `local`: ids of cards in this machine, with the memory that their driver reports, and with `highest_clock`
    its highest clock.
    """

    load: Load
    quant: Quant
    overhead: float
    prices: Mapping[str, float]
    local: frozenset[str] = frozenset()
    highest_clock: bool = False

    @property
    def context(self) -> int:
        """Tokens whose cache must fit."""
        return self.load.context or DEFAULT_CONTEXT


class Answer(NamedTuple):
    """What one card can do; None where a figure of it is not published. All SI.

    `decode` is the ceiling of any layout over several cards, `tensor` and `layers` those of two layouts.
    `seen` is the band of published results for the same reading, None with drafted tokens.
    """

    card: Card
    memory: float | None
    roof: ComputeRoof | None
    fit: Fit
    decode: Decode | None
    tensor: Decode | None
    layers: Decode | None
    prefill_tok_per_s: float | None
    first_token: Times | None
    seen: tuple[float, float] | None
    usd_per_h: float | None
    watts: float | None

    @property
    def tok_per_s(self) -> float | None:
        """The decode ceiling over all sequences."""
        return self.decode.tok_per_s if self.decode else None

    @property
    def tok_per_s_per_usd(self) -> float | None:
        """Tokens a second for a dollar an hour."""
        return self.tok_per_s / self.usd_per_h if self.tok_per_s and self.usd_per_h else None

    @property
    def usd_per_million(self) -> float | None:
        """The least that a million decoded tokens cost: $/h over tokens an hour (llm-analysis, analysis.py)."""
        return self.usd_per_h / (self.tok_per_s * 3600) * 1e6 if self.tok_per_s and self.usd_per_h else None

    @property
    def tok_per_joule(self) -> float | None:
        """Tokens for a joule at the ceiling and at TDP. Cards under a lower limit do better: no bound."""
        return self.tok_per_s / self.watts if self.tok_per_s and self.watts else None


def answer(question: Question, card: Card) -> Answer:
    """Return the answer for a card, or for `question.load.cards` of it."""
    load = question.load
    here = card.id in question.local
    # A local device's memory is what its driver reports; its system has already taken its share.
    usable = usable_bytes(replace(card, memory_unified=False) if here else card, load.cards)
    fitted = fit(
        load.model,
        load.weights.file,
        question.context,
        load.batch,
        load.kv_bits,
        question.overhead * load.cards,
        usable,
    )
    memory = memory_roof(card)
    roof = compute_roof(card, question.quant.arithmetic, at_highest_clock=here and question.highest_clock)
    price = question.prices.get(card.id)
    watts = None if card.tdp_w is None else card.tdp_w * load.cards
    hourly = None if price is None else price * load.cards
    if memory is None:
        return Answer(card, None, roof, fitted, None, None, None, None, None, None, hourly, watts)
    return Answer(
        card=card,
        memory=memory,
        roof=roof,
        fit=fitted,
        decode=decode(load, memory, roof),
        tensor=tensor_parallel(load, card, memory, roof) if load.cards > 1 else None,
        layers=layer_split(load, memory, roof) if load.cards > 1 else None,
        prefill_tok_per_s=prefill_rate(load, memory, roof),
        first_token=prefill(load, memory, roof, question.context),
        seen=_seen(load, card, memory, roof),
        usd_per_h=hourly,
        watts=watts,
    )


def _seen(load: Load, card: Card, memory: float, roof: ComputeRoof | None) -> tuple[float, float] | None:
    if load.draft:
        return None
    found = band(read_bytes(load) / load.cards, load.cards)
    base = in_practice(load, card, memory, roof)
    return base * found.low, base * found.high
