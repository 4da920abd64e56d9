"""What torch says of the machine, and its global settings."""

import sys
from typing import Any

import torch

from kmrun.core.case import Case
from kmrun.device import cpu


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
        "cache_bytes": getattr(facts, "L2_cache_size", None) or 64 * 2**20,
        "uuid": str(facts.uuid) if hasattr(facts, "uuid") else None,
    }


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
        "torch.are_deterministic_algorithms_enabled()": torch.are_deterministic_algorithms_enabled(),
    }
