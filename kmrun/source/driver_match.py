"""Which card a device is, by what its driver reports; never a neighbour."""

from collections.abc import Iterable
from dataclasses import dataclass

from kmrun.core.card import Card, per_device
from kmrun.source.card_names import driver_key, is_generic

_MEMORY_SHARE = (0.85, 1.03)
# What a driver reports of the memory on the label: ECC and firmware take up to 9 % (T4: 14.6 of 16 GiB).


@dataclass(frozen=True, slots=True)
class DriverMatch:
    """Which card a local device is: `card`, one device's share of it, when exactly one fits.

    Several `candidates`: the user must say which (`--card`). None: the database does not know the device.
    """

    card: Card | None
    candidates: tuple[str, ...] = ()


def match(
    cards: Iterable[Card],
    name: str,
    sm_count: int | None = None,
    memory_bytes: int | None = None,
    architecture: str | None = None,
) -> DriverMatch:
    """Return which card a device is; arguments as of `Catalogue.match_driver`."""
    wanted = driver_key(name)
    every = list(cards)
    named = [card for card in every if any(driver_key(known) == wanted for known in card.driver_names)]
    gfx = architecture.partition(":")[0] if architecture else None
    if not named and gfx and gfx.startswith("gfx") and is_generic(name):
        named = [card for card in every if card.compute_capability == gfx]
    alike = [
        device
        for device in map(per_device, named)
        if (sm_count is None or device.sm_count is None or sm_count in _counts(device))
        and (gfx is None or device.compute_capability in (None, gfx))
    ]
    fitting = [device for device in alike if _holds(device, memory_bytes)] or [
        # A share of the system's memory says little: firmware and driver settings move it.
        device
        for device in alike
        if device.memory_unified
    ]
    return DriverMatch(fitting[0] if len(fitting) == 1 else None, tuple(device.id for device in fitting))


def _counts(device: Card) -> tuple[int, ...]:
    """Return what a driver may report as the number of units: HIP counts RDNA's CUs in pairs (WGPs)."""
    units = device.sm_count or 0
    return (units, units // 2) if device.family.startswith("rdna") else (units,)


def _holds(device: Card, memory_bytes: int | None) -> bool:
    if memory_bytes is None or device.memory_bytes is None:
        return True
    low, high = _MEMORY_SHARE
    return low <= memory_bytes / device.memory_bytes <= high
