"""Timing calls inside a side: what a sample is, on a CPU clock and on device events.

Every figure is nanoseconds per call. Clocks and events are bound when this module is imported, which is before
any user code is, so that a kernel that patches `time` changes nothing here.

A cold sample works on data that no cache holds. Where the inputs can be copied, calls rotate over distinct
copies that together are more than twice the last-level cache: the data is cold, the interpreter stays warm, and
no flush stands between samples. Otherwise, and for long calls on a GPU, the cache is flushed before a sample:
twice its size is written, then a second buffer of its size is read, so that no dirty line is left to evict.
"""

import ctypes
import gc
import math
import resource
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol

import torch

from kmrun.core.statistics import enough
from kmrun.measure.fork_guard import end_if_child

_clock = time.perf_counter_ns

Thunk = Callable[[], Any]

BATCH_BELOW_NS = {"cpu": 20_000, "cuda": 200_000}
"""Calls shorter than this are batched, so that a sample is well above the clock's grain."""
SAMPLE_AT_LEAST_NS = {"cpu": 50_000, "cuda": 200_000}


LEAST_SAMPLES = 8
"""Seven are the fewest that bound a median at 1 % without a noise model."""
UNDISTURBED_SHARE = 0.25


@dataclass(frozen=True, slots=True)
class Budget:
    """When to stop: `min_ns` counts samples only and yields to `max_ns`, which is wall time with flushes.

    Both leave room for the samples that bound a median; `hard_ns` does not, it is what time there is at all.
    """

    min_ns: float
    max_ns: float
    rel_ci: float
    at_least: int = 10
    hard_ns: float = math.inf


class Stopwatch(Protocol):
    """Times one batch of calls on a device; the seam between the loop below and the hardware."""

    kind: str
    spread_ns: float
    """Of empty timings: from the 10th to the 90th percentile."""
    disturbed: bool
    """Whether the operating system took a core away during the last batch: it tells of the machine's other load."""
    host_ns: list[float]
    """What submitting a call cost the host, per sample; stays empty where the call itself runs on the host."""

    def batch_ns(self, thunks: Sequence[Thunk], outputs: list[Any] | None) -> float:
        """Run the thunks back to back, return their time in ns; keep their results in `outputs` if given."""

    def learn(self, thunk: Thunk) -> None:
        """Find out what must be known of an implementation before it is timed."""


class CpuStopwatch:
    """`perf_counter_ns` around the calls, less what an empty batch of the same length takes."""

    kind = "cpu"

    def __init__(self) -> None:
        self.disturbed = False
        empty = sorted(self._run([_nothing], None) for _ in range(301))
        self.overhead_ns = float(empty[150])
        self.spread_ns = float(empty[270] - empty[30])
        self.host_ns: list[float] = []

    def batch_ns(self, thunks: Sequence[Thunk], outputs: list[Any] | None) -> float:
        """See `Stopwatch`."""
        before = _preemptions()
        # Once through the same code with nothing in it, and a look at the calls' Python objects: the system call
        # above and the samples before left the interpreter cold, and its misses are not the kernel's.
        self._run(_NOTHING, None)
        for thunk in thunks:
            for argument in getattr(thunk, "args", ()):
                type(argument)
        elapsed = self._run(thunks, outputs)
        end_if_child()
        self.disturbed = _preemptions() != before
        return max(elapsed - self.overhead_ns, 1.0)

    def learn(self, thunk: Thunk) -> None:
        """CPU calls are synchronous: nothing to learn."""

    @staticmethod
    def _run(thunks: Sequence[Thunk], outputs: list[Any] | None) -> int:
        if outputs is None:
            begin = _clock()
            for thunk in thunks:
                thunk()
            return _clock() - begin
        begin = _clock()
        for thunk in thunks:
            outputs.append(thunk())
        return _clock() - begin


class CudaStopwatch:
    """Device events around the calls (CUDA, and HIP through torch's same names).

    The stream first spins for a bounded time, so that the launches are queued before the first event is
    reached and launch cost does not leak into the sample. A target that synchronises itself waits for the
    spin; that is detected by its host time and it is then timed without one.
    """

    kind = "cuda"

    _SPIN_CYCLES = 400_000

    def __init__(self, device: torch.device) -> None:
        self.disturbed = False
        self._device = device
        self._event = torch.cuda.Event
        self._sync = torch.cuda.synchronize
        self._sleep = torch.cuda._sleep
        self.spins = True
        self.overhead_ns = 0.0
        self.host_ns: list[float] = []
        pairs = sorted(self.batch_ns([], None) for _ in range(101))
        self.overhead_ns = pairs[50]
        self.spread_ns = pairs[90] - pairs[10]

    def batch_ns(self, thunks: Sequence[Thunk], outputs: list[Any] | None) -> float:
        """See `Stopwatch`."""
        begin, end = self._event(enable_timing=True), self._event(enable_timing=True)
        if self.spins:
            self._sleep(self._SPIN_CYCLES)
        begin.record()
        host = _clock()
        for thunk in thunks:
            result = thunk()
            if outputs is not None:
                outputs.append(result)
        self.host_ns.append((_clock() - host) / max(len(thunks), 1))
        end.record()
        end.synchronize()
        elapsed: float = begin.elapsed_time(end) * 1e6
        return max(elapsed - self.overhead_ns, 0.0)

    def learn(self, thunk: Thunk) -> None:
        """Find out whether a call waits for the device by itself; if so, never spin before it.

        The call is made behind a long spin: a call that only submits is back long before the spin ends.
        """
        begin, end = self._event(enable_timing=True), self._event(enable_timing=True)
        self._sync(self._device)
        begin.record()
        self._sleep(self._SPIN_CYCLES * 8)
        end.record()
        host = _clock()
        thunk()
        host_ns = _clock() - host
        self._sync(self._device)
        self.spins = host_ns < 0.8e6 * begin.elapsed_time(end)


class Flusher:
    """Evicts everything from the last-level cache; its own time is never part of a sample."""

    def __init__(self, llc_bytes: int, device: torch.device) -> None:
        self._reset_persisting = _persisting_reset() if device.type == "cuda" else _nothing
        self._written = torch.empty(2 * llc_bytes, dtype=torch.uint8, device=device)
        self._read = torch.zeros(llc_bytes // 4, device=device)
        self._sink = torch.zeros((), device=device)
        self.bytes = 3 * llc_bytes

    def __call__(self) -> None:
        """Write twice the cache's size, then read a second buffer of its size, in stream order."""
        self._reset_persisting()
        self._written.fill_(1)
        torch.sum(self._read, dim=0, out=self._sink)


class Rotation:
    """Hands out the thunks in turn, so that consecutive calls touch distinct data."""

    def __init__(self, thunks: Sequence[Thunk]) -> None:
        self.thunks = list(thunks)
        self.last = 0
        """The position that was used last."""
        self._next = 0

    def take(self, count: int) -> tuple[list[Thunk], list[int]]:
        """Return the next `count` thunks and their positions in the rotation."""
        size = len(self.thunks)
        places = [(self._next + step) % size for step in range(count)]
        self._next = (self._next + count) % size
        self.last = places[-1]
        return [self.thunks[place] for place in places], places


@dataclass(slots=True)
class Sampler:
    """Takes samples of one implementation."""

    stopwatch: Stopwatch
    rotation: Rotation
    before: Callable[[], None] | None = None
    """Untimed preparation of a sample: the flush."""
    after: Callable[[list[int]], None] | None = None
    """Untimed clearing up: restores the copies that were used."""
    batch: int = 1

    def one(self, outputs: list[Any] | None = None) -> tuple[float, list[int]]:
        """Take one sample; return ns per call and which copies were used.

        Who asks for the outputs clears up by `after` itself, once they were looked at.
        """
        thunks, places = self.rotation.take(self.batch)
        if self.before is not None:
            self.before()
            if self.stopwatch.kind == "cpu":
                # The flush also evicted the interpreter's own working set: bring that back.
                for _ in range(8):
                    self.stopwatch.batch_ns([_nothing], None)
        took = self.stopwatch.batch_ns(thunks, outputs) / len(thunks)
        if self.after is not None and outputs is None:
            self.after(places)
        return took, places

    def choose_batch(self, call_ns: float) -> int:
        """Set the number of calls in a sample from a first estimate of one call, and return it."""
        kind = self.stopwatch.kind
        if call_ns < BATCH_BELOW_NS[kind]:
            self.batch = max(1, min(10_000, round(SAMPLE_AT_LEAST_NS[kind] / max(call_ns, 1.0) + 0.5)))
        else:
            self.batch = 1
        return self.batch

    def warm_up(self, least_ns: float, most_ns: float, at_least: int = 10) -> tuple[int, float]:
        """Call until the level is stable (two halves of the newest samples agree within 3 %) or time is up.

        Returns:
            the number of samples and the newest level in ns per call.
        """
        begin = _clock()
        taken: list[float] = []
        while True:
            taken.append(self.one()[0])
            spent = _clock() - begin
            if spent > most_ns and len(taken) >= min(at_least, 3):
                break
            if len(taken) >= max(at_least, 2) and spent >= least_ns:
                newest = taken[-10:]
                half = len(newest) // 2
                older, newer = _middle(newest[:half]), _middle(newest[half:])
                if abs(newer - older) <= 0.03 * older:
                    break
        return len(taken), _middle(taken[-5:])

    def window(
        self,
        budget: Budget,
        keep: Callable[[int, list[int], list[Any]], None] | None = None,
        wants: Callable[[int], bool] = lambda _: False,
        progress: Callable[[int], None] | None = None,
    ) -> "Window":
        """Take samples until the budget says stop.

        Undisturbed samples speak alone as soon as there are enough of them; see `Window.chosen`.

        Args:
            budget: the stopping rule.
            keep: receives the outputs of the calls of a sample that `wants` asked for: its number, the copies
                used, the results. Their bookkeeping is outside the timed region.
            wants: whether sample number i is kept.
            progress: told the number of samples now and then.
        """
        samples = Window()
        sampled_ns, next_look, next_word = 0.0, budget.at_least, 0
        with quiet_collector():
            begin = _clock()
            while True:
                number = len(samples.all_ns)
                kept: list[Any] | None = [] if keep is not None and wants(number) else None
                taken_up = _clock()
                per_call, places = self.one(kept)
                samples.add(per_call, self.stopwatch.disturbed, (taken_up, _clock()))
                if keep is not None and kept is not None:
                    keep(number, places, kept)
                    if self.after is not None:
                        self.after(places)
                sampled_ns += per_call * self.batch
                wall = _clock() - begin
                if progress is not None and wall >= next_word:
                    progress(number + 1)
                    next_word = wall + 200_000_000
                if wall >= budget.max_ns and number + 1 >= min(LEAST_SAMPLES, budget.at_least):
                    return samples
                if wall >= budget.hard_ns:
                    return samples
                if sampled_ns >= budget.min_ns and number + 1 >= next_look:
                    chosen, _ = samples.chosen()
                    if enough(chosen, budget.rel_ci, at_least=budget.at_least):
                        return samples
                    next_look = number + 1 + max(1, number // 8)


@dataclass(slots=True)
class Window:
    """The samples of a window in time order, in ns per call, and those that nothing disturbed."""

    all_ns: list[float] = field(default_factory=list)
    undisturbed_ns: list[float] = field(default_factory=list)
    all_spans: list[tuple[int, int]] = field(default_factory=list)
    """When each sample was taken, from before its flush to its end, in ns of `perf_counter_ns`."""
    undisturbed_spans: list[tuple[int, int]] = field(default_factory=list)

    def add(self, per_call_ns: float, disturbed: bool, span: tuple[int, int] = (0, 0)) -> None:
        """Take a sample in."""
        self.all_ns.append(per_call_ns)
        self.all_spans.append(span)
        if not disturbed:
            self.undisturbed_ns.append(per_call_ns)
            self.undisturbed_spans.append(span)

    def chosen(self) -> tuple[list[float], int]:
        """Return the samples to judge by, and how many were dropped because the machine was busy elsewhere.

        Where hardly any sample is undisturbed (a kernel with more threads than cores disturbs itself), all count.
        """
        if self._speaks_alone():
            return self.undisturbed_ns, len(self.all_ns) - len(self.undisturbed_ns)
        return self.all_ns, 0

    def chosen_spans(self) -> list[tuple[int, int]]:
        """Return when the chosen samples were taken."""
        return self.undisturbed_spans if self._speaks_alone() else self.all_spans

    def _speaks_alone(self) -> bool:
        return len(self.undisturbed_ns) >= max(LEAST_SAMPLES, UNDISTURBED_SHARE * len(self.all_ns))


@contextmanager
def quiet_collector() -> Iterator[None]:
    """Collect garbage first, then keep the collector out of the samples."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def _nothing() -> None:
    pass


_NOTHING = (_nothing,) * 4


def _preemptions() -> int:
    """Return how often a thread of this process lost its core to another one."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_nivcsw


def _persisting_reset() -> Callable[[], object]:
    """Return the driver's call that gives persisting L2 lines back; torch has none. Nothing on AMD."""
    try:
        driver = ctypes.CDLL("nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1")
    except OSError:
        return _nothing
    return getattr(driver, "cuCtxResetPersistingL2Cache", _nothing)


def _middle(values: Sequence[float]) -> float:
    return sorted(values)[len(values) // 2]
