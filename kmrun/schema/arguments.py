"""The argument builders of a suite: one model an `init`, told apart by that single tag."""

from typing import Annotated, Any, Literal, Self

from pydantic import Discriminator, Field, Tag, model_validator
from pydantic_core import PydanticCustomError

from kmrun.schema.base import (
    Document,
    Formula,
    IfMapping,
    IfThen,
    Many,
    Name,
    Opt,
    Target,
    Text,
    Value,
    by_key,
    mapping_or_other,
)

Shape = Many[Formula]


class Strides(Document):
    """Explicit strides in elements, one a dimension."""

    strides: Shape


Layout = Annotated[
    Annotated[Strides, Tag("@mapping")]
    | Annotated[Literal["contiguous", "channels_last", "transposed"], Tag("@other")],
    Discriminator(mapping_or_other),
    IfMapping(),
]


class Builder(Document):
    """What all builders share. `init` names the builder."""

    init: str


class TensorBuilder(Builder):
    """A builder that makes one tensor: `shape` and `dtype`, or `like` another argument (`dtype` may differ).

    `default_dtype` is what the dtype is when neither says so; None: it has to be written.
    """

    shape: Opt[Shape] = None
    dtype: Opt[Text] = None
    like: Opt[Name] = None
    requires_grad: bool = False
    layout: Opt[Layout] = None
    device: Opt[Literal["cpu"]] = None

    @property
    def default_dtype(self) -> str | None:
        """The dtype when neither `dtype` nor `like` gives one; None when it must be written."""
        return None

    @model_validator(mode="after")
    def _has_shape_and_dtype(self) -> Self:
        if self.like is not None and self.shape is not None:
            raise PydanticCustomError(
                "like_and_shape", "`like` already gives the shape: write one of the two"
            )
        if self.like is None and self.shape is None:
            raise PydanticCustomError("shape_missing", "this tensor needs `shape` (with `dtype`) or `like`")
        if self.like is None and self.dtype is None and self.default_dtype is None:
            raise PydanticCustomError("dtype_missing", "this tensor needs a `dtype`")
        return self


class IntegerBuilder(TensorBuilder):
    """A tensor of integers, int64 unless said otherwise."""

    @property
    def default_dtype(self) -> str | None:
        """`int64`."""
        return "int64"


class BooleanBuilder(TensorBuilder):
    """A mask, bool unless said otherwise."""

    @property
    def default_dtype(self) -> str | None:
        """`bool`."""
        return "bool"


class Randn(TensorBuilder):
    """Normal values."""

    init: Literal["randn"]
    mean: Formula = 0.0
    std: Formula = 1.0


class Uniform(TensorBuilder):
    """Uniform values in [low, high)."""

    init: Literal["uniform"]
    low: Formula = 0.0
    high: Formula = 1.0


class Randint(IntegerBuilder):
    """Uniform integers in [low, high)."""

    init: Literal["randint"]
    low: Formula = 0
    high: Formula


class Bernoulli(BooleanBuilder):
    """True (or 1) with probability p."""

    init: Literal["bernoulli"]
    p: Formula = 0.5


class Arange(IntegerBuilder):
    """start, start + step, ... in row-major order."""

    init: Literal["arange"]
    start: Formula = 0
    step: Formula = 1


class Permutation(IntegerBuilder):
    """A random permutation of 0 .. n-1 along the last dimension."""

    init: Literal["permutation"]


class Zeros(TensorBuilder):
    """All 0."""

    init: Literal["zeros"]


class Ones(TensorBuilder):
    """All 1."""

    init: Literal["ones"]


class Empty(TensorBuilder):
    """Allocated, poisoned, not initialised: for scratch space."""

    init: Literal["empty"]


class Full(TensorBuilder):
    """All `value`."""

    init: Literal["full"]
    value: Formula


class Values(TensorBuilder):
    """These very values, repeated in row-major order to fill the shape."""

    init: Literal["values"]
    values: Annotated[Many[Formula], Field(min_length=1)]


class Cauchy(TensorBuilder):
    """Heavy tails: outliers as in real activations."""

    init: Literal["cauchy"]
    median: Formula = 0.0
    scale: Formula = 1.0


class HotValue(TensorBuilder):
    """Normal values of which a share `p` is replaced by `value` (duplicate keys, ties, one busy bin)."""

    init: Literal["hot_value"]
    value: Formula
    p: Formula = 0.5


class Sorted(TensorBuilder):
    """Uniform values in [low, high), ascending along the last dimension."""

    init: Literal["sorted"]
    low: Formula = 0.0
    high: Formula = 1.0
    descending: bool = False


class Spd(TensorBuilder):
    """Symmetric positive definite matrices with about this condition number."""

    init: Literal["spd"]
    condition: Formula = 100.0


class CausalMask(BooleanBuilder):
    """Lower triangle: True (bool), or 0 with -inf above it (floating dtypes)."""

    init: Literal["causal_mask"]


class Indptr(Builder):
    """Row offsets of ragged lengths: 0 and the running sum, shape [len(lens) + 1]."""

    init: Literal["indptr"]
    lens: Name
    dtype: Text = "int32"
    device: Opt[Literal["cpu"]] = None


class PageTable(Builder):
    """Page numbers of ragged sequences, none twice: shape [len(lens), most pages of one]."""

    init: Literal["page_table"]
    lens: Name
    page_size: Formula
    pages: Opt[Formula] = None
    """Pages in the pool; by default just as many as are needed."""
    dtype: Text = "int32"
    device: Opt[Literal["cpu"]] = None


class TopkRouter(IntegerBuilder):
    """Expert numbers, `shape: [tokens, k]`, distinct in a row; `skew` is Zipf's exponent of popularity."""

    init: Literal["topk_router"]
    experts: Formula
    skew: Formula = 0.0


class DerivedBuilder(Builder):
    """A tensor made from another argument, named by `of`."""

    of: Name


class Quantize(DerivedBuilder):
    """`of` in the narrower dtype `to`; a second argument with `part: scales` passes the scales themselves.

    `scale` is their granularity: per tensor, row, column, or block of `block` along the last dimension.
    """

    init: Literal["quantize"]
    to: Text
    scale: Literal["tensor", "row", "column", "block"] = "tensor"
    block: Opt[Formula] = None
    part: Literal["values", "scales"] = "values"


class Pack(DerivedBuilder):
    """Values of `of` packed to `bits` each, `order` low or high nibble first, into integers of `dtype`."""

    init: Literal["pack"]
    bits: Literal[1, 2, 4]
    order: Literal["low_first", "high_first"] = "low_first"
    dtype: Text = "uint8"


class View(DerivedBuilder):
    """A view into the storage of `of`, as torch.as_strided; strides are contiguous when left out."""

    init: Literal["view"]
    shape: Shape
    strides: Opt[Shape] = None
    offset: Formula = 0


class Transpose(DerivedBuilder):
    """`of` with two dimensions swapped, no copy."""

    init: Literal["transpose"]
    dims: Annotated[Many[int], Field(min_length=2, max_length=2)] = (-2, -1)


class PlainValue(Builder):
    """No tensor: a number, string, bool, null or tuple, passed as it is."""

    init: Literal["value"]
    value: Value


class ListOf(Builder):
    """A Python list of arguments, as optimizers and grouped kernels take them."""

    init: Literal["list"]
    items: Annotated[Many["Arg"], Field(min_length=1)]


class Call(Builder):
    """Anything else: `target` is called with the axes, the seed and the arguments named in `from`."""

    init: Literal["call"]
    target: Target
    sources: Many[Name] = Field(default=(), alias="from")
    visible: Literal["kernel", "judge", "both"] = "both"
    requires_grad: bool = False


Arg = Annotated[
    Annotated[Randn, Tag("@randn")]
    | Annotated[Uniform, Tag("@uniform")]
    | Annotated[Randint, Tag("@randint")]
    | Annotated[Bernoulli, Tag("@bernoulli")]
    | Annotated[Arange, Tag("@arange")]
    | Annotated[Permutation, Tag("@permutation")]
    | Annotated[Zeros, Tag("@zeros")]
    | Annotated[Ones, Tag("@ones")]
    | Annotated[Empty, Tag("@empty")]
    | Annotated[Full, Tag("@full")]
    | Annotated[PlainValue, Tag("@value")]
    | Annotated[Values, Tag("@values")]
    | Annotated[Cauchy, Tag("@cauchy")]
    | Annotated[HotValue, Tag("@hot_value")]
    | Annotated[Sorted, Tag("@sorted")]
    | Annotated[Spd, Tag("@spd")]
    | Annotated[CausalMask, Tag("@causal_mask")]
    | Annotated[Indptr, Tag("@indptr")]
    | Annotated[PageTable, Tag("@page_table")]
    | Annotated[TopkRouter, Tag("@topk_router")]
    | Annotated[Quantize, Tag("@quantize")]
    | Annotated[Pack, Tag("@pack")]
    | Annotated[View, Tag("@view")]
    | Annotated[Transpose, Tag("@transpose")]
    | Annotated[ListOf, Tag("@list")]
    | Annotated[Call, Tag("@call")],
    Discriminator(by_key("init")),
    IfThen("init"),
]
"""One argument; the tag is `init`."""


def options(argument: Builder) -> dict[str, Any]:
    """Return the builder's own keys and values as written, by document key; no `shape`, `dtype` and such."""
    shared = {"init", *TensorBuilder.model_fields}
    fields = type(argument).model_fields
    return {
        (field.alias or name): getattr(argument, name) for name, field in fields.items() if name not in shared
    }
