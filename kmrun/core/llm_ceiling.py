"""How fast a model can be on a card, at the very best: ceilings that no measured result beats.

A token of every sequence of a batch needs all weights once and every sequence's own cache:
t >= max((W + sum of KV) / bandwidth, FLOP / peak) (zeux.io, "LLM inference speed of light", 2024; scaling-book,
"Inference"). The terms are not added: memory, arithmetic and link of different sequences can overlap.
Several cards share reading and arithmetic at best evenly, however they are laid out. Tensor parallelism adds the
sums over the link. A layer split works on one stage at a time for each sequence, so one stream gets the
bandwidth of one card; as many groups of sequences as there are stages keep all busy. With G drafted tokens a pass
checks G + 1 tokens and yields at most G + 1 (Leviathan et al. 2022, arXiv 2211.17192); the drafter is taken to be
free.

Caches are left out: one that held all that a token reads could beat memory, but only models of some ten megabytes
are so small, and those wait for launches.
"""

from typing import Literal, NamedTuple

from kmrun.core.card import Card
from kmrun.core.llm_cache import cache_read_bytes, state_traffic
from kmrun.core.llm_link import all_reduce_seconds
from kmrun.core.llm_model import Model, parameters
from kmrun.core.llm_quant import Weights, expected_distinct
from kmrun.core.llm_roof import ComputeRoof
from kmrun.core.llm_work import decode_flops, prefill_flops

Bound = Literal["mem", "comp", "link"]


class Load(NamedTuple):
    """What is asked: a model in some format, and how it is run.

    `context` tokens stand before the decoded one. None: rates are those of an empty cache, which no context
    beats.
    """

    model: Model
    weights: Weights
    kv_bits: float = 16
    context: int | None = None
    batch: int = 1
    cards: int = 1
    draft: int = 0


class Times(NamedTuple):
    """The least seconds of one pass by what it needs; None where a figure of the card is not known."""

    memory: float
    compute: float | None
    link: float | None = 0.0

    @property
    def seconds(self) -> float:
        """The largest: what overlaps perfectly."""
        return max(self.memory, self.compute or 0.0, self.link or 0.0)

    @property
    def together(self) -> float:
        """The sum: what does not overlap at all."""
        return self.memory + (self.compute or 0.0) + (self.link or 0.0)

    @property
    def bound(self) -> Bound:
        """Which one it is."""
        if self.link and self.link >= max(self.memory, self.compute or 0.0):
            return "link"
        return "comp" if (self.compute or 0.0) > self.memory else "mem"


class Decode(NamedTuple):
    """A pass of decoding: its times, and the tokens that it yields over all sequences."""

    times: Times
    tokens: float

    @property
    def tok_per_s(self) -> float:
        """Tokens a second over all sequences."""
        return self.tokens / self.times.seconds


def read_bytes(load: Load, distinct: float | None = None) -> float:
    """Return the bytes that one pass reads: weights once, cache and state of every sequence.

    `distinct`: experts of each layer that the batch meets; by default those of one token, the fewest.
    """
    weights = load.weights
    read = weights.read(weights.per_token if distinct is None else distinct)
    return read + sequence_bytes(load) * load.batch


def sequence_bytes(load: Load) -> float:
    """Return what a token of one sequence reads beside the weights."""
    return cache_read_bytes(load.model, load.context or 0, load.kv_bits) + state_traffic(load.model)


def pass_flops(load: Load) -> float:
    """Return the FLOP of one pass: a token of every sequence, with those drafted for it."""
    return decode_flops(load.model, load.context or 0) * load.batch * (load.draft + 1)


def decode(load: Load, memory: float, roof: ComputeRoof | None) -> Decode:
    """Return the ceiling, whatever the layout over the cards: all of them busy, and no word between them."""
    times = Times(
        memory=read_bytes(load) / (memory * load.cards),
        compute=pass_flops(load) / (roof.flop_per_s * load.cards) if roof else None,
    )
    return Decode(times, load.batch * (load.draft + 1))


def ridge_batch(load: Load, memory: float, roof: ComputeRoof) -> float | None:
    """Return the batch from which arithmetic bounds decoding; None where each cache keeps memory the bound.

    W / bandwidth = B x (FLOP / peak - cache / bandwidth): scaling-book's critical batch, with the caches.
    """
    alone = load._replace(batch=1)
    gain = pass_flops(alone) / roof.flop_per_s - sequence_bytes(load) / memory
    return load.weights.read(load.weights.per_token) / memory / gain if gain > 0 else None


def tensor_parallel(load: Load, card: Card, memory: float, roof: ComputeRoof | None) -> Decode:
    """Return the ceiling with every layer spread over all cards, sums over the link included."""
    best, model = decode(load, memory, roof), load.model
    link = all_reduce_seconds(card, load.cards, model.layers, model.hidden, best.tokens)
    return Decode(Times(best.times.memory, best.times.compute, link), best.tokens)


def layer_split(load: Load, memory: float, roof: ComputeRoof | None) -> Decode:
    """Return the ceiling with the layers shared out to the cards, one after the other.

    Sequences go in as many groups as there are stages, if there are so many; each group reads all weights on
    its way.
    """
    groups = min(load.batch, load.cards)
    share = load.batch / groups
    read = load.weights.read(load.weights.per_token) + share * sequence_bytes(load)
    times = Times(
        memory=read / memory,
        compute=pass_flops(load) / groups / roof.flop_per_s if roof else None,
    )
    return Decode(times, load.batch * (load.draft + 1))


def prefill(load: Load, memory: float, roof: ComputeRoof | None, prompt: int) -> Times:
    """Return the least seconds up to the first token of a prompt of so many tokens."""
    return Times(
        memory=load.weights.read(load.weights.per_token) / (memory * load.cards),
        compute=prefill_flops(load.model, prompt) / (roof.flop_per_s * load.cards) if roof else None,
    )


def prefill_rate(load: Load, memory: float, roof: ComputeRoof | None) -> float | None:
    """Return tokens of a prompt a second: of `context` tokens, else what no length of prompt beats.

    None where the card's arithmetic is not known.
    """
    if roof is None:
        return None
    if load.context:
        return load.context / prefill(load, memory, roof, load.context).seconds
    # Attention adds to every longer prompt, the row of logits and the weights' own reading to every shorter one.
    return roof.flop_per_s * load.cards / (2 * parameters(load.model).multiplied)


def in_practice(load: Load, card: Card, memory: float, roof: ComputeRoof | None) -> float:
    """Return tokens a second if nothing overlaps and each sequence draws its experts at random.

    An estimate's base, never a ceiling: bands of published results are fractions of it.
    """
    weights = load.weights
    distinct = expected_distinct(weights.experts, weights.per_token, load.batch)
    best = tensor_parallel(load, card, memory, roof)
    read = read_bytes(load, distinct) / (memory * load.cards)
    if load.batch == 1:
        return 1 / max(read, best.times.seconds)
    return load.batch / Times(read, best.times.compute, best.times.link).together
