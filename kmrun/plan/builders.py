"""The rules of the argument builders: which keys are formulas, and which values make no sense."""

import functools
import math
import typing
from collections.abc import Mapping
from typing import Any

from kmrun.plan.fit import spans_overlap
from kmrun.schema.arguments import Builder
from kmrun.schema.base import Formula

_FORMULA_MARK = Formula.__metadata__[0]  # type: ignore[attr-defined]

INDEX_BUILDERS = frozenset({"permutation", "indptr", "page_table", "topk_router"})
"""Their contents say which part of another argument is read."""

VIEW_BUILDERS = frozenset({"view", "transpose"})


@functools.cache
def formula_options(builder: type[Builder]) -> frozenset[str]:
    """Return the document keys of a builder that hold formulas."""
    return frozenset(
        field.alias or name
        for name, field in builder.model_fields.items()
        if _FORMULA_MARK in field.metadata or _holds_formula(field.annotation)
    )


def _holds_formula(annotation: Any) -> bool:
    if _FORMULA_MARK in getattr(annotation, "__metadata__", ()):
        return True
    return any(_holds_formula(part) for part in typing.get_args(annotation))


def layout_fault(layout: Any, shape: tuple[int, ...]) -> str:
    """Return why a layout does not fit a shape, or an empty string."""
    if layout == "channels_last" and len(shape) not in (4, 5):
        return f"channels_last needs 4 or 5 dimensions, not {len(shape)}"
    if layout == "transposed" and len(shape) < 2:
        return f"transposed needs 2 dimensions or more, not {len(shape)}"
    if not isinstance(layout, Mapping):
        return ""
    if len(layout["strides"]) != len(shape):
        return f"{len(layout['strides'])} strides for {len(shape)} dimensions"
    if spans_overlap(layout["strides"], shape):
        return f"with strides {list(layout['strides'])} elements of {list(shape)} overlap in memory"
    return ""


def is_dense(layout: Any, shape: tuple[int, ...]) -> bool:
    """Return whether the elements lie in memory once each and without gaps."""
    if not isinstance(layout, Mapping):
        return True
    strides = sorted(
        (stride, size) for stride, size in zip(layout["strides"], shape, strict=True) if size > 1
    )
    extent = 1
    for stride, size in strides:
        if stride != extent:
            return False
        extent *= size
    return True


def is_index(init: str, dtype: str | None) -> bool:
    """Return whether an argument chooses what is read of others, which are then not read whole."""
    return init in INDEX_BUILDERS or (init == "randint" and dtype in ("int32", "int64"))


def derived_shape(
    init: str, options: Mapping[str, Any], base: tuple[int, ...], dtype_bits: int
) -> tuple[int, ...]:
    """Return the shape of a tensor that is made from one of shape `base`.

    quantize (scales): () per tensor, [..., 1] per row, [1, ..., n] per column, [..., n / block] per block.
    pack: the last dimension shrinks by the number of values that one integer holds.

    Raises:
        ValueError: the base has too few dimensions.
    """
    if init == "transpose":
        first, second = options["dims"]
        if not (-len(base) <= first < len(base) and -len(base) <= second < len(base)):
            raise ValueError(f"dims {first} and {second} do not exist in {list(base)}")
        swapped = list(base)
        swapped[first], swapped[second] = base[second], base[first]
        return tuple(swapped)
    if init == "pack":
        if not base:
            raise ValueError("a single number cannot be packed")
        return (*base[:-1], -(-base[-1] * options["bits"] // dtype_bits))
    if options["part"] == "values":
        return base
    if options["scale"] == "tensor" or not base:
        return ()
    if options["scale"] == "row":
        return (*base[:-1], 1)
    if options["scale"] == "column":
        return (*(1 for _ in base[:-1]), base[-1])
    return (*base[:-1], math.ceil(base[-1] / options["block"]))


def view_fault(shape: tuple[int, ...], strides: Any, offset: Any, elements: int) -> str:
    """Return why such a view does not lie within so many elements, or an empty string."""
    if not all(isinstance(step, int) and step >= 0 for step in (offset, *(strides or ()))):
        return "strides and offset are whole numbers from 0 on"
    if strides is not None and len(strides) != len(shape):
        return f"{len(strides)} strides for {len(shape)} dimensions"
    if 0 in shape:
        last = -1
    elif strides is None:
        last = math.prod(shape) - 1
    else:
        last = sum((size - 1) * stride for size, stride in zip(shape, strides, strict=True))
    if offset + last >= elements:
        return f"the view reaches element {offset + last}, there are {elements}"
    return ""
