"""What a model keeps of a sequence: keys and values, or a state, and how much of it a token reads.

Grouped-query attention keeps 2 x layers x KV heads x head size elements for every token (Pope et al. 2022,
arXiv 2211.05102, section 3.3; Ainslie et al. 2023, arXiv 2305.13245). Multi-head latent attention keeps
KV rank + rotary size for every token and layer (DeepSeek-V2, arXiv 2405.04434, section 2.1.4). A window layer
keeps and reads its window only (Mistral 7B, arXiv 2310.06825, section 2), a chunked one its chunk (Llama 4), a sparse
one reads those that it selects (DeepSeek-V3.2, arXiv 2512.02556). Mamba-2 (arXiv 2405.21060) and gated delta
rule (arXiv 2412.06464) layers keep a state of fixed size, which every token reads and writes once.
"""

from collections.abc import Mapping
from typing import NamedTuple

from kmrun.core.llm_model import Attention, Model

KV_BITS: Mapping[str, float] = {
    "fp32": 32.0,
    "fp16": 16.0,
    "bf16": 16.0,
    "fp8": 8.0,
    "int8": 8.0,
    "q8_0": 8.5,
    "q5_1": 6.0,
    "q5_0": 5.5,
    "q4_1": 5.0,
    "q4_0": 4.5,
}
"""Format of the cache to its bits per element (GGUF's with their block scales, ggml-common.h)."""

STATE_BYTES = 2
"""Bytes of an element of a recurrent state: 16 bits, the least that stacks keep."""


class CacheGroup(NamedTuple):
    """The cache of the layers of one kind, for one sequence: elements a token, and the tokens read."""

    kind: str
    layers: int
    elements_per_token: int
    tokens: int

    @property
    def elements(self) -> int:
        """Elements at that context."""
        return self.elements_per_token * self.tokens


def groups(model: Model, context: int) -> list[CacheGroup]:
    """Return what a token reads of each kind of attention layers, with that many tokens before it."""
    return [
        CacheGroup(kind_of(group), cached(group), elements_per_token(group), seen(group, context))
        for group in model.attention
    ]


def kind_of(group: Attention) -> str:
    """Return what people call it: MHA, GQA, MQA, MLA, and the window."""
    if group.kind == "mla":
        name = "MLA"
    elif group.kv_heads == group.heads:
        name = "MHA"
    else:
        name = "MQA" if group.kv_heads == 1 else "GQA"
    if group.selected:
        return f"{name}, {group.selected} selected"
    return f"{name}, {'chunk' if group.chunked else 'window'} {group.window}" if group.window else name


def cached(group: Attention) -> int:
    """Return how many of its layers keep keys and values of their own."""
    return group.layers if group.cached_layers is None else group.cached_layers


def elements_per_token(group: Attention) -> int:
    """Return the elements that one token leaves in the cache of these layers."""
    if group.kind == "mla":
        return cached(group) * (group.kv_lora_rank + group.rope_head_dim)
    return cached(group) * group.kv_heads * (group.head_dim + group.value_dim)


def kept(group: Attention, context: int) -> int:
    """Return how many of so many tokens such a layer keeps."""
    return context if group.window is None else min(context, group.window)


def seen(group: Attention, context: int) -> int:
    """Return how many of so many tokens such a layer reads for the next one, at least.

    A chunk may just have begun, so a chunked layer need not read any.
    """
    if group.window is not None and group.chunked:
        return 0
    return min(kept(group, context), group.selected or context)


def cache_bytes(model: Model, context: int, kv_bits: float) -> float:
    """Return the bytes of keys and values that one sequence of that many tokens keeps."""
    elements = sum(elements_per_token(group) * kept(group, context) for group in model.attention)
    return elements * kv_bits / 8


def cache_read_bytes(model: Model, context: int, kv_bits: float) -> float:
    """Return the bytes of keys and values that a token reads, with that many tokens before it."""
    return sum(group.elements for group in groups(model, context)) * kv_bits / 8


def state_bytes(model: Model) -> float:
    """Return the bytes of the recurrent state of one sequence; no context changes them."""
    return STATE_BYTES * sum(group.state_elements for group in model.recurrent)


def state_traffic(model: Model) -> float:
    """Return the bytes of state that a token of one sequence moves: all of it read, all of it written."""
    return 2 * state_bytes(model)
