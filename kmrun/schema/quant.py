"""`quants.yaml`: weight formats by their blocks and by the files that were published in them."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from kmrun.schema.architecture import Count
from kmrun.schema.base import Document, Many, Positive, Text
from kmrun.schema.model import ModelId

Arithmetic = Literal["fp32", "fp16", "bf16", "fp8", "int8", "fp4"]
Bits = Annotated[float, Field(gt=0, le=64, description="bits per weight")]


class Block(Document):
    """One block of a pure format, scales included."""

    weights: Count
    bytes: Positive


class Quant(Document):
    """One format: its `block`, or the least bits that its name allows."""

    title: Text
    aliases: Many[ModelId] = ()
    block: Block | None = None
    ceiling_bits: Bits | None = None
    file_bits: Bits | None = None
    outside_bits: Bits | None = None
    table_bits: Bits | None = None
    published_file_bits: Many[Bits] = ()
    arithmetic: Annotated[Many[Arithmetic], Field(min_length=1)]
    source: Text
    note: Text | None = None

    @model_validator(mode="after")
    def _one_size(self) -> Self:
        if (self.block is None) == (self.ceiling_bits is None):
            raise PydanticCustomError("one_size", "a format has either 'block' or 'ceiling_bits'")
        return self


class QuantFile(Document):
    """The document: `kmrun_quants: 1`."""

    kmrun_quants: Literal[1]
    quants: dict[ModelId, Quant]
