"""An architecture: what a compute unit does in a clock, and what one SM holds."""

from collections.abc import Mapping
from dataclasses import dataclass

RateTable = Mapping[str, float | None]
"""Rate name (`fp32`, `fp16_fp32acc`, ...) to FLOP per compute unit and clock; None: taken away."""


@dataclass(frozen=True, slots=True)
class OccupancyLimits:
    """What one SM holds, and in which steps it is handed out. Bytes, registers, threads.

    `shared_carveouts` are the splits of the SM's memory between L1 and shared that the hardware knows.
    `block_barriers_per_sm` is None where NVIDIA's calculator does not count barriers.
    """

    threads_per_sm: int
    blocks_per_sm: int
    registers_per_sm: int
    registers_per_block: int
    register_alloc_per_warp: int
    sub_partitions: int
    shared_bytes_per_sm: int
    shared_bytes_per_block: int
    shared_bytes_per_block_optin: int
    reserved_shared_bytes_per_block: int
    shared_alloc_bytes: int
    shared_carveouts: tuple[int, ...]
    block_barriers_per_sm: int | None


@dataclass(frozen=True, slots=True)
class Architecture:
    """One architecture. `segments` holds (vector, matmul) overrides by segment name."""

    id: str
    name: str
    vendor: str
    family: str
    unit: str
    compute_capability: str | None
    vector_rates: RateTable
    matmul_rates: RateTable
    segments: Mapping[str, tuple[RateTable, RateTable]]
    occupancy: OccupancyLimits | None


def merged_rates(*tables: RateTable) -> dict[str, float]:
    """Return the later tables laid over the earlier ones; a None takes a rate away."""
    merged: dict[str, float | None] = {}
    for table in tables:
        merged.update(table)
    return {name: value for name, value in merged.items() if value is not None}
