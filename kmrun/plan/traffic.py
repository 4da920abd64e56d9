"""What a call moves at least, and what its sides need to hold.

Sizes in bytes. Tensors count packed (`core.dtypes.storage_bytes`); what `init: call` makes has no size before
the run and counts as nothing.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from kmrun.core.case import Argument, Output
from kmrun.core.dtypes import find, storage_bytes
from kmrun.plan.builders import VIEW_BUILDERS, is_dense, is_index


def tensors(arguments: Iterable[Argument]) -> Iterator[tuple[str, str, tuple[int, ...], str, Any]]:
    """Yield (argument, init, shape, dtype, layout) of every tensor, those inside lists included."""
    for argument in arguments:
        if argument.shape is not None and argument.dtype is not None:
            yield argument.name, argument.init, argument.shape, argument.dtype, argument.layout
        elif argument.init == "list":
            for item in argument.options["items"]:
                if item["shape"] is not None:
                    yield argument.name, item["init"], tuple(item["shape"]), item["dtype"], item["layout"]


def auto_refusal(arguments: Sequence[Argument]) -> str:
    """Return why the compulsory traffic cannot be told from the sizes, or an empty string."""
    for name, init, shape, dtype, layout in tensors(arguments):
        if init in VIEW_BUILDERS or not is_dense(layout, shape):
            return f"'{name}' is a view: what is allocated is not what is read"
        if is_index(init, dtype):
            return f"'{name}' holds indices: they choose what is read of the rest"
    return ""


def compulsory_bytes(
    arguments: Sequence[Argument], outputs: Sequence[Output], mutates: Collection[str]
) -> int:
    """Return the least traffic of a call: every input read once, every output written once.

    A mutated argument is read and written. Scratch space (`init: empty`) holds nothing to read.
    """
    total = sum(_output_bytes(output) for output in outputs)
    for name, init, shape, dtype, _ in tensors(arguments):
        size = storage_bytes(_numel(shape), dtype)
        total += size * ((init != "empty") + (name in mutates))
    return total


def needed_bytes(
    arguments: Sequence[Argument],
    outputs: Sequence[Output] | None,
    *,
    mode: str = "forward",
    compute: str | None = None,
    has_reference: bool = True,
    chunks: int = 1,
) -> Mapping[str, int]:
    """Return the memory that each side holds for one case: `{"kernel": ..., "judge": ...}`.

    With I the bytes of the inputs, O of the outputs and G of the gradients (in a backward mode those of the
    arguments with `requires_grad`, and the incoming ones, which are as large as the outputs):

    - kernel: 2 I + O + G. The inputs twice, because pristine copies are kept for the checks.
    - judge: I + O + G for what the kernel made. With a reference O + G once more in the case's own dtypes (it
      is also run as the kernel is, to know its own error), and once all floating tensors in `compute` (fp64
      where none is given), of which only one slice of `chunks` at a time.

    Unknown outputs (None) count as nothing. Flush buffers and the working space of the implementations are
    not part of it.
    """
    sizes = [(name, init, _numel(shape), dtype) for name, init, shape, dtype, _ in tensors(arguments)]
    judge_only = {argument.name for argument in arguments if argument.options.get("visible") == "judge"}
    held = [item for item in sizes if item[1] not in VIEW_BUILDERS]
    all_inputs = sum(storage_bytes(numel, dtype) for _, _, numel, dtype in held)
    kernel_inputs = sum(
        storage_bytes(numel, dtype) for name, _, numel, dtype in held if name not in judge_only
    )
    made = sum(_output_bytes(output) for output in outputs or ())
    wide = find(compute or "fp64").bits
    upcast = sum(_at_least(numel, dtype, wide) for _, _, numel, dtype in held)
    upcast += sum(_at_least(_numel(output.shape), output.dtype, wide) for output in outputs or ())
    gradients = 0
    if mode != "forward":
        asking = [argument for argument in arguments if argument.requires_grad and argument.shape is not None]
        gradients = made + sum(storage_bytes(_numel(a.shape or ()), str(a.dtype)) for a in asking)
        upcast += sum(_at_least(_numel(a.shape or ()), str(a.dtype), wide) for a in asking)
    judge = all_inputs + made + gradients
    if has_reference:
        judge += made + gradients + -(-upcast // max(chunks, 1))
    return {"kernel": 2 * kernel_inputs + made + gradients, "judge": judge}


def _at_least(numel: int, dtype: str, wide_bits: int) -> int:
    """Return the bytes of a floating tensor in the compute precision, never narrower than its own."""
    element = find(dtype)
    return numel * max(element.bits, wide_bits) // 8 if element.is_float else 0


def _output_bytes(output: Output) -> int:
    return storage_bytes(_numel(output.shape), output.dtype)


def _numel(shape: tuple[int, ...]) -> int:
    product = 1
    for size in shape:
        product *= size
    return product
