"""Watching the machine through a run: its sensors are read here, in the parent, which launches nothing. No torch."""

import statistics
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self, TypeVar

from kmrun.core.clocks import Survivors, next_pause, slowdowns, survivors, unheld
from kmrun.core.cpu_load import CpuLoad, cpu_load
from kmrun.core.measurement import RunDevice
from kmrun.core.telemetry import Reading, Telemetry
from kmrun.device.cpu_sensors import CPU_PERIOD_S, cpu_source, cpu_times
from kmrun.device.sampler import PERIOD_S, Sampler, Source, amd_source, clock, nvml_source

TRIES = 3
"""What a slowdown spoiled is taken again, after ever longer pauses."""
FRESH_S = 2 * PERIOD_S
"""The last reading before a moment speaks for it when it is no older than that."""
REACH_S = 1.0
"""For so long a slowdown that was seen is taken to last until the next reading, which may be late under load."""

T = TypeVar("T")


def source_of(device: RunDevice) -> Source:
    """Return where a device's sensors are read."""
    if device.kind == "cpu":
        return cpu_source()
    if device.kind == "rocm":
        return amd_source(device.pci_address)
    return nvml_source(device.uuid, device.pci_address, device.is_mig)


@dataclass(slots=True)
class Stretch:
    """A stretch of a run; both figures are there when it has ended. `begin_s` is a moment of the sampler's clock."""

    begin_s: float
    telemetry: Telemetry = field(default_factory=Telemetry)
    load: CpuLoad | None = None


class Watch:
    """The sensors of a run's device, from entry to exit, and the pause that a hot card is given.

    Args:
        device: what runs the kernels.
        pids: returns the processes of the run as of now; all others are others' load.
        source: where the sensors are read, by default those of the device.
    """

    def __init__(
        self, device: RunDevice, pids: Callable[[], Iterable[int]], source: Source | None = None
    ) -> None:
        self._on_cpu = device.kind == "cpu"
        period = CPU_PERIOD_S if self._on_cpu else PERIOD_S
        self._sampler = Sampler(source or source_of(device), period)
        self._pids = pids
        self.pause_s = 0.0
        self._clocks: list[float] = []
        """Of all windows that counted: what is usual for the card in this run."""
        self._locked_mhz: float | None = None
        self.clock_lost = ""
        """Why a clock that was locked is not held, once a window of the run has shown that it is not."""

    def __enter__(self) -> Self:
        """Begin to read."""
        self._sampler.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Read no more."""
        self._sampler.__exit__(kind, error, trace)

    @contextmanager
    def stretch(self) -> Iterator[Stretch]:
        """Watch a stretch of the run."""
        before = cpu_times(self._pids())
        with self._sampler.window() as window:
            found = Stretch(window.begin_s)
            yield found
            after = cpu_times(self._pids())
        found.telemetry = window.telemetry
        found.load = cpu_load(before, after) if before is not None and after is not None else None

    def readings_since(self, begin_s: float) -> tuple[Reading, ...]:
        """Return what was read since a moment of the sampler's clock."""
        return tuple(reading for reading in self._sampler.readings if reading.at_s >= begin_s)

    @property
    def reads_power(self) -> bool:
        """Whether the device tells its power or its energy."""
        newest = self.readings_since(clock() - REACH_S)[-1:]
        return any(reading.power_w is not None or reading.energy_j is not None for reading in newest)

    def survivors(self, spans_ns: Sequence[tuple[int, int]], begin_s: float) -> Survivors:
        """Return which samples, taken since `begin_s`, no slowdown touched.

        All do on a CPU: its cores idle at another clock than they work at, so a low one proves nothing.
        """
        if self._on_cpu:
            return Survivors((True,) * len(spans_ns))
        within = [reading.sm_mhz for reading in self.readings_since(begin_s) if reading.sm_mhz is not None]
        usual = statistics.median(self._clocks + within) if within else None
        # The last reading before the samples speaks for the first of them.
        readings = self.readings_since(begin_s - FRESH_S)
        spans = [(begin / 1e9, end / 1e9) for begin, end in spans_ns]
        found = survivors(spans, readings, usual, REACH_S)
        if found.enough:  # a spoiled window must not become what is usual
            self._clocks += within
        return found

    def slowed_since(self, begin_s: float) -> bool:
        """Return whether the card said since a moment that it is too hot, or that its power supply complains.

        Where nothing was read since, the last reading before speaks, if it is fresh: what a sensor said before it
        died says nothing of now.
        """
        readings = self.readings_since(begin_s) or self.readings_since(begin_s - FRESH_S)[-1:]
        return any(slowdowns(reading, None) for reading in readings)

    def verify_clock(self, window: Telemetry) -> bool:
        """Return whether a window of load told if a locked clock holds; `clock_lost` is what it told."""
        why = unheld(window.readings, self._locked_mhz, window.sm_mhz_max)
        if why is None:
            return False
        self.clock_lost = self.clock_lost or why
        self._locked_mhz = self._locked_mhz or window.sm_mhz
        return True

    @property
    def clock_verified(self) -> bool:
        """Whether load has shown that a locked clock holds, and none that it does not."""
        return self._locked_mhz is not None and not self.clock_lost

    def steady(self, take: Callable[[], T]) -> T:
        """Return what was taken while the card was not slowed down; after some tries, whatever came last.

        For blocks of two sides in turn: both are slowed down alike, so that a hot block is worth less, not nothing.
        """
        for _ in range(TRIES):
            self.rest()
            begin = clock()
            found = take()
            slowed = not self._on_cpu and self.slowed_since(begin)
            self.learn(slowed)
            if not slowed:
                break
        return found

    def learn(self, slowed: bool) -> None:
        """Let the next pause grow after a slowdown, and shrink again after none."""
        self.pause_s = next_pause(self.pause_s, slowed)

    def rest(self) -> float:
        """Let the card cool for as long as it has come to need; return the seconds that took."""
        if self.pause_s:
            begin = clock()
            time.sleep(self.pause_s)
            return clock() - begin
        return 0.0
