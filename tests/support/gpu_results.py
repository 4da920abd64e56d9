"""Invented results of a GPU for tests of reports: many cases, sensors, sizes, every verdict."""

import math
import random
from dataclasses import replace
from itertools import product
from typing import Any

from kmrun.core.entries import device_entry
from kmrun.core.result import (
    BandwidthEntry,
    CaseResult,
    CeilingEntry,
    ClauseEntry,
    MatmulEntry,
    Reason,
    Result,
    SeriesEntry,
    TelemetryEntry,
    VersusEntry,
)
from support.cases import GPU
from support.results import make_entry, make_result

BANDWIDTH, PEAK = 3.352e12, 989.4e12
"""Of the card that the document names, `h100-sxm`: bytes/s, and flop/s of bf16 matmul."""
KERNELS = {"sdpa": 60.0, "decode": 0.9, "gqa": 120.0, "rms_norm": 0.4}
"""Name to flop/byte at the smallest size."""


def gpu_result(sizes: int = 4, samples: int = 60, seed: int = 5, **changes: Any) -> Result:
    """A result of four kernels over so many sizes and two dtypes, on an H100: 8 * sizes cases."""
    chance = random.Random(seed)
    entries = [
        _entry(
            chance,
            kernel,
            256 * (2**index if sizes <= 12 else index + 1),
            dtype,
            intensity * 2 ** min(index, 4),
            samples,
        )
        for (kernel, intensity), index, dtype in product(KERNELS.items(), range(sizes), ("bf16", "fp16"))
    ]
    ceilings = CeilingEntry(
        (BandwidthEntry("read", 1 << 32, 3050.0), BandwidthEntry("copy", 1 << 32, 2890.0)),
        (MatmulEntry("fp32", 8192, 51.9), MatmulEntry("bf16", 8192, 742.0)),
        wall_s=0.9,
    )
    device = replace(device_entry(GPU, None), card="h100-sxm", name="NVIDIA H100 80GB HBM3")
    return make_result(*entries, **({"device": device, "ceilings": ceilings, "wall_s": 83.0} | changes))


def broken(case: CaseResult, sentence: str = "min_roof 0.55 is broken: 0.41, at most 0.43") -> CaseResult:
    """The case with a clause that does not hold."""
    clause = ClauseEntry("min_roof", 0.55, 0.41, 0.39, 0.43, "fail", sentence, "suites/attention.yaml", 31)
    reason = Reason("min_roof", sentence, "kernel", "fail")
    return replace(case, verdict="fail", clauses=(clause, *case.clauses), reasons=(reason,))


def _entry(
    chance: random.Random, kernel: str, size: int, dtype: str, intensity: float, samples: int
) -> CaseResult:
    reach = min(intensity * BANDWIDTH, PEAK)
    share = chance.uniform(0.4, 0.9)
    rate = reach * share
    flops = 2.0e6 * size * intensity
    median = flops / rate * 1e3
    times = tuple(median * (1 + abs(chance.gauss(0, 0.02))) for _ in range(samples))
    middle = sorted(times)[samples // 2]
    rivals = {
        name: VersusEntry(role, middle * factor, factor, factor * 0.97, factor * 1.03, True, ())
        for name, role, factor in (("eager", "reference", 2.5), ("compiled", "versus", 1.2))
    }
    return replace(
        make_entry(),
        id=f"{kernel}[s={size},dtype={dtype}]",
        kernel=kernel,
        axes={"s": size, "dtype": dtype},
        median_ms=middle,
        ci_low_ms=middle * 0.995,
        ci_high_ms=middle * 1.004,
        q1_ms=middle * 0.99,
        q3_ms=middle * 1.01,
        min_ms=min(times),
        samples_ms=times,
        bytes=int(flops / intensity),
        flops=flops,
        gb_per_s=rate / intensity / 1e9,
        tflop_per_s=rate / 1e12,
        intensity=intensity,
        bound="mem" if intensity * BANDWIDTH < PEAK else "comp",
        roof_fraction=share,
        roof_clk_fraction=share * (1.0 if intensity * BANDWIDTH < PEAK else 1.12),
        ceiling_fraction=min(1.0, share * 1.15),
        speedup=2.5,
        speedup_against="eager",
        versus=rivals,
        clock="sustained",
        l2="cold",
        isolation="paired",
        telemetry=_telemetry(chance),
    )


def _telemetry(chance: random.Random) -> TelemetryEntry:
    at = tuple(0.1 * index for index in range(12))
    series = SeriesEntry(
        time_s=at,
        sm_mhz=tuple(1755.0 - 15 * chance.randrange(12) for _ in at),
        power_w=tuple(640 + 40 * math.sin(each) + chance.uniform(-8, 8) for each in at),
        temp_c=tuple(61.0 + chance.randrange(4) for _ in at),
    )
    return TelemetryEntry(
        source="nvml",
        window_s=1.1,
        samples=12,
        sm_mhz_held=1695.0,
        sm_mhz_low=1590.0,
        sm_mhz_max=1980.0,
        mem_mhz=2619.0,
        mem_mhz_max=2619.0,
        temp_c=64.0,
        power_w=655.0,
        energy_mj_per_call=210.0,
        utilisation_fraction=1.0,
        throttle=("power_cap",),
        throttle_fraction={"power_cap": 0.8},
        own_cores=1.0,
        other_cores=0.1,
        stolen_cores=0.0,
        note="",
        series=series,
    )
