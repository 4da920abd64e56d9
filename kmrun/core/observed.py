"""What the machine was doing while one case was timed, and the document's entry of it."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from kmrun.core.cpu_load import CpuLoad
from kmrun.core.result import SeriesEntry, TelemetryEntry
from kmrun.core.telemetry import Reading, Telemetry

MOST_POINTS = 120
"""Of a series in a document: what a narrow picture can show."""


@dataclass(frozen=True, slots=True)
class Observed:
    """What was read of the machine around one case.

    `window` is of the moments in which the samples were taken, and nothing but the kernel ran. `power_w` and
    `energy_mj_per_call` come from a stretch of a second or more in which it was called without pause, None where
    the device has no such sensor. `load` says who used the CPUs meanwhile. `readings` are all of the case, the
    warm-up included, for the picture.
    """

    window: Telemetry = field(default_factory=Telemetry)
    power_w: float | None = None
    energy_mj_per_call: float | None = None
    load: CpuLoad | None = None
    readings: tuple[Reading, ...] = ()


def telemetry_entry(observed: Observed) -> TelemetryEntry:
    """Return the document's entry."""
    window, load = observed.window, observed.load
    return TelemetryEntry(
        source=window.source,
        window_s=round(window.window_s, 4),
        samples=len(window.readings),
        sm_mhz_held=window.sm_mhz,
        sm_mhz_low=window.sm_mhz_low,
        sm_mhz_max=window.sm_mhz_max,
        mem_mhz=window.mem_mhz,
        mem_mhz_max=window.mem_mhz_max,
        temp_c=window.temp_c,
        power_w=observed.power_w,
        energy_mj_per_call=observed.energy_mj_per_call,
        utilisation_fraction=window.utilisation,
        throttle=window.throttle,
        throttle_fraction=dict(window.throttle_fraction),
        own_cores=None if load is None else round(load.own, 3),
        other_cores=None if load is None else round(load.others, 3),
        stolen_cores=None if load is None else round(load.steal, 3),
        note=window.note,
        series=series_entry(observed.readings),
    )


def series_entry(readings: Sequence[Reading], most: int = MOST_POINTS) -> SeriesEntry:
    """Return readings as columns over the seconds since the first; of more than `most`, evenly chosen ones."""
    step = max(1, -(-len(readings) // most))
    chosen = readings[::step]
    begin = chosen[0].at_s if chosen else 0.0
    return SeriesEntry(
        time_s=tuple(round(reading.at_s - begin, 3) for reading in chosen),
        sm_mhz=tuple(reading.sm_mhz for reading in chosen),
        power_w=tuple(reading.power_w for reading in chosen),
        temp_c=tuple(reading.temp_c for reading in chosen),
    )
