"""A case beside its other version: screened in two pairs of fresh processes, settled in many. No torch.

Both processes of a pair are forked from the same zygote, in an order drawn by lot, and get the same inputs bit
by bit, so that nothing but their code can make one slower for good. The rule itself is `core.gate`. Once a run,
the new version is compared with itself in the same way: where that comes out slower, the machine fools the gate,
and nothing it said in this run counts.
"""

import math
import random
import secrets
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from kmrun.core.case import Case
from kmrun.core.clause import handoff_doubt
from kmrun.core.gate import Gate, Screening, betting_bounds, undecided
from kmrun.core.measurement import Finding
from kmrun.core.opponent import Opponent
from kmrun.core.plain import from_plain
from kmrun.core.slowdown import Slowdown, told
from kmrun.core.statistics import median, quantile
from kmrun.device import cpu
from kmrun.errors import EnvironmentLacks
from kmrun.measure import findings, handoff, origin
from kmrun.measure.blocks import LEVELS, Blocks, turn_of
from kmrun.measure.laid_out import LaidOut
from kmrun.measure.looking import look_at_first_call, look_at_turns
from kmrun.measure.origin import Origin
from kmrun.measure.placement import cores_for
from kmrun.measure.roles import KERNEL, have_setup
from kmrun.measure.side import Idle, Side
from kmrun.measure.version import Drawing, Entrant, Inputs, Version, VersionFailed
from kmrun.store.packages import module_in, packages_in

if TYPE_CHECKING:
    from kmrun.measure.trial import Trial

SCREEN_BLOCKS = 150
SCREEN_S, LEANING_S = 0.6, 3.0
"""How long a pair may leave it open: longer where it leans to the good side, since fresh pairs would take longer."""

PAIR_BLOCKS_LEAST, PAIR_BLOCKS, PAIR_BLOCKS_MOST, PAIR_S = 3, 6, 32, 0.2
"""Blocks of a fresh pair: as many as fit the time, at least six where a block is short."""

SCREEN_LEAST = 7
"""Fewer blocks make no suspect, so that a pair is not given up before."""

SETTLE_S = {"cpu": 60.0, "cuda": 120.0, "rocm": 120.0}

ROOM = 4
"""A pair is brought up beside the one that ends only where so many would fit: with less it makes fewer copies."""

_LABEL_RATE = 0.01
"""How often a label about a case's slow calls may be wrong."""

SLOTS: tuple[int, ...] = (2, 3)
"""The drawings that versions are compared on: what the kernel was last checked on, and one more."""

DRAWINGS_ROOM = 12
"""Times the inputs, what two drawings take: one in the judge, two in the arena, in each process two and two copies."""

OTHER: findings.Who = ("the other version", "suite")


_NEEDS_WINDOW = frozenset({"min_roof", "min_roof_clk", "min_ceiling", "min_speedup", "max_ms", "max_host_us"})
"""Clauses that want the kernel's own window, or its rivals, at full length."""


def hurried(case: Case, opponent: Opponent | None) -> bool:
    """Whether a case is only compared: then a short window says how fast it is, and nothing is timed beside it."""
    return opponent is not None and not _NEEDS_WINDOW & {clause.kind for clause in case.clauses}


def compare(trial: "Trial", opponent: Opponent | None) -> Slowdown | None:
    """Return how the trial's case compares with its other version; None where there is none, or it is no other.

    Raises:
        Over: the kernel, or the environment, failed in a fresh process.
    """
    if opponent is None:
        return None
    if trial.run.isolation == "serial":
        return undecided(opponent.gate.against, opponent.gate.margin, "not alternated: serial isolation")
    if trial.run.handoff_bias is None and not trial.run.on_cpu:
        handoff.look(trial)
    new = Entrant(findings.KERNEL, trial.case, opponent.own, opponent.other)
    old = Entrant(OTHER, opponent.case, opponent.other, opponent.own)
    inputs = _with_copies(trial, _inputs(trial), (new.case, old.case))
    with (
        _taken_away(trial, inputs),
        trial.only_kernel(),
        trial.only_judge(),
        Idle(trial.side_of_kernel() if trial.inline else None),
    ):
        comparison = Comparison(trial, opponent.gate, (new, old), inputs)
        found = comparison.run()
        if trial.hurried:
            trial.add_samples(comparison.calls[0])
        if found is not None and trial.run.control is None:
            rule = replace(opponent.gate, against="itself")
            trial.progress("the same version twice, as a control")
            trial.run.control = Comparison(trial, rule, (new, new), inputs).run()
    if trial.run.control is not None and trial.run.control.verdict == "broken":
        trial.over(_control_fired(trial.run.control))
    doubt = handoff_doubt(trial.run.handoff_bias)
    return replace(found, verdict="inconclusive", reason=doubt) if found is not None and doubt else found


def _control_fired(control: Slowdown) -> Finding:
    sentence = f"the control fired: a version came out {told(control)}; no comparison of this run counts"
    return Finding("control_fired", sentence, "environment", "error")


class NotCompared(Exception):
    """There are no two versions to compare; the text says why, as a label."""


class Comparison:
    """Two entrants in pairs of fresh processes; the first is the new version.

    `calls` are all timed calls of each in ns, in time order.
    """

    def __init__(self, trial: "Trial", gate: Gate, entrants: tuple[Entrant, Entrant], inputs: Inputs) -> None:
        self._trial = trial
        self._gate = gate
        self._entrants = entrants
        self._inputs = inputs
        self._order = random.Random(secrets.randbits(64))
        self._old_ns: list[float] = []
        self._level = LEVELS[trial.run.device.kind]
        self._is_control = entrants[0] is entrants[1]
        self._looked = self._proven = self._is_control
        self.calls: tuple[list[float], list[float]] = ([], [])
        self._mean_logs: list[float] = []
        self._dying: list[Version] = []
        """Those of the pair before: they end while the next one is brought up, where memory allows that."""
        self._pair_bytes = 0
        """What a pair of processes takes."""

    def run(self) -> Slowdown | None:
        """Screen, and settle what screening did not clear; None, with a label, where there is nothing to compare.

        Raises:
            Over: the new version, or the environment, failed.
        """
        try:
            return self._with_all_calls(self._screen() or self._settle())
        except NotCompared as why:
            self._not_compared(str(why))
            return None
        except VersionFailed as failed:
            if failed.entrant is self._entrants[0] or failed.finding.code == "module_missing":
                self._trial.over(failed.finding)
            if failed.finding.code == "target_missing":
                # A kernel younger than that version comes with its suite in one change.
                self._not_compared(f"not compared: {self._gate.against} has no such target")
                return None
            return undecided(self._gate.against, self._gate.margin, failed.finding.sentence)
        finally:
            self._bury()

    def _bury(self) -> None:
        while self._dying:
            self._dying.pop().bury()

    def _not_compared(self, why: str) -> None:
        self._trial.label(why)
        self._trial.know(not_compared=why)

    def _with_all_calls(self, found: Slowdown) -> Slowdown:
        """Tell of the calls that the verdict does not go by, and label it where these alone became slower."""
        low, _ = betting_bounds(self._mean_logs, _LABEL_RATE)
        slower = found.verdict == "holds" and low > math.log1p(found.margin)
        if slower and not self._is_control:  # a control's calls tell nothing of the case
            self._trial.label("some calls slower")
        middle, slow = (
            quantile(self.calls[0], level) / quantile(self.calls[1], level) - 1 for level in (0.5, 0.95)
        )
        return replace(found, median=middle, p95=slow)

    def _screen(self) -> Slowdown | None:
        """Return what the case comes to where its pairs clear it; None makes it a suspect."""
        seen: list[Screening] = []
        blocks: list[float] = []
        outcome = "open"
        while outcome == "open":
            found, logs = self._screen_pair(blocks)
            seen.append(found)
            blocks += logs
            outcome = self._gate.screened(seen)
        return self._gate.cleared(seen, blocks) if outcome == "clear" else None

    def _screen_pair(self, before: Sequence[float]) -> tuple[Screening, list[float]]:
        logs: list[float] = []
        with self._pair() as blocks:
            begin = time.monotonic()
            while True:
                self._trial.progress(f"against {self._gate.against}, block {len(logs) + 1}")
                logs.append(self._log_ratio(blocks))
                seen = self._gate.screen(logs, before)
                spent = time.monotonic() - begin
                if seen.outcome != "open" or len(logs) >= SCREEN_BLOCKS:
                    break
                patience = LEANING_S if seen.value < math.log1p(self._gate.margin) else SCREEN_S
                if spent > patience and len(logs) >= SCREEN_LEAST:
                    break
        return seen, logs

    def _settle(self) -> Slowdown:
        name, taken = self._gate.against, 0
        pairs: list[float] = []
        limit = time.monotonic() + SETTLE_S[self._trial.run.device.kind]
        while True:
            self._trial.progress(
                f"against {name}, fresh pair {len(pairs) + 1} of at most {self._gate.looks[-1].pairs}"
            )
            with self._pair() as blocks:
                taken += self._blocks_of_a_pair(blocks)
                pairs.append(blocks.log_ratio())
            old_ns = median(self._old_ns)
            found = self._gate.settle(pairs, old_ns, taken)
            if found is not None:
                return found
            if time.monotonic() > limit:
                return self._gate.estimate(pairs, old_ns, taken, f"out of time after {len(pairs)} pairs")

    def _blocks_of_a_pair(self, blocks: Blocks) -> int:
        begin = time.monotonic()
        for taken in range(1, PAIR_BLOCKS_MOST + 1):
            self._log_ratio(blocks)
            spent = time.monotonic() - begin
            if spent > PAIR_S and taken >= (PAIR_BLOCKS if spent < 4 * PAIR_S else PAIR_BLOCKS_LEAST):
                break
        return taken

    def _log_ratio(self, blocks: Blocks) -> float:
        new, old = self._trial.run.watch.steady(blocks.take)
        self._old_ns.append(old)
        return math.log(new / old)

    @contextmanager
    def _pair(self) -> Iterator[Blocks]:
        """Open a fresh pair, the order of birth drawn by lot, and bury it at the end."""
        trial, living, levels = self._trial, {}, [0.0, 0.0]
        free = _free_bytes(trial)
        if free < ROOM * self._pair_bytes:
            self._bury()
        first, half = self._order.randrange(2), self._order.randrange(2)
        cores = cores_for(trial.run.threads) if trial.run.on_cpu else []
        cold = trial.known["l2"] == "cold"
        inputs = replace(self._inputs, deal=self._order.getrandbits(32))
        try:
            for who, side in zip((first, 1 - first), self._sides(), strict=True):
                living[who] = Version(trial, self._entrants[who], side)
            for who, version in living.items():
                version.settle(inputs, cold, who ^ half, cores)
            for version in living.values():
                version.settled()
            for who, version in living.items():
                levels[who] = version.bring_up(inputs, cold, who ^ half)
                if who == 1 and not self._looked:
                    self._looked = True
                    look_at_first_call(trial, version, inputs, self._gate.against)
                version.stop()
            if not self._proven:
                self._prove(living[0], living[1])
            flushed = trial.run.on_cpu and trial.known["extra"]["cold_by"] == "flush"
            # As many calls of both: a quantile of few samples goes with their number.
            turn = turn_of(min(levels), trial.run.on_cpu, flushed)
            self._bury()
            self._pair_bytes = self._pair_bytes or free - _free_bytes(trial)
            blocks = Blocks((living[0].turn, living[1].turn), (turn, turn), self._level)
            yield blocks
            for kept, more in zip(self.calls, blocks.samples, strict=True):
                kept.extend(more)
            self._mean_logs.extend(math.log(new / old) for new, old in blocks.means)
            if not self._is_control:
                look_at_turns(trial, living[0], living[1], inputs, self._gate.against)
        finally:
            for version in living.values():
                version.kill()
            self._dying.extend(living.values())

    def _sides(self) -> list[Side]:
        try:
            return self._trial.run.start_others(2)
        except EnvironmentLacks as lacks:
            self._trial.over(findings.no_process(lacks))

    def _prove(self, new: Version, old: Version) -> None:
        """Hold each version's code against its tree.

        Raises:
            Over: one loaded the other's code, or code from outside its tree although that has a copy.
            NotCompared: it is the very same code.
        """
        self._proven = True
        seen = []
        for version in (new, old):
            version.wake()
            seen.append(_with_copy(from_plain(Origin, version.ask("origin", key=KERNEL)), version.entrant))
            version.stop()
        finding = origin.wrong_tree(seen[0], seen[1], self._gate.against)
        if finding is not None:
            self._trial.over(finding)
        if seen[0].file == seen[1].file:
            self._trial.label("same code on both sides")
            of_trees = any(each.loads_own for each in seen)
            alike = self._entrants[0].case.implementation == self._entrants[1].case.implementation
            if seen[0].file is not None and alike and not of_trees:
                raise NotCompared("not compared: no code of either tree was loaded")


def _with_copy(seen: Origin, entrant: Entrant) -> Origin:
    """Return the origin with the copies that its tree has of what was loaded from elsewhere, wherever they lie."""
    root = Path(entrant.tree.root)
    own = packages_in(root)
    seen = replace(seen, installed=tuple(each for each in seen.installed if each[0] in own))
    module = entrant.case.implementation.target.rpartition(":")[0]
    package = module.partition(".")[0]
    if seen.home == "own" or seen.own_copy is not None or module.endswith(".py") or package == "torch":
        return seen
    return seen if module_in(root, module) is None else replace(seen, own_copy=package)


def _free_bytes(trial: "Trial") -> int:
    return cpu.memory_available_bytes() if trial.run.on_cpu else int(trial.judge("memory")["free"])


def _inputs(trial: "Trial") -> Inputs:
    """Pack what versions are compared on into the arena, for all pairs; inline, sides draw it themselves."""
    slots = SLOTS
    if _free_bytes(trial) < DRAWINGS_ROOM * trial.input_bytes:
        slots = SLOTS[:1]
        trial.label("compared on one drawing: memory is short")
    for slot in slots[1:]:
        trial.draw_another(slot)
    drawings = [Drawing(slot, trial.seed_of(slot)) for slot in slots]
    if trial.inline:
        return Inputs(tuple(drawings))
    if not trial.run.on_cpu:
        # Fresh sides never mapped the judge's arena on the device: these inputs go through host memory. The
        # kernel's side did, and is done; a new one will settle it anew.
        trial.leave_kernel()
        trial.judge("drop_arena")
    end = 0
    for at, drawing in enumerate(drawings):
        shown = trial.judge("show_inputs", slot=drawing.slot, at=end)
        drawings[at], end = replace(drawing, tree=shown["tree"]), shown["next"]
    return Inputs(tuple(drawings), end)


def _with_copies(trial: "Trial", inputs: Inputs, cases: tuple[Case, Case]) -> Inputs:
    """Lay copies out for all processes of both versions, where they can share them."""
    if trial.inline or not trial.run.on_cpu or trial.known["l2"] != "cold":
        return inputs
    if any(case.mutates or have_setup(case) for case in cases):
        return inputs
    slots = [drawing.slot for drawing in inputs.drawings]
    ready = trial.judge("lay_out", slots=slots, at=inputs.end, bytes_per_call=trial.bytes_per_call())
    return inputs if ready is None else replace(inputs, copies=ready, end=from_plain(LaidOut, ready).end)


@contextmanager
def _taken_away(trial: "Trial", inputs: Inputs) -> Iterator[None]:
    """Give back the memory of copies that were laid out; after an interrupt it goes with its processes."""
    judge = trial.side_of_judge() if inputs.copies is not None else None
    interrupted = False
    try:
        yield
    except KeyboardInterrupt:
        interrupted = True  # an answer may be on its way still, which is not the one to this
        raise
    finally:
        if inputs.copies is not None and judge is not None and judge.alive and not interrupted:
            trial.judge("take_away", at=inputs.copies["at"])
