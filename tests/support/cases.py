"""Cases, measurements and devices for tests: complete, unremarkable, every field open to change."""

from typing import Any

from kmrun.core.case import Argument, Case, Clause, Implementation, Output, Peak, Reference
from kmrun.core.measurement import Bandwidth, Ceilings, MatmulRate, Measurement, OutputCheck, Rival, RunDevice

CPU = RunDevice("cpu", 0, "Test CPU", 16 << 30, cache_bytes=32 << 20, cores=8, threads=8)
GPU = RunDevice("cuda", 0, "Test GPU", 80 << 30, "9.0", 1.98e9, 132, 50 << 20, uuid="GPU-1")
CEILINGS = Ceilings(
    bandwidths=(
        Bandwidth("read", 1 << 30, 20e9),
        Bandwidth("copy", 1 << 30, 15e9),
        Bandwidth("triad", 1 << 30, 16e9),
    ),
    matmuls=(
        MatmulRate("fp32", 1024, 200e9),
        MatmulRate("bf16", 1024, 100e9),
        MatmulRate("fp64", 1024, 90e9),
    ),
    cache_bandwidths=(Bandwidth("read", 1 << 18, 100e9), Bandwidth("read", 1 << 22, 60e9)),
    wall_ns=3e8,
)


def make_case(**changes: Any) -> Case:
    """A forward kernel over three 64 MiB fp32 tensors, with a reference and no clause."""
    fields: dict[str, Any] = {
        "id": "add[n=16777216,dtype=fp32]",
        "kernel": "add",
        "axes": {"n": 16777216, "dtype": "fp32"},
        "shown_axes": ("n", "dtype"),
        "device": None,
        "folder": "suites",
        "implementation": Implementation("add", "kernels.py:add"),
        "arguments": (Argument("x", "randn", shape=(16777216,), dtype="fp32"),),
        "outputs": (Output("out", (16777216,), "fp32"),),
        "reference": Reference(Implementation("reference", "torch:add")),
        "bytes": 200_000_000,
        "flops": 16_777_216,
        "peak": Peak("vector", "fp32"),
        "place": ("kernels", 0),
    }
    return Case(**(fields | changes))


def make_found(**changes: Any) -> Measurement:
    """A correct measurement: 20 ms a call, within 0.2 %, twice as fast as its reference."""
    samples = tuple(20e6 + 1e3 * ((i * 7) % 41 - 20) for i in range(41))
    fields: dict[str, Any] = {
        "case_id": "add[n=16777216,dtype=fp32]",
        "samples_ns": samples,
        "first_call_ns": 5e7,
        "host_ns": 12e3,
        "event_ns": 60.0,
        "handoff_ns": 4e3,
        "rivals": (make_rival(),),
        "correct": True,
        "checks": (OutputCheck("out", "auto", True, 1e-7, 1e-6),),
        "seeds": (1, 2),
        "resident_bytes": 200_000_000,
        "peak_memory_bytes": 300_000_000,
        "time_verified": True,
        "exchange": "shm",
        "threads": 2,
    }
    return Measurement(**(fields | changes))


def make_rival(
    name: str = "reference", role: Any = "reference", times: float = 2.0, blocks: int = 21, **changes: Any
) -> Rival:
    """A rival that takes `times` as long, within 1 %, over that many blocks."""
    pairs = tuple((20e6, 20e6 * times * (1 + ((i * 5) % 21 - 10) / 1000)) for i in range(blocks))
    return Rival(**({"name": name, "role": role, "pairs": pairs, "median_ns": 20e6 * times} | changes))


def clause(kind: str, bound: float | dict[str, float], **changes: Any) -> Clause:
    """A clause as the plan hands it over: a plain number is a bound for any device."""
    bounds = bound if isinstance(bound, dict) else {"*": bound}
    return Clause(kind, bounds, **({"place": ("kernels", 0, "contract", 0)} | changes))
