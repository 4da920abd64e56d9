"""Work of a known kind that a kernel takes turns with: how fast memory and arithmetic are at this very moment.

Both run in the kernel's own process, between its calls, so that whatever slows the machine for a moment or a day
slows them, too. The memory yardstick adds up slices of a ring that is larger than private caches; the compute
yardstick multiplies square fp32 matrices that fit one. Each is repeated until it takes about as long as a call of
the kernel, since what takes longer is interrupted more often. Neither draws random numbers: torch's generator is the
user's own.
"""

import random
import secrets
import time
from collections.abc import Callable

import torch

from kmrun.core.statistics import quantile
from kmrun.measure.bench import Timed
from kmrun.measure.bound import user_code
from kmrun.measure.timer import Stopwatch, quiet_collector

_clock = time.perf_counter_ns

_SLICE_BYTES = {"cpu": 2 * 2**20, "cuda": 64 * 2**20}
_RING_BYTES = {"cpu": (64 * 2**20, 256 * 2**20), "cuda": (2**30, 2**30)}
"""Least and most of the ring; twice the last-level cache lies between on most machines."""
_MATRIX = {"cpu": 256, "cuda": 2048}
_SAMPLE_MOST_NS = 20e6
"""No sample of a yardstick is longer, however long the kernel takes."""
_LEAST_BLOCKS = 5

Sample = tuple[float, bool]
"""Nanoseconds per call, and whether the operating system took a core away meanwhile."""


class Yardsticks:
    """The yardsticks of one process, made once."""

    def __init__(self, device: torch.device, stopwatch: Stopwatch, cache_bytes: int) -> None:
        self._stopwatch = stopwatch
        self._on_cpu = device.type == "cpu"
        least, most = _RING_BYTES[device.type]
        total = min(max(2 * cache_bytes, least), most)
        self._slice = _SLICE_BYTES[device.type] // 4
        self._ring = torch.ones(total // 4, device=device)
        self._at = 0
        self._sink = torch.zeros((), device=device)
        n = _MATRIX[device.type]
        self._left = torch.linspace(-1, 1, n * n, device=device).reshape(n, n)
        self._right = self._left.t().contiguous()
        self._product = torch.empty(n, n, device=device)

    def repeats(self, call_ns: float) -> tuple[int, int]:
        """Return how often each yardstick has to run to take about as long as a call of the kernel."""
        wanted = min(call_ns, _SAMPLE_MOST_NS)
        least = (min(self._sample(thunk, 1)[0] for _ in range(9)) for thunk in (self._read, self._multiply))
        memory, compute = (max(1, round(wanted / max(one_ns, 1.0))) for one_ns in least)
        return memory, compute

    def blocks(
        self,
        kernel: Timed,
        calls: int,
        discard: int,
        repeats: tuple[int, int],
        blocks: int,
        most_ns: float,
    ) -> list[list[float]]:
        """Take blocks in which kernel, memory and compute have two turns each; return their times in ns per call.

        The order is drawn anew for every block and mirrored in its second half, so that a drift cancels.

        Args:
            kernel: the kernel, bound and warm.
            calls: samples in a turn, of each.
            discard: samples before them that are thrown away.
            repeats: calls in a sample of the memory and the compute yardstick.
            blocks: how many blocks.
            most_ns: stop before that where the time is up, but not before five.
        """
        chance = random.Random(secrets.randbits(64))
        turns: tuple[Callable[[], list[Sample]], ...] = (
            lambda: self._kernel_turn(kernel, calls, discard),
            lambda: self._turn(self._read, calls, discard, repeats[0]),
            lambda: self._turn(self._multiply, calls, discard, repeats[1]),
        )
        found: list[list[float]] = []
        begin = _clock()
        with torch.no_grad(), quiet_collector():
            while len(found) < blocks and (len(found) < _LEAST_BLOCKS or _clock() - begin < most_ns):
                order = chance.sample(range(3), 3)
                seen: list[list[Sample]] = [[], [], []]
                for who in (*order, *reversed(order)):
                    seen[who] += turns[who]()
                found.append([self._level(samples) for samples in seen])
        return found

    def _level(self, samples: list[Sample]) -> float:
        """Return what stands for a turn's calls: on a CPU their lower quartile, undisturbed ones where there are."""
        quiet = [took for took, disturbed in samples if not disturbed]
        chosen = quiet if len(quiet) >= 2 else [took for took, _ in samples]
        return quantile(chosen, 0.25 if self._on_cpu else 0.5)

    def _kernel_turn(self, kernel: Timed, calls: int, discard: int) -> list[Sample]:
        with torch.enable_grad(), user_code(kernel.loaded):
            for _ in range(discard):
                kernel.sampler.one()
            return [(kernel.sampler.one()[0], self._stopwatch.disturbed) for _ in range(calls)]

    def _turn(self, thunk: Callable[[], object], calls: int, discard: int, repeats: int) -> list[Sample]:
        for _ in range(discard):
            self._sample(thunk, repeats)
        return [self._sample(thunk, repeats) for _ in range(calls)]

    def _sample(self, thunk: Callable[[], object], repeats: int) -> Sample:
        return self._stopwatch.batch_ns([thunk] * repeats, None) / repeats, self._stopwatch.disturbed

    def _read(self) -> None:
        self._at = self._at + self._slice if self._at + 2 * self._slice <= self._ring.numel() else 0
        torch.sum(self._ring[self._at : self._at + self._slice], dim=0, out=self._sink)

    def _multiply(self) -> None:
        torch.mm(self._left, self._right, out=self._product)
