"""The GPU of this machine for `kmrun llm`: with the memory that its driver reports, and its highest clock."""

from dataclasses import replace

from kmrun.cli.streams import say
from kmrun.core.card import Card
from kmrun.device.cuda_driver import CudaDevice
from kmrun.device.driver_library import NoDevice, NoDriver
from kmrun.device.drivers import cuda_device, hip_device
from kmrun.device.local_card import local_card
from kmrun.errors import EnvironmentLacks
from kmrun.source.catalogue import Catalogue


def here(index: int, catalogue: Catalogue) -> tuple[Card, bool, str]:
    """Return the card of a local device, whether its clocks are the highest, and a line about it.

    Raises:
        NoDriver: there is neither an NVIDIA driver nor ROCm; `NoDevice` where one of them has nothing to drive.
        EnvironmentLacks: there is no such device, or a driver fails.
    """
    lacking = []
    for vendor in (_nvidia, _amd):
        try:
            card, name, clock, memory = vendor(index, catalogue)
            break
        except EnvironmentLacks as error:
            lacking.append(error)
    else:
        # A driver that fails says more than one that is not there.
        worst = next((error for error in lacking if not isinstance(error, NoDriver | NoDevice)), lacking[0])
        raise type(worst)(worst.sentence, "--gpus names cards of the database")
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
    device = cuda_device(index, say)

    def match(found: CudaDevice) -> tuple[Card | None, tuple[str, ...]]:
        matched = catalogue.match_driver(
            found.name, found.sm_count, found.memory_bytes, found.compute_capability
        )
        return matched.card, matched.candidates

    return local_card(device, match).card, device.name, device.max_clock_hz, device.memory_bytes


def _amd(index: int, catalogue: Catalogue) -> tuple[Card, str, float | None, int]:
    """Return what HIP shows of a device of the database.

    No bandwidth follows from what HIP says, so a card that is not in the database would have no ceiling.
    """
    device = hip_device(index, say)
    matched = catalogue.match_driver(device.name, device.compute_units, device.memory_bytes, device.gfx)
    if matched.card is None:
        raise EnvironmentLacks(f"no card of the database fits device {index}, {device.name}")
    return matched.card, device.name, device.max_clock_hz, device.memory_bytes
