"""Sensors that say what a test wants, for a `Sampler`."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from kmrun.core.telemetry import Reading
from kmrun.device.sampler import Sensors, Source


class Scripted:
    """Sensors whose readings a function makes of the moment."""

    def __init__(self, make: Callable[[float], Reading], sm_mhz_max: float | None) -> None:
        self.read, self._most = make, sm_mhz_max

    def sm_mhz_max(self) -> float | None:
        return self._most

    def mem_mhz_max(self) -> float | None:
        return None


def scripted(
    make: Callable[[float], Reading], sm_mhz_max: float | None = 1590.0, name: str = "test"
) -> Source:
    """The source of such sensors."""

    @contextmanager
    def opened() -> Iterator[Sensors]:
        yield Scripted(make, sm_mhz_max)

    return Source(name, opened)


def drawing(watts: float, sm_mhz: float = 877.0) -> Source:
    """A device under its power cap, which has an energy counter."""
    return scripted(
        lambda at_s: Reading(
            at_s, sm_mhz, 5000.0, 66.0, watts, at_s * watts, utilisation=0.97, throttle=("sw_power_cap",)
        )
    )
