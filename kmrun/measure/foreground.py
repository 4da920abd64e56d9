"""A kernel alone on its real inputs, in this very process: what a profiler or a debugger attaches to.

The one place where parent and side are the same process. Nothing is timed, compared or caught: an exception of
the kernel is shown as it was raised, so that `python -m pdb -m kmrun exec` stops where it happened.
"""

import contextlib
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import torch

from kmrun.core.case import Case
from kmrun.device import cpu
from kmrun.errors import EnvironmentLacks, InvalidInput, KernelBroken
from kmrun.measure import inputs, machine, outputs
from kmrun.measure.bound import bind, load
from kmrun.measure.faults import SideFault, what_it_did
from kmrun.measure.timer import Flusher

Choose = Callable[[str], Case]


class Exited(Exception):
    """User code called `exit()`; its traceback is that of the call. SystemExit would end us without a word."""


def run_alone(choose: Choose, device_name: str, calls: int, cold: bool, seed: int) -> None:
    """Call a kernel once to warm it up, then `calls` times, each in an NVTX range under a running profiler.

    Args:
        choose: returns the case for a kind of device (`cpu`, `cuda`, `rocm`).
        device_name: `auto`, `cpu`, `cuda` or `cuda:N`.
        calls: how often inside the profiled region.
        cold: flush the caches before each call.
        seed: of the inputs.

    Raises:
        InvalidInput: its target or an input cannot be had.
        EnvironmentLacks: a module that it needs is missing.
        KernelBroken: what it returns cannot be differentiated.
        Exited: user code called `exit()`.
        BaseException: what the kernel, its module, its `setup` or an `init: call` raised, as it was raised.
    """
    try:
        _prepare_and_call(choose, device_name, calls, cold, seed)
    except SystemExit as error:
        raise _exited(f"the kernel {what_it_did(error)}", error) from None
    except SideFault as fault:
        raised = _raised_by_user_code(fault)
        if raised is not None:
            raise raised from None
        kinds = {"environment": EnvironmentLacks, "kernel": KernelBroken}
        raise kinds.get(fault.fault, InvalidInput)(fault.sentence) from fault


def _prepare_and_call(choose: Choose, device_name: str, calls: int, cold: bool, seed: int) -> None:
    device = machine.find_device(device_name)
    case = choose(machine.kind_of(device))
    machine.set_math_flags(case)
    torch.set_num_threads(cpu.usable_cores())
    loaded = load(case, case.implementation, "kernel", "the kernel")
    named = inputs.build(case, seed, device)
    grads = {}
    if case.mode != "forward":
        args, kwargs = inputs.call_arguments(case, named)
        forward = outputs.collect(case, call(partial(loaded.function, *args, **kwargs)), named)
        grads = inputs.draw_grads(case, forward, seed)
    thunk = bind(case, loaded, named, grads, device).thunk
    flush = Flusher(machine.cache_bytes(device), device) if cold else None
    call(thunk)
    _synchronize(device)
    with _profiler(device):
        for index in range(calls):
            if flush is not None:
                flush()
            with _range(device, f"{case.id} {index}"):
                call(thunk)
        _synchronize(device)


def call(thunk: Callable[[], Any]) -> Any:
    """Call user code. `bound.is_ours` knows this function by its name."""
    return thunk()


def _raised_by_user_code(fault: SideFault) -> BaseException | None:
    """Return what user code raised; None where a name or a module is only missing, which a sentence says best."""
    if fault.code in ("target_missing", "module_missing"):
        return None
    found: BaseException | None = fault
    while isinstance(found, SideFault):
        last, found = found, found.__cause__
    return _exited(last.sentence, found) if isinstance(found, SystemExit) else found


def _exited(sentence: str, error: SystemExit) -> Exited:
    return Exited(sentence).with_traceback(error.__traceback__)


def _synchronize(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


@contextlib.contextmanager
def _profiler(device: torch.device) -> Iterator[None]:
    if device.type != "cuda":
        yield
        return
    torch.cuda.profiler.start()
    try:
        yield
    finally:
        torch.cuda.profiler.stop()


@contextlib.contextmanager
def _range(device: torch.device, name: str) -> Iterator[None]:
    if device.type != "cuda":
        with torch.profiler.record_function(name):
            yield
        return
    torch.cuda.nvtx.range_push(name)
    try:
        yield
    finally:
        torch.cuda.nvtx.range_pop()
