"""The reference, twice: in high precision (what is right) and in the case's own dtype (what error is usual).

`reference.chunk` names an axis along which the first is evaluated slice by slice, so that fp64 fits.
"""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

import torch

from kmrun.core.case import Argument, Case
from kmrun.measure import outputs, returned
from kmrun.measure.copies import copy_tree, tensors_in
from kmrun.measure.dtypes import computable, short_name, torch_dtype, wider
from kmrun.measure.faults import SideFault, traceback_tail, what_it_did
from kmrun.measure.inputs import call_arguments_for
from kmrun.measure.writes import Writes

Function = Callable[..., Any]

MOST_SLICES = 64


class ReferenceFault(SideFault):
    """The reference failed: the suite's fault.

    Codes: `reference_raised`, `reference_output` (unusable), `chunk_invalid` (it cannot be sliced so),
    `input_mutated`.
    """


def references(
    case: Case,
    fn: Function,
    named_inputs: Mapping[str, Any],
    grads: Mapping[str, torch.Tensor] | None = None,
) -> tuple[dict[str, torch.Tensor], dict[str, torch.Tensor], list[str]]:
    """Return (in high precision, in the case's own dtype, remarks) for the inputs of one seed.

    The precision is `reference.compute`, fp64 when the suite does not say.

    Raises:
        ReferenceFault: see there; also when slices along `reference.chunk` disagree with the whole.
    """
    remarks: list[str] = []
    compute = case.reference.compute if case.reference is not None else None
    same = own_reference(case, fn, named_inputs, grads, remarks)
    if case.outputs is None and case.mode == "forward":
        # Whatever else its arithmetic does, in high precision it must give the same outputs.
        case = dataclasses.replace(case, outputs=outputs.learn(same))
    high = compute_reference(case, fn, named_inputs, compute, grads, remarks, like=same)
    high = {name: computable(tensor) for name, tensor in high.items()}
    if case.reference is not None and case.reference.chunk is not None:
        _slices_agree(case, high, same)
    return high, same, remarks


def compute_reference(
    case: Case,
    fn: Function,
    named_inputs: Mapping[str, Any],
    compute_dtype: str | torch.dtype | None,
    grads: Mapping[str, torch.Tensor] | None = None,
    remarks: list[str] | None = None,
    like: Mapping[str, torch.Tensor] | None = None,
) -> dict[str, torch.Tensor]:
    """Evaluate the reference on copies of its inputs.

    Args:
        case: the case; in the backward modes gradients come back, by `grad_<argument>`.
        fn: the reference.
        named_inputs: arguments as `inputs.build` made them; never written to.
        compute_dtype: floating arguments are widened to it (integers and bools stay); None is fp64.
        grads: incoming gradients by output name, for the backward modes.
        remarks: receives a sentence when an operation has no fp64 form and fp32 was taken.
        like: outputs of the whole reference; tell shapes when the suite declares none.

    Raises:
        ReferenceFault: see there.
    """
    compute = (
        compute_dtype if isinstance(compute_dtype, torch.dtype) else torch_dtype(compute_dtype or "fp64")
    )
    try:
        return _evaluate_sliced(case, fn, named_inputs, grads, compute, like)
    except ReferenceFault as fault:
        cause = str(fault.__cause__)
        lacks = compute == torch.float64 and ("not implemented" in cause or "Double" in cause)
        if not lacks or fault.code != "reference_raised":
            raise
        if remarks is not None:
            remarks.append(f"the reference has no fp64 form ({cause.splitlines()[0]}): computed in fp32")
        return _evaluate_sliced(case, fn, named_inputs, grads, torch.float32, like)


def own_reference(
    case: Case,
    fn: Function,
    named_inputs: Mapping[str, Any],
    grads: Mapping[str, torch.Tensor] | None = None,
    remarks: list[str] | None = None,
) -> dict[str, torch.Tensor]:
    """Evaluate the reference on copies of its inputs, in the case's own dtype, in one piece.

    The reference hands its outputs back, also those that the kernel writes into buffers of the caller.

    Its arguments are those of `compute_reference`. `remarks` receives a sentence on each argument that the kernel
    writes to and the reference has no value for.

    Raises:
        ReferenceFault: see there; also when it wrote to an argument that the kernel must leave alone. What it is
            timed on, beside the kernel, would be no longer what was drawn.
    """
    copies = _copies(case, named_inputs, None)
    versions = {name: _versions(value) for name, value in copies.items()}
    found = _evaluate(case, fn, copies, grads, remarks)
    for name, value in copies.items():
        if (
            name not in case.mutates
            and _versions(value) != versions[name]
            and _differ(value, named_inputs[name])
        ):
            sentence = (
                f"{_who(case)} wrote to its input {name!r}; declare `mutates: [{name}]` if the kernel does so, "
                "too, else let it work on a copy"
            )
            raise ReferenceFault("input_mutated", sentence)
    return found


def _versions(tree: Any) -> list[int]:
    return [0 if tensor.is_inference() else tensor._version for tensor in tensors_in(tree)]


def _differ(tree: Any, source: Any) -> bool:
    pairs = zip(tensors_in(tree), tensors_in(source), strict=True)
    return any(
        not torch.allclose(computable(one.detach()), computable(other.detach()), 0.0, 0.0, equal_nan=True)
        for one, other in pairs
    )


def _copies(case: Case, named: Mapping[str, Any], compute: torch.dtype | None) -> dict[str, Any]:
    """Return arguments that a reference may write to and differentiate, widened to `compute`."""
    leaves = {argument.name for argument in case.arguments if argument.requires_grad}
    copies: dict[str, Any] = {}
    for name, value in named.items():
        copied = _copy(value, compute)
        if name in leaves and isinstance(copied, torch.Tensor):
            copied.requires_grad_(case.mode != "forward")
        copies[name] = copied
    return copies


def _copy(value: Any, compute: torch.dtype | None) -> Any:
    if isinstance(value, torch.Tensor):
        wide = value.dtype if compute is None else wider(value.dtype, compute)
        return copy_tree(value.detach()) if wide == value.dtype else value.detach().to(wide)
    if isinstance(value, list):
        return [_copy(item, compute) for item in value]
    if isinstance(value, tuple):
        items = [_copy(item, compute) for item in value]
        return type(value)(*items) if hasattr(value, "_fields") else tuple(items)
    if isinstance(value, dict):
        return {key: _copy(item, compute) for key, item in value.items()}
    return value


def _evaluate(
    case: Case,
    fn: Function,
    named: Mapping[str, Any],
    grads: Mapping[str, torch.Tensor] | None,
    remarks: list[str] | None = None,
) -> dict[str, torch.Tensor]:
    if case.reference is None:
        raise ReferenceFault("reference_raised", "the kernel has no reference")
    who = _who(case)
    args, kwargs = call_arguments_for(case, case.reference.implementation, named)
    writes = Writes(outputs.mutated(case, named))
    try:
        with torch.set_grad_enabled(case.mode != "forward"):
            result = fn(*args, **kwargs)
            found, missing = returned.by_name(case, result, named, writes.found(), who)
            _check_forms(case, found)
            if case.mode != "forward":
                return _backward(case, found, named, grads or {})
    except outputs.OutputError as error:
        sentence = error.sentence if error.sentence.startswith(who) else f"{who}: {error.sentence}"
        raise ReferenceFault("reference_output", sentence) from error
    except SideFault:
        raise
    except (
        BaseException
    ) as error:  # also its exit() and KeyboardInterrupt: a person's interrupt never comes here
        sentence = f"{who} {what_it_did(error)}"
        raise ReferenceFault("reference_raised", sentence, "suite", traceback_tail(error)) from error
    if remarks is not None:
        remarks += [
            f"what the kernel writes to {name} is not compared: the reference neither writes nor returns it"
            for name in missing
        ]
    return found


def _who(case: Case) -> str:
    return f"the reference {case.reference.implementation.target}" if case.reference else "the reference"


def _check_forms(case: Case, found: Mapping[str, torch.Tensor]) -> None:
    """Refuse what cannot be compared element by element with the declared outputs."""
    sliced = case.reference is not None and case.reference.chunk is not None
    for output in case.outputs or ():
        tensor = found[output.name]
        if tuple(tensor.shape) != tuple(output.shape) and not sliced:
            sentence = f"{output.name} has shape {list(tensor.shape)}, declared {list(output.shape)}"
            raise outputs.OutputError("output_shape", sentence)
        if tensor.is_complex() != torch_dtype(output.dtype, tensor.device).is_complex:
            sentence = f"{output.name} is {short_name(tensor.dtype)}, declared {output.dtype}"
            raise outputs.OutputError("output_dtype", sentence)


def _backward(
    case: Case,
    forward: Mapping[str, torch.Tensor],
    named: Mapping[str, Any],
    grads: Mapping[str, torch.Tensor],
) -> dict[str, torch.Tensor]:
    cast = {name: grad.to(forward[name].device, forward[name].dtype) for name, grad in grads.items()}
    return {name: grad.detach() for name, grad in outputs.gradients(case, forward, named, cast).items()}


def _chunk_dimension(case: Case, argument: Argument, axis: str, size: int) -> int | None:
    """Return the dimension of an argument that the chunk axis runs along.

    The plan knows it from the shapes as written; without that knowledge, it is the first one of that size.
    """
    dims = case.reference.chunk_dims if case.reference is not None else {}
    if dims:
        return dims.get(argument.name)
    if argument.shape is None or size not in argument.shape:
        return None
    return argument.shape.index(size)


def _evaluate_sliced(
    case: Case,
    fn: Function,
    named: Mapping[str, Any],
    grads: Mapping[str, torch.Tensor] | None,
    compute: torch.dtype,
    like: Mapping[str, torch.Tensor] | None,
) -> dict[str, torch.Tensor]:
    axis = case.reference.chunk if case.reference is not None else None
    size = case.axes.get(axis) if axis is not None else None
    if axis is None or not isinstance(size, int) or size <= 1 or case.mode != "forward":
        return _evaluate(case, fn, _copies(case, named, compute), grads)
    dimensions = {
        argument.name: dimension
        for argument in case.arguments
        if (dimension := _chunk_dimension(case, argument, axis, size)) is not None
        and isinstance(named.get(argument.name), torch.Tensor)
    }
    if not dimensions:
        raise ReferenceFault(
            "chunk_invalid", f"reference.chunk: no argument has a dimension of {axis} = {size}"
        )
    step = -(-size // MOST_SLICES)
    whole: dict[str, torch.Tensor] = {}
    along: dict[str, int] = {}
    for start in range(0, size, step):
        length = min(step, size - start)
        part = {
            name: value.narrow(dimensions[name], start, length) if name in dimensions else value
            for name, value in named.items()
        }
        for name, tensor in _evaluate(case, fn, _copies(case, part, compute), None).items():
            if name not in whole:
                along[name], whole[name] = _room_for(case, name, tensor, axis, size, length, like)
            whole[name].narrow(along[name], start, length).copy_(tensor)
    return whole


def _room_for(
    case: Case,
    name: str,
    piece: torch.Tensor,
    axis: str,
    size: int,
    length: int,
    like: Mapping[str, torch.Tensor] | None,
) -> tuple[int, torch.Tensor]:
    """Return the dimension along which slices of an output lie side by side, and a tensor for all of them."""
    shape = list(piece.shape)
    known = case.reference.chunk_dims.get(name) if case.reference is not None else None
    target = next((list(output.shape) for output in case.outputs or () if output.name == name), None)
    if target is None and like is not None and name in like:
        target = list(like[name].shape)
    for dimension, extent in enumerate(shape):
        grown = [*shape[:dimension], size, *shape[dimension + 1 :]]
        if extent == length and (target is None or grown == target) and known in (None, dimension):
            return dimension, piece.new_empty(grown)
    sentence = f"reference.chunk: output {name} of a slice has shape {shape}: it does not grow along {axis}"
    raise ReferenceFault("chunk_invalid", sentence)


def _slices_agree(case: Case, high: Mapping[str, torch.Tensor], same: Mapping[str, torch.Tensor]) -> None:
    """Refuse a chunk axis that the reference mixes: slices would then be another function than the whole."""
    for name, whole in same.items():
        if not whole.dtype.is_floating_point:
            continue
        left, right = high[name].nan_to_num(0, 0, 0), computable(whole).nan_to_num(0, 0, 0)
        norm = max(float(torch.linalg.vector_norm(side, dtype=torch.float64)) for side in (left, right))
        gap = float(torch.linalg.vector_norm(left - right, dtype=torch.float64))
        if gap > 0.2 * norm and norm > 0:
            axis = case.reference.chunk if case.reference is not None else ""
            sentence = f"reference.chunk: {axis}: output {name} in slices is not what it is as a whole"
            raise ReferenceFault(
                "chunk_invalid", sentence + f" (off by {gap / norm:.1g}); choose another axis"
            )
