"""Asking the two sides of a case: whose end is whose fault, which time-out holds, who must be idle. No torch."""

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NoReturn

from kmrun.core.case import Case
from kmrun.core.measurement import Finding
from kmrun.core.plain import to_plain
from kmrun.measure import findings, roles
from kmrun.measure.side import Died, Idle, Side, SideBug, Stopped, TimedOut

if TYPE_CHECKING:
    from kmrun.measure.supervisor import Supervisor

FIRST_CALLS = frozenset({"load", "draw", "expect", "rival_agrees", "self_test", "compare", "call"})
"""Operations that may compile or evaluate something for the first time: they have the first call's time-out."""
KERNEL_WORK = frozenset({"call", "prepare", "warm_up", "window", "turn", "burst"})
"""Operations in which the kernel itself runs: they share the time of `timeout_s: {case: ...}`."""


class Over(Exception):
    """The case is decided; what is known so far stands."""


class Asking:
    """The sides of one case, as its course sees them.

    Attributes:
        run: the supervisor, which owns the sides.
        case: the case; learned outputs are filled in.
        inline: whether one side plays both roles.
        findings: what was found wrong.
        deadline: when the case's own time is up, a `time.monotonic()` moment.
    """

    def __init__(self, supervisor: "Supervisor", case: Case, progress: Callable[[str], None]) -> None:
        self.run = supervisor
        self.case = case
        self.progress = progress
        self.findings: list[Finding] = []
        self.deadline = float("inf")
        self.inline = supervisor.isolation == "inline"
        self._own: Side | None = None

    @property
    def left_s(self) -> float:
        """What is left of the time that the kernel's own calls share, in seconds."""
        return self.deadline - time.monotonic()

    @property
    def has_reference(self) -> bool:
        """Whether there is anything to compare with."""
        return self.case.reference is not None

    @property
    def has_checks(self) -> bool:
        """Whether anything can be said about the outputs: a reference, or a property that they must have."""
        return self.has_reference or self.judges_properties

    @property
    def judges_properties(self) -> bool:
        """Whether a function of the suite looks at inputs and outputs together."""
        return any(check.metric == "property" for check in self.case.checks.values())

    def kernel(self, op: str, timeout_s: float | None = None, **arguments: Any) -> Any:
        """Ask the kernel's side; its end is the kernel's fault.

        Raises:
            Over: the kernel failed.
        """
        return self._ask(self.side_of_kernel(), findings.KERNEL, op, timeout_s, arguments)

    def judge(self, op: str, timeout_s: float | None = None, **arguments: Any) -> Any:
        """Ask the judge; its end is the suite's fault, since the reference and the versus entries live there.

        Raises:
            Over: they failed.
        """
        first, later = self.case.first_call_timeout_s, self.case.case_timeout_s
        limit = timeout_s or (max(first, later) if op in FIRST_CALLS else later)
        return self._ask(self.side_of_judge(), findings.JUDGE, op, limit, arguments)

    def begin(self, find: Callable[[], Side], ask: Callable[..., Any]) -> None:
        """Hand the case to a side; one that an earlier case left unusable is replaced.

        No code of this case has run yet, so that whatever goes wrong here the first time is not its fault.

        Args:
            find: returns the side, a fresh one where the last is gone.
            ask: asks it, as `kernel` and `judge` do.

        Raises:
            Over: a fresh side cannot take the case.
        """
        plain, side = to_plain(self.case), find()
        try:
            side.ask("begin", self.case.first_call_timeout_s, case=plain)
        except (Stopped, Died, TimedOut, SideBug):
            side.bury()
            find()
            ask("begin", case=plain)

    def _ask(
        self, side: Side, who: findings.Who, op: str, timeout_s: float | None, arguments: dict[str, Any]
    ) -> Any:
        of_kernel = who is findings.KERNEL
        counts = of_kernel and op in KERNEL_WORK
        # An inline side plays both roles, so what it is asked says better who is at work than which side it is.
        who = (roles.at_work(self.case, op, arguments.get("key")), who[1])
        if timeout_s is None:
            own = max(self.case.first_call_timeout_s, self.case.case_timeout_s)
            timeout_s = min(self.left_s, 1e6) if counts else own
        side.on_progress = self.progress
        begin = time.monotonic()
        try:
            answer = side.ask(op, timeout_s, **arguments)
        except Stopped as stopped:
            if stopped.finding.code in ("device_error", "limits_lowered"):
                side.bury()  # the context is poisoned, the process crippled
            self.over(stopped.finding)
        except SideBug as bug:
            changed = "" if of_kernel else _changed_in(side)
            if not of_kernel and not changed:
                raise
            side.bury()
            self.over(findings.broken_judge(changed, str(bug)) if changed else findings.broken_side(str(bug)))
        except Died as died:
            if self.run.lost_host:
                self.over(findings.lost_host(who, died.tail))
            self.over(findings.died(who, died.status, died.tail))
        except TimedOut as late:
            # The kernel's calls share what is left of the case's time: name the limit that the suite set.
            limit = late.seconds
            if of_kernel:
                first = op in ("load", "call") and self.deadline == float("inf")
                limit = self.case.first_call_timeout_s if first else self.case.case_timeout_s
            self.over(findings.timed_out(who, op, limit, late.tail))
        if not counts:  # what the judge takes, and kmrun's own copying, is not the kernel's time
            self.deadline += time.monotonic() - begin
        return answer

    def bytes_per_call(self) -> int:
        """Return what a call touches beyond its inputs: recorded activations, in a backward mode."""
        return 0 if self.case.mode == "forward" else self.case.needed_bytes.get("kernel", 0) // 2

    def refuse_wrong(self, found: list[dict[str, Any]], where: str = "") -> None:
        """End the case where a judge found outputs wrong; `where` begins the sentence on them.

        Raises:
            Over: they are wrong.
        """
        wrong = [where + each["sentence"] for each in found if not each["check"]["ok"]]
        if wrong:
            self.over(findings.wrong_result(wrong))

    def over(self, finding: Finding) -> NoReturn:
        """Note what decided the case, and end it.

        Raises:
            Over: always.
        """
        self.findings.append(finding)
        raise Over

    def side_of_kernel(self) -> Side:
        """Return the process that hosts the kernel."""
        if not self.inline:
            return self.run.kernel()
        if self._own is None or not self._own.alive:
            self._own = self.run.start_another()
        return self._own

    def side_of_judge(self) -> Side:
        """Return the process that hosts the reference."""
        return self.side_of_kernel() if self.inline else self.run.judge()

    def only_kernel(self) -> Idle:
        """Keep the judge off the CPU for the length of a block."""
        return Idle(self.run.judge() if self.run.on_cpu and not self.inline else None)

    def only_judge(self) -> Idle:
        """Keep the kernel's side off the CPU for the length of a block."""
        return Idle(self.run.kernel() if self.run.on_cpu and not self.inline else None)

    def leave_inline(self) -> None:
        """End the one side of an inline case."""
        if self._own is not None:
            self._own.bury()


def _changed_in(side: Side) -> str:
    """Return what user code changed in a side that failed: then the failure need not be kmrun's. Empty: nothing."""
    try:
        changed: str = side.ask("changed", 10.0)
    except (Stopped, Died, TimedOut, SideBug):
        return ""
    return changed
