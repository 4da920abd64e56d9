"""What two versions compute in their fresh processes: what is timed there must be right there. No torch.

A kernel may be right where it was checked and wrong in another process: what it tunes, draws or compiles when it
is loaded comes out anew each time, and what it counts or remembers goes on in turns that are longer than checks.
"""

from typing import TYPE_CHECKING, Any

from kmrun.measure.roles import KERNEL
from kmrun.measure.version import Drawing, Inputs, Version, VersionFailed

if TYPE_CHECKING:
    from kmrun.measure.trial import Trial

MOST_SHOWN = 3
"""Outputs of a pair that are compared: a case takes two pairs at least, a suspect seven, so that few are many."""


def look_at_first_call(trial: "Trial", old: Version, inputs: Inputs, name: str) -> None:
    """Label it where the old version computes something else, by the very check of the new one.

    Args:
        trial: of the case.
        old: the old version, before its first turn.
        inputs: what it got.
        name: what the old version is called.

    Raises:
        VersionFailed: it ended, or writes to its inputs: then each call has others, and so has whoever gets its
            copies in the next pair.
    """
    compared = trial.has_checks and not trial.inline
    limit = trial.case.first_call_timeout_s
    drawing = inputs.drawings[0]
    try:
        called = old.ask("call", limit, slot=drawing.slot, share=compared, at=inputs.end)
    except VersionFailed as failed:
        if not old.alive or failed.finding.code == "input_mutated":
            raise
        trial.label(f"{name}: {failed.finding.sentence}")
        return
    if compared and not all(each["check"]["ok"] for each in _compared(trial, drawing, called["tree"])):
        trial.label(f"{name} computes something else")


def look_at_turns(trial: "Trial", new: Version, old: Version, inputs: Inputs, name: str) -> None:
    """Check outputs of the new version's turns, and that neither version wrote to the inputs that both get.

    Raises:
        VersionFailed: one ended, or wrote to its inputs.
        Over: the new version computed something wrong.
    """
    old.wake()
    old.ask("show_turns", key=KERNEL)
    old.stop()
    new.wake()
    most = MOST_SHOWN if trial.has_checks else 0
    if trial.inline:
        shown = new.ask("show_turns", key=KERNEL, most=min(most, 1))
        found = [_compared_by_itself(trial, new, inputs.of(each["slot"])) for each in shown]
        new.stop()
    else:
        shown = new.ask("show_turns", key=KERNEL, most=most, share=True, at=inputs.end)
        new.stop()
        found = [_compared(trial, inputs.of(each["slot"]), each["tree"]) for each in shown]
    for each in found:
        trial.take_checks(each, f"in a call that was timed beside {name}: ")


def _compared(trial: "Trial", drawing: Drawing, tree: Any) -> list[dict[str, Any]]:
    judge = trial.side_of_judge()
    if trial.run.on_cpu:
        judge.wake()
    found: list[dict[str, Any]] = trial.judge("compare", slot=drawing.slot, tree=tree, seed=drawing.seed)
    if trial.run.on_cpu:
        judge.stop()
    return found


def _compared_by_itself(trial: "Trial", new: Version, drawing: Drawing) -> list[dict[str, Any]]:
    limit = trial.case.first_call_timeout_s
    if trial.has_reference:
        new.ask("expect", limit, slot=drawing.slot)
    found: list[dict[str, Any]] = new.ask("compare", limit, slot=drawing.slot, tree=None, seed=drawing.seed)
    return found
