"""Clocks that a card held: which samples they spoil, and the roofs that they leave."""

import math
import statistics
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass

from kmrun.core.telemetry import Reading

IDLE = "idle"
POWER_CAP = "sw_power_cap"
SETTING = "application_clocks"
"""Somebody, or a run that was killed, set the clocks that the card holds."""
SLOWDOWNS = ("sw_thermal_slowdown", "hw_thermal_slowdown", "hw_slowdown", "hw_power_brake")
"""Reasons that spoil a sample: the card is too hot, or its power supply complains."""
REASONS: tuple[str, ...] = (
    IDLE,
    SETTING,
    POWER_CAP,
    "hw_slowdown",
    "sync_boost",
    "sw_thermal_slowdown",
    "hw_thermal_slowdown",
    "hw_power_brake",
    "display_clocks",
    "board_limit",
    "reliability",
)
"""All reasons, in the order of NVML's bits. Power capping is how a card works, and spoils nothing."""

UNEXPLAINED = 0.75
"""A card that names no reasons is taken to be slowed down below this share of its own median clock."""
ENOUGH = 0.5
"""Share of the samples that must survive."""
STEADY = 0.02
"""Share by which a locked clock may move: cards hold multiples of about 15 MHz."""
PAUSE_S, LONGEST_PAUSE_S = 0.5, 8.0


@dataclass(frozen=True, slots=True)
class Survivors:
    """Which samples count. `sentence` says what was dropped and why, empty when nothing was."""

    kept: tuple[bool, ...]
    sentence: str = ""

    @property
    def dropped(self) -> int:
        """The number of samples that do not count."""
        return len(self.kept) - sum(self.kept)

    @property
    def enough(self) -> bool:
        """Whether enough samples are left to say anything."""
        return not self.kept or sum(self.kept) / len(self.kept) >= ENOUGH


def reasons_of(bits: int) -> tuple[str, ...]:
    """Return the names of NVML's bit mask of reasons; bits without a name as `reason_<number>`."""
    return tuple(
        REASONS[bit] if bit < len(REASONS) else f"reason_{bit}"
        for bit in range(bits.bit_length())
        if bits >> bit & 1
    )


def slowdowns(reading: Reading, usual_mhz: float | None) -> tuple[str, ...]:
    """Return what spoils samples taken at a reading, nothing when they count.

    `usual_mhz` is the run's own median clock: where a card names no reasons, a clock far below it is one.
    """
    if reading.throttle is not None:
        return tuple(name for name in reading.throttle if name in SLOWDOWNS)
    if usual_mhz and reading.sm_mhz is not None and reading.sm_mhz < UNEXPLAINED * usual_mhz:
        return ("clock far below the run's own",)
    return ()


def survivors(
    spans: Sequence[tuple[float, float]],
    readings: Sequence[Reading],
    usual_mhz: float | None = None,
    reach_s: float = math.inf,
) -> Survivors:
    """Return which samples were taken while the card was not slowed down.

    Args:
        spans: begin and end of each sample, in seconds of the readings' clock.
        readings: in time order. A reading speaks for the time from the one before it to the one after it, so
            that a sample which a slowdown may have touched is dropped.
        usual_mhz: the run's own median clock; by default that of the readings.
        reach_s: for how long a reading speaks at most: when sensors died hot, nothing is known of what follows.
    """
    clocks = [reading.sm_mhz for reading in readings if reading.sm_mhz is not None]
    usual = usual_mhz or (statistics.median(clocks) if clocks else None)
    times = [reading.at_s for reading in readings]
    spoiled = [slowdowns(reading, usual) for reading in readings]
    causes: dict[str, None] = {}
    kept = []
    for begin, end in spans:
        first, last = max(bisect_left(times, begin) - 1, 0), bisect_left(times, end)
        found = [
            name
            for at_s, names in zip(times[first : last + 1], spoiled[first : last + 1], strict=True)
            if begin - reach_s <= at_s <= end + reach_s
            for name in names
        ]
        causes.update(dict.fromkeys(found))
        kept.append(not found)
    gone = len(kept) - sum(kept)
    sentence = f"{gone} of {len(kept)} samples dropped: {', '.join(causes)}" if gone else ""
    return Survivors(tuple(kept), sentence)


def unheld(readings: Sequence[Reading], usual_mhz: float | None, highest_mhz: float | None) -> str | None:
    """Return why a clock that was locked to the card's base clock is not held; empty when nothing shows that.

    None when no reading tells: there is none under load, or the card was too hot to hold any clock.

    Args:
        readings: while the card worked.
        usual_mhz: what it held under an earlier load of the run, None before there was one.
        highest_mhz: the highest clock of the card. Its base clock lies below: a card at the highest was not locked.
    """
    clocks = [
        reading.sm_mhz
        for reading in readings
        if reading.sm_mhz is not None and not {IDLE, *SLOWDOWNS} & set(reading.throttle or ())
    ]
    if not clocks:
        return None
    middle = statistics.median(clocks)
    for other in (min(clocks), max(clocks), usual_mhz or middle):
        if abs(other - middle) > STEADY * max(other, middle):
            return f"it moved between {min(other, middle):.0f} and {max(other, middle):.0f} MHz"
    if highest_mhz and middle >= (1 - STEADY) * highest_mhz:
        return f"it was the card's highest, {middle:.0f} MHz, under load"
    return ""


def next_pause(pause_s: float, slowed: bool) -> float:
    """Return how long to let the card cool before the next slot: longer after a slowdown, shorter again after none.

    Zero stands for no pause, which is what an undisturbed run has.
    """
    if slowed:
        return min(max(PAUSE_S, 2 * pause_s), LONGEST_PAUSE_S)
    return pause_s / 2 if pause_s > PAUSE_S else 0.0


def clock_ratio(held_mhz: float | None, of_mhz: float | None) -> float | None:
    """Return the share of a clock that was held, None where either is unknown."""
    return held_mhz / of_mhz if held_mhz and of_mhz else None


def roof_clk_fraction(
    time_s: float,
    *,
    memory_roof_s: float | None,
    compute_roof_s: float | None,
    sm_held: float | None,
    mem_held: float | None = None,
) -> float | None:
    """Return the share that a call reaches of what the card attains at the clocks it held.

    Attainable time is max(memory, compute) with each roof moved by its own clock: flop/s are in proportion to
    the SM clock, bytes/s to the memory clock. At 877 of 1590 MHz 52.7 % of a compute roof become 95.5 %.

    Args:
        time_s: time of a call.
        memory_roof_s: what its bytes take at the published bandwidth, None without one.
        compute_roof_s: what its flop take at the published peak.
        sm_held: the peak at the SM clock held over the published one. None: unknown, and so is the fraction
            where the call does compute.
        mem_held: the memory clock held over the highest; None takes it as held.
    """
    if compute_roof_s and not sm_held:
        return None
    compute = compute_roof_s / sm_held if compute_roof_s and sm_held else None
    memory = memory_roof_s / (mem_held or 1.0) if memory_roof_s else None
    longest = max((one for one in (compute, memory) if one), default=None)
    return longest / time_s if longest and time_s > 0 else None
