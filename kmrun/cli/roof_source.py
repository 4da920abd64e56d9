"""Where the two roofs come from: a card, a local device, or numbers on the command line."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from kmrun.cli.roof_choice import RoofChoice
from kmrun.cli.terminal import positive
from kmrun.core.card import Card
from kmrun.core.peaks import bandwidth
from kmrun.errors import EnvironmentLacks, UsageError
from kmrun.report.terminal_plot import Curve


@dataclass(frozen=True, slots=True)
class RoofPair:
    """A memory and a compute roof: bytes/s and flop/s, what they are of, and what the compute roof is."""

    title: str
    name: str
    bandwidth: float
    peak: float
    peak_title: str
    note: str = ""

    @property
    def curve(self) -> Curve:
        """The roofline."""
        return Curve(self.name, self.bandwidth, self.peak)


def roofs_here(
    gpu: str | None,
    device: int | None,
    peak_bw: float | None,
    peak_tflops: float | None,
    choice: RoofChoice | None,
    overlays: Sequence[Path],
) -> RoofPair:
    """Return the roofs that the options name; without any, those of the local device.

    Raises:
        KmrunError: the options contradict each other, or something they name is unknown or missing.
    """
    if gpu is not None and device is not None:
        raise UsageError("--gpu and --device each name a card", "give one of them")
    if choice is not None and peak_tflops is not None:
        raise UsageError("--peak-tflops is the compute roof itself", "leave --peak and --tensor out")
    speed = None if peak_bw is None else positive(peak_bw, "--peak-bw", "GB/s") * 1e9
    peak = None if peak_tflops is None else positive(peak_tflops, "--peak-tflops", "TFLOP/s") * 1e12
    if speed is not None and peak is not None and gpu is None and device is None:
        return RoofPair("given roofs", "given", speed, peak, "given")
    chosen = choice or RoofChoice("fp32_tflops")
    card, title, note = _of_card(gpu, overlays) if gpu is not None else _of_device(device, overlays)
    speed = speed or bandwidth(card)
    what = chosen.title if peak is None else "given"
    peak = peak or chosen.roof(card)
    if speed is None:
        raise UsageError(f"no memory bandwidth is known of {card.id}", "--peak-bw GB/s gives one")
    if peak is None:
        raise UsageError(
            f"no {chosen.title} peak is known of {card.id}", "--peak names another, --peak-tflops gives one"
        )
    return RoofPair(title, card.id, speed, peak, what, note)


def _of_card(gpu: str, overlays: Sequence[Path]) -> tuple[Card, str, str]:
    from kmrun.source.catalogue import load_cards

    card = load_cards(overlays).find(gpu)
    return card, f"{card.id}: {card.name}", card.note


def _of_device(index: int | None, overlays: Sequence[Path]) -> tuple[Card, str, str]:
    from kmrun.cli.streams import say
    from kmrun.device.cuda_driver import CudaDevice
    from kmrun.device.drivers import cuda_device
    from kmrun.device.local_card import local_card
    from kmrun.source.catalogue import load_cards

    try:
        device = cuda_device(index or 0, say)
    except EnvironmentLacks as error:
        if index is not None:
            raise
        hint = "--gpu CARD draws any card, --peak-bw and --peak-tflops anything else"
        raise EnvironmentLacks(error.sentence, hint) from None
    catalogue = load_cards(overlays)

    def match(found: CudaDevice) -> tuple[Card | None, tuple[str, ...]]:
        matched = catalogue.match_driver(
            found.name, found.sm_count, found.memory_bytes, found.compute_capability
        )
        return matched.card, matched.candidates

    local = local_card(device, match)
    if local.matched:
        return local.card, f"device {device.index}: {device.name} ({local.card.id})", local.card.note
    maybe = f" It may be {' or '.join(local.candidates)}: --gpu says which." if local.candidates else ""
    note = f"Not in the database: roofs from the driver's highest clocks.{maybe}"
    return local.card, f"device {device.index}: {device.name}", note
