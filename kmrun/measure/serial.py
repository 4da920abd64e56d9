"""The course of a case where only one process may use the device at a time (exclusive mode, MPS, little memory).

The kernel's side imports its target and waits without touching the device. A judge draws all inputs into the
arena and what it expects of them into the vault, which the kernel's side never maps, times the rivals, and
leaves. The kernel runs and leaves. A second judge compares. Ratios are not alternated, hence inconclusive.
"""

from typing import TYPE_CHECKING, Any

from kmrun.core.measurement import Rival
from kmrun.core.statistics import median
from kmrun.measure.beside import ready, rivals
from kmrun.measure.room import budget

if TYPE_CHECKING:
    from kmrun.measure.trial import Trial

SLOTS = (0, 1, 2)


def course(trial: "Trial") -> None:
    """Measure the trial's case one process after the other.

    Raises:
        Over: something decided the case early.
    """
    trial.begin_kernel(compute=False)
    trial.load_kernel()
    drawn, expected, after = _judge_first(trial)
    outputs = _kernel_alone(trial, drawn, after)
    if trial.has_checks:
        _judge_last(trial, expected, outputs)


def _judge_first(trial: "Trial") -> tuple[list[Any], list[Any], int]:
    trial.begin_judge()
    trial.load_rivals()
    trees, expected, arena_at, vault_at = [], [], 0, 0
    for slot in SLOTS:
        drawn = trial.judge("draw", slot=slot, seed=trial.new_seed(slot), share=True, at=arena_at)
        if "cannot_cross" in drawn:
            trial.over_cannot_cross(drawn["cannot_cross"])
        trees.append(drawn["tree"])
        arena_at = drawn["next"]
        if trial.has_reference:
            seen = trial.judge("expect", slot=slot, keep=True, at=vault_at)
            expected.append(seen["tree"])
            vault_at = seen["next"]
            trial.learn(seen)
            if slot == 0:
                trial.test_tolerance(slot)
    trial.count_bytes(drawn["bytes"])
    _time_rivals(trial)
    trial.leave_judge()
    return trees, expected, arena_at


def _time_rivals(trial: "Trial") -> None:
    found_rivals = rivals(trial)
    if not found_rivals:
        return
    trial.judge("stage", cold=trial.wants_cold, bytes_per_call=trial.bytes_per_call())
    found = []
    for key, role, implementation in found_rivals:
        ready(trial, key)
        samples = trial.judge("window", key=key, budget=budget(trial))["samples_ns"]
        found.append(Rival(implementation.name, role, (), median(samples), alternated=False))
    trial.know(rivals=tuple(found))


def _kernel_alone(trial: "Trial", drawn: list[Any], at: int) -> list[tuple[int, Any]]:
    """Run everything that the kernel's side does; return (slot, description of outputs) in the arena."""
    trial.open_kernel_device()
    for slot in SLOTS:
        trial.kernel("receive", slot=slot, tree=drawn[slot])
    outputs = []
    for slot in (0, 1):
        called = trial.call(slot, at=at)
        outputs.append((slot, called["tree"]))
        at = called["next"]
    trial.time_kernel()
    at = _show_kept(trial, outputs, at)
    if trial.wants_hot:
        trial.time_hot()
        at = _show_kept(trial, outputs, at)
    called = trial.call(2, at=at)
    outputs.append((2, called["tree"]))
    trial.leave_kernel()
    return outputs


def _show_kept(trial: "Trial", outputs: list[tuple[int, Any]], at: int) -> int:
    for index in range(trial.take_kept()):
        shown = trial.kernel("show_kept", index=index, share=True, at=at)
        outputs.append((shown["slot"], shown["tree"]))
        at = shown["next"]
    return at


def _judge_last(trial: "Trial", expected: list[Any], outputs: list[tuple[int, Any]]) -> None:
    trial.begin_judge()
    for slot in SLOTS if trial.judges_properties else ():
        trial.judge("draw", slot=slot, seed=trial.seed_of(slot), share=False)
    for slot, tree in enumerate(expected):
        trial.judge("recall", slot=slot, tree=tree)
    for slot, tree in outputs:
        trial.judge_outputs(slot, tree)
    trial.judge("end")
