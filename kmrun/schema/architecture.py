"""`architectures.yaml`: what a compute unit does in a clock, and what an SM holds.

A rate is FLOP (operations for int8 and int4) per compute unit and clock, dense. `null` in a segment or at a
card takes a rate of the architecture away.
"""

from typing import Annotated, Literal

from pydantic import Field

from kmrun.schema.base import Document, Many, Positive, Text

Vendor = Literal["nvidia", "amd", "intel", "apple", "google", "aws"]
Identifier = Annotated[str, Field(pattern=r"^[a-z0-9]+([.-][a-z0-9]+)*$")]
"""Lower case, words joined by `-`."""

ComputeCapability = Annotated[str, Field(pattern=r"^[0-9]+\.[0-9]$")]
Count = Annotated[int, Field(gt=0)]
Rate = Positive | None


class VectorRates(Document):
    """Rates of the vector units."""

    fp64: Rate = None
    fp32: Rate = None
    fp16: Rate = None
    bf16: Rate = None


class MatmulRates(Document):
    """Rates of the matrix units. `fp16` accumulates in fp16; `fp16_fp32acc`, `bf16` and `fp8` in fp32."""

    fp64: Rate = None
    fp32: Rate = None
    tf32: Rate = None
    fp16: Rate = None
    fp16_fp32acc: Rate = None
    bf16: Rate = None
    fp8: Rate = None
    fp8_fp16acc: Rate = None
    int8: Rate = None
    int4: Rate = None
    fp4: Rate = None


class Rates(Document):
    """Rates by unit."""

    vector: VectorRates = VectorRates()
    matmul: MatmulRates = MatmulRates()


class Occupancy(Document):
    """What one SM holds, and in which steps it is handed out."""

    threads_per_sm: Count
    blocks_per_sm: Count
    registers_per_sm: Count = 65536
    registers_per_block: Count = 65536
    register_alloc_per_warp: Count = 256
    sub_partitions: Count = 4
    shared_bytes_per_sm: Count
    shared_bytes_per_block: Count = 49152
    shared_bytes_per_block_optin: Count
    reserved_shared_bytes_per_block: Annotated[int, Field(ge=0)] = 0
    shared_alloc_bytes: Count
    shared_carveouts_kib: Many[Annotated[int, Field(ge=0)]]
    block_barriers_per_sm: Count | None = None


class Architecture(Document):
    """One architecture of a generation (`family`). `segments`: other rates on the same silicon."""

    name: Text
    vendor: Vendor
    family: Identifier
    unit: Text
    compute_capability: ComputeCapability | None = None
    rates: Rates
    segments: dict[Identifier, Rates] = Field(default_factory=dict)
    occupancy: Occupancy | None = None
    note: Text | None = None


class ArchitectureFile(Document):
    """The document: `kmrun_architectures: 1`."""

    kmrun_architectures: Literal[1]
    architectures: dict[Identifier, Architecture]
