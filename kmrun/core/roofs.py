"""The published peaks that one case is held against on one card."""

from kmrun.core import peaks
from kmrun.core.card import Card
from kmrun.core.case import Case
from kmrun.core.score import Roofs


def roofs_of(case: Case, card: Card | None, max_clock_hz: float | None = None) -> Roofs:
    """Return the roofs of a case on a card (one device's share of it); empty without a card.

    `max_clock_hz` is what the driver lets the card reach: `compute_max` is the peak there, and never under
    the published one. The author's own `peak: {tflops}` is moved by the same ratio of clocks.
    """
    if card is None:
        return Roofs()
    compute, compute_max = _compute(case, card, max_clock_hz)
    return Roofs(
        bandwidth=peaks.bandwidth(card),
        compute=compute,
        compute_max=compute_max,
        vector_fp32=peaks.rate(card, "vector", "fp32"),
        card=card.id,
    )


def _compute(case: Case, card: Card, max_clock_hz: float | None) -> tuple[float | None, float | None]:
    peak = case.peak
    if peak is None:
        return None, None
    if peak.tflops is not None:
        published = peak.tflops * 1e12
        clock = card.matmul_clock_hz or card.vector_clock_hz
        faster = max_clock_hz / clock if max_clock_hz and clock else 1.0
        return published, published * max(1.0, faster)
    if peak.units is None or peak.dtype is None:
        return None, None
    compute = peaks.rate(card, peak.units, peak.dtype, peak.acc)
    at_most = peaks.rate(card, peak.units, peak.dtype, peak.acc, max_clock_hz) if max_clock_hz else None
    known = [rate for rate in (compute, at_most) if rate is not None]
    return compute, max(known, default=None)
