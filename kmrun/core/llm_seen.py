"""How near published results come to their ceilings, by how much a card reads for a token.

Of the published results of one stream (tests/core/llm/measurements.csv, each with its source): the range of eight in
ten, as fractions of the ceiling. A test derives the bands anew. They describe what was seen; they bound nothing,
and no ceiling contains them.
"""

from typing import NamedTuple


class Band(NamedTuple):
    """Fractions of the ceiling between which eight in ten published results lie. `to_gb`: upper end."""

    to_gb: float
    low: float
    high: float
    results: int


ONE_CARD: tuple[Band, ...] = (
    Band(3, 0.35, 0.68, 11),
    Band(6, 0.35, 0.83, 26),
    Band(12, 0.53, 0.78, 9),
    Band(25, 0.52, 0.84, 16),
    Band(float("inf"), 0.48, 0.81, 10),
)
"""By gigabytes read for a token, ascending."""

SEVERAL_CARDS = Band(float("inf"), 0.11, 0.62, 7)
"""Tensor parallel at batch 1, whatever is read."""


def band(read_bytes: float, cards: int = 1) -> Band:
    """Return the band of results that read as much for a token."""
    if cards > 1:
        return SEVERAL_CARDS
    return next(item for item in ONE_CARD if read_bytes < item.to_gb * 1e9)


def spread(fractions: list[float]) -> tuple[float, float]:
    """Return the tenth and the ninetieth percentile, rounded to whole percents."""
    ordered = sorted(fractions)

    def at(share: float) -> float:
        place = share * (len(ordered) - 1)
        low = int(place)
        high = min(low + 1, len(ordered) - 1)
        return round(ordered[low] + (ordered[high] - ordered[low]) * (place - low), 2)

    return at(0.1), at(0.9)
