"""The parent of a run: opens the sides, keeps them alive, and measures one case after the other. No torch.

The kernel's side and the judge's are started once and live from case to case; what dies or hangs is killed
with its whole process group and started afresh for the next case.
"""

import hashlib
import importlib.util
import os
import secrets
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import replace
from types import TracebackType
from typing import Any, Literal, Self

from kmrun.core.case import Case
from kmrun.core.measurement import Ceilings, Measurement, RunDevice
from kmrun.core.opponent import Opponent
from kmrun.core.plain import from_plain
from kmrun.core.slowdown import Slowdown
from kmrun.device import cpu
from kmrun.device.claim import Claim, about, claimed, known_by
from kmrun.device.sampler import Source
from kmrun.errors import EnvironmentLacks
from kmrun.measure.delivering import RunCeilings, ceiling_cache, delivered, key_of, refused
from kmrun.measure.patience import patience
from kmrun.measure.protocol import ChannelClosed
from kmrun.measure.recovery import await_recovery
from kmrun.measure.run_options import RunOptions
from kmrun.measure.side import (
    COMPARED_ENVIRONMENT,
    SIDE_ENVIRONMENT,
    Arenas,
    Died,
    Idle,
    Launcher,
    Side,
    Stopped,
    TimedOut,
)
from kmrun.measure.skipping import why_skipped
from kmrun.measure.starting import OPEN_TIMEOUT_S, NotStarted, answer_of, answered, told
from kmrun.measure.watch import Watch

Ask = Callable[..., Any]

_FITS = "two processes fit on this device"
_LEAVES_WRECKAGE = frozenset({"timeout", "signal", "killed", "exited", "device_error", "no_process"})


class Supervisor:
    """Measures cases on one device. A context manager: leaving it leaves no process behind.

    Raises:
        EnvironmentLacks: on entry, when torch or the device is not there.
    """

    def __init__(
        self,
        device: str = "auto",
        options: RunOptions | None = None,
        folder: str = ".",
        tell: Callable[[str], object] = lambda _: None,
        sensors: Source | None = None,
    ) -> None:
        """Prepare; `tell` is told what a person should know at once, `sensors` are read for the device's own."""
        self.options = options or RunOptions()
        self.environment: dict[str, Any] = {}
        self._tell, self._sensors = tell, sensors
        self._around = ExitStack()
        self._claim = Claim()
        self._watch: Watch | None = None
        self._device_name = device
        self._folder = folder
        self._arenas: Arenas | None = None
        self._launcher: Launcher | None = None
        self._judge: Side | None = None
        self._kernel: Side | None = None
        self._seed = self.options.seed
        self._device: RunDevice | None = None
        self._ceilings = RunCeilings(self._deliver)
        self._cache_bytes: int | None = None
        self._free_at_start = 0
        self._arena_pair: tuple[int, int] | None = None
        self.control: Slowdown | None = None
        """A version compared with itself, once in a run that compares versions."""
        self.handoff_bias: float | None = None
        """By how much a hand-over lengthens what follows it, measured once in a run on a GPU."""
        self._arena_bytes = 0

    def __enter__(self) -> Self:
        """Start the judge and learn what the device is."""
        if importlib.util.find_spec("torch") is None:
            raise EnvironmentLacks(
                "measuring needs torch, which is not installed", "pip install 'kmrun[bench]'"
            )
        with ExitStack() as opening:
            opening.callback(self._end_sides)
            self._arenas = Arenas()
            defaults = SIDE_ENVIRONMENT | (COMPARED_ENVIRONMENT if self.options.compared else {})
            self._launcher = Launcher(defaults, self._folder)
            with patience("torch to find its devices", OPEN_TIMEOUT_S, self._tell):
                kind = answered(self.judge(), "foresee", device=self._device_name)
            locking = self.options.lock_clocks
            self._claim = opening.enter_context(
                claimed(self._device_name, kind, lock_clocks=locking, tell=self._tell)
            )
            opening.callback(self._end_sides)  # first of all, then the clock is given back, then the lock
            facts = self._greet(self.judge())
            self._device = known_by(from_plain(RunDevice, facts["device"]), self._claim)
            self._watch = opening.enter_context(
                Watch(self._device, self._pids, self._sensors or self._claim.source)
            )
            self._free_at_start = self._free_bytes()
            key = key_of(self._device, self._claim, facts["torch"]["torch"])
            self._ceilings = RunCeilings(
                self._deliver, ceiling_cache(), key, bool(self.foreign), lambda: self.watch.clock_verified
            )
            self.environment = {
                **facts["torch"],
                **about(self._claim, self._device),
                "isolation": self.isolation,
                "isolation_reason": _FITS if self.options.isolation == "auto" else "asked for",
                "threads": self.threads,
                "openmp_spin_count": os.environ.get("GOMP_SPINCOUNT", defaults["GOMP_SPINCOUNT"]),
                "glibc_tunables": os.environ.get("GLIBC_TUNABLES", defaults.get("GLIBC_TUNABLES")),
                "trust": "own",
                "reference_reachable": True,
            }
            self._around = opening.pop_all()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End every process and free the shared memory."""
        self._around.__exit__(kind, error, trace)

    def _end_sides(self) -> None:
        for side in (self._kernel, self._judge):
            if side is not None:
                side.bury()
        if self._launcher is not None:
            self._launcher.close()
        if self._arenas is not None:
            self._arenas.close()
        self._kernel = self._judge = self._launcher = self._arenas = None

    # ---- what the run is on ------------------------------------------------------------------------------

    @property
    def device(self) -> RunDevice:
        """The device that the sides run on."""
        if self._device is None:
            raise ValueError("the supervisor was not entered")
        return self._device

    @property
    def on_cpu(self) -> bool:
        """Whether the cases run on the CPU."""
        return self.device.kind == "cpu"

    @property
    def watch(self) -> Watch:
        """What reads the machine's sensors."""
        if self._watch is None:
            raise ValueError("the supervisor was not entered")
        return self._watch

    @property
    def foreign(self) -> str:
        """Who else used the GPU before the run; empty when nobody seems to, and for a CPU."""
        return "" if self.on_cpu else self._claim.foreign

    @property
    def holds_clock(self) -> bool:
        """Whether the GPU's clock was locked, and no load has shown yet that it does not hold."""
        return self._claim.holds_clock and not self.on_cpu and not self.watch.clock_lost

    @property
    def threads(self) -> int:
        """CPU threads on every side."""
        return self.options.threads or cpu.usable_cores()

    @property
    def seed(self) -> int:
        """The run's seed; drawn from the OS when it is first asked for, which is after a kernel was loaded."""
        if self._seed is None:
            self._seed = secrets.randbits(31)
        return self._seed

    @property
    def isolation(self) -> Literal["paired", "serial", "inline"]:
        """How the sides are kept apart in this run."""
        return "paired" if self.options.isolation == "auto" else self.options.isolation

    def case_seed(self, case: Case, slot: int) -> int:
        """Return the seed of one drawing of a case's inputs, unrelated between cases and slots."""
        digest = hashlib.blake2b(f"{self.seed}:{case.id}:{slot}".encode(), digest_size=8).digest()
        return int.from_bytes(digest, "little") >> 1

    def use_cache_bytes(self, cache_bytes: int) -> None:
        """Take the last-level cache's size from the matched card (a memory-side cache is larger than the L2)."""
        self._cache_bytes = cache_bytes
        for side in (self._judge, self._kernel):
            if side is not None and side.alive:
                answered(side, "set_cache", cache_bytes=cache_bytes)

    # ---- ceilings ----------------------------------------------------------------------------------------

    def open_ceilings(self, dtypes: tuple[str, ...]) -> Ceilings:
        """Measure what the machine delivers before the cases."""
        return self._ceilings.open(dtypes)

    def close_ceilings(self) -> Ceilings:
        """Measure it again after the cases; the larger of both counts, figure by figure."""
        return self._ceilings.close()

    def _deliver(self, dtypes: tuple[str, ...], budget_ns: float) -> Ceilings:
        with Idle(self._kernel if self.on_cpu else None):
            try:
                found = self.judge().ask("ceilings", OPEN_TIMEOUT_S, dtypes=list(dtypes), budget_ns=budget_ns)
            except Stopped as stopped:
                raise refused(stopped) from stopped
            except (Died, TimedOut) as lost:
                raise EnvironmentLacks(f"measuring the ceilings ended: {lost}", lost.tail) from lost
        return from_plain(Ceilings, found)

    def delivered(
        self,
        dtypes: tuple[str, ...],
        kinds: tuple[str, ...],
        budget_ns: float,
        total_bytes: int | None = None,
        sizes: tuple[int, ...] = (),
    ) -> Ceilings:
        """Measure what the machine delivers, for its own sake; arguments as of `measure.ceiling`.

        Raises:
            EnvironmentLacks: the set or the matrices do not fit, or measuring them ended otherwise.
        """
        measured = delivered(
            self.judge(), self._free_bytes(), dtypes, kinds, budget_ns, total_bytes, sizes, self.on_cpu
        )
        if not sizes:  # of another size than a run's, a rate is none for runs
            self._ceilings.keep(measured)
        return measured

    # ---- cases -------------------------------------------------------------------------------------------

    @property
    def lost_host(self) -> bool:
        """Whether user code killed the process that hosts the sides."""
        return self._launcher is not None and self._launcher.lost

    def replace_host(self) -> None:
        """Bury what died with the zygote, where that was lost; the next side starts a fresh one."""
        if self._launcher is not None and self._launcher.lost:
            for side in (self._kernel, self._judge):
                if side is not None:
                    side.bury()
            self._launcher.lost = False

    def measure(
        self,
        case: Case,
        progress: Callable[[str], None] = lambda _: None,
        opponent: Opponent | None = None,
    ) -> Measurement:
        """Check and time one case, and compare it with its other version where there is one.

        Whatever user code does ends in a measurement with findings.
        """
        from kmrun.measure.trial import Trial

        begin = time.perf_counter_ns()
        self.replace_host()
        skipped = why_skipped(case, self.device, self._free_bytes, self._arenas)
        if skipped is not None:
            return Measurement(case.id, findings=(skipped,))
        held = self.holds_clock
        found = Trial(self, case, progress, opponent).measure(begin)
        if held and not self.holds_clock:
            why = f"the card did not hold it: {self.watch.clock_lost}"
            self.environment |= {"clocks_locked": False, "clocks_not_locked_because": why}
            self._tell(f"warning: the clock was locked, but {why}\n")
        if self.foreign and not found.undecidable:
            found = replace(found, undecidable=self.foreign)
        if not self.on_cpu and any(finding.code in _LEAVES_WRECKAGE for finding in found.findings):
            await_recovery(self.judge, self._free_bytes, self._free_at_start, case.id)
        return found

    def _free_bytes(self) -> int:
        if self.on_cpu:
            return cpu.memory_available_bytes()
        try:
            return int(answered(self.judge(), "memory")["free"])
        except NotStarted:  # killed while it had nothing to do: a fresh one knows as well
            return int(answered(self.judge(), "memory")["free"])

    def arena_for(self, case: Case, kernel: Ask, judge: Ask) -> Literal["shm", "ipc", "host"]:
        """Settle by which memory tensors cross for a case: on a GPU its own where the driver shares it.

        What the driver can do is probed once a pair of sides: 1 MiB there, and its complement back.

        Args:
            case: says how much room is needed.
            kernel: asks the kernel's side.
            judge: asks the judge.
        """
        if self.on_cpu:
            return "shm"
        wanted = max(case.needed_bytes.get("kernel", 0), 2**20)
        pair = (self.judge().pid, self.kernel().pid)
        if self._arena_pair == pair and (self._arena_bytes == 0 or wanted <= self._arena_bytes):
            return "ipc" if self._arena_bytes else "host"
        self._arena_pair, self._arena_bytes = pair, 0
        offered = judge("offer_arena", count=wanted)
        why_not = offered.get("why_not")
        if why_not is None:
            taken = kernel("take_arena", handle=offered["handle"], count=offered["bytes"])
            why_not = (taken or judge("confirm_arena")).get("why_not")
        if why_not is None:
            self._arena_bytes = offered["bytes"]
            return "ipc"
        kernel("drop_arena")
        judge("drop_arena")
        self.environment["exchange_reason"] = why_not
        return "host"

    # ---- sides -------------------------------------------------------------------------------------------

    def judge(self) -> Side:
        """Return the judge, started if need be."""
        if self._judge is None or not self._judge.alive:
            self._judge = self._start(vault=True)
            if self._device is not None:
                self._greet(self._judge)
        return self._judge

    def kernel(self, compute: bool = True) -> Side:
        """Return the kernel's side, started if need be."""
        if self._kernel is None or not self._kernel.alive:
            self._kernel = self._start(vault=False)
            self._greet(self._kernel, compute=compute)
        return self._kernel

    def start_another(self) -> Side:
        """Start one more side, for both roles of a case; the caller buries it."""
        return self.start_others(1)[0]

    def start_others(self, count: int) -> list[Side]:
        """Start more sides, which open the device side by side; the caller buries them."""
        sides = []
        with ExitStack() as failing:
            for _ in range(count):
                sides.append(self._start(vault=False))
                failing.callback(sides[-1].bury)
            self._greet(*sides)
            failing.pop_all()
        return sides

    def _start(self, vault: bool) -> Side:
        if self._launcher is None or self._arenas is None:
            raise ValueError("the supervisor was not entered")
        try:
            return self._launcher.start(
                self._arenas.arena, self._arenas.vault if vault else self._arenas.arena
            )
        except ChannelClosed as closed:
            raise NotStarted(*self._launcher.end_of_zygote()) from closed

    def _greet(self, *sides: Side, compute: bool = True) -> Mapping[str, Any]:
        """Let sides open the device, side by side; return what the last says of it."""
        for side in sides:
            told(
                side,
                "open",
                device=self._device_name,
                threads=self.threads,
                memory_limit=int(cpu.memory_available_bytes() * 0.9),
                compute=compute,
                compared=self.options.compared,
            )
            if self._cache_bytes is not None:
                told(side, "set_cache", cache_bytes=self._cache_bytes)
        facts: Mapping[str, Any] = {}
        for side in sides:
            facts = answer_of(side)
            if self._cache_bytes is not None:
                answer_of(side)
        return facts

    def _pids(self) -> list[int]:
        return [os.getpid(), *(self._launcher.pids() if self._launcher is not None else [])]
