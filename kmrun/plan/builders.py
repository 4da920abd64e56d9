"""The rules of the argument builders: which keys are formulas, and which values make no sense."""

import functools
import math
import typing
from collections.abc import Callable, Mapping
from typing import Any

from kmrun.core.dtypes import find
from kmrun.schema.arguments import Builder
from kmrun.schema.base import Formula

_FORMULA_MARK = Formula.__metadata__[0]  # type: ignore[attr-defined]

Fault = tuple[str | None, str, str]
"""(the option at fault or None for the shape, sentence, hint)."""

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


def fault(init: str, options: Mapping[str, Any], shape: tuple[int, ...], dtype: str) -> Fault | None:
    """Return what is wrong with a tensor that is to be filled so, None when nothing is."""
    if init in _REAL and find(dtype).kind not in ("float", "complex"):
        return "dtype", f"{init} fills floating tensors, not {dtype}", _REAL[init]
    check = _CHECKS.get(init)
    return check(options, shape, dtype) if check is not None else None


_REAL = {
    "randn": "write init: randint for integers",
    "uniform": "write init: randint for integers",
    "cauchy": "",
    "spd": "",
}


def _std(options: Mapping[str, Any], shape: tuple[int, ...], dtype: str) -> Fault | None:
    return ("std", f"std is {options['std']}, below 0", "") if options["std"] < 0 else None


def _ordered(options: Mapping[str, Any], shape: tuple[int, ...], dtype: str) -> Fault | None:
    low, high = options["low"], options["high"]
    return ("high", f"high is {high}, below low, which is {low}", "") if high < low else None


def _randint(options: Mapping[str, Any], shape: tuple[int, ...], dtype: str) -> Fault | None:
    low, high = options["low"], options["high"]
    for key in ("low", "high"):
        if not isinstance(options[key], int):
            return (
                key,
                f"{key} must be a whole number, this is {options[key]}",
                "'//' divides to whole numbers",
            )
    if high <= low:
        return "high", f"high is {high}; it must be above low, which is {low}", "the range is [low, high)"
    element = find(dtype)
    if element.kind in ("int", "uint"):
        signed = element.kind == "int"
        least, most = (-(2 ** (element.bits - 1)) if signed else 0), 2 ** (element.bits - signed) - 1
        for key, value in (("low", low), ("high", high - 1)):
            if not least <= value <= most:
                return key, f"{value} does not fit in {dtype} ({least} to {most})", ""
    return None


def _share(options: Mapping[str, Any], shape: tuple[int, ...], dtype: str) -> Fault | None:
    p = options["p"]
    return None if 0 <= p <= 1 else ("p", f"p is {p}; a probability lies in 0 to 1", "")


def _cauchy(options: Mapping[str, Any], shape: tuple[int, ...], dtype: str) -> Fault | None:
    scale = options["scale"]
    return None if scale > 0 else ("scale", f"scale is {scale}; it must be above 0", "")


def _spd(options: Mapping[str, Any], shape: tuple[int, ...], dtype: str) -> Fault | None:
    if len(shape) < 2 or shape[-1] != shape[-2]:
        return None, f"spd makes square matrices, not {list(shape)}", ""
    if options["condition"] < 1:
        return "condition", f"condition is {options['condition']}; a condition number is 1 or more", ""
    return None


def _causal_mask(options: Mapping[str, Any], shape: tuple[int, ...], dtype: str) -> Fault | None:
    return None if len(shape) >= 2 else (None, f"a mask is a matrix, not {list(shape)}", "")


def _topk_router(options: Mapping[str, Any], shape: tuple[int, ...], dtype: str) -> Fault | None:
    experts = options["experts"]
    if len(shape) != 2:
        return None, f"topk_router has shape [tokens, k], not {list(shape)}", ""
    if not isinstance(experts, int) or experts < shape[1]:
        return "experts", f"{shape[1]} distinct experts of {experts} cannot be drawn", ""
    return None


_CHECKS: dict[str, Callable[[Mapping[str, Any], tuple[int, ...], str], Fault | None]] = {
    "randn": _std,
    "uniform": _ordered,
    "sorted": _ordered,
    "randint": _randint,
    "bernoulli": _share,
    "hot_value": _share,
    "cauchy": _cauchy,
    "spd": _spd,
    "causal_mask": _causal_mask,
    "topk_router": _topk_router,
}


def layout_fault(layout: Any, shape: tuple[int, ...]) -> str:
    """Return why a layout does not fit a shape, or an empty string."""
    if layout == "channels_last" and len(shape) not in (4, 5):
        return f"channels_last needs 4 or 5 dimensions, not {len(shape)}"
    if layout == "transposed" and len(shape) < 2:
        return f"transposed needs 2 dimensions or more, not {len(shape)}"
    if isinstance(layout, Mapping) and len(layout["strides"]) != len(shape):
        return f"{len(layout['strides'])} strides for {len(shape)} dimensions"
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
    if strides is None:
        last = math.prod(shape) - 1
    elif len(strides) != len(shape):
        return f"{len(strides)} strides for {len(shape)} dimensions"
    else:
        last = sum((size - 1) * stride for size, stride in zip(shape, strides, strict=True))
    if offset + last >= elements:
        return f"the view reaches element {offset + last}, there are {elements}"
    return ""
