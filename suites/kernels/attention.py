"""Attention as plain formulas: the references and the naive versions that attention.yaml measures against."""

import math

import torch


def sdpa_eager(q, k, v, is_causal=False):
    """softmax(q k^T / sqrt(d)) v with every step written to memory: what a model does without a fused kernel.

    q, k, v: [batch, heads, length, d]. With more keys than queries, the last query sees all keys.
    """
    scores = (q @ k.mT) / math.sqrt(q.shape[-1])
    if is_causal:
        queries, keys = scores.shape[-2:]
        seen = torch.ones(queries, keys, dtype=torch.bool, device=q.device).tril(keys - queries)
        scores = scores.masked_fill(~seen, -math.inf)
    return torch.softmax(scores, dim=-1) @ v


def sdpa_math(q, k, v, is_causal=False):
    """The same formula one head at a time, so that long sequences fit in fp64: the reference."""
    by_head = zip(q.unbind(1), k.unbind(1), v.unbind(1), strict=True)
    return torch.stack([sdpa_eager(*one, is_causal) for one in by_head], dim=1)


def gqa_math(q, k, v, **_):
    """Grouped-query attention, one head at a time, head i on the KV head i // group: the reference."""
    group = q.shape[1] // k.shape[1]
    heads = [sdpa_eager(q[:, head], k[:, head // group], v[:, head // group]) for head in range(q.shape[1])]
    return torch.stack(heads, dim=1)


def gqa_repeat(q, k, v, **_):
    """Grouped-query attention with each KV head copied to the query heads that share it: the naive way."""
    group = q.shape[1] // k.shape[1]
    return sdpa_eager(q, k.repeat_interleave(group, dim=1), v.repeat_interleave(group, dim=1))


def decode_grouped(q, k, v):
    """One new token against a KV cache, the cache read once: the kernel of `decode`.

    The query heads that share a KV head become the rows of one small matrix: each key and value serves all of
    them in one pass. q: [batch, query heads, 1, d]; k, v: [batch, KV heads, length, d].
    """
    batch, heads, one, d = q.shape
    shared = k.shape[1]
    rows = q.reshape(batch, shared, heads // shared, d)
    out = torch.nn.functional.scaled_dot_product_attention(rows, k, v)
    return out.reshape(batch, heads, one, d)
