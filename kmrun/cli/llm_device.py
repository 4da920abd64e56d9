"""The GPU of this machine for `kmrun llm`: with the memory that its driver reports, and its highest clock."""

from dataclasses import replace

from kmrun.core.card import Card
from kmrun.device.cuda_driver import CudaDevice, CudaDriver
from kmrun.device.local_card import local_card
from kmrun.source.catalogue import Catalogue


def here(index: int, catalogue: Catalogue) -> tuple[Card, bool, str]:
    """Return the card of a local device, whether its clocks are the highest, and a line about it.

    Raises:
        EnvironmentLacks: there is no driver or no such device.
    """
    device = CudaDriver().device(index)

    def match(found: CudaDevice) -> tuple[Card | None, tuple[str, ...]]:
        matched = catalogue.match_driver(
            found.name, found.sm_count, found.memory_bytes, found.compute_capability
        )
        return matched.card, matched.candidates

    local = local_card(device, match)
    clock = device.max_clock_hz
    card = replace(local.card, memory_bytes=device.memory_bytes)
    highest = bool(clock and card.sm_count and card.matmul_rates)
    if clock and highest:
        # The driver's clock leaves no head-room to state; the sheet's would.
        card = replace(
            card,
            vector_clock_hz=max(clock, card.vector_clock_hz or 0.0),
            matmul_clock_hz=max(clock, card.matmul_clock_hz or 0.0),
        )
    known = f" ({card.id})" if local.matched else ", not in the database"
    said = f"device {device.index}: {device.name}{known}, {device.memory_bytes / 1e9:.1f} GB as its driver reports"
    return card, highest, said if highest else f"{said}; clocks of the sheet"
