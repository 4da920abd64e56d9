"""What a side can be asked to do: host implementations, draw or receive inputs, time, compare.

Every public method of `Operations` is an operation. Which role a side plays (the kernel, the judge,
or both inline) is the supervisor's business: the kernel's side is simply never asked to draw or to compare, and
never holds the reference.
"""

import dataclasses
import os
import signal
import sys
import textwrap
import time
import traceback
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch

from kmrun.core.case import Case, Output
from kmrun.core.measurement import OutputCheck
from kmrun.core.plain import from_plain, to_plain
from kmrun.core.statistics import median
from kmrun.measure import checks, inputs, laid_out, machine, outputs, roles, selftest
from kmrun.measure.bench import Bench
from kmrun.measure.bound import Loaded, evaluate_rival, load, user_code
from kmrun.measure.called import call_once
from kmrun.measure.copies import bytes_in, copy_tree, tensors_in
from kmrun.measure.exchange import Arena, CannotCross
from kmrun.measure.faults import SideFault
from kmrun.measure.laid_out import LaidOut
from kmrun.measure.placement import Placement
from kmrun.measure.provenance import search_first
from kmrun.measure.references import references
from kmrun.measure.roles import KERNEL, REFERENCE
from kmrun.measure.seen import Seen
from kmrun.measure.spoiled import Interpreter, Standing, limit_fault
from kmrun.measure.timer import Budget
from kmrun.measure.turn_operations import TurnOperations
from kmrun.measure.version_operations import VersionOperations

_clock = time.perf_counter_ns

TIMED = frozenset({"prepare", "warm_up", "window", "turn", "burst", "ceilings", "take_yardsticks"})
"""Operations that time something."""


class Operations(VersionOperations, TurnOperations):
    """The state of a side. Methods are operations: plain arguments in, plain results out."""

    def __init__(self, arena: Arena, vault: Arena, progress: Callable[[str], None]) -> None:
        super().__init__(arena)
        self._vault = vault
        self._progress = progress
        self._flags: dict[str, Any] = {}
        self._settings: machine.Settings | None = None
        """Torch's global settings before any case."""
        self._interpreter = Interpreter.now()
        self._standing: Standing | None = None
        self._environment: dict[str, str | None] = {}
        """Variables that implementations set, and what they were before."""
        self._variables: dict[str, str] | None = None
        """The environment before the case."""
        self._forget()

    def _forget(self) -> None:
        for name, value in self._environment.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
        self._environment.clear()
        if self._variables is not None and dict(os.environ) != self._variables:
            os.environ.clear()  # what a kernel did to it must not reach the next case
            os.environ.update(self._variables)
        for timer in (signal.ITIMER_REAL, signal.ITIMER_VIRTUAL, signal.ITIMER_PROF):
            signal.setitimer(timer, 0)  # an alarm that a kernel set must not ring in the next case
        self._case: Case | None = None
        self._contents: dict[int, dict[str, Any]] = {}
        self._grads: dict[int, dict[str, Any]] = {}
        self._forms: dict[str, str] = {}
        """Of all drawings: calls rotate over them, and one takes another's place."""
        self._expected: dict[int, dict[str, dict[str, torch.Tensor]]] = {}
        self._loaded: dict[str, Loaded] = {}
        self._bench: Bench | None = None
        self._own: dict[str, torch.Tensor] = {}
        self._seen = Seen()
        self._placement = Placement(self._opening.get("threads", 1))

    # ---- one case ----------------------------------------------------------------------------------------

    def begin(self, case: dict[str, Any]) -> None:
        """Forget the last case and take a new one; set torch's math flags as its dtypes ask.

        Raises:
            SideFault: an earlier case left this process in a state that is nobody's to work in (`spoiled`).
        """
        self.end()
        self._standing = self._standing or Standing.now()  # kmrun changes it only before
        if what := self._interpreter.change() or self._standing.change():
            raise SideFault("spoiled", f"an earlier case changed {what} for the whole process")
        self._variables = dict(os.environ)
        self._case = from_plain(Case, case)
        if self._settings is None:
            self._settings = machine.Settings.now()
        self._settings.restore()  # what implementations of the last case did to them must not reach this one
        machine.set_math_flags(self._case)
        self._flags = machine.flags()

    def end(self) -> None:
        """Forget the case and give its memory back."""
        self._forget()
        if self._device.type == "cuda":
            torch.cuda.empty_cache()

    def clear(self) -> None:
        """Forget what was drawn and timed so far, and keep the case: its last drawing needs the room."""
        self._contents.clear()
        self._grads.clear()
        self._expected.clear()
        self._bench = None
        self._own = {}
        self._seen.clear()

    def load(self, key: str) -> dict[str, Any]:
        """Import the target of `kernel`, `reference` or a versus entry."""
        begin = _clock()
        case = self._now()
        implementation = roles.implementation_of(case, key)
        for name, value in implementation.env.items():
            self._environment.setdefault(name, os.environ.get(name))
            os.environ[name] = value
        search_first(implementation.env.get("PYTHONPATH", ""))
        self._loaded[key] = load(case, implementation, roles.fault_of(key), roles.name_of(key))
        return {"wall_ns": _clock() - begin}

    def origin(self, key: str) -> dict[str, Any]:
        """Say where a loaded target came from; only in a side that was given a tree."""
        case = self._now()
        return self._origin_of(roles.implementation_of(case, key).target, case.folder)

    def draw(self, slot: int, seed: int, share: bool, at: int = 0) -> dict[str, Any]:
        """Draw the inputs of a seed into a slot; with `share`, pack them into the arena from byte `at` on.

        Returns the bytes of the inputs; their description, with the incoming gradients in a backward mode; or
        `{"cannot_cross": why}` when they hold something that only one process can have.
        """
        case = self._now()
        self._contents[slot] = inputs.build(case, seed, self._device)
        self._refuse_other_form(inputs.forms(self._contents[slot]))
        self._grads[slot] = {}
        if case.mode != "forward":
            loaded = self._loaded[REFERENCE]
            with machine.steady(loaded.who, loaded.fault), user_code(loaded):
                named = copy_tree(self._contents[slot])
                args, kwargs = inputs.call_arguments_for(case, loaded.implementation, named)
                forward = outputs.collect(case, loaded.function(*args, **kwargs), named, who=loaded.who)
            self._grads[slot] = dict(inputs.draw_grads(case, forward, seed))
        drawn = tensors_in(self._contents[slot])
        reply: dict[str, Any] = {"bytes": sum(t.numel() * t.element_size() for t in drawn)}
        if not share:
            return reply
        try:
            reply |= self.show_inputs(slot, at)
        except CannotCross as reason:
            reply["cannot_cross"] = str(reason)
        return reply

    def show_inputs(self, slot: int, at: int = 0) -> dict[str, Any]:
        """Pack what the kernel may see of a slot into the arena, from byte `at` on."""
        tree, after = self._share({"inputs": self._visible(slot), "grads": self._grads[slot]}, at)
        return {"tree": tree, "next": after}

    def learn(self, outputs: list[dict[str, Any]]) -> None:
        """Take the outputs' declaration, which the suite left to the reference."""
        declared = tuple(from_plain(Output, output) for output in outputs)
        self._case = dataclasses.replace(self._now(), outputs=declared)

    def receive(self, slot: int, tree: dict[str, Any]) -> None:
        """Take the inputs of a slot out of the arena into memory of this side's own."""
        found = self._arena.read(tree, self._device)
        self._contents[slot], self._grads[slot] = found["inputs"], found["grads"]

    def expect(self, slot: int, keep: bool = False, at: int = 0) -> dict[str, Any]:
        """Evaluate the reference on a slot, in its `compute` precision and in the case's own dtype.

        With `keep`, both are packed into the vault, which no kernel's side ever maps.
        """
        reference = self._loaded[REFERENCE]

        def function(*args: Any, **kwargs: Any) -> Any:
            with machine.steady(reference.who, reference.fault):
                return reference.function(*args, **kwargs)

        high, same, remarks = references(self._now(), function, self._contents[slot], self._grads[slot])
        self._expected[slot] = {"high": high, "same": same}
        self._seen.forget(slot)
        result = {
            "outputs": [to_plain(output) for output in outputs.learn(same)],
            "bytes": bytes_in(same),
            "bytes_in_place": bytes_in({name: t for name, t in same.items() if name in self._now().mutates}),
            "remarks": remarks,
        }
        if keep:
            result["tree"], result["next"] = self._vault.write(self._expected[slot], at)
        return result

    def rival_agrees(self, key: str, slot: int, seed: int) -> bool:
        """Say whether a versus entry's outputs pass the very check that the kernel's must pass."""
        named, grads = copy_tree(self._contents[slot]), copy_tree(self._grads[slot])
        got = evaluate_rival(self._now(), self._loaded[key], named, grads, self._device)
        return all(check.ok for check in self._compared(slot, got, seed))

    def recall(self, slot: int, tree: dict[str, Any]) -> None:
        """Take back what another judge expected (serial isolation)."""
        self._expected[slot] = self._vault.read(tree, self._device)
        self._seen.forget(slot)

    def call(self, slot: int, share: bool, at: int = 0) -> dict[str, Any]:
        """Run the kernel once on a fresh copy of a slot, untimed in the sense of scores.

        Returns the wall time, the description of the outputs, and the most memory it held.

        Raises:
            SideFault: also when it wrote to an input that the suite does not say it mutates.
        """
        found = call_once(
            self._now(),
            self._loaded[KERNEL],
            (copy_tree(self._contents[slot]), copy_tree(self._grads[slot])),
            self._device,
            self._synchronize,
            self._memory_held,
        )
        self._check_flags()
        reply: dict[str, Any] = {"wall_ns": found.wall_ns, "peak_bytes": found.peak_bytes}
        if share:
            reply["tree"], reply["next"] = self._share(found.outputs, at)
        else:
            reply["tree"], self._own = None, found.outputs
        return reply

    def compare(self, slot: int, tree: dict[str, Any] | None, seed: int) -> list[dict[str, Any]]:
        """Compare outputs (out of the arena, or this side's own when inline) with what is expected of a slot."""
        if tree is None:
            found = self._compared(slot, self._own, seed)
        else:
            got = self._arena.read(tree, self._device)
            found = self._seen.verdicts(slot, got) or self._compared(slot, got, seed)
            self._seen.hold(slot, got, found)
        return [
            {"check": to_plain(check), "sentence": "" if check.ok else checks.sentence(check)}
            for check in found
        ]

    def self_test(self, slot: int) -> dict[str, list[str]]:
        """Show that the case's tolerance would catch wrong outputs; return what it lets pass."""
        case, expected = self._now(), self._expected[slot]
        return {
            "worthless": selftest.run(case, expected["high"], expected["same"]),
            "remarks": selftest.lower_precision(case, expected["high"], expected["same"]),
        }

    # ---- timing ------------------------------------------------------------------------------------------

    def stage(
        self,
        cold: bool,
        bytes_per_call: int,
        deal: int | None = None,
        ready: dict[str, Any] | None = None,
        half: int = 0,
    ) -> dict[str, Any]:
        """Make the copies that timed calls rotate over, or take a half of those that lie ready; see `Bench.stage`."""
        case = self._now()
        self._bench = Bench(
            case,
            self._device,
            self._stopwatch(),
            self._pool,
            self._cache_bytes,
            self._memory_to_spend(),
            self._flush,
            self._contents,
            self._grads,
            has_setup=roles.have_setup(case),
        )
        if ready is None:
            return self._bench.stage(cold, bytes_per_call, deal)
        found = from_plain(LaidOut, ready)
        return self._bench.take_copies(
            laid_out.take(found, half, self._contents, self._arena.host), found.holds
        )

    def lay_out(self, slots: list[int], at: int, bytes_per_call: int) -> dict[str, Any] | None:
        """Write copies for two versions into the arena, from byte `at` on; None where that cannot be."""
        found = laid_out.lay_out(
            {slot: self._visible(slot) for slot in slots},
            self._arena.host,
            at,
            bytes_per_call,
            self._cache_bytes,
            2 * self._memory_to_spend(),
        )
        return None if found is None else to_plain(found)

    def take_away(self, at: int) -> None:
        """Give back what lies in the arena from byte `at` on, but for what the copies of the next case may take.

        Fresh pages cost some five times the writing; an eighth of the free memory is kept for that, at most.
        """
        self._arena.host.end_at(max(at, self.memory()["free"] // 8))

    def prepare(self, key: str) -> dict[str, Any]:
        """Bind an implementation to the copies; see `Bench.prepare`."""
        return self._benched().prepare(key, self._loaded[key])

    def warm_up(self, key: str, most_ns: float, at_least: int) -> dict[str, float]:
        """Call until the level is stable."""
        return {"call_ns": self._benched().warm_up(key, most_ns, at_least)}

    def refresh(self) -> None:
        """Give the copies other contents under the same pointers."""
        self._benched().refresh()

    def window(self, key: str, budget: dict[str, Any]) -> dict[str, Any]:
        """Time an implementation alone."""
        watch = self._stopwatch()
        watch.host_ns.clear()
        window = self._benched().window(
            key, Budget(**budget), lambda count: self._progress(f"timing {count} samples")
        )
        self._check_flags()
        samples, dropped = window.chosen()
        return {
            "samples_ns": samples,
            "spans_ns": window.chosen_spans(),
            "dropped": dropped,
            "kept": len(self._benched().kept),
            "interpreted": "triton" in sys.modules and os.environ.get("TRITON_INTERPRET") == "1",
            "event_ns": watch.spread_ns,
            "host_ns": median(watch.host_ns) if watch.host_ns else None,
        }

    def placed(self, op: str) -> AbstractContextManager[None]:
        """Return what spreads the threads over the cores of a CPU while an operation times something."""
        if self._device.type != "cpu" or op not in TIMED:
            return nullcontext()
        return self._placement.spread(look=op in ("warm_up", "window"))

    def changed(self) -> str:
        """Return what user code changed for the whole process, empty where nothing is."""
        return self._interpreter.change()

    @property
    def lowered(self) -> SideFault | None:
        """What to say where user code took away from its process what the system allowed it, else None."""
        return limit_fault(self._limits, KERNEL in self._loaded)

    def raised_by_user(self, error: BaseException) -> bool:
        """Whether an error came out of the suite's own files, wherever it surfaced."""
        frames = traceback.extract_tb(error.__traceback__)
        return self._case is not None and frames[-1].filename.startswith(self._case.folder + os.sep)

    # ---- inside ------------------------------------------------------------------------------------------

    def _visible(self, slot: int) -> dict[str, Any]:
        """Return the inputs of a slot without those that only the judge may see."""
        secret = {each.name for each in self._now().arguments if each.options.get("visible") == "judge"}
        return {name: value for name, value in self._contents[slot].items() if name not in secret}

    def _now(self) -> Case:
        if self._case is None:
            raise ValueError("no case was begun")
        return self._case

    def _refuse_other_form(self, forms: dict[str, str]) -> None:
        known = self._forms = self._forms or forms
        for name, form in forms.items():
            if form != known[name]:
                first, then = (textwrap.shorten(each, 60, placeholder="...") for each in (known[name], form))
                told = f"{name}: its form goes with the seed, which may decide its numbers alone: {first}, then {then}"
                raise inputs.InputError("input_invalid", told)

    def _compared(self, slot: int, got: dict[str, torch.Tensor], seed: int) -> tuple[OutputCheck, ...]:
        expected = self._expected.get(slot, {"high": {}, "same": {}})
        return checks.compare(
            self._now(), got, expected["high"], expected["same"], seed, self._contents.get(slot)
        )

    def _check_flags(self) -> None:
        for name, value in machine.flags().items():
            if value != self._flags[name]:
                sentence = (
                    f"the kernel changed {name} from {self._flags[name]} to {value} for the whole process"
                )
                raise SideFault("flags_changed", sentence, "kernel")
