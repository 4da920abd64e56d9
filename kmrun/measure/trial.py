"""The course of one case: load, check, time alone, time beside its rivals, check again. No torch.

Order, and why: the kernel is loaded before any seed exists; two fresh drawings are checked before a single
timed call, so that a wrong kernel is never given a speed; timed calls run on both contents in an order drawn
anew for each phase, and some of their outputs are checked too; a third drawing is checked at the end.
"""

import random
import secrets
import time
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from kmrun.core.case import Case, Implementation, Output
from kmrun.core.measurement import Finding, Measurement, OutputCheck, Rival
from kmrun.core.plain import from_plain, to_plain
from kmrun.core.statistics import median, quantile
from kmrun.measure import findings
from kmrun.measure.side import Died, Idle, Side, Stopped, TimedOut

if TYPE_CHECKING:
    from kmrun.measure.supervisor import Supervisor

KERNEL, REFERENCE = "kernel", "reference"
BLOCKS, BLOCKS_MOST, BLOCKS_LEAST = 14, 30, 7
VERIFY_ABOVE_NS = {"cpu": 20e3, "cuda": 200e3, "rocm": 200e3}
VERIFY_SLACK = 0.10
WARM_MOST_NS = 1e9
JUDGE_TIMEOUT_S = 300.0


class _Over(Exception):
    """The case is decided; what is known so far stands."""


class Trial:
    """One case in `paired`, `serial` or `inline` isolation."""

    def __init__(self, supervisor: "Supervisor", case: Case, progress: Callable[[str], None]) -> None:
        self._run = supervisor
        self._case = case
        self._progress = progress
        self._findings: list[Finding] = []
        self._checks: list[OutputCheck] = []
        self._known: dict[str, Any] = {}
        self._labels: list[str] = []
        self._seeds: list[int] = []
        self._output_bytes: int | None = None
        self._kept = 0
        self._deadline = float("inf")
        self._inline = supervisor.isolation == "inline"
        self._own: Side | None = None
        """The one side of an inline case."""

    def run(self, begin: int) -> Measurement:
        """Measure the case; `begin` is when the supervisor took it up (perf_counter_ns)."""
        from kmrun.measure.serial import course as serial_course

        try:
            if self._run.isolation == "serial":
                serial_course(self)
            else:
                self._course()
        except _Over:
            pass
        finally:
            if self._own is not None:
                self._own.bury()
        wrong = any(finding.outcome == "fail" for finding in self._findings)
        if wrong:  # a wrong kernel is never given a speed
            for key in ("samples_ns", "hot_samples_ns", "rivals", "first_call_ns"):
                self._known.pop(key, None)
        if not self._run.on_cpu:
            self._labels.append("untested on hardware")
        return Measurement(
            case_id=self._case.id,
            findings=tuple(self._findings),
            labels=tuple(dict.fromkeys(self._labels)),
            checks=worst_per_output(self._checks),
            correct=self._correct(),
            seeds=tuple(self._seeds),
            isolation="inline" if self._inline else self._run.isolation,
            exchange="none" if self._inline else "shm" if self._run.on_cpu else "host",
            clock=self._case.timing.clock,
            threads=self._run.threads,
            wall_ns=float(time.perf_counter_ns() - begin),
            **{"bytes": self._case.bytes, **self._known},
        )

    # ---- the course --------------------------------------------------------------------------------------

    def _course(self) -> None:
        if self._inline:
            self._labels.append("unisolated")
        self._load()
        trees = [self._draw(slot) for slot in (0, 1)]
        if any("cannot_cross" in tree for tree in trees):
            self._turn_inline()
            trees = [self._draw(slot) for slot in (0, 1)]
        self.count_bytes(trees[0]["bytes"])
        self._check_calls()
        self._time_alone()
        self._time_rivals()
        self._check_again()

    def _turn_inline(self) -> None:
        self._inline = True
        self._labels.append("unisolated")
        self._load()

    def _load(self) -> None:
        self._progress("loading")
        self.begin_kernel()
        if not self._inline:
            self.begin_judge()
        self.load_kernel()
        self.load_rivals()
        self._deadline = time.monotonic() + self._case.case_timeout_s

    @property
    def has_reference(self) -> bool:
        """Whether there is anything to compare with."""
        return self._case.reference is not None

    @property
    def wants_cold(self) -> bool:
        """Whether calls are to find their data in no cache."""
        return self._case.timing.l2 == "cold" and self._run.options.flush_l2

    def begin_kernel(self, compute: bool = True) -> None:
        """Hand the case to the kernel's side; without `compute` a new side leaves the device untouched."""
        if not self._inline:
            self._run.kernel(compute)
        self.kernel("begin", case=to_plain(self._case))

    def begin_judge(self) -> None:
        """Hand the case to the judge."""
        self.judge("begin", case=to_plain(self._case))

    def open_kernel_device(self) -> None:
        """Let a waiting kernel's side use the device; from here on the case's own time-out runs."""
        self.kernel("use_device")
        self._deadline = time.monotonic() + self._case.first_call_timeout_s + self._case.case_timeout_s

    def leave_judge(self) -> None:
        """End the judge's process, and with it its hold on the device."""
        self._run.judge().bury()

    def leave_kernel(self) -> None:
        """End the kernel's process, and with it its hold on the device."""
        self._run.kernel().bury()

    def know(self, **facts: Any) -> None:
        """Note facts for the measurement, by its field names."""
        self._known |= facts

    def take_kept(self) -> int:
        """Return how many timed calls' outputs wait to be checked."""
        kept, self._kept = self._kept, 0
        return kept

    def over_cannot_cross(self, why: str) -> None:
        """End a serial case whose arguments only one process can have."""
        self.over(findings.cannot_cross(why))

    def load_kernel(self) -> None:
        """Import the kernel's target in its side, under the first call's time-out."""
        self.kernel("load", self._case.first_call_timeout_s, key=KERNEL)

    def load_rivals(self) -> None:
        """Import the reference and the versus entries in the judge."""
        if self._case.reference is not None:
            self.judge("load", key=REFERENCE)
        for each in self._case.versus:
            self.judge("load", key=f"versus:{each.name}")

    def _draw(self, slot: int) -> dict[str, Any]:
        """Draw a slot's inputs in the judge, hand them to the kernel's side, and work out what is expected."""
        self._progress(f"drawing inputs {slot + 1}")
        seed = self.new_seed(slot)
        drawn: dict[str, Any] = self.judge("draw", slot=slot, seed=seed, share=not self._inline)
        if "cannot_cross" in drawn:
            return drawn
        if not self._inline:
            self.kernel("receive", slot=slot, tree=drawn["tree"])
        if self._case.reference is not None:
            self._progress(f"reference {slot + 1}")
            self.learn(self.judge("expect", slot=slot))
            if slot == 0:
                self.test_tolerance(slot)
        return drawn

    def new_seed(self, slot: int) -> int:
        """Return the seed of a slot, noted for the result."""
        seed = self._run.case_seed(self._case, slot)
        self._seeds.append(seed)
        return seed

    def learn(self, expected: dict[str, Any]) -> None:
        """Take the outputs from the reference where the suite left them out."""
        if (
            self._case.outputs is None
            and self._case.mode == "forward"
            and "learned_outputs" not in self._known
        ):
            outputs = expected["outputs"]
            self._known["learned_outputs"] = {
                output["name"]: {"shape": output["shape"], "dtype": output["dtype"]} for output in outputs
            }
            self._case = replace(self._case, outputs=tuple(from_plain(Output, output) for output in outputs))
            self.judge("learn", outputs=outputs)
            if not self._inline:
                self.kernel("learn", outputs=outputs)
        self._output_bytes = expected["bytes"]
        self._labels += expected["remarks"]

    def count_bytes(self, input_bytes: int) -> None:
        """Settle the bytes that a call moves and touches, now that the outputs are known."""
        if self._output_bytes is None:
            return
        self._known["resident_bytes"] = input_bytes + self._output_bytes
        if self._case.bytes is None and self._case.bytes_auto:
            self._known["bytes"] = input_bytes + self._output_bytes

    def test_tolerance(self, slot: int) -> None:
        """Refuse a tolerance that would let wrong outputs pass.

        Raises:
            _Over: it does.
        """
        tested = self.judge("self_test", slot=slot)
        self._labels += tested["remarks"]
        if tested["worthless"]:
            self.over(findings.tolerance_invalid(tested["worthless"]))

    def _check_calls(self) -> None:
        for slot in (0, 1):
            self._compare(slot, self.call(slot)["tree"])

    def call(self, slot: int, at: int = 0) -> dict[str, Any]:
        """Run the kernel once on a slot; the first call (JIT, autotune) has its own time-out and stands apart."""
        first = "first_call_ns" not in self._known
        self._progress("first call" if first else "checking")
        limit = self._case.first_call_timeout_s if first else None
        called: dict[str, Any] = self.kernel("call", limit, slot=slot, share=not self._inline, at=at)
        if first:
            self._known["first_call_ns"] = float(called["wall_ns"])
            self._deadline = time.monotonic() + self._case.case_timeout_s
        else:
            self._known["peak_memory_bytes"] = called["peak_bytes"]
        return called

    def _compare(self, slot: int, tree: dict[str, Any] | None) -> None:
        if self._case.reference is None:
            return
        self.judge_outputs(slot, tree)

    def judge_outputs(self, slot: int, tree: dict[str, Any] | None) -> None:
        """Compare outputs with what is expected of a slot.

        Raises:
            _Over: they are wrong.
        """
        found = self.judge("compare", slot=slot, tree=tree, seed=self._seeds[slot])
        self._checks.extend(from_plain(OutputCheck, each["check"]) for each in found)
        wrong = [each["sentence"] for each in found if not each["check"]["ok"]]
        if wrong:
            self.over(findings.wrong_result(wrong))

    def _time_alone(self) -> None:
        with self._only_kernel():
            self.time_kernel()
        for index in range(self.take_kept()):
            shown = self.kernel("show_kept", index=index, share=not self._inline)
            self._compare(shown["slot"], shown["tree"])

    def time_kernel(self) -> None:
        """Take the window of the kernel alone, cold or hot as the suite says, and verify its clock."""
        cold = self.wants_cold
        self._known["samples_ns"], facts = self.window(cold)
        self._known |= {
            "l2": "cold" if facts["cold"] else "hot",
            "batch": facts["batch"],
            "event_ns": facts["event_ns"],
            "host_ns": facts["host_ns"],
            "rechecked_share": min(1.0, facts["kept"] / (len(self._known["samples_ns"]) * facts["batch"])),
            "extra": {"copies": facts["copies"], "cold_by": facts["means"]},
        }
        self._kept = facts["kept"]
        if cold and not facts["cold"]:
            self._labels.append("hot")
        self._verify_time(facts["call_ns"])
        if self._run.options.hot_and_cold and cold:
            self._known["hot_samples_ns"], _ = self.window(False)

    def window(self, cold: bool) -> tuple[tuple[float, ...], dict[str, Any]]:
        """Stage, warm up and time the kernel; return its samples and the facts of the window."""
        self._progress("warming up")
        facts: dict[str, Any] = self.kernel("stage", cold=cold, bytes_per_call=self.bytes_per_call())
        facts |= self.kernel("prepare", key=KERNEL)
        most, at_least = self.warm_up_limits(facts["call_ns"])
        facts |= self.kernel("warm_up", key=KERNEL, most_ns=most, at_least=at_least)
        self.kernel("refresh")
        self._progress("timing")
        facts |= self.kernel("window", key=KERNEL, budget=self.budget())
        return tuple(facts.pop("samples_ns")), facts

    def bytes_per_call(self) -> int:
        """Return what a call touches beyond its inputs: recorded activations, in a backward mode."""
        return 0 if self._case.mode == "forward" else self._case.needed_bytes.get("kernel", 0)

    def warm_up_limits(self, call_ns: float) -> tuple[float, int]:
        """Return the most time for a warm-up, and its least number of calls."""
        most = min(WARM_MOST_NS, self._case.timing.max_time_ms * 1e6 / (4 if self._run.options.quick else 1))
        return most, 10 if call_ns * 10 < most else 3

    def budget(self) -> dict[str, float]:
        """Return the stopping rule of the window; `--quick` takes a quarter of the time."""
        timing, share = self._case.timing, 0.25 if self._run.options.quick else 1.0
        return {
            "min_ns": timing.min_time_ms * 1e6 * share,
            "max_ns": timing.max_time_ms * 1e6 * share,
            "rel_ci": timing.rel_ci,
            "at_least": 10,
        }

    def _verify_time(self, call_ns: float) -> None:
        """Hold the kernel side's own timer against the supervisor's clock over unflushed bursts of N and 2N calls.

        The slope between both bursts is free of whatever a request costs. Noise only ever adds time to one of
        the clocks for a moment; a forged clock is off in every try.
        """
        if call_ns < VERIFY_ABOVE_NS[self._run.device.kind]:
            self._labels.append("time unverified")
            self._known["time_verified"] = None
            return
        calls = max(1, min(1000, int(20e6 / call_ns)))
        for _ in range(4):
            seen, told = [], []
            for count in (calls, 2 * calls):
                begin = time.perf_counter_ns()
                told.append(self.kernel("burst", key=KERNEL, calls=count))
                seen.append(time.perf_counter_ns() - begin)
            ours, theirs = seen[1] - seen[0], told[1] - told[0]
            if abs(ours - theirs) <= VERIFY_SLACK * ours:
                self._known["time_verified"] = True
                return
        self._known["time_verified"] = False
        if seen[1] > (1 + 3 * VERIFY_SLACK) * told[1] + 2e6:
            self.over(findings.time_disagrees(seen[1] / (2 * calls), told[1] / (2 * calls)))
        self._labels.append("time unverified")

    # ---- rivals ------------------------------------------------------------------------------------------

    def rivals(self) -> list[tuple[str, str, Implementation]]:
        """Return (key, role, implementation) of what is timed beside the kernel: versus entries, else the reference."""
        if self._case.versus:
            return [(f"versus:{each.name}", "versus", each) for each in self._case.versus]
        if self._case.reference is not None:
            return [(REFERENCE, "reference", self._case.reference.implementation)]
        return []

    def _time_rivals(self) -> None:
        rivals = self.rivals()
        if not rivals:
            return
        cold = self._known["l2"] == "cold"
        self._progress("preparing rivals")
        with self._only_judge():
            if not self._inline:  # an inline side is staged already
                self.judge("stage", cold=cold, bytes_per_call=self.bytes_per_call())
            levels = {key: self.ready_rival(key) for key, _, _ in rivals}
        self.kernel("refresh")
        self._known["rivals"] = tuple(
            self._alternate(key, role, implementation.name, levels[key])
            for key, role, implementation in rivals
        )

    def ready_rival(self, key: str) -> float:
        """Bind and warm up a rival in the judge; label a versus entry that computes something else."""
        if key != REFERENCE and self._case.reference is not None:
            agrees = self.judge("rival_agrees", key=key, slot=0, seed=self._seeds[0])
            if not agrees:
                self._labels.append(f"{key.partition(':')[2]} differs from the reference")
        first = self.judge("prepare", key=key)["call_ns"]
        most, at_least = self.warm_up_limits(first)
        level: float = self.judge("warm_up", key=key, most_ns=most, at_least=at_least)["call_ns"]
        return level

    def _alternate(self, key: str, role: Any, name: str, rival_ns: float) -> Rival:
        """Time the kernel and a rival in ABBA or BAAB blocks, the order drawn at random."""
        kernel_ns = median(self._known["samples_ns"])
        plans = {KERNEL: _turn(kernel_ns), key: _turn(rival_ns)}
        limit_s = self._case.timing.max_time_ms * (0.25 if self._run.options.quick else 1.0) / 1e3
        begin, hard = time.monotonic(), self._case.case_timeout_s / 3
        bounds = [
            bound
            for clause in self._case.clauses
            if clause.kind == "min_speedup"
            for bound in clause.bounds.values()
        ]
        order = random.Random(secrets.randbits(64))
        pairs: list[tuple[float, float]] = []
        rival_samples: list[float] = []
        while len(pairs) < BLOCKS_MOST:
            self._progress(f"beside {name}, block {len(pairs) + 1}")
            first, second = (KERNEL, key) if order.random() < 0.5 else (key, KERNEL)
            seen: dict[str, list[float]] = {KERNEL: [], key: []}
            for who in (first, second, second, first):
                seen[who] += self._take_turn(who, *plans[who])
            level = 0.25 if self._run.on_cpu else 0.5
            pairs.append((quantile(seen[KERNEL], level), quantile(seen[key], level)))
            rival_samples += seen[key]
            spent = time.monotonic() - begin
            if spent > hard or (spent > limit_s and len(pairs) >= BLOCKS_LEAST):
                break
            if len(pairs) >= BLOCKS and not _straddles(pairs, bounds):
                break
        return Rival(name, role, tuple(pairs), median(rival_samples))

    def _take_turn(self, who: str, calls: int, discard: int) -> list[float]:
        side, idle = (
            (self.kernel, self._side_of_judge) if who == KERNEL else (self.judge, self._side_of_kernel)
        )
        with Idle(idle() if self._run.on_cpu and not self._inline else None):
            samples: list[float] = side("turn", key=who, calls=calls, discard=discard)
        return samples

    def _check_again(self) -> None:
        self._progress("checking again")
        self._draw(2)
        self._compare(2, self.call(2)["tree"])
        for ask in (self.kernel, self.judge) if not self._inline else (self.kernel,):
            ask("end")

    # ---- asking ------------------------------------------------------------------------------------------

    def kernel(self, op: str, timeout_s: float | None = None, **arguments: Any) -> Any:
        """Ask the kernel's side; its end is the kernel's fault.

        Raises:
            _Over: the kernel failed.
        """
        return self._ask(self._side_of_kernel(), findings.KERNEL, op, timeout_s, arguments)

    def judge(self, op: str, timeout_s: float | None = None, **arguments: Any) -> Any:
        """Ask the judge; its end is the suite's fault, since the reference and the versus entries live there.

        Raises:
            _Over: they failed.
        """
        if self._inline:
            return self._ask(self._side_of_kernel(), findings.INLINE, op, timeout_s, arguments)
        return self._ask(self._side_of_judge(), findings.JUDGE, op, timeout_s or JUDGE_TIMEOUT_S, arguments)

    def _ask(
        self, side: Side, who: findings.Who, op: str, timeout_s: float | None, arguments: dict[str, Any]
    ) -> Any:
        if timeout_s is None:
            timeout_s = min(self._deadline - time.monotonic(), 1e6)
        side.on_progress = self._progress
        try:
            return side.ask(op, timeout_s, **arguments)
        except Stopped as stopped:
            if stopped.finding.code == "device_error":
                side.bury()  # the context is poisoned
            self.over(stopped.finding)
        except Died as died:
            self.over(findings.died(who, died.status, died.tail))
        except TimedOut as late:
            limit = self._case.first_call_timeout_s if op in ("load", "call") else self._case.case_timeout_s
            self.over(
                findings.timed_out(who, op, late.seconds if who is findings.JUDGE else limit, late.tail)
            )

    def over(self, finding: Finding) -> None:
        """Note what decided the case, and end it.

        Raises:
            _Over: always.
        """
        self._findings.append(finding)
        raise _Over

    def _side_of_kernel(self) -> Side:
        if not self._inline:
            return self._run.kernel()
        if self._own is None or not self._own.alive:
            self._own = self._run.start_inline()
        return self._own

    def _side_of_judge(self) -> Side:
        return self._side_of_kernel() if self._inline else self._run.judge()

    def _only_kernel(self) -> Idle:
        return Idle(self._run.judge() if self._run.on_cpu and not self._inline else None)

    def _only_judge(self) -> Idle:
        return Idle(self._run.kernel() if self._run.on_cpu and not self._inline else None)

    def _correct(self) -> bool | None:
        if any(finding.code == "wrong_result" for finding in self._findings):
            return False
        return True if self._checks and all(check.ok for check in self._checks) else None


def worst_per_output(checks: list[OutputCheck]) -> tuple[OutputCheck, ...]:
    """Return one check an output: a failed one, else the one nearest to what is allowed."""
    worst: dict[str, OutputCheck] = {}
    for check in checks:
        held = worst.get(check.name)
        if held is None or (held.ok and (not check.ok or (check.error or 0.0) > (held.error or 0.0))):
            worst[check.name] = check
    return tuple(worst.values())


def _turn(call_ns: float) -> tuple[int, int]:
    """Return (calls, discarded calls) of a turn: about 2 ms, one to eight calls; long calls need no run-up."""
    return max(1, min(8, round(2e6 / max(call_ns, 1.0)))), 1 if call_ns < 20e6 else 0


def _straddles(pairs: list[tuple[float, float]], bounds: list[float]) -> bool:
    ratios = [rival / kernel for kernel, rival in pairs]
    return any(min(ratios) <= bound <= max(ratios) for bound in bounds)
