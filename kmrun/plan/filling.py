"""Which options of the builders that fill one tensor make no sense, for its shape and its dtype."""

import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from kmrun.core.dtypes import find
from kmrun.plan.fit import misfit, most_exact_count


class Fault(NamedTuple):
    """What is wrong: at the option `key` (None: at the shape), at its item `item` where it is a list."""

    key: str | None
    sentence: str
    hint: str = ""
    item: int | None = None


def fault(init: str, options: Mapping[str, Any], shape: tuple[int, ...], dtype: str) -> Fault | None:
    """Return what is wrong with a tensor that is to be filled so, None when nothing is."""
    if init in _REAL and find(dtype).kind not in ("float", "complex"):
        return Fault("dtype", f"{init} fills floating tensors, not {dtype}", _REAL[init])
    check = _CHECKS.get(init)
    wrong = check(options, shape, dtype) if check is not None else None
    return wrong or _fitting(_HELD.get(init, ()), options, dtype)


_REAL = {
    "randn": "write init: randint for integers",
    "uniform": "write init: randint for integers",
    "cauchy": "",
    "spd": "",
}

_HELD = {
    "randn": ("mean", "std"),
    "uniform": ("low", "high"),
    "full": ("value",),
    "hot_value": ("value",),
    "cauchy": ("median", "scale"),
    "spd": ("condition",),
}
"""Options that elements come near to, so that the dtype has to hold them."""


def _fitting(keys: tuple[str, ...], options: Mapping[str, Any], dtype: str) -> Fault | None:
    for key in keys:
        value = options[key]
        wrong = misfit(value, dtype)
        if wrong:
            return Fault(key, wrong)
    return None


def _std(options: Mapping[str, Any], shape: tuple[int, ...], dtype: str) -> Fault | None:
    return Fault("std", f"std is {options['std']}, below 0") if options["std"] < 0 else None


def _ordered(options: Mapping[str, Any], shape: tuple[int, ...], dtype: str) -> Fault | None:
    low, high = options["low"], options["high"]
    return Fault("high", f"high is {high}, below low, which is {low}") if high < low else None


def _sorted(options: Mapping[str, Any], shape: tuple[int, ...], dtype: str) -> Fault | None:
    wrong = _ordered(options, shape, dtype)
    if wrong is not None:
        return wrong
    # Fractions are drawn and then cut, so integers may have fractions for ends, and never reach `high`.
    low = math.trunc(options["low"])
    cut = {"low": low, "high": max(low, math.ceil(options["high"]) - 1)}
    return _fitting(("low", "high"), options if find(dtype).is_float else cut, dtype)


def _randint(options: Mapping[str, Any], shape: tuple[int, ...], dtype: str) -> Fault | None:
    low, high = options["low"], options["high"]
    for key in ("low", "high"):
        if not isinstance(options[key], int):
            sentence = f"{key} must be a whole number, this is {options[key]}"
            return Fault(key, sentence, "'//' divides to whole numbers")
    if high <= low:
        sentence = f"high is {high}; it must be above low, which is {low}"
        return Fault("high", sentence, "the range is [low, high)")
    for key, value in (("low", low), ("high", high - 1)):
        wrong = misfit(value, dtype)
        if wrong:
            return Fault(key, wrong)
    return None


def _share(options: Mapping[str, Any], shape: tuple[int, ...], dtype: str) -> Fault | None:
    p = options["p"]
    return None if 0 <= p <= 1 else Fault("p", f"p is {p}; a probability lies in 0 to 1")


def _values(options: Mapping[str, Any], shape: tuple[int, ...], dtype: str) -> Fault | None:
    for index, value in enumerate(options["values"]):
        wrong = misfit(value, dtype)
        if wrong:
            return Fault("values", wrong, item=index)
    return None


def _arange(options: Mapping[str, Any], shape: tuple[int, ...], dtype: str) -> Fault | None:
    count = math.prod(shape)
    wrong = _fitting(("start", "step") if count > 1 else ("start",), options, dtype)
    if wrong is not None or count < 2:
        return wrong
    sentence = misfit(options["start"] + (count - 1) * options["step"], dtype)
    return Fault("dtype", f"the last of {count} elements: {sentence}") if sentence else None


def _permutation(options: Mapping[str, Any], shape: tuple[int, ...], dtype: str) -> Fault | None:
    return _distinct(shape[-1] if shape else 1, dtype)


def _distinct(count: int, dtype: str) -> Fault | None:
    """Return the fault of a dtype that cannot number so many things from 0 on."""
    most = most_exact_count(dtype)
    return None if count <= most else Fault("dtype", f"{dtype} tells {most} numbers apart, not {count}")


def _cauchy(options: Mapping[str, Any], shape: tuple[int, ...], dtype: str) -> Fault | None:
    scale = options["scale"]
    return None if scale > 0 else Fault("scale", f"scale is {scale}; it must be above 0")


def _spd(options: Mapping[str, Any], shape: tuple[int, ...], dtype: str) -> Fault | None:
    if len(shape) < 2 or shape[-1] != shape[-2]:
        return Fault(None, f"spd makes square matrices, not {list(shape)}")
    if options["condition"] < 1:
        sentence = f"condition is {options['condition']}; a condition number is 1 or more"
        return Fault("condition", sentence)
    return None


def _causal_mask(options: Mapping[str, Any], shape: tuple[int, ...], dtype: str) -> Fault | None:
    if len(shape) < 2:
        return Fault(None, f"a mask is a matrix, not {list(shape)}")
    if dtype in _WITHOUT_INFINITY:
        return Fault("dtype", f"{dtype} has no infinity to mask with", "write bool, or fp16 and wider")
    return None


_WITHOUT_INFINITY = frozenset(
    {"fp8_e4m3", "fp8_e4m3fn", "fp8_e4m3fnuz", "fp8_e5m2fnuz", "fp8_e8m0", "fp6_e3m2", "fp6_e2m3", "fp4_e2m1"}
)


def _topk_router(options: Mapping[str, Any], shape: tuple[int, ...], dtype: str) -> Fault | None:
    experts = options["experts"]
    if len(shape) != 2:
        return Fault(None, f"topk_router has shape [tokens, k], not {list(shape)}")
    if not isinstance(experts, int) or experts < shape[1]:
        return Fault("experts", f"{shape[1]} distinct experts of {experts} cannot be drawn")
    return _distinct(experts, dtype)


_CHECKS: dict[str, Callable[[Mapping[str, Any], tuple[int, ...], str], Fault | None]] = {
    "randn": _std,
    "uniform": _ordered,
    "sorted": _sorted,
    "randint": _randint,
    "bernoulli": _share,
    "hot_value": _share,
    "values": _values,
    "arange": _arange,
    "permutation": _permutation,
    "cauchy": _cauchy,
    "spd": _spd,
    "causal_mask": _causal_mask,
    "topk_router": _topk_router,
}
