"""Timing the kernel beside its rivals, in alternated blocks of two live sides. No torch."""

import time
from typing import TYPE_CHECKING, Literal

from kmrun.core.case import Implementation
from kmrun.core.measurement import Rival
from kmrun.core.statistics import median
from kmrun.measure import handoff
from kmrun.measure.blocks import LEVELS, Blocks, Take, turn_of
from kmrun.measure.roles import KERNEL, REFERENCE, VERSUS
from kmrun.measure.room import has_room, warm_most_ns, warm_up_limits
from kmrun.measure.side import Idle

if TYPE_CHECKING:
    from kmrun.measure.trial import Trial

BLOCKS, BLOCKS_MOST, BLOCKS_LEAST, BLOCKS_FLUSHED = 14, 40, 12, 7
"""Fourteen blocks on one side of a bound are one chance in 16384; more are taken while they straddle one."""

Role = Literal["reference", "versus"]


def rivals(trial: "Trial") -> list[tuple[str, Role, Implementation]]:
    """Return (key, role, implementation) of what is timed beside the kernel: versus entries, else the reference."""
    if trial.case.versus:
        return [(VERSUS + each.name, "versus", each) for each in trial.case.versus]
    if trial.case.reference is not None:
        return [(REFERENCE, "reference", trial.case.reference.implementation)]
    return []


def time_rivals(trial: "Trial") -> None:
    """Time every rival beside the kernel; what comes out is known as the measurement's `rivals`."""
    found = rivals(trial)
    if not found:
        return
    cold = trial.known["l2"] == "cold"
    trial.progress("preparing rivals")
    with trial.only_judge():
        if not trial.inline:  # an inline side is staged already
            trial.judge("stage", cold=cold, bytes_per_call=trial.bytes_per_call())
        levels = {key: ready(trial, key) for key, _, _ in found}
    handoff.look(trial)
    trial.known["rivals"] = tuple(
        _alternate(trial, key, role, implementation.name, levels[key], share=1 / (len(found) - number))
        for number, (key, role, implementation) in enumerate(found)
    )


def ready(trial: "Trial", key: str) -> float:
    """Bind and warm up a rival in the judge; label a versus entry that computes something else."""
    if key != REFERENCE and trial.case.reference is not None:
        agrees = trial.judge("rival_agrees", key=key, slot=0, seed=trial.seed_of(0))
        if not agrees:
            trial.label(f"{key.removeprefix(VERSUS)} differs from the reference")
    first = trial.judge("prepare", key=key)["call_ns"]
    limits = warm_up_limits(warm_most_ns(trial), first)
    level: float = trial.judge("warm_up", key=key, **limits)["call_ns"]
    return level


def _alternate(trial: "Trial", key: str, role: Role, name: str, rival_ns: float, share: float) -> Rival:
    """Time the kernel and a rival in alternated blocks, in a share of the time that is left of the kernel's."""
    kernel_ns = median(trial.known["samples_ns"])
    flushed = trial.run.on_cpu and trial.known["extra"]["cold_by"] == "flush"
    turn = turn_of(kernel_ns, trial.run.on_cpu, flushed)
    blocks = Blocks(
        (_turns_of(trial, KERNEL), _turns_of(trial, key)),
        (turn, turn_of(rival_ns, trial.run.on_cpu, flushed)),
        LEVELS[trial.run.device.kind],
    )
    least = BLOCKS_FLUSHED if flushed else BLOCKS_LEAST
    limit_s = trial.case.timing.max_time_ms * (0.25 if trial.run.options.quick else 1.0) / 1e3
    begin, hard = time.monotonic(), trial.case.case_timeout_s / 3
    block_s, kept_back_s = 2 * (turn.calls + turn.discard) * kernel_ns / 1e9, trial.left_s * (1 - share)
    bounds = [
        bound
        for clause in trial.case.clauses
        if clause.kind == "min_speedup"
        for bound in clause.bounds.values()
    ]
    pairs: list[tuple[float, float]] = []
    while len(pairs) < BLOCKS_MOST and has_room(trial, block_s + kept_back_s):
        trial.progress(f"beside {name}, block {len(pairs) + 1}")
        left_s = trial.left_s
        pairs.append(trial.run.watch.steady(blocks.take))
        block_s = left_s - trial.left_s
        spent = time.monotonic() - begin
        decided = not _straddles(pairs, bounds)
        if spent > hard or (decided and (len(pairs) >= BLOCKS or (spent > limit_s and len(pairs) >= least))):
            break
    if not pairs:
        trial.label(f"no time left beside {name}")
        return Rival(name, role, (), rival_ns, alternated=False)
    return Rival(name, role, tuple(pairs), median(blocks.samples[1]))


def _turns_of(trial: "Trial", who: str) -> Take:
    side, idle = (trial.kernel, trial.side_of_judge) if who == KERNEL else (trial.judge, trial.side_of_kernel)

    def take(calls: int, discard: int) -> list[float]:
        with Idle(idle() if trial.run.on_cpu and not trial.inline else None):
            samples: list[float] = side("turn", key=who, calls=calls, discard=discard)
        return samples

    return take


def _straddles(pairs: list[tuple[float, float]], bounds: list[float]) -> bool:
    ratios = [rival / kernel for kernel, rival in pairs]
    return any(min(ratios) <= bound <= max(ratios) for bound in bounds)
