"""Where a launch would run: a compute capability, a card, or a device of this machine."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from kmrun.core.architecture import OccupancyLimits
from kmrun.core.occupancy import compute_capability, limits_of
from kmrun.errors import EnvironmentLacks, UsageError


@dataclass(frozen=True, slots=True)
class Target:
    """The SM that a launch is held against."""

    title: str
    cc: str
    limits: OccupancyLimits


def target_of(
    cc: str | None, gpu: str | None, device: int | None, overlays: Sequence[Path], *, optional: bool
) -> Target | None:
    """Return the target; None when none was named and `optional` (ptxas names its own).

    Raises:
        KmrunError: more than one was named, or it is unknown, or there is no device here.
    """
    if sum(item is not None for item in (cc, gpu, device)) > 1:
        raise UsageError("--cc, --gpu and --device each say where the launch runs", "give one of them")
    if cc is not None:
        return of_capability(cc)
    if gpu is not None:
        return _of_card(gpu, overlays)
    if optional and device is None:
        return None
    return _of_device(device)


def of_capability(cc: str) -> Target:
    """Return the target of a compute capability, `8.6` or `sm_86`."""
    limits = limits_of(cc)
    known = compute_capability(cc)
    return Target(f"compute capability {known}", known, limits)


def _of_card(gpu: str, overlays: Sequence[Path]) -> Target:
    from kmrun.source.catalogue import load_cards

    card = load_cards(overlays).find(gpu)
    if card.vendor != "nvidia" or card.compute_capability is None:
        raise UsageError(f"{card.id} is no NVIDIA card", "occupancy here is CUDA's model")
    limits = limits_of(card.compute_capability)
    return Target(f"{card.id}, compute capability {card.compute_capability}", card.compute_capability, limits)


def _of_device(device: int | None) -> Target:
    from kmrun.cli.streams import say
    from kmrun.device.drivers import cuda_device
    from kmrun.device.local_card import limits_of_device

    try:
        found = cuda_device(device or 0, say)
    except EnvironmentLacks as error:
        if device is not None:
            raise
        raise EnvironmentLacks(
            error.sentence, "--cc 8.6 or --gpu CARD answers for hardware that is not here"
        ) from None
    limits = limits_of_device(found)
    title = f"device {found.index}: {found.name}, compute capability {found.compute_capability}"
    return Target(title, found.compute_capability or "", limits)
