"""The GPU of this machine for `kmrun llm`: with the memory that its driver reports, and its highest clock."""

from dataclasses import replace

from kmrun.core.card import Card
from kmrun.device.cuda_driver import CudaDevice, CudaDriver
from kmrun.device.local_card import local_card
from kmrun.device.rocm import HipRuntime
from kmrun.errors import EnvironmentLacks
from kmrun.source.catalogue import Catalogue


def here(index: int, catalogue: Catalogue) -> tuple[Card, bool, str]:
    """Return the card of a local device, whether its clocks are the highest, and a line about it.

    Raises:
        EnvironmentLacks: there is neither an NVIDIA driver nor ROCm, or no such device.
    """
    try:
        card, name, clock, memory = _nvidia(index, catalogue)
    except EnvironmentLacks as lacking:
        found = _amd(index, catalogue)
        if found is None:
            raise EnvironmentLacks(lacking.sentence, "--gpus names cards of the database") from None
        card, name, clock, memory = found
    highest = bool(clock and card.sm_count and card.matmul_rates)
    card = replace(card, memory_bytes=memory)
    if clock and highest:
        # The driver's clock leaves no head-room to state; the sheet's would.
        card = replace(
            card,
            vector_clock_hz=max(clock, card.vector_clock_hz or 0.0),
            matmul_clock_hz=max(clock, card.matmul_clock_hz or 0.0),
        )
    known = ", not in the database" if card.id.startswith("device-") else f" ({card.id})"
    said = f"device {index}: {name}{known}, {memory / 1e9:.1f} GB as its driver reports"
    return card, highest, said if highest else f"{said}; clocks of the sheet"


def _nvidia(index: int, catalogue: Catalogue) -> tuple[Card, str, float | None, int]:
    device = CudaDriver().device(index)

    def match(found: CudaDevice) -> tuple[Card | None, tuple[str, ...]]:
        matched = catalogue.match_driver(
            found.name, found.sm_count, found.memory_bytes, found.compute_capability
        )
        return matched.card, matched.candidates

    return local_card(device, match).card, device.name, device.max_clock_hz, device.memory_bytes


def _amd(index: int, catalogue: Catalogue) -> tuple[Card, str, float | None, int] | None:
    """Return what HIP shows, None without ROCm or without that device in the database.

    No bandwidth follows from what HIP says, so a card that is not in the database would have no ceiling.
    """
    try:
        runtime = HipRuntime()
        if index >= runtime.count():
            return None
        device = runtime.device(index)
    except EnvironmentLacks:
        return None
    matched = catalogue.match_driver(device.name, device.compute_units, device.memory_bytes, device.gfx)
    if matched.card is None:
        return None
    return matched.card, device.name, device.max_clock_hz, device.memory_bytes
