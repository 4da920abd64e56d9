"""What torch says of the machine, and its global settings."""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

import torch

from kmrun.core.case import Case
from kmrun.core.measurement import FaultKind
from kmrun.device import cpu
from kmrun.measure.faults import SideFault

_SPIN_CYCLES = 2_000_000


def cpu_facts(threads: int) -> dict[str, Any]:
    """Return the CPU as a plain `core.measurement.RunDevice`."""
    return {
        "kind": "cpu",
        "index": 0,
        "name": cpu.model_name(),
        "memory_bytes": cpu.memory_total_bytes(),
        "cache_bytes": cpu.llc_bytes(),
        "cores": cpu.usable_cores(),
        "threads": threads,
    }


def find_device(name: str) -> torch.device:
    """Return the device `auto` (the first GPU, else the CPU), `cpu`, `cuda` or `cuda:N`, made the current one.

    On the CPU Triton is told to interpret: it has no backend there, so this shows what is right, never speed.

    Raises:
        SideFault: there is no such device here (`no_device`, the environment's fault).
    """
    device = named_device(name)
    if device.type == "cpu":
        os.environ.setdefault("TRITON_INTERPRET", "1")
    else:
        torch.cuda.set_device(device)
    return device


def named_device(name: str) -> torch.device:
    """Return the device that `find_device` would find, and leave it untouched: no memory of a GPU is taken.

    Raises:
        SideFault: there is no such device here (`no_device`, the environment's fault).
    """
    count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if name == "cpu" or (name == "auto" and count == 0):
        return torch.device("cpu")
    index = int(name.partition(":")[2] or 0)
    if index >= count:
        sentence = f"there is no device cuda:{index}: torch {torch.__version__} sees {count} GPUs"
        raise SideFault("no_device", sentence, "environment")
    return torch.device(f"cuda:{index}")


def kind_of(device: torch.device) -> Literal["cpu", "cuda", "rocm"]:
    """Return what kind of device this is; torch calls AMD's devices cuda too."""
    if device.type == "cpu":
        return "cpu"
    return "rocm" if torch.version.hip else "cuda"


def cache_bytes(device: torch.device) -> int:
    """Return the size of a device's last-level cache; 64 MiB where torch does not say."""
    if device.type == "cpu":
        return cpu.llc_bytes()
    return int(getattr(torch.cuda.get_device_properties(device), "L2_cache_size", 0) or 64 * 2**20)


def gpu_facts(device: torch.device) -> dict[str, Any]:
    """Return a GPU as a plain `core.measurement.RunDevice`, as torch sees it."""
    facts = torch.cuda.get_device_properties(device)
    hip = torch.version.hip is not None
    clock_khz = getattr(facts, "clock_rate", None)
    return {
        "kind": "rocm" if hip else "cuda",
        "index": device.index,
        "name": facts.name,
        "memory_bytes": facts.total_memory,
        "compute_capability": getattr(facts, "gcnArchName", "").partition(":")[0]
        if hip
        else f"{facts.major}.{facts.minor}",
        "max_clock_hz": clock_khz * 1e3 if clock_khz else None,
        "sm_count": facts.multi_processor_count,
        "cache_bytes": cache_bytes(device),
        "uuid": str(facts.uuid) if hasattr(facts, "uuid") else None,
        "pci_address": _pci_address(facts),
    }


def _pci_address(facts: Any) -> str | None:
    """Return the address of a GPU, None where this torch does not say."""
    if not hasattr(facts, "pci_bus_id"):
        return None
    return f"{facts.pci_domain_id:04x}:{facts.pci_bus_id:02x}:{facts.pci_device_id:02x}.0"


def torch_facts() -> dict[str, Any]:
    """Return the versions that a result must carry."""
    return {
        "torch": torch.__version__,
        "cuda": torch.version.cuda,
        "hip": torch.version.hip,
        "python": sys.version.split()[0],
    }


def spin(device: torch.device) -> Callable[[], object]:
    """Return a kernel that takes about a millisecond, always the same number of cycles."""
    if device.type == "cuda":
        return partial(torch.cuda._sleep, _SPIN_CYCLES)
    return partial(sum, range(_SPIN_CYCLES // 50))


def set_math_flags(case: Case) -> None:
    """Allow TF32 where the case says `tf32`, and nowhere else: fp32 means IEEE arithmetic."""
    dtypes = {argument.dtype for argument in case.arguments} | {case.peak.dtype if case.peak else None}
    tf32 = "tf32" in dtypes
    torch.backends.cuda.matmul.allow_tf32 = tf32
    torch.backends.cudnn.allow_tf32 = tf32


def flags() -> dict[str, Any]:
    """Return the global settings that a kernel must leave as they are."""
    return {
        "the number of threads": torch.get_num_threads(),
        "torch.backends.cuda.matmul.allow_tf32": _tf32(torch.backends.cuda.matmul),
        "torch.backends.cudnn.allow_tf32": _tf32(torch.backends.cudnn),
        "the default dtype": torch.get_default_dtype(),
        "the default device": torch.get_default_device(),
        "torch.are_deterministic_algorithms_enabled()": torch.are_deterministic_algorithms_enabled(),
    }


_HALF = 0.5


def _tf32(backend: Any) -> Any:
    try:
        return backend.allow_tf32
    except RuntimeError:  # half of it was set by the newer `fp32_precision`: torch then refuses to say
        return f"fp32_precision {backend.fp32_precision!r}"


@dataclass(frozen=True, slots=True)
class Settings:
    """The global settings that one case must not leave to the next, and the working directory.

    What only chooses among algorithms (cuDNN's benchmark, attention backends) is not among them: a module sets it
    when it is imported, which is once, and means it for all its cases.
    """

    threads: int
    dtype: torch.dtype
    determinism: int
    gradients: bool
    flushes_denormals: bool
    """Put back, but nobody's fault: a library built with -ffast-math does it where it is loaded."""
    precision: str
    convolutions_tf32: bool
    precisions: tuple[str, ...]
    """The newer settings of the same thing, a backend each; half of both set is an error in torch."""
    autocast: tuple[bool, ...]
    folder: str

    @classmethod
    def now(cls) -> "Settings":
        """Return them as they are."""
        return cls(
            threads=torch.get_num_threads(),
            dtype=torch.get_default_dtype(),
            determinism=torch.get_deterministic_debug_mode(),
            gradients=torch.is_grad_enabled(),
            flushes_denormals=_flushes_denormals(),
            precision=_matmul_precision(),
            convolutions_tf32=_tf32(torch.backends.cudnn) is True,
            precisions=tuple(each.fp32_precision for each in _precise()),
            autocast=tuple(torch.is_autocast_enabled(kind) for kind in _AUTOCAST),
            folder=_folder(),
        )

    def restore(self) -> None:
        """Put them back; what stands as it was is not touched."""
        # Without a device a mode is taken away that costs every operation a little, also for the CPU.
        torch.set_default_device(None)
        now = Settings.now()
        if now == self:
            return
        if now.threads != self.threads:
            torch.set_num_threads(self.threads)
        torch.set_default_dtype(self.dtype)
        torch.set_deterministic_debug_mode(self.determinism)
        torch.set_grad_enabled(self.gradients)
        torch.set_flush_denormal(self.flushes_denormals)
        if now != replace(now, **{name: getattr(self, name) for name in _PRECISIONS}):
            torch.set_float32_matmul_precision(self.precision)
            torch.backends.cudnn.allow_tf32 = self.convolutions_tf32
            for each, precision in zip(_precise(), self.precisions, strict=True):
                each.fp32_precision = precision
        for kind, was_on in zip(_AUTOCAST, self.autocast, strict=True):
            torch.set_autocast_enabled(kind, was_on)
        if now.folder != self.folder:
            os.chdir(self.folder)


_PRECISIONS = ("precision", "convolutions_tf32", "precisions")
_AUTOCAST = ("cpu", "cuda")


def _matmul_precision() -> str:
    try:
        return str(torch.get_float32_matmul_precision())
    except RuntimeError:  # torch refuses to say where only half of both was set
        return "highest"


def _flushes_denormals() -> bool:
    return sys.float_info.min * _HALF == 0.0


def _folder() -> str:
    try:
        return str(Path.cwd())
    except FileNotFoundError:  # user code removed it
        return ""


def _precise() -> list[Any]:
    """Return what has an `fp32_precision`; torch has it since 2.9."""
    backends = torch.backends
    whole = [backends, backends.cuda.matmul, backends.cudnn, backends.mkldnn]
    parts = [
        getattr(backend, part, None)
        for backend, names in (
            (backends.cudnn, ("conv", "rnn")),
            (backends.mkldnn, ("matmul", "conv", "rnn")),
        )
        for part in names
    ]
    return [each for each in (*whole, *parts) if hasattr(each, "fp32_precision")]


@contextmanager
def steady(who: str, fault: FaultKind) -> Iterator[None]:
    """Undo what user code does to the settings in `flags`, and report it.

    Raises:
        SideFault: it changed one (`flags_changed`); what it raises itself goes first.
    """
    before, settings = flags(), Settings.now()
    try:
        yield
    except BaseException:
        if flags() != before:
            settings.restore()
        raise
    after = flags()
    if after == before:
        return
    settings.restore()
    name = next(name for name, value in after.items() if value != before[name])
    sentence = f"{who} changed {name} from {before[name]} to {after[name]} for the whole process"
    raise SideFault("flags_changed", sentence, fault)
