"""An implementation bound to one copy of its inputs: a call without arguments, and where its outputs are."""

import errno
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch

from kmrun.core.case import Case, Implementation
from kmrun.core.measurement import FaultKind
from kmrun.measure import inputs, machine, outputs, returned
from kmrun.measure.copies import tensors_in
from kmrun.measure.faults import OWN_CODE, SideFault, one_line, traceback_tail, what_it_did
from kmrun.measure.fork_guard import end_if_child
from kmrun.measure.target import TargetError, resolve
from kmrun.measure.writes import Writes, hash_bytes

_OUT_OF_MEMORY = ("out of memory", "can't allocate memory", "not enough memory", "alloc_cpu")
_DEVICE_ERRORS = ("CUDA error", "HIP error", "CUDNN_STATUS", "an illegal memory access")


@dataclass(frozen=True, slots=True)
class Loaded:
    """An implementation whose target was imported. `fault` says whose fault its failures are."""

    implementation: Implementation
    function: Callable[..., Any]
    fault: FaultKind
    who: str


@dataclass(frozen=True, slots=True)
class Bound:
    """`thunk()` runs one call; `collect(result)` names the outputs of that call."""

    thunk: Callable[[], Any]
    collect: Callable[[Any], dict[str, torch.Tensor]]


def load(case: Case, implementation: Implementation, fault: FaultKind, who: str) -> Loaded:
    """Import a target, compiled where the suite asks for it.

    Raises:
        TargetError: it cannot be had.
        SideFault: importing it changed global settings.
    """
    try:
        with machine.steady(who, fault):
            function = resolve(implementation.target, case.folder)
    except TargetError as error:
        raise error.blamed_on(fault) from error
    if implementation.compile is not None:
        torch._dynamo.reset()
        function = torch.compile(function, **_compile_options(implementation.compile))
    return Loaded(implementation, function, fault, who)


def _compile_options(options: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in options.items() if value is not None}


def bind(
    case: Case, loaded: Loaded, named: Mapping[str, Any], grads: Mapping[str, Any], device: torch.device
) -> Bound:
    """Bind an implementation to these very inputs; runs `setup` and, in backward mode, the forward pass.

    Raises:
        SideFault: user code raised.
    """
    with user_code(loaded):
        buffers = outputs.allocate(case, device)
        args, kwargs = inputs.call_arguments_for(case, loaded.implementation, named, buffers)
        function = loaded.function
        if loaded.implementation.setup is not None:
            function = resolve(loaded.implementation.setup, case.folder)(*args, **kwargs)
            if not callable(function):
                kind = type(function).__name__
                raise SideFault("not_callable", f"setup returned a {kind}, not something to call", "suite")
        forward = partial(function, *args, **kwargs)
        if case.mode == "forward":
            return Bound(forward, lambda result: outputs.collect(case, result, named, buffers, loaded.who))
        if case.mode == "backward":
            recorded = _forward_outputs(case, forward, named, buffers, loaded.who)
            return Bound(lambda: outputs.gradients(case, recorded, named, grads), _as_is)
        return Bound(
            lambda: outputs.gradients(
                case, _forward_outputs(case, forward, named, buffers, loaded.who), named, grads
            ),
            _as_is,
        )


def _forward_outputs(
    case: Case, forward: Callable[[], Any], named: Mapping[str, Any], buffers: Mapping[str, Any], who: str
) -> dict[str, torch.Tensor]:
    return outputs.collect(case, forward(), named, buffers, who)


def _as_is(result: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    return result


def evaluate_rival(
    case: Case, loaded: Loaded, named: Mapping[str, Any], grads: Mapping[str, Any], device: torch.device
) -> dict[str, torch.Tensor]:
    """Call a versus entry once; it may work in place where the kernel does not, and the other way round.

    The arguments are those of `bind`; `named` may be written to.

    Raises:
        SideFault: it raised, changed global settings, gave something else than outputs, or wrote to an argument
            that the kernel must leave alone: what it is timed on would be no longer what was drawn.
    """
    frozen = {
        f"{name}.{index}": tensor
        for name, value in named.items()
        if name not in case.mutates
        for index, tensor in enumerate(tensors_in(value))
    }
    unasked = {name: hash_bytes(tensor) for name, tensor in frozen.items()}
    writes = Writes(outputs.mutated(case, named))
    with machine.steady(loaded.who, loaded.fault), user_code(loaded):
        bound = bind(case, loaded, named, grads, device)
        result = bound.thunk()
    for name, tensor in frozen.items():
        if hash_bytes(tensor) != unasked[name]:
            argument = name.rpartition(".")[0]
            sentence = f"{loaded.who} wrote to its input {argument!r}; let it work on a copy"
            raise SideFault("input_mutated", sentence, loaded.fault)
    in_buffers = any(output.arg is not None for output in case.outputs or ())
    with user_code(loaded):
        if case.mode != "forward" or in_buffers:
            return bound.collect(result)
        found, _ = returned.by_name(case, result, named, writes.found(), loaded.who)
        for output in case.outputs or ():
            outputs.check_form(output, found[output.name])
        return found


@contextmanager
def user_code(loaded: Loaded) -> Iterator[None]:
    """Turn whatever user code raises into a finding with its fault and the end of its traceback.

    Catches BaseException on purpose: `sys.exit()` and KeyboardInterrupt raised by a kernel are its own doing.
    kmrun's own errors pass through as they are.
    """
    who, fault = loaded.who, loaded.fault
    try:
        yield
    except SideFault as error:
        if fault == "suite" and error.fault == "kernel":
            sentence = error.sentence if error.sentence.startswith(who) else f"{who}: {error.sentence}"
            raise SideFault(error.code, sentence, fault, error.detail, "error") from error
        raise
    except BaseException as error:
        end_if_child()
        if is_ours(error):
            raise
        raise _fault(error, who, fault) from error


def ran_out_of_memory(error: BaseException) -> bool:
    """Return whether an error says that memory was refused: Python's, torch's or the system's."""
    if isinstance(error, MemoryError | torch.OutOfMemoryError):
        return True
    if isinstance(error, OSError):
        return error.errno == errno.ENOMEM
    return any(sign in one_line(error) for sign in _OUT_OF_MEMORY)


def _fault(error: BaseException, who: str, fault: FaultKind) -> SideFault:
    text, detail = one_line(error), traceback_tail(error)
    if isinstance(error, SystemExit):
        return SideFault("exited", f"{who} {what_it_did(error)}", fault, detail)
    if isinstance(error, ModuleNotFoundError):
        sentence = f"{who} needs the module {error.name!r}, which is not installed"
        return SideFault("module_missing", sentence, "environment", detail)
    if ran_out_of_memory(error):
        return SideFault("out_of_memory", f"{who} ran out of memory: {one_line(error)}", fault, detail)
    code = "device_error" if any(sign in text for sign in _DEVICE_ERRORS) else "raised"
    return SideFault(code, f"{who} {what_it_did(error)}", fault, detail)


_CALL_SITES = frozenset(
    {"_run", "batch_ns", "notice_synchronising", "call", "_call", "bind", "_forward_outputs", "gradients"}
)
"""kmrun's functions that call user code directly: an error raised right there may be a C function's."""


def is_ours(error: BaseException) -> bool:
    """Return whether kmrun's own code raised an error: then it is a bug, and must not be blamed on the user."""
    frames = traceback.extract_tb(error.__traceback__)
    last = frames[-1]
    return last.filename.startswith(OWN_CODE) and last.name not in _CALL_SITES
