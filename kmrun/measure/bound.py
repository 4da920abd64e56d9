"""An implementation bound to one copy of its inputs: a call without arguments, and where its outputs are."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch

from kmrun.core.case import Case, Implementation
from kmrun.core.measurement import FaultKind
from kmrun.measure import inputs, outputs
from kmrun.measure.faults import SideFault, one_line, traceback_tail
from kmrun.measure.target import resolve

_OUT_OF_MEMORY = ("out of memory", "can't allocate memory", "not enough memory", "alloc_cpu")
_DEVICE_ERRORS = ("CUDA error", "HIP error", "CUDNN_STATUS", "an illegal memory access")


@dataclass(frozen=True, slots=True)
class Loaded:
    """An implementation whose target was imported. `fault` says whose fault its failures are."""

    implementation: Implementation
    function: Callable[..., Any]
    fault: FaultKind
    folder: str
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
    """
    function = resolve(implementation.target, case.folder)
    if implementation.compile is not None:
        torch._dynamo.reset()
        function = torch.compile(function, **_compile_options(implementation.compile))
    return Loaded(implementation, function, fault, case.folder, who)


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
            function = resolve(loaded.implementation.setup, loaded.folder)(*args, **kwargs)
            if not callable(function):
                kind = type(function).__name__
                raise SideFault("not_callable", f"setup returned a {kind}, not something to call", "suite")
        forward = partial(function, *args, **kwargs)
        if case.mode == "forward":
            return Bound(forward, lambda result: outputs.collect(case, result, named, buffers))
        if case.mode == "backward":
            recorded = _forward_outputs(case, forward, named, buffers)
            return Bound(lambda: outputs.gradients(case, recorded, named, grads), _as_is)
        return Bound(
            lambda: outputs.gradients(
                case, _forward_outputs(case, forward, named, buffers), named, grads
            ),
            _as_is,
        )


def _forward_outputs(
    case: Case, forward: Callable[[], Any], named: Mapping[str, Any], buffers: Mapping[str, Any]
) -> dict[str, torch.Tensor]:
    return outputs.collect(case, forward(), named, buffers)


def _as_is(result: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    return result


@contextmanager
def user_code(loaded: Loaded) -> Iterator[None]:
    """Turn whatever user code raises into a finding with its fault and the end of its traceback.

    Catches BaseException on purpose: `sys.exit()` and KeyboardInterrupt raised by a kernel are its own doing.
    """
    who, fault = loaded.who, loaded.fault
    try:
        yield
    except SideFault as error:
        if fault == "suite" and error.fault == "kernel":
            raise SideFault(error.code, f"{who}: {error.sentence}", fault, error.detail, "error") from error
        raise
    except SystemExit as error:
        raise SideFault("exited", f"{who} called exit({error.code!r})", fault, traceback_tail(error)) from error
    except MemoryError as error:
        raise SideFault("out_of_memory", f"{who} ran out of memory", fault, traceback_tail(error)) from error
    except BaseException as error:
        text, code = str(error), "raised"
        if any(sign in text for sign in _DEVICE_ERRORS):
            code = "device_error"
        if isinstance(error, torch.OutOfMemoryError) or any(sign in text for sign in _OUT_OF_MEMORY):
            code = "out_of_memory"
        sentence = f"{who} raised {one_line(error)}"
        if code == "out_of_memory":
            sentence = f"{who} ran out of memory: {one_line(error)}"
        if isinstance(error, ModuleNotFoundError):
            code, fault = "module_missing", "environment"
            sentence = f"{who} needs the module {error.name!r}, which is not installed"
        raise SideFault(code, sentence, fault, traceback_tail(error)) from error
