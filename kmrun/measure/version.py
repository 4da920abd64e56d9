"""One version of a case in a fresh process, ready to take turns. No torch."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from kmrun.core.case import Case
from kmrun.core.measurement import Finding
from kmrun.core.opponent import Tree
from kmrun.core.plain import to_plain
from kmrun.measure import findings
from kmrun.measure.roles import KERNEL, REFERENCE
from kmrun.measure.side import Died, Side, SideBug, Stopped, TimedOut

if TYPE_CHECKING:
    from kmrun.measure.trial import Trial

_WARM_NS, _WARM_CALLS = 0.1e9, 5


@dataclass(frozen=True, slots=True)
class Entrant:
    """What a version is made from: its case, its tree, the tree that none of its code may come from."""

    who: findings.Who
    case: Case
    tree: Tree
    other: Tree


class VersionFailed(Exception):
    """A version could not be run; `finding` says why."""

    def __init__(self, entrant: Entrant, finding: Finding) -> None:
        super().__init__(finding.sentence)
        self.entrant = entrant
        self.finding = finding


@dataclass(frozen=True, slots=True)
class Drawing:
    """Inputs of one slot: where they lie in the arena, or the seed that draws them."""

    slot: int
    seed: int
    tree: Any = None


@dataclass(frozen=True, slots=True)
class Inputs:
    """What both versions get, bit by bit: several drawings, so that a call's content is another than the last's."""

    drawings: tuple[Drawing, ...]
    end: int = 0
    """First byte of the arena behind them."""
    copies: dict[str, Any] | None = None
    """Where copies for both versions lie ready (`LaidOut`), behind that; None where each makes its own."""
    deal: int = 0
    """Seed of which copy holds which drawing, where each makes its own."""

    @property
    def shared(self) -> bool:
        """Whether they lie in the arena; else each version draws them itself."""
        return all(drawing.tree is not None for drawing in self.drawings)

    def of(self, slot: int) -> Drawing:
        """Return the drawing of a slot."""
        return next(drawing for drawing in self.drawings if drawing.slot == slot)


class Version:
    """A live process that hosts one version. Between turns it is stopped, on a CPU."""

    def __init__(self, trial: "Trial", entrant: Entrant, side: Side) -> None:
        self.entrant = entrant
        self._trial = trial
        # The first version's suite may have left outputs to the reference, which knows them by now.
        outputs = entrant.case.outputs or trial.case.outputs
        self._case = replace(entrant.case, outputs=outputs)
        self._stops = trial.run.on_cpu
        self._side = side
        self._awaited: list[str] = []
        """What the process was told and has not answered."""

    def settle(self, inputs: Inputs, cold: bool, half: int, cores: list[int]) -> None:
        """Begin to settle in the tree with the inputs, before any code of the tree runs; see `settled`.

        Raises:
            VersionFailed: it could not.
        """
        tree = self.entrant.tree
        self._tell(
            "use_tree",
            root=tree.root,
            other=self.entrant.other.root,
            caches=tree.caches,
            folder=self._case.folder,
            cores=cores,
        )
        if self._stops:
            # Both versions' copies pass through the one cache in turn: half for each is as cold.
            self._tell("share_cache", users=2)
        self._tell("begin", case=to_plain(self._case))
        if inputs.shared:
            for drawing in inputs.drawings:
                self._tell("receive", slot=drawing.slot, tree=drawing.tree)
            self._stage(inputs, cold, half)

    def settled(self) -> None:
        """Wait until it has settled.

        Raises:
            VersionFailed: it could not.
        """
        while self._awaited:
            self._answer()

    def bring_up(self, inputs: Inputs, cold: bool, half: int) -> float:
        """Load the target of one that has settled, warm up; return the level in ns per call.

        Raises:
            VersionFailed: it could not.
        """
        first = self._case.first_call_timeout_s
        self.ask("load", first, key=KERNEL)
        if not inputs.shared:
            if self._case.reference is not None:
                # An incoming gradient is drawn as the reference's output.
                self.ask("load", first, key=REFERENCE)
            for drawing in inputs.drawings:
                self.ask("draw", first, slot=drawing.slot, seed=drawing.seed, share=False)
            self._stage(inputs, cold, half)
            self.settled()
        self.ask("prepare", first, key=KERNEL)
        warmed: dict[str, float] = self.ask("warm_up", key=KERNEL, most_ns=_WARM_NS, at_least=_WARM_CALLS)
        return warmed["call_ns"]

    def _stage(self, inputs: Inputs, cold: bool, half: int) -> None:
        self._tell(
            "stage",
            cold=cold,
            bytes_per_call=self._trial.bytes_per_call(),
            deal=inputs.deal,
            ready=inputs.copies,
            half=half,
        )

    def turn(self, calls: int, discard: int) -> list[float]:
        """Take a turn: wake, call, stop. A stopped side's threads take no core from the other.

        Raises:
            VersionFailed: it could not.
        """
        self.wake()
        samples: list[float] = self.ask("turn", key=KERNEL, calls=calls, discard=discard)
        self.stop()
        return samples

    def stop(self) -> None:
        """Make it truly idle."""
        if self._stops and self._side.alive:
            self._side.stop()

    def wake(self) -> None:
        """Let it go on."""
        if self._stops and self._side.alive:
            self._side.wake()

    @property
    def alive(self) -> bool:
        """Whether its process still serves."""
        return self._side.alive

    def kill(self) -> None:
        """Begin to end its process."""
        self._side.kill()

    def bury(self) -> None:
        """End its process."""
        self._side.bury()

    def ask(self, op: str, timeout_s: float | None = None, **arguments: Any) -> Any:
        """Ask its side; the case's own limits hold.

        Raises:
            VersionFailed: user code, the machine or a limit stopped it.
        """
        self._tell(op, **arguments)
        return self._answer(timeout_s)

    def _tell(self, op: str, **arguments: Any) -> None:
        with self._blamed(op):
            self._side.tell(op, **arguments)
        self._awaited.append(op)

    def _answer(self, timeout_s: float | None = None) -> Any:
        with self._blamed(self._awaited.pop(0)):
            return self._side.answer(timeout_s or self._case.case_timeout_s)

    @contextmanager
    def _blamed(self, op: str) -> Iterator[None]:
        who = self.entrant.who
        try:
            yield
        except Stopped as stopped:
            raise VersionFailed(self.entrant, self._named(stopped.finding)) from stopped
        except SideBug as bug:
            raise VersionFailed(self.entrant, findings.broken_side(str(bug))) from bug
        except Died as died:
            raise VersionFailed(self.entrant, findings.died(who, died.status, died.tail)) from died
        except TimedOut as late:
            raise VersionFailed(self.entrant, findings.timed_out(who, op, late.seconds, late.tail)) from late

    def _named(self, finding: Finding) -> Finding:
        """Return a side's finding, which says "the kernel" of whatever it hosts, with the version's name."""
        name = self.entrant.who[0]
        return replace(finding, sentence=finding.sentence.replace("the kernel", name, 1))
