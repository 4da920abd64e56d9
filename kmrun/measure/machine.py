"""What torch says of the machine, and its global settings."""

import os
import sys
from typing import Any, Literal

import torch

from kmrun.core.case import Case
from kmrun.device import cpu
from kmrun.measure.faults import SideFault


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
    count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if name == "cpu" or (name == "auto" and count == 0):
        os.environ.setdefault("TRITON_INTERPRET", "1")
        return torch.device("cpu")
    index = int(name.partition(":")[2] or 0)
    if index >= count:
        sentence = f"there is no device cuda:{index}: torch {torch.__version__} sees {count} GPUs"
        raise SideFault("no_device", sentence, "environment")
    device = torch.device(f"cuda:{index}")
    torch.cuda.set_device(device)
    return device


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
        "torch.backends.cuda.matmul.allow_tf32": torch.backends.cuda.matmul.allow_tf32,
        "torch.backends.cudnn.allow_tf32": torch.backends.cudnn.allow_tf32,
        "the default dtype": torch.get_default_dtype(),
        "the default device": torch.get_default_device(),
        "torch.are_deterministic_algorithms_enabled()": torch.are_deterministic_algorithms_enabled(),
    }
