"""Reads a card's sensors while something runs on it: a thread of the parent that asks ten times a second.

In the parent, so that it fights no launch. A library that hangs costs the readings and nothing else: the thread is
left behind, what it had read stays, and the telemetry says so.
"""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from types import TracebackType
from typing import Protocol, Self

from kmrun.core.telemetry import Reading, Telemetry, telemetry

PERIOD_S = 0.1
OPEN_S = 5.0
STALLED_S = 2.0
"""Without a reading for so long the library counts as hanging."""

clock = time.perf_counter
"""The clock of all readings; on Linux every process of the machine shares it."""


class Sensors(Protocol):
    """A device whose sensors can be read."""

    def read(self, at_s: float) -> Reading:
        """Return the sensors now, as of `at_s`."""

    def sm_mhz_max(self) -> float | None:
        """Return the highest clock of its compute units in MHz."""

    def mem_mhz_max(self) -> float | None:
        """Return the highest clock of its memory in MHz."""


class NoSensors(Exception):
    """Why a device's sensors cannot be read."""


@dataclass(frozen=True, slots=True)
class Source:
    """Where readings come from: a name (`nvml`, `smi`) and what opens the device's sensors.

    `open` returns a context manager; entering it raises `NoSensors` when there are none.
    """

    name: str
    open: Callable[[], AbstractContextManager[Sensors]]


def nvml_source(uuid: str | None, pci_address: str | None = None, is_mig: bool = False) -> Source:
    """Return the source of an NVIDIA device by its UUID (a MIG slice's, too), else by its PCI address.

    A slice (`is_mig`) that the driver does not name has no sensors: the whole GPU's are not its own.
    """

    @contextmanager
    def opened() -> Iterator[Sensors]:
        from kmrun.device.nvml import Nvml, NvmlLost

        try:
            with Nvml() as nvml:
                device = nvml.device(uuid, pci_address, is_mig)
                if device is None:
                    raise NoSensors("NVML does not know this device")
                yield device
        except NvmlLost as lost:
            raise NoSensors(str(lost)) from lost

    return Source("nvml", opened)


def amd_source(pci_address: str | None) -> Source:
    """Return the source of an AMD device by its PCI address: AMD SMI where it is installed, else ROCm SMI."""

    @contextmanager
    def opened() -> Iterator[Sensors]:
        from kmrun.device.amd_smi import AmdSmi
        from kmrun.device.rocm_smi import RocmSmi, SmiLost

        notes = []
        libraries: tuple[type[AmdSmi] | type[RocmSmi], ...] = (AmdSmi, RocmSmi)
        with ExitStack() as stack:
            for library in libraries:
                try:
                    opening: AbstractContextManager[AmdSmi | RocmSmi] = library()
                    device = stack.enter_context(opening).device(pci_address)
                except SmiLost as lost:
                    notes.append(str(lost))
                    continue
                if device is not None:
                    yield device
                    return
                notes.append(f"{library.__name__} does not know this device")
            raise NoSensors("; ".join(notes))

    return Source("smi", opened)


def silent_source(name: str, why: str) -> Source:
    """Return the source of sensors that are not to be opened."""

    @contextmanager
    def opened() -> Iterator[Sensors]:
        raise NoSensors(why)
        yield

    return Source(name, opened)


class Sampler:
    """Polls a source from entry to exit.

        with Sampler(nvml_source(uuid)) as sampler:
            with sampler.window() as window:
                ...
            print(window.telemetry.sm_mhz)
        print(sampler.telemetry.power_w)

    Never raises for what the hardware does: without sensors the telemetry is empty, and its note says why.
    """

    def __init__(self, source: Source | None, period_s: float = PERIOD_S) -> None:
        self._source, self._period_s = source, period_s
        self._readings: list[Reading] = []
        self._stop, self._ask, self._answered = threading.Event(), threading.Event(), threading.Event()
        self._thread: threading.Thread | None = None
        self._note = "" if source is not None else "no sensors are read for this device"
        self._maxima: tuple[float | None, float | None] = (None, None)
        self._begin_s = self._end_s = 0.0

    def __enter__(self) -> Self:
        """Open the sensors, and start reading them."""
        self._begin_s = clock()
        self._end_s = 0.0
        if self._source is None:
            return self
        ready = threading.Event()
        self._thread = threading.Thread(target=self._poll, args=(ready,), name="kmrun sampler", daemon=True)
        self._thread.start()
        if not ready.wait(OPEN_S):
            self._abandon(f"{self._source.name} did not answer within {OPEN_S:g} s")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop reading. Waits for a reading that is under way, but not for one that hangs."""
        self._stop.set()
        self._ask.set()
        if self._thread is not None:
            self._thread.join(STALLED_S)
            if self._thread.is_alive():
                self._abandon(f"{self._name} hangs: it did not answer within {STALLED_S:g} s")
        self._thread = None
        self._end_s = clock()

    @property
    def readings(self) -> tuple[Reading, ...]:
        """All readings so far, in time order."""
        return tuple(self._readings)

    @property
    def telemetry(self) -> Telemetry:
        """What was read from entry to exit, or so far."""
        return self.between(self._begin_s, self._end_s or clock())

    def between(self, begin_s: float, end_s: float) -> Telemetry:
        """Return the telemetry of the time between two moments of `clock`."""
        note = self._note
        last = self._readings[-1].at_s if self._readings else self._begin_s
        if not note and self._source is not None and self._thread is not None and clock() - last > STALLED_S:
            note = f"{self._name} hangs: no reading for {clock() - last:.0f} s"
        return telemetry(
            self.readings,
            begin_s,
            end_s,
            source=self._source.name if self._source is not None and self._readings else None,
            sm_mhz_max=self._maxima[0],
            mem_mhz_max=self._maxima[1],
            note=note,
            fresh_s=2 * self._period_s,
        )

    @contextmanager
    def window(self) -> Iterator["Window"]:
        """Mark a window; its telemetry is there when it has ended.

        The sensors are read once at its end, so that a window shorter than the period has a reading of its own.
        """
        found = Window(clock())
        yield found
        end_s = clock()
        self._read_now()
        found.telemetry = self.between(found.begin_s, end_s)

    def _read_now(self) -> None:
        if self._thread is None or self._note:
            return
        self._answered.clear()
        self._ask.set()
        self._answered.wait(self._period_s)

    @property
    def _name(self) -> str:
        return self._source.name if self._source is not None else ""

    def _abandon(self, why: str) -> None:
        self._note, self._thread = why, None
        self._stop.set()

    def _poll(self, ready: threading.Event) -> None:
        if self._source is None:
            return
        try:
            with self._source.open() as sensors:
                self._maxima = (sensors.sm_mhz_max(), sensors.mem_mhz_max())
                self._readings.append(sensors.read(clock()))
                ready.set()
                while not self._stop.is_set():
                    self._ask.wait(self._period_s)
                    self._ask.clear()
                    self._readings.append(sensors.read(clock()))
                    self._answered.set()
        except NoSensors as none:
            self._note = str(none)
        finally:
            ready.set()
            self._answered.set()


@dataclass(slots=True)
class Window:
    """A stretch of time that is being sampled. `telemetry` is empty until it has ended."""

    begin_s: float
    telemetry: Telemetry = field(default_factory=Telemetry)
