"""What a model needs of the memory, what a card leaves to it, and the longest context that fits.

Needed: the whole file, keys and values and states of every sequence, and what the runtime takes for itself on
each card. A card with memory of its own gives all of it; one that shares it with the CPU a part.
"""

from typing import NamedTuple

from kmrun.core.card import Card
from kmrun.core.llm_cache import cache_bytes, state_bytes
from kmrun.core.llm_model import Model

OVERHEAD_BYTES = 0.5e9
"""What a lean runtime takes on each card: a driver's context and the smallest buffers."""

APPLE_SHARE = 0.75
"""macOS lets the GPU have about 70 to 78 % (XiongjieDai/GPU-Benchmarks-on-LLM-Inference@aa72e0e README.md)."""

UNIFIED_SHARE = 0.92
"""What the system leaves on others that share memory: DGX Spark shows 119 of its 128 GB."""

LONGEST = 1 << 24
"""Where the search for the longest context ends: 16 M tokens."""


class Fit(NamedTuple):
    """Bytes over all cards. `usable` and `fits` are None where the card is sold with several sizes.

    `max_context` is the longest context that fits, 0 when none does.
    """

    needed: float
    usable: float | None
    fits: bool | None
    max_context: int | None


def usable_share(card: Card) -> float:
    """Return the part of the memory that a model can have."""
    if not card.memory_unified:
        return 1.0
    return APPLE_SHARE if card.vendor == "apple" else UNIFIED_SHARE


def usable_bytes(card: Card, cards: int = 1) -> float | None:
    """Return what so many cards leave to a model."""
    return None if card.memory_bytes is None else card.memory_bytes * usable_share(card) * cards


def needed_bytes(
    model: Model, file_bytes: float, context: int, batch: int, kv_bits: float, overhead: float
) -> float:
    """Return file, caches and states of the batch, and overhead."""
    sequence = cache_bytes(model, context, kv_bits) + state_bytes(model)
    return file_bytes + batch * sequence + overhead


def fit(
    model: Model,
    file_bytes: float,
    context: int,
    batch: int,
    kv_bits: float,
    overhead: float,
    usable: float | None,
) -> Fit:
    """Return whether it fits, and up to which context it would; all bytes over all cards."""
    needed = needed_bytes(model, file_bytes, context, batch, kv_bits, overhead)
    if usable is None:
        return Fit(needed, None, None, None)

    def holds(tokens: int) -> bool:
        return needed_bytes(model, file_bytes, tokens, batch, kv_bits, overhead) <= usable

    low, high = 0, max(model.max_context, context) if model.max_context else LONGEST
    if not holds(1):
        return Fit(needed, usable, needed <= usable, 0)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if holds(middle) else (low, middle - 1)
    return Fit(needed, usable, needed <= usable, low)
