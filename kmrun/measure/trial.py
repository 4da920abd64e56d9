"""The course of one case: load, check, time alone, time beside its rivals, check again. No torch.

Order, and why: the kernel is loaded before any seed exists; two fresh drawings are checked before a single
timed call, so that a wrong kernel is never given a speed; timed calls run on both contents in an order drawn
anew for each phase, and some of their outputs are checked too; a third drawing is checked at the end.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

from kmrun.core.case import Case, Output
from kmrun.core.measurement import Measurement, OutputCheck
from kmrun.core.opponent import Opponent
from kmrun.core.plain import from_plain
from kmrun.device.sampler import clock
from kmrun.measure import findings
from kmrun.measure.against import compare, hurried
from kmrun.measure.asking import Asking, Over
from kmrun.measure.beside import time_rivals
from kmrun.measure.observing import clock_mode, note_slowdown, observed, take_window
from kmrun.measure.roles import KERNEL, REFERENCE, VERSUS
from kmrun.measure.room import need_room, warm_most_ns, warm_up_limits
from kmrun.measure.starting import NotStarted
from kmrun.measure.verifying import verify_time

if TYPE_CHECKING:
    from kmrun.measure.supervisor import Supervisor


class Trial(Asking):
    """One case in `paired`, `serial` or `inline` isolation."""

    def __init__(
        self,
        supervisor: "Supervisor",
        case: Case,
        progress: Callable[[str], None],
        opponent: Opponent | None = None,
    ) -> None:
        super().__init__(supervisor, case, progress)
        self._opponent = opponent
        self.hurried = hurried(case, opponent)
        """Whether the case is only compared with its other version."""
        self._checks: list[OutputCheck] = []
        self._known: dict[str, Any] = {}
        self._labels: list[str] = []
        self._seeds: dict[int, int] = {}
        """By slot."""
        self.input_bytes = 0
        """Of one drawing of the inputs."""
        self._output_bytes: int | None = None
        self._in_place_bytes = 0
        self._exchange: Literal["shm", "ipc", "host"] = "shm" if supervisor.on_cpu else "host"
        self._kept = 0

    def measure(self, begin: int) -> Measurement:
        """Measure the case; `begin` is when the supervisor took it up (perf_counter_ns)."""
        from kmrun.measure.serial import course as serial_course

        try:
            if self.run.isolation == "serial":
                serial_course(self)
                self._known["slowdown"] = compare(self, self._opponent)
            else:
                self._course()
        except Over:
            pass
        except NotStarted as lacks:
            self.findings.append(findings.no_process(lacks))
        finally:
            self.leave_inline()
        if any(finding.outcome in ("fail", "error") for finding in self.findings):
            # A wrong or broken kernel is never given a speed.
            for key in ("samples_ns", "hot_samples_ns", "rivals", "first_call_ns", "slowdown"):
                self._known.pop(key, None)
        if not self.run.on_cpu:
            self._labels.append("untested on hardware")
        mode = clock_mode(self)
        return Measurement(
            case_id=self.case.id,
            findings=tuple(self.findings),
            labels=tuple(dict.fromkeys(self._labels)),
            checks=worst_per_output(self._checks),
            correct=self._correct(),
            seeds=tuple(self._seeds.values()),
            isolation="inline" if self.inline else self.run.isolation,
            exchange="none" if self.inline else self._exchange,
            clock=mode,
            threads=self.run.threads,
            wall_ns=float(time.perf_counter_ns() - begin),
            **{"bytes": self.case.bytes, **self._known},
        )

    # ---- the course --------------------------------------------------------------------------------------

    def _course(self) -> None:
        if self.inline:
            self._labels.append("unisolated")
        self._load()
        trees = [self._draw(slot) for slot in (0, 1)]
        if any("cannot_cross" in tree for tree in trees):
            self._turn_inline()
            trees = [self._draw(slot) for slot in (0, 1)]
        self.count_bytes(trees[0]["bytes"])
        self._check_calls()
        self._time_alone()
        if not self.hurried:
            time_rivals(self)
        self._check_again()
        self.kernel("end")
        self._known["slowdown"] = compare(self, self._opponent)
        if not self.inline:
            self.judge("end")

    def _turn_inline(self) -> None:
        self.inline = True
        self._labels.append("unisolated")
        self._load()

    def _load(self) -> None:
        self.progress("loading")
        self.begin_kernel()
        if not self.inline:
            self.begin_judge()
        self.load_kernel()
        self.load_rivals()
        if not self.inline:
            self._exchange = self.run.arena_for(self.case, self.kernel, self.judge)
        self.deadline = time.monotonic() + self.case.case_timeout_s

    @property
    def wants_cold(self) -> bool:
        """Whether calls are to find their data in no cache."""
        return self.case.timing.l2 == "cold" and self.run.options.flush_l2

    def begin_kernel(self, compute: bool = True) -> None:
        """Hand the case to the kernel's side; without `compute` a new side leaves the device untouched."""
        find = self.side_of_kernel if self.inline else partial(self.run.kernel, compute)
        self.begin(find, self.kernel)

    def begin_judge(self) -> None:
        """Hand the case to the judge."""
        self.begin(self.side_of_judge, self.judge)

    def open_kernel_device(self) -> None:
        """Let a waiting kernel's side use the device; from here on the case's own time-out runs."""
        self.kernel("use_device")
        self.deadline = time.monotonic() + self.case.first_call_timeout_s + self.case.case_timeout_s

    def leave_judge(self) -> None:
        """End the judge's process, and with it its hold on the device."""
        self.run.judge().bury()

    def leave_kernel(self) -> None:
        """End the kernel's process, and with it its hold on the device."""
        self.run.kernel().bury()

    @property
    def known(self) -> dict[str, Any]:
        """What is known so far, by the measurement's field names."""
        return self._known

    def label(self, remark: str) -> None:
        """Add a remark that is no fault."""
        self._labels.append(remark)

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
        self.kernel("load", self.case.first_call_timeout_s, key=KERNEL)

    def load_rivals(self) -> None:
        """Import the reference and the versus entries in the judge."""
        if self.case.reference is not None:
            self.judge("load", key=REFERENCE)
        for each in self.case.versus:
            self.judge("load", key=VERSUS + each.name)

    def _draw(self, slot: int) -> dict[str, Any]:
        """Draw a slot's inputs in the judge, hand them to the kernel's side, and work out what is expected."""
        self.progress(f"drawing inputs {slot + 1}")
        seed = self.new_seed(slot)
        drawn: dict[str, Any] = self.judge("draw", slot=slot, seed=seed, share=not self.inline)
        self.input_bytes = drawn["bytes"]
        if "cannot_cross" in drawn:
            return drawn
        if not self.inline:
            self.kernel("receive", slot=slot, tree=drawn["tree"])
        self._expect(slot)
        if self.has_reference and slot == 0:
            self.test_tolerance(slot)
        return drawn

    def draw_another(self, slot: int) -> None:
        """Draw one more slot's inputs in the judge when the kernel's side is done; inline, only choose their seed."""
        seed = self.new_seed(slot)
        if not self.inline:
            self.judge("draw", slot=slot, seed=seed, share=False)
            self._expect(slot)

    def _expect(self, slot: int) -> None:
        if self.has_reference:
            self.progress(f"reference {slot + 1}")
            self.learn(self.judge("expect", slot=slot))

    def new_seed(self, slot: int) -> int:
        """Return the seed of a slot, noted for the result."""
        seed = self.run.case_seed(self.case, slot)
        self._seeds[slot] = seed
        return seed

    def seed_of(self, slot: int) -> int:
        """Return the seed that a slot was drawn from."""
        return self._seeds[slot]

    def learn(self, expected: dict[str, Any]) -> None:
        """Take the outputs from the reference where the suite left them out."""
        if self.case.outputs is None and self.case.mode == "forward" and "learned_outputs" not in self._known:
            outputs = expected["outputs"]
            self._known["learned_outputs"] = {
                output["name"]: {"shape": output["shape"], "dtype": output["dtype"]} for output in outputs
            }
            self.case = replace(self.case, outputs=tuple(from_plain(Output, output) for output in outputs))
            self.judge("learn", outputs=outputs)
            if not self.inline:
                self.kernel("learn", outputs=outputs)
        self._output_bytes, self._in_place_bytes = expected["bytes"], expected["bytes_in_place"]
        self._labels += expected["remarks"]

    def count_bytes(self, input_bytes: int) -> None:
        """Settle the bytes that a call moves and touches, now that the outputs are known."""
        if self._output_bytes is None:
            return
        self._known["resident_bytes"] = input_bytes + self._output_bytes - self._in_place_bytes
        if self.case.bytes is None and self.case.bytes_auto:
            self._known["bytes"] = input_bytes + self._output_bytes

    def test_tolerance(self, slot: int) -> None:
        """Refuse a tolerance that would let wrong outputs pass.

        Raises:
            Over: it does.
        """
        tested = self.judge("self_test", slot=slot)
        self._labels += tested["remarks"]
        if tested["worthless"]:
            self.over(findings.tolerance_invalid(tested["worthless"]))

    def _check_calls(self) -> None:
        for slot in (0, 1):
            called = self.call(slot)
            self._compare(slot, called["tree"])
        need_room(self, called["wall_ns"])

    def call(self, slot: int, at: int = 0) -> dict[str, Any]:
        """Run the kernel once on a slot; the first call (JIT, autotune) has its own time-out and stands apart."""
        first = "first_call_ns" not in self._known
        self.progress("first call" if first else "checking")
        limit = self.case.first_call_timeout_s if first else None
        called: dict[str, Any] = self.kernel("call", limit, slot=slot, share=not self.inline, at=at)
        if first:
            self._known["first_call_ns"] = float(called["wall_ns"])
            self.deadline = time.monotonic() + self.case.case_timeout_s
        else:
            self._known["peak_memory_bytes"] = called["peak_bytes"]
        return called

    def _compare(self, slot: int, tree: dict[str, Any] | None) -> None:
        if self.has_checks:
            self.judge_outputs(slot, tree)

    def judge_outputs(self, slot: int, tree: dict[str, Any] | None) -> None:
        """Compare outputs with what is expected of a slot.

        Raises:
            Over: they are wrong.
        """
        self.take_checks(self.judge("compare", slot=slot, tree=tree, seed=self._seeds[slot]))

    def take_checks(self, found: list[dict[str, Any]], where: str = "") -> None:
        """Note what a judge found of outputs; `where` begins the sentence on wrong ones.

        Raises:
            Over: they are wrong.
        """
        self._checks.extend(from_plain(OutputCheck, each["check"]) for each in found)
        self.refuse_wrong(found, where)

    def _time_alone(self) -> None:
        with self.only_kernel():
            self.time_kernel()
        self._compare_kept()
        if self.wants_hot:
            with self.only_kernel():
                self.time_hot()
            self._compare_kept()

    def _compare_kept(self) -> None:
        for index in range(self.take_kept()):
            shown = self.kernel("show_kept", index=index, share=not self.inline)
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
            "extra": {"copies": facts["copies"], "cold_by": "flush" if facts["flushes"] else facts["means"]},
        }
        self._kept = facts["kept"]
        if facts["dropped"]:
            self._known["extra"]["dropped_samples"] = facts["dropped"]
            self._labels.append("busy machine: samples were dropped in which the OS took a core away")
        if facts["interpreted"]:
            self._labels.append("interpreted: Triton's interpreter shows what is right, never speed")
        if cold and not facts["cold"]:
            self._labels.append("hot")
        note_slowdown(self, facts)
        verify_time(self, facts["call_ns"])
        self._known["observed"] = observed(self, facts, power=not self.hurried)

    def add_samples(self, samples_ns: Sequence[float]) -> None:
        """Add timed calls of the same kernel in other processes: a hurried window has few."""
        held = self._known["samples_ns"]
        self._known["samples_ns"] = (*held, *samples_ns)
        self._known["rechecked_share"] *= len(held) / len(self._known["samples_ns"])

    @property
    def wants_hot(self) -> bool:
        """Whether a window with hot caches is asked for beside the cold one."""
        return self.run.options.hot_and_cold and self.wants_cold

    def time_hot(self) -> None:
        """Take a second window with hot caches; the outputs of the first must have been looked at."""
        self._known["hot_samples_ns"], facts = self.window(False)
        self._kept = facts["kept"]

    def window(self, cold: bool) -> tuple[tuple[float, ...], dict[str, Any]]:
        """Stage, warm up and time the kernel; return its samples and the facts of the window."""
        self.progress("warming up")
        facts: dict[str, Any] = {"begun_s": clock()}
        facts |= self.kernel("stage", cold=cold, bytes_per_call=self.bytes_per_call())
        facts |= self.kernel("prepare", key=KERNEL)
        facts |= self.kernel("warm_up", key=KERNEL, **warm_up_limits(warm_most_ns(self), facts["call_ns"]))
        self.kernel("refresh")
        self.progress("timing")
        facts |= take_window(self, facts["call_ns"])
        return tuple(facts.pop("samples_ns")), facts

    def _check_again(self) -> None:
        self.progress("checking again")
        for ask in (self.kernel,) if self.inline else (self.kernel, self.judge):
            ask("clear")
        self._draw(2)
        self._compare(2, self.call(2)["tree"])

    def _correct(self) -> bool | None:
        # Shape, dtype, count, memory of its own: what has them wrong is wrong without a comparison.
        if any(found.fault == "kernel" and found.outcome == "fail" for found in self.findings):
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
