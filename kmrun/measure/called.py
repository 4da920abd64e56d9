"""One call of the kernel that is checked and not timed for a score: what it returned, wrote to, held and forked."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import torch

from kmrun.core.case import Case
from kmrun.measure import fork_guard, machine, outputs
from kmrun.measure.bound import Loaded, bind, user_code
from kmrun.measure.copies import bytes_in, tensors_in
from kmrun.measure.faults import SideFault, written_to

_clock = time.perf_counter_ns


class MemoryHeld(Protocol):
    """Tells the bytes that this process holds on the device, or the most since the last `reset`."""

    def __call__(self, reset: bool = False, peak: bool = False) -> int:
        """See the class."""


@dataclass(frozen=True, slots=True)
class Called:
    """What a call came to. `peak_bytes` is the most memory that it held, its inputs included."""

    wall_ns: int
    peak_bytes: int
    outputs: dict[str, torch.Tensor]


def call_once(
    case: Case,
    loaded: Loaded,
    given: tuple[dict[str, Any], dict[str, Any]],
    device: torch.device,
    synchronize: Callable[[], None],
    memory_held: MemoryHeld,
) -> Called:
    """Call the kernel with these inputs and incoming gradients, which nobody else needs.

    Raises:
        SideFault: it failed; or forked, and its child came back; or wrote to an input that the suite does not say it
            mutates.
    """
    named, grads = given
    frozen = {name: value for name, value in named.items() if name not in case.mutates}
    before = {name: _hashes(value) for name, value in frozen.items()}
    held = memory_held(reset=True)
    begin, forks = _clock(), fork_guard.begin()
    with machine.steady(loaded.who, loaded.fault), user_code(loaded):
        bound = bind(case, loaded, named, grads, device)
        result = bound.thunk()
        fork_guard.end_if_child()
        synchronize()
        wall = _clock() - begin
    if fork_guard.came_back(forks):
        raise SideFault(
            "forked", "the kernel forked, and its child came back as if it were the kernel", "kernel"
        )
    peak = max(memory_held(peak=True) - held, 0)
    for name, value in frozen.items():
        if _hashes(value) != before[name]:
            raise written_to(name)
    with user_code(loaded):
        found = bound.collect(result)
    return Called(wall, peak + bytes_in(named), found)


def _hashes(value: Any) -> list[int]:
    return [outputs.hash_bytes(tensor) for tensor in tensors_in(value)]
