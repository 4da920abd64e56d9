"""What user code did to its process that would reach the next case: then that case gets a fresh side.

Undoing it would not do: a module that patches torch, or switches the collector off, does so when it is imported,
which is once in a process, and means it for all its cases. In a fresh process it is imported again.
"""

import builtins
import gc
import json
import os
import resource
import sys
import time
import types
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from kmrun.core.measurement import FaultKind
from kmrun.measure.faults import SideFault

_NAMESPACES = (builtins, time, os, json, torch, torch.Tensor, torch.nn.functional, torch.linalg)
_TORCH = str(Path(torch.__file__).parent)
_FUNCTIONS = (
    types.FunctionType,
    types.BuiltinFunctionType,
    types.MethodDescriptorType,
    types.WrapperDescriptorType,
    type,
)
_KERNEL: tuple[str, FaultKind] = ("the kernel", "kernel")
_SUITE: tuple[str, FaultKind] = ("the suite's code", "suite")
_LIMITS = ("RLIMIT_AS", "RLIMIT_DATA", "RLIMIT_STACK", "RLIMIT_CPU", "RLIMIT_NOFILE", "RLIMIT_FSIZE")


@dataclass(frozen=True)
class Interpreter:
    """An interpreter as it was before any user code ran in it. Functions that come later are nobody's concern."""

    functions: tuple[dict[str, Any], ...]
    errors: int
    """Warnings that are errors."""
    collects: bool
    depth: int

    @classmethod
    def now(cls) -> "Interpreter":
        """Return it as it is."""
        return cls(
            tuple(
                {name: value for name, value in vars(space).items() if isinstance(value, _FUNCTIONS)}
                for space in _NAMESPACES
            ),
            sum(found[0] == "error" for found in warnings.filters),
            gc.isenabled(),
            sys.getrecursionlimit(),
        )

    def change(self) -> str:
        """Return what is no longer as it was, empty where all is."""
        for space, functions in zip(_NAMESPACES, self.functions, strict=True):
            held = vars(space)
            for name, value in functions.items():
                if held.get(name) is not value and not _is_torch_s_own(held.get(name)):
                    return f"{space.__name__}.{name}"
        if sys.gettrace() is not None or sys.getprofile() is not None:
            return "the trace function"
        if sum(found[0] == "error" for found in warnings.filters) != self.errors:
            return "which warnings are errors"
        if gc.isenabled() != self.collects:
            return "the garbage collector"
        if sys.getrecursionlimit() != self.depth:
            return "the recursion limit"
        return ""


@dataclass(frozen=True)
class Standing:
    """What the system's scheduler gives this thread, and those that it starts: a priority, and cores to run on."""

    nice: int
    cores: frozenset[int]

    @classmethod
    def now(cls) -> "Standing":
        """Return it as it is."""
        cores = frozenset(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else frozenset()
        return cls(os.getpriority(os.PRIO_PROCESS, 0), cores)

    def change(self) -> str:
        """Return what is no longer as it was, empty where all is."""
        found = Standing.now()
        if found.nice != self.nice:
            return "the priority"
        return "" if found.cores == self.cores else "the cores to run on"


def _is_torch_s_own(function: Any) -> bool:
    """Whether torch itself put it there: `torch.compile` wraps some functions when it is first used."""
    code = getattr(function, "__code__", None)
    return isinstance(code, types.CodeType) and code.co_filename.startswith(_TORCH)


def limits() -> dict[str, float]:
    """Return the limits that the system puts on this process, infinity where there is none."""
    found = {name: resource.getrlimit(getattr(resource, name))[0] for name in _LIMITS}
    return {name: float("inf") if soft == resource.RLIM_INFINITY else soft for name, soft in found.items()}


def limit_fault(before: Mapping[str, float], is_kernel: bool) -> SideFault | None:
    """Return what to say of a limit that is lower than it was, None where none is.

    Args:
        before: the limits before any user code; what is not in it is not looked at.
        is_kernel: whether the process hosts the kernel; else it is the suite that is at fault.
    """
    limit = next((name for name, soft in limits().items() if soft < before.get(name, 0)), None)
    if limit is None:
        return None
    who, fault = _KERNEL if is_kernel else _SUITE
    return SideFault("limits_lowered", f"{who} lowered a limit of its process ({limit})", fault)
