"""The arithmetic of a model, in FLOP: two for each parameter and token, and what attention adds.

A token multiplies with every weight that it meets once, which is two FLOP (scaling-book, "Transformers";
Kaplan et al. 2020, arXiv 2001.08361, section 2.1). The embedding is looked up, so it costs none; in prefill only
the last token needs logits, so the head costs one row. Scores and mixing cost 2 x heads x (key size + value
size) for every pair of tokens; causal attention has half of the pairs (FlashAttention-2, arXiv 2307.08691,
section 4.1), a window fewer.
"""

from kmrun.core.llm_cache import seen
from kmrun.core.llm_model import Attention, Model, parameters


def decode_flops(model: Model, context: int) -> float:
    """Return the FLOP of one decoded token with so many tokens before it."""
    counts = parameters(model)
    pairs = sum(_per_pair(group) * seen(group, context) for group in model.attention)
    return 2 * (counts.multiplied + counts.head_read) + pairs


def prefill_flops(model: Model, prompt: int) -> float:
    """Return the FLOP of a prompt of so many tokens, up to its first logits."""
    return matrix_flops(model, prompt) + attention_flops(model, prompt)


def matrix_flops(model: Model, prompt: int) -> float:
    """Return the part of the projections and MLPs: every token, and one row of logits."""
    counts = parameters(model)
    return 2 * counts.multiplied * prompt + 2 * counts.head_read


def attention_flops(model: Model, prompt: int) -> float:
    """Return the part of causal attention."""
    return sum(_per_pair(group) * _pairs(group, prompt) for group in model.attention)


def _per_pair(group: Attention) -> float:
    # MLA, unpacked, multiplies keys of head_dim and values of v_head_dim. In its packed form, which decoding
    # uses, the sums are longer; a ceiling takes the shorter ones.
    return 2.0 * group.layers * group.heads * (group.head_dim + group.value_dim)


def _pairs(group: Attention, prompt: int) -> float:
    """Return the sum over tokens of how many each attends to, itself included."""
    if group.window is not None and group.chunked:
        chunks, rest = divmod(prompt, group.window)
        return chunks * group.window * (group.window + 1) / 2 + rest * (rest + 1) / 2
    window = min(group.window or prompt, group.selected or prompt, prompt)
    return window * (window + 1) / 2 + (prompt - window) * window
