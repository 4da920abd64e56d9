"""Whether a number can be held by an element type: what does not fit would wrap or become infinite in silence."""

import math

from kmrun.core.dtypes import find

_LARGEST = {
    "fp64": 1.7976931348623157e308,
    "fp32": 3.4028234663852886e38,
    "tf32": 3.4028234663852886e38,
    "bf16": 3.3895313892515355e38,
    "fp16": 65504.0,
    "fp8_e4m3": 448.0,
    "fp8_e4m3fn": 448.0,
    "fp8_e4m3fnuz": 240.0,
    "fp8_e5m2": 57344.0,
    "fp8_e5m2fnuz": 57344.0,
    "fp8_e8m0": 2.0**127,
    "fp6_e3m2": 28.0,
    "fp6_e2m3": 7.5,
    "fp4_e2m1": 6.0,
    "complex64": 3.4028234663852886e38,
    "complex128": 1.7976931348623157e308,
}
"""The largest finite number of each floating type (OCP MX and OFP8 1.0, IEEE 754), of a part of a complex one.

`fp8_e4m3` is counted as e4m3fn: on a device that knows only the fnuz form, half of the range is left.
"""


def limits(dtype: str) -> tuple[int | float, int | float]:
    """Return the least and the most that an element type holds."""
    element = find(dtype)
    if element.name in _LARGEST:
        largest = _LARGEST[element.name]
        return -largest, largest
    if element.kind == "bool":
        return 0, 1
    if element.kind == "uint":
        return 0, 2**element.bits - 1
    return -(2 ** (element.bits - 1)), 2 ** (element.bits - 1) - 1


def misfit(value: float, dtype: str) -> str:
    """Return why an element type does not hold a number (rounding aside), or an empty string."""
    element = find(dtype)
    least, most = limits(dtype)
    if element.name in _LARGEST:
        return "" if least <= value <= most else f"{value} does not fit in {dtype} (at most {most:.5g})"
    if isinstance(value, float) and not value.is_integer():
        return f"{value} does not fit in {dtype}, which holds whole numbers"
    return "" if least <= value <= most else f"{value} does not fit in {dtype} ({least} to {most})"


def most_exact_count(dtype: str) -> int:
    """Return how many whole numbers from 0 on a type tells apart: 2 ** (mantissa + 1) + 1 of a floating one."""
    element = find(dtype)
    most = limits(dtype)[1]
    if element.mantissa_bits is None:
        return int(most) + 1
    return int(min(most, 2 ** (element.mantissa_bits + 1))) + 1


def spans_overlap(strides: tuple[int, ...], shape: tuple[int, ...]) -> bool:
    """Return whether two elements of such a tensor surely share a place in memory.

    Two dimensions meet where a multiple of one stride, within its size, is one of the other's; and more elements
    than places cannot all have one of their own.
    """
    dimensions = [(stride, size) for stride, size in zip(strides, shape, strict=True) if size > 1]
    if 0 in shape:
        return False
    if any(stride == 0 for stride, _ in dimensions):
        return True
    places = 1 + sum(stride * (size - 1) for stride, size in dimensions)
    if math.prod(shape) > places:
        return True
    for index, (stride, size) in enumerate(dimensions):
        for other, count in dimensions[index + 1 :]:
            step = math.gcd(stride, other)
            if other // step < size and stride // step < count:
                return True
    return False
