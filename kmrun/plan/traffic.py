"""What a call moves at least, and what its sides need to hold.

Sizes in bytes. Tensors count packed (`core.dtypes.storage_bytes`); what `init: call` makes has no size before
the run and counts as nothing.
"""

import functools
import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from kmrun.core.case import Argument, Output
from kmrun.core.dtypes import find, storage_bytes
from kmrun.plan.builders import VIEW_BUILDERS, is_dense, is_index


class Held(NamedTuple):
    """A tensor among the arguments, also one inside a list; `name` is the argument's."""

    name: str
    init: str
    shape: tuple[int, ...]
    dtype: str
    layout: Any
    nbytes: int
    judge_only: bool
    requires_grad: bool


def tensors(arguments: Iterable[Argument]) -> list[Held]:
    """Return every tensor that the arguments hold."""
    found: list[Held] = []
    for it in arguments:
        judge_only = it.options.get("visible") == "judge"
        if it.shape is not None and it.dtype is not None:
            size = _nbytes(it.shape, it.dtype)
            found.append(
                Held(it.name, it.init, it.shape, it.dtype, it.layout, size, judge_only, it.requires_grad)
            )
        elif it.init == "list":
            for item in it.options["items"]:
                if item["shape"] is not None:
                    shape, dtype = tuple(item["shape"]), item["dtype"]
                    size, grad = _nbytes(shape, dtype), item["requires_grad"]
                    found.append(
                        Held(it.name, item["init"], shape, dtype, item["layout"], size, judge_only, grad)
                    )
    return found


def auto_refusal(held: Sequence[Held]) -> str:
    """Return why the compulsory traffic cannot be told from the sizes, or an empty string."""
    for tensor in held:
        if tensor.init in VIEW_BUILDERS or not is_dense(tensor.layout, tensor.shape):
            return f"'{tensor.name}' is a view: what is allocated is not what is read"
        if is_index(tensor.init, tensor.dtype):
            return f"'{tensor.name}' holds indices: they choose what is read of the rest"
    return ""


def compulsory_bytes(held: Sequence[Held], outputs: Sequence[Output], mutates: Collection[str]) -> int:
    """Return the least traffic of a call: every input read once, every output written once.

    A mutated argument is read and written. Scratch space (`init: empty`) holds nothing to read.
    """
    total = sum([_nbytes(output.shape, output.dtype) for output in outputs])
    for tensor in held:
        total += tensor.nbytes * ((tensor.init != "empty") + (tensor.name in mutates))
    return total


def needed_bytes(
    held: Sequence[Held],
    outputs: Sequence[Output] | None,
    *,
    mode: str = "forward",
    compute: str | None = None,
    has_reference: bool = True,
    chunks: int = 1,
) -> Mapping[str, int]:
    """Return the memory that each side holds at most for one case: `{"kernel": ..., "judge": ...}`.

    With I the bytes of the inputs, O of the outputs and, in a backward mode, of the gradients of the arguments with
    `requires_grad` and the incoming ones:

    - kernel: 4 I + 4 O. Two drawings of the inputs, two copies that timed calls rotate over, the outputs of the call
      and of up to three timed calls that wait to be compared.
    - judge: 2 I, O and what crosses between the sides, I + O. With a reference 2 I and 3 O more: copies that it is
      timed on, its outputs for both drawings, and those of a call. Then its outputs for both drawings in `compute`
      (fp64 where none is given), and all floating inputs in it, of which only one slice of `chunks` at a time.

    Unknown outputs (None) count as nothing. Not part of it: more than two copies, which are made of memory that is
    free (they total twice the last-level cache), flush buffers, the working space of the implementations.
    """
    own = [tensor for tensor in held if tensor.init not in VIEW_BUILDERS]
    inputs = sum([tensor.nbytes for tensor in own])
    kernel_inputs = inputs - sum([tensor.nbytes for tensor in own if tensor.judge_only])
    made = sum([_nbytes(output.shape, output.dtype) for output in outputs or ()])
    asking = [tensor for tensor in own if tensor.requires_grad] if mode != "forward" else []
    if mode != "forward":
        made += made + sum([tensor.nbytes for tensor in asking])
    judge = 2 * inputs + made + kernel_inputs + made
    if has_reference:
        wide = find(compute or "fp64").bits
        wide_inputs = sum([_wide_bytes(tensor.shape, tensor.dtype, wide) for tensor in own])
        wide_made = sum([_wide_bytes(tensor.shape, tensor.dtype, wide) for tensor in asking])
        for output in outputs or ():
            wide_made += _wide_bytes(output.shape, output.dtype, wide) * (1 if mode == "forward" else 2)
        judge += 2 * inputs + 3 * made + 2 * wide_made + -(-wide_inputs // max(chunks, 1))
    return {"kernel": 4 * (kernel_inputs + made), "judge": judge}


@functools.lru_cache(maxsize=65_536)
def _nbytes(shape: tuple[int, ...], dtype: str) -> int:
    return storage_bytes(math.prod(shape), dtype)


@functools.lru_cache(maxsize=65_536)
def _wide_bytes(shape: tuple[int, ...], dtype: str, bits: int) -> int:
    """Return the bytes of a floating tensor in the compute precision, never narrower than its own."""
    element = find(dtype)
    return math.prod(shape) * max(element.bits, bits) // 8 if element.is_float else 0
