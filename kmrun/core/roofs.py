"""The published peaks that one case is held against on one card."""

from kmrun.core import peaks
from kmrun.core.card import Card
from kmrun.core.case import Case
from kmrun.core.score import Roofs


def roofs_of(
    case: Case, card: Card | None, max_clock_hz: float | None = None, held_clock_hz: float | None = None
) -> Roofs:
    """Return the roofs of a case on a card (one device's share of it); empty without a card.

    `max_clock_hz` is what the driver lets the card reach: `compute_max` is the peak there, and never under
    the published one. `held_clock_hz` is the clock that it held: `compute_clk` is the peak there. The author's
    own `peak: {tflops}` is moved by the same ratios of clocks.
    """
    if card is None:
        return Roofs()
    compute = _compute_at(case, card, None)
    fastest = _compute_at(case, card, max_clock_hz) if max_clock_hz else None
    return Roofs(
        bandwidth=peaks.bandwidth(card),
        compute=compute,
        compute_max=max((one for one in (compute, fastest) if one is not None), default=None),
        compute_clk=_compute_at(case, card, held_clock_hz) if held_clock_hz else None,
        vector_fp32=peaks.rate(card, "vector", "fp32"),
        card=card.id,
    )


def _compute_at(case: Case, card: Card, clock_hz: float | None) -> float | None:
    """Return the compute roof of a case at a clock, at the published one for None."""
    peak = case.peak
    if peak is None:
        return None
    if peak.tflops is not None:
        published = card.matmul_clock_hz or card.vector_clock_hz
        moved = clock_hz / published if clock_hz and published else 1.0
        return peak.tflops * 1e12 * moved
    if peak.units is None or peak.dtype is None:
        return None
    return peaks.rate(card, peak.units, peak.dtype, peak.acc, clock_hz)
