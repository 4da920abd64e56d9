"""What tensor parallelism moves between cards: two all-reduces a layer.

Each layer sums a vector of the hidden size for each token twice (Megatron-LM, arXiv 1909.08053, section 3; Pope et
al. 2022, arXiv 2211.05102). A ring moves 2 x (n - 1) / n times its bytes through each card's link in each direction
(Patarasuk and Yuan 2009); a switch that sums (NVLink SHARP, from Hopper on) moves them once.
"""

from kmrun.core.card import Card

ACTIVATION_BYTES = 2
"""Bytes of an element that is summed: 16 bits."""

_SUMMING_SWITCH = ("hopper", "blackwell")


def all_reduce_factor(card: Card, cards: int) -> float:
    """Return how many times the bytes of a sum pass each card's link, in each direction."""
    if cards == 1:
        return 0.0
    if card.link == "nvlink" and card.family in _SUMMING_SWITCH:
        return 1.0
    return 2 * (cards - 1) / cards


def all_reduce_bytes(layers: int, hidden: int, tokens: float) -> float:
    """Return the bytes that are summed in a pass of so many tokens: two sums a layer."""
    return 2.0 * layers * tokens * hidden * ACTIVATION_BYTES


def all_reduce_seconds(card: Card, cards: int, layers: int, hidden: int, tokens: float) -> float | None:
    """Return the least time of the sums of one pass; 0 for one card, None where the link is not known."""
    if cards == 1:
        return 0.0
    if card.link_bytes_per_s is None:
        return None
    one_direction = card.link_bytes_per_s / 2
    return all_reduce_bytes(layers, hidden, tokens) * all_reduce_factor(card, cards) / one_direction
