"""`models.yaml`: language models by their shapes, from which parameters, cache and arithmetic follow."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from kmrun.schema.architecture import Count
from kmrun.schema.base import Document, Many, Positive, Text

ModelId = Annotated[str, Field(pattern=r"^[a-z0-9]+([._-][a-z0-9]+)*$")]
"""Lower case, words joined by `-`."""


class Attention(Document):
    """Layers of one kind of attention. `gqa` needs `kv_heads` (1: MQA, `heads`: MHA), `mla` its ranks."""

    kind: Literal["gqa", "mla"] = "gqa"
    layers: Count
    heads: Count
    kv_heads: Count | None = None
    head_dim: Count
    v_head_dim: Count | None = None
    window: Count | None = None
    chunked: bool = False
    selected: Count | None = None
    cached_layers: Count | None = None
    gated: bool = False
    shared_kv: bool = False
    q_lora_rank: Count | None = None
    kv_lora_rank: Count | None = None
    rope_head_dim: Count | None = None

    @model_validator(mode="after")
    def _complete(self) -> Self:
        if self.kind == "gqa" and self.kv_heads is None:
            raise PydanticCustomError("kv_heads_missing", "attention of kind gqa needs 'kv_heads'")
        if self.kind == "mla" and (self.kv_lora_rank is None or self.rope_head_dim is None):
            raise PydanticCustomError(
                "mla_ranks_missing", "attention of kind mla needs 'kv_lora_rank' and 'rope_head_dim'"
            )
        return self


class Recurrent(Document):
    """Layers with a state of fixed size."""

    kind: Literal["mamba2", "gated-deltanet"]
    layers: Count
    heads: Count
    head_dim: Count
    state: Count
    groups: Count
    conv: Count = 4


class FeedForward(Document):
    """Dense MLP layers."""

    layers: Count
    width: Count
    gated: bool = True


class Experts(Document):
    """Mixture-of-experts layers; `shared_width` is that of all shared experts together.

    `latent`: routed experts work in so many dimensions, with a projection into and out of them.
    """

    layers: Count
    number: Count
    per_token: Count
    width: Count
    shared_width: Annotated[int, Field(ge=0)] = 0
    gated: bool = True
    latent: Annotated[int, Field(ge=0)] = 0

    @model_validator(mode="after")
    def _within(self) -> Self:
        if self.per_token > self.number:
            raise PydanticCustomError("too_many_experts", "'per_token' is more than 'number'")
        return self


class Printed(Document):
    """Parameters that somebody prints."""

    total: Positive | None = None
    active: Positive | None = None


class Model(Document):
    """One model. `native`: the format in which it is published, an id of quants.yaml."""

    aliases: Many[ModelId] = ()
    layers: Count
    hidden: Count
    vocab: Count
    tied: bool = False
    attention: Many[Attention] = ()
    recurrent: Many[Recurrent] = ()
    ffn: Many[FeedForward] = ()
    experts: Experts | None = None
    extra_params: Annotated[int, Field(ge=0)] = 0
    lookup_params: Annotated[int, Field(ge=0)] = 0
    context: Count | None = None
    native: ModelId = "bf16"
    published: Printed = Printed()
    source: Text
    note: Text | None = None


class ModelFile(Document):
    """The document: `kmrun_models: 1`."""

    kmrun_models: Literal[1]
    models: dict[ModelId, Model]
