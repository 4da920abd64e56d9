"""The operations that concern the machine: open the device, measure its ceilings, probe it, say what is free."""

import dataclasses
import time
from typing import Any

import torch

from kmrun.core.plain import to_plain
from kmrun.device import cpu
from kmrun.measure import ceiling, lifeline, machine
from kmrun.measure.arena_operations import ArenaOperations
from kmrun.measure.copies import Pool
from kmrun.measure.exchange import Arena
from kmrun.measure.placement import Placement, take_precedence
from kmrun.measure.protocol import VERSION
from kmrun.measure.spoiled import limits
from kmrun.measure.timer import Flusher, Stopwatch
from kmrun.measure.yardstick_operations import YardstickOperations

_clock = time.perf_counter_ns


class MachineOperations(YardstickOperations, ArenaOperations):
    """A side's device, and what is made once for it. Public methods are operations."""

    def __init__(self, arena: Arena) -> None:
        super().__init__(arena)
        self._pool = Pool(self._device)
        self._cache_bytes = 0
        self._watch: Stopwatch | None = None
        self._flusher: Flusher | None = None
        self._opening: dict[str, Any] = {}
        self._placement = Placement(1)
        self._limits: dict[str, float] = {}
        """What the system allowed this process before any case."""

    def foresee(self, device: str) -> str:
        """Return the kind of the device that `open` is going to choose, before it is touched."""
        return machine.kind_of(machine.named_device(device))

    def open(
        self, device: str, threads: int, memory_limit: int, compute: bool = True, compared: bool = False
    ) -> dict[str, Any]:
        """Choose the device and fix the thread count; describe what is here.

        Args:
            device: `auto`, `cpu`, `cuda` or `cuda:N`.
            threads: of torch's CPU operators; the same on every side.
            memory_limit: host bytes that this side may take on a CPU.
            compute: False leaves a GPU untouched until `use_device` (serial isolation).
            compared: whether other load is to wait for this side, where that may be asked for.
        """
        self._opening = {"device": device, "threads": threads, "memory_limit": memory_limit}
        if compared:
            take_precedence()
        if not compute:
            torch.set_num_threads(threads)
            return {"version": VERSION, "device": {}, "torch": machine.torch_facts()}
        self._device = machine.find_device(device)
        self._pool = Pool(self._device)
        self._cache_bytes = machine.cache_bytes(self._device)
        torch.set_num_threads(threads)
        lifeline.volunteer_for_oom_kill()
        if self._device.type == "cpu":
            lifeline.limit_memory(memory_limit)
            lifeline.keep_freed()
            # Torch's own threads start here, while they may run on every core.
            torch.ones(threads * 2**16).add_(1.0)
            self._placement = Placement(threads)
            facts = machine.cpu_facts(threads)
        else:
            facts = machine.gpu_facts(self._device)
        self._limits = limits()
        return {"version": VERSION, "device": facts, "torch": machine.torch_facts()}

    def use_device(self) -> None:
        """Open the device that `open` left untouched; a cache size that was set since stays."""
        asked = self._cache_bytes
        self.open(**self._opening)
        self._cache_bytes = asked or self._cache_bytes

    def set_cache(self, cache_bytes: int) -> None:
        """Take the last-level cache's size from the card database (a memory-side cache is larger than the L2)."""
        self._cache_bytes = cache_bytes

    def ping(self) -> None:
        """Answer: what a hand-over costs."""

    def spin(self, calls: int, discard: int) -> list[float]:
        """Time a kernel of fixed length, the same on every side: times differ only by how it was come to."""
        watch, spin = self._stopwatch(), machine.spin(self._device)
        return [watch.batch_ns([spin], None) for _ in range(discard + calls)][discard:]

    def ceilings(
        self, dtypes: list[str], budget_ns: float, total_bytes: int | None = None, **wanted: Any
    ) -> dict[str, Any]:
        """Measure bandwidths, of a set of `total_bytes`, and matmul rates; see `measure.ceiling`."""
        begin = _clock()
        # A GPU's memory is fast: only a large set takes long enough to be timed well.
        least = 2**26 if self._device.type == "cpu" else 2**30
        total = total_bytes
        if total is None:
            total = min(max(2 * self._cache_bytes, least), self._memory_to_spend())
        torch.backends.cuda.matmul.allow_tf32 = False
        buffer = self._pool.flat(total // 4)
        found = ceiling.measure(buffer, self._stopwatch(), dtypes, self._cache_bytes, budget_ns, **wanted)
        if self._device.type == "cuda":
            torch.cuda.empty_cache()
        plain: dict[str, Any] = to_plain(dataclasses.replace(found, wall_ns=float(_clock() - begin)))
        return plain

    def probe(self) -> float:
        """Run a tiny kernel and wait for it: is the device still alive? Returns a sum that must be 64."""
        return float(torch.ones(64, device=self._device).sum().item())

    def memory(self) -> dict[str, int]:
        """Return the bytes that are free for a case on the device."""
        if self._device.type == "cuda":
            free, total = torch.cuda.mem_get_info(self._device)
            return {"free": free, "total": total}
        return {"free": cpu.memory_available_bytes(), "total": cpu.memory_total_bytes()}

    def _stopwatch(self) -> Stopwatch:
        if self._watch is None:
            self._watch = ceiling.stopwatch_for(self._device)
        return self._watch

    def _flush(self) -> Flusher:
        if self._flusher is None:
            self._flusher = Flusher(self._cache_bytes, self._device)
        return self._flusher

    def _memory_to_spend(self) -> int:
        return self.memory()["free"] // 4

    def _memory_held(self, reset: bool = False, peak: bool = False) -> int:
        if self._device.type != "cuda":
            return lifeline.resident_bytes(reset=reset, peak=peak)
        if reset:
            torch.cuda.reset_peak_memory_stats(self._device)
        held = torch.cuda.max_memory_allocated if peak else torch.cuda.memory_allocated
        return int(held(self._device))
