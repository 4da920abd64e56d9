"""What a card was doing while something ran: readings of its sensors, and what they come to over a window.

Clocks in MHz, temperature in degrees Celsius, power in watts, energy in joules: what the sensors give and what
people compare. Times are seconds of one monotonic clock.
"""

import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

POWER_WINDOW_S = 1.0
"""Boards report power as an average over about a second: over less, the figure is of something else."""
FRESH_S = 0.2
"""How long a reading speaks for what comes before and after it: two periods of the sampler."""
COVERED = 0.75
"""Share of a window that a sensor's readings must speak for; sensors that died in between say nothing of it."""

_OVER = 1.02
"""Clocks are read to a step of theirs."""
_MOST_W = 60_000
"""No board draws more: a counter that says so jumped."""


@dataclass(frozen=True, slots=True)
class Reading:
    """The sensors at one moment; None where the card has no such sensor or does not let us read it.

    `throttle` names what holds the clocks down (`core.clocks`), None where that cannot be read; `energy_j` is a
    counter of the card with an arbitrary start.
    """

    at_s: float
    sm_mhz: float | None = None
    mem_mhz: float | None = None
    temp_c: float | None = None
    power_w: float | None = None
    energy_j: float | None = None
    utilisation: float | None = None
    throttle: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class Telemetry:
    """A window of readings. Figures are None where nothing was read, or too little of the window.

    `sm_mhz` is the clock held (the median), `sm_mhz_max` what the card may reach, `temp_c` the hottest reading.
    `power_w` and `energy_j` are None for windows under a second. `utilisation` is a fraction. `throttle` names
    every reason seen, None where they cannot be read, `throttle_fraction` the share of the readings that showed it.
    `note` says why figures are missing.
    """

    source: str | None = None
    window_s: float = 0.0
    sm_mhz: float | None = None
    sm_mhz_low: float | None = None
    sm_mhz_max: float | None = None
    mem_mhz: float | None = None
    mem_mhz_max: float | None = None
    temp_c: float | None = None
    power_w: float | None = None
    energy_j: float | None = None
    utilisation: float | None = None
    throttle: tuple[str, ...] | None = None
    throttle_fraction: Mapping[str, float] = field(default_factory=dict)
    note: str = ""
    readings: tuple[Reading, ...] = ()

    @property
    def sm_hz(self) -> float | None:
        """The clock held in Hz."""
        return None if self.sm_mhz is None else self.sm_mhz * 1e6

    def energy_mj_per_call(self, calls: int) -> float | None:
        """Return the energy of one call in millijoules, when the window held that many calls and nothing else."""
        return None if self.energy_j is None or calls < 1 else self.energy_j * 1e3 / calls


def telemetry(
    readings: Sequence[Reading],
    begin_s: float,
    end_s: float,
    *,
    source: str | None = None,
    sm_mhz_max: float | None = None,
    mem_mhz_max: float | None = None,
    note: str = "",
    fresh_s: float = FRESH_S,
) -> Telemetry:
    """Return what the readings between two moments come to.

    A window that is shorter than the polling interval may hold no reading: the nearest one then speaks for it, if it
    is not further away than `fresh_s`, for so long a reading speaks. Clocks, power and energy are None when the
    readings of their sensor speak for less than `COVERED` of the window: of the rest nothing is known.
    """
    within = [reading for reading in readings if begin_s <= reading.at_s <= end_s]
    if not within and readings:
        middle = (begin_s + end_s) / 2
        nearest = min(readings, key=lambda reading: abs(reading.at_s - middle))
        within = [nearest] if begin_s - fresh_s <= nearest.at_s <= end_s + fresh_s else []
    window = end_s - begin_s

    def known(name: str) -> list[tuple[float, float]]:
        """Return moments and figures of one sensor; nothing when they do not speak for the window."""
        figures = [(one.at_s, getattr(one, name)) for one in within if getattr(one, name) is not None]
        return figures if _covers([at_s for at_s, _ in figures], begin_s, end_s, fresh_s) else []

    clocks = [mhz for _, mhz in known("sm_mhz")]
    power = _power(known("energy_j"), known("power_w")) if window >= POWER_WINDOW_S else None
    shares = _shares(within)
    if not note and readings and not _covers([reading.at_s for reading in within], begin_s, end_s, fresh_s):
        note = f"the sensors answered {'only for a part of' if within else 'at no moment of'} this time"
    return Telemetry(
        source=source,
        window_s=window,
        sm_mhz=_median(clocks),
        sm_mhz_low=min(clocks, default=None),
        sm_mhz_max=_highest(sm_mhz_max, [reading.sm_mhz for reading in within]),
        mem_mhz=_median([mhz for _, mhz in known("mem_mhz")]),
        mem_mhz_max=_highest(mem_mhz_max, [reading.mem_mhz for reading in within]),
        temp_c=max(_known(reading.temp_c for reading in within), default=None),
        power_w=power,
        energy_j=None if power is None else power * window,
        utilisation=_mean([share for _, share in known("utilisation")]),
        throttle=None if shares is None else tuple(shares),
        throttle_fraction=shares or {},
        note=note,
        readings=tuple(within),
    )


def _highest(told_mhz: float | None, read_mhz: Sequence[float | None]) -> float | None:
    """Return the highest clock as the card told it; None where it ran at a higher one: then it is another."""
    over = told_mhz is not None and max(_known(read_mhz), default=0.0) > _OVER * told_mhz
    return None if over else told_mhz


def _covers(moments: Sequence[float], begin_s: float, end_s: float, fresh_s: float) -> bool:
    """Return whether readings at these moments, ascending, speak for enough of a window.

    Only how early they begin and how late they end counts: a machine under load may read seldom, dead sensors never.
    """
    if not moments:
        return False
    spoken = min(end_s, moments[-1] + fresh_s) - max(begin_s, moments[0] - fresh_s)
    return spoken >= COVERED * (end_s - begin_s)


def _power(energy: Sequence[tuple[float, float]], power: Sequence[tuple[float, float]]) -> float | None:
    """Return the mean power in W: by the energy counter where there is one, else of the power readings."""
    if len(energy) >= 2:
        (begin, first), (end, last) = energy[0], energy[-1]
        # A counter that went back has wrapped, or begun anew: how far it was by then, nobody knows.
        grew = all(before <= after for (_, before), (_, after) in pairwise(energy))
        if grew and end > begin and 0 < (last - first) / (end - begin) <= _MOST_W:
            return (last - first) / (end - begin)
    return _mean([watts for _, watts in power])


def _shares(readings: Sequence[Reading]) -> dict[str, float] | None:
    """Return the share of the readings that showed each reason; None where none could be read."""
    known = [reading.throttle for reading in readings if reading.throttle is not None]
    if not known:
        return None
    names = dict.fromkeys(name for reasons in known for name in reasons)
    return {name: sum(name in reasons for reasons in known) / len(known) for name in names}


def _known(values: Iterable[float | None]) -> list[float]:
    return [value for value in values if value is not None]


def _median(values: Sequence[float]) -> float | None:
    return statistics.median(values) if values else None


def _mean(values: Sequence[float]) -> float | None:
    # Exact: of equal figures the mean is that figure, where a sum of floats may end a digit beside it.
    return statistics.mean(values) if values else None
