"""What a kernel handed back: plain tensors of the declared shape, dtype and device, or a clear refusal."""

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from kmrun.core.case import Case, Output
from kmrun.core.measurement import FaultKind
from kmrun.measure.builders import poison
from kmrun.measure.copies import tensors_in
from kmrun.measure.dtypes import short_name, torch_dtype, unusable
from kmrun.measure.faults import Outcome, SideFault, one_line
from kmrun.measure.inputs import arranged
from kmrun.measure.writes import hash_bytes

__all__ = [
    "OutputError",
    "allocate",
    "check_form",
    "collect",
    "declared",
    "flatten",
    "gradients",
    "hash_bytes",
    "learn",
    "mutated",
    "output_names",
    "poison",
    "returned_outputs",
    "short_name",
    "without_aliases",
]


class OutputError(SideFault):
    """What came back is not what a kernel may hand back; the kernel's fault.

    Codes with outcome `error`: `output_none`, `output_not_tensor`, `output_lazy`. With outcome `fail`:
    `output_count`, `output_shape`, `output_dtype`, `output_device`, `output_aliases_input`,
    `gradient_missing`.
    """

    default_fault: FaultKind = "kernel"
    default_outcome: Outcome = "fail"


def flatten(result: Any, who: str = "the kernel") -> list[torch.Tensor]:
    """Return the tensors of a result in order.

    Args:
        result: a tensor; anything with `__dlpack__`, `__cuda_array_interface__` or `__array_interface__`; or
            a tuple (also a named one), list or dict of such.
        who: what sentences call the one that returned it.

    Raises:
        OutputError: None, no tensor, a tensor subclass (it may compute later than it is timed), or a tensor
            without memory of its own (meta, sparse) or numbers that torch can compare (quantized, packed).
    """
    if result is None:
        sentence = (
            f"{who} returned None; if it writes its result to an argument, declare `mutates: [ARGUMENT]`"
        )
        raise OutputError("output_none", sentence, outcome="error")
    return _flatten(result, f"{who} returned")


def _flatten(result: Any, place: str) -> list[torch.Tensor]:
    if result is None:
        raise OutputError("output_none", f"{place} None", outcome="error")
    if isinstance(result, torch.Tensor):
        return [_plain(result, place)]
    if isinstance(result, Mapping):
        return [tensor for key in result for tensor in _flatten(result[key], _item(place, repr(key)))]
    if isinstance(result, list | tuple):
        return [
            tensor for index, item in enumerate(result) for tensor in _flatten(item, _item(place, str(index)))
        ]
    return [_foreign(result, place)]


def _item(place: str, which: str) -> str:
    """Return the place of an item: `the kernel's output 1 is`, or `the kernel's output 1, 0 is`."""
    if place.endswith(" is"):
        return f"{place.removesuffix(' is')}, {which} is"
    return f"{place.removesuffix(' returned')}'s output {which} is"


def _plain(tensor: torch.Tensor, place: str) -> torch.Tensor:
    kind = type(tensor)
    if kind is not torch.Tensor and kind is not torch.nn.Parameter:
        name = f"{kind.__module__}.{kind.__qualname__}"
        sentence = (
            f"{place} a {name}: a tensor subclass may compute after it was timed; return a plain tensor"
        )
        raise OutputError("output_lazy", sentence, outcome="error")
    if (why_not := unusable(tensor)) is not None:
        raise OutputError("output_not_tensor", f"{place} {why_not}", outcome="error")
    if tensor.numel() and tensor.untyped_storage().data_ptr() == 0:
        raise OutputError("output_lazy", f"{place} a tensor without memory", outcome="error")
    return tensor.resolve_conj().resolve_neg()


def _foreign(result: Any, place: str) -> torch.Tensor:
    try:
        if hasattr(result, "__cuda_array_interface__"):
            return torch.as_tensor(result, device="cuda")
        if hasattr(result, "__dlpack__"):
            try:
                return torch.from_dlpack(result)
            except BufferError:  # read-only memory: DLPack refuses it, a copy is as good
                return torch.as_tensor(result)
        if hasattr(result, "__array_interface__"):
            import numpy as np  # only these objects need it; torch itself does not

            return torch.as_tensor(np.asarray(result))
    except (RuntimeError, TypeError, ValueError, BufferError) as error:
        sentence = f"{place} a {type(result).__name__} that torch cannot read: {one_line(error)}"
        raise OutputError("output_not_tensor", sentence, outcome="error") from error
    sentence = f"{place} a {type(result).__name__}, not a tensor"
    raise OutputError("output_not_tensor", sentence, outcome="error")


def mutated(case: Case, named: Mapping[str, Any]) -> dict[str, torch.Tensor]:
    """Return the tensors that the call is to write to (`mutates`); those of a list by `NAME.0`, `NAME.1`, ..."""
    found: dict[str, torch.Tensor] = {}
    for name in case.mutates:
        value = named.get(name)
        if isinstance(value, torch.Tensor):
            found[name] = value
        else:
            found |= {f"{name}.{index}": tensor for index, tensor in enumerate(tensors_in(value))}
    return found


def without_aliases(
    tensors: Sequence[torch.Tensor], held: Mapping[str, torch.Tensor]
) -> tuple[list[torch.Tensor], set[str]]:
    """Return the tensors that are none of `held`, and the names of those that are.

    torch's own in-place operations return what they wrote to: that is one output, not two.
    """
    others: list[torch.Tensor] = []
    names: set[str] = set()
    for tensor in tensors:
        name = next((name for name, own in held.items() if _is_the_same(tensor, own)), None)
        if name is None:
            others.append(tensor)
        else:
            names.add(name)
    return others, names


def _is_the_same(one: torch.Tensor, other: torch.Tensor) -> bool:
    return one is other or (one.dtype == other.dtype and one.numel() > 0 and one.is_set_to(other))


def collect(
    case: Case,
    result: Any,
    named: Mapping[str, Any],
    buffers: Mapping[str, torch.Tensor] | None = None,
    who: str = "the kernel",
) -> dict[str, torch.Tensor]:
    """Return the outputs of one call by name, wherever they are: returned, in buffers, or mutated arguments.

    What is returned although it is such a buffer or argument is that output, and no other. Mutated arguments
    come last where they are no declared output: the reference may have values for them.

    Args:
        case: the case; with `outputs` None, names and shapes are taken as they come.
        result: what the call returned; ignored when nothing is to be returned.
        named: the arguments of that very call.
        buffers: caller-allocated outputs by parameter name, as `allocate` made them.
        who: what sentences call the one that was called.

    Raises:
        OutputError: see `flatten` and `declared`.
    """
    held = mutated(case, named)
    if case.outputs is None:
        returned = [] if result is None and held else without_aliases(flatten(result, who), held)[0]
        if not returned and not held:
            raise OutputError("output_none", f"{who} returned no tensor", outcome="error")
        return held | declared(case, returned, named, who=who)
    in_place: dict[str, torch.Tensor] = {}
    for output in case.outputs:
        if output.arg is not None:
            in_place[output.name] = {**named, **(buffers or {})}[output.arg]
            check_form(output, in_place[output.name])
        elif output.name in held:
            in_place[output.name] = held[output.name]
    returns = [output for output in case.outputs if output.name not in in_place]
    found: dict[str, torch.Tensor] = {}
    if returns:
        tensors = flatten(result, who)
        if len(tensors) != len(returns):
            tensors, _ = without_aliases(tensors, held | in_place)
        found = declared(case, tensors, named, who=who)
    by_name = {output.name: {**in_place, **found}[output.name] for output in case.outputs}
    return by_name | {name: tensor for name, tensor in held.items() if name not in by_name}


def returned_outputs(case: Case) -> tuple[Output, ...] | None:
    """Return the declared outputs that the call itself returns; None when they are to be learned."""
    if case.outputs is None:
        return None
    return tuple(
        output
        for output in case.outputs
        if output.arg is None and output.name.partition(".")[0] not in case.mutates
    )


def declared(
    case: Case,
    tensors: Sequence[torch.Tensor],
    named: Mapping[str, Any] | None = None,
    device: torch.device | None = None,
    who: str = "the kernel",
) -> dict[str, torch.Tensor]:
    """Check returned tensors against the case and name them.

    Args:
        case: with `outputs` None, one tensor is named `o`, several `o0`, `o1`, ...
        tensors: as `flatten` gave them.
        named: the arguments of the call; with them, outputs that share memory with one are refused, except with
            one that the call is to write to.
        device: where the outputs must be; by default where the first tensor argument is.
        who: what sentences call the one that returned them.

    Raises:
        OutputError: another count, shape, dtype or device than declared, or memory shared with an argument.
    """
    outputs = returned_outputs(case)
    if outputs is None:
        found = dict(zip(output_names(len(tensors)), tensors, strict=True))
    else:
        if len(tensors) != len(outputs):
            expected = "the reference" if all(each.learned for each in outputs) else "declared"
            sentence = f"{who} returned {count(len(tensors))}, {expected} {count(len(outputs))}"
            raise OutputError("output_count", sentence)
        found = {}
        for output, tensor in zip(outputs, tensors, strict=True):
            check_form(output, tensor)
            found[output.name] = tensor
    where = device or _main_device(named)
    for name, tensor in found.items():
        if where is not None and tensor.device.type != where.type:
            raise OutputError("output_device", f"{name} is on {tensor.device}, expected on {where}")
    if named is not None:
        _refuse_aliases(found, {name: value for name, value in named.items() if name not in case.mutates})
    return found


def output_names(count: int) -> list[str]:
    """Return the names of learned outputs: `o`, or `o0 o1 ...`."""
    return ["o"] if count == 1 else [f"o{index}" for index in range(count)]


def count(number: int) -> str:
    """Return `1 tensor`, `2 tensors`."""
    return "1 tensor" if number == 1 else f"{number} tensors"


def check_form(output: Output, tensor: torch.Tensor) -> None:
    """Refuse a tensor of another shape or dtype than an output's.

    Raises:
        OutputError: it is of another.
    """
    expected = "the reference's is" if output.learned else "declared"
    if tuple(tensor.shape) != tuple(output.shape):
        sentence = f"{output.name} has shape {list(tensor.shape)}, {expected} {list(output.shape)}"
        raise OutputError("output_shape", sentence)
    want = torch_dtype(output.dtype, tensor.device)
    if tensor.dtype != want:
        sentence = f"{output.name} is {short_name(tensor.dtype)}, {expected} {short_name(want)}"
        raise OutputError("output_dtype", sentence)


def _main_device(named: Mapping[str, Any] | None) -> torch.device | None:
    devices = [value.device for value in (named or {}).values() if isinstance(value, torch.Tensor)]
    on_card = [device for device in devices if device.type != "cpu"]
    return next(iter(on_card or devices), None)


def _refuse_aliases(found: Mapping[str, torch.Tensor], named: Mapping[str, Any]) -> None:
    owners = {
        tensor.untyped_storage().data_ptr(): name
        for name, value in named.items()
        for tensor in tensors_in(value)
        if tensor.numel()
    }
    for name, tensor in found.items():
        owner = owners.get(tensor.untyped_storage().data_ptr()) if tensor.numel() else None
        if owner is not None:
            sentence = f"{name} shares its memory with the argument {owner!r}; declare `mutates: [{owner}]`"
            raise OutputError("output_aliases_input", sentence)


def learn(outputs: Mapping[str, torch.Tensor]) -> tuple[Output, ...]:
    """Return the declaration that these outputs (of the reference, in the case's own dtype) amount to."""
    return tuple(
        Output(name, tuple(tensor.shape), short_name(tensor.dtype), learned=True)
        for name, tensor in outputs.items()
    )


def allocate(case: Case, device: torch.device) -> dict[str, torch.Tensor]:
    """Return a poisoned buffer for each output that the caller allocates, by the name of its parameter."""
    buffers = {}
    for output in case.outputs or ():
        if output.arg is not None:
            buffer = arranged(
                output.name, output.shape, torch_dtype(output.dtype, device), output.layout, device
            )
            poison(buffer)
            buffers[output.arg] = buffer
    return buffers


def gradients(
    case: Case,
    forward_outputs: Mapping[str, torch.Tensor],
    named_inputs: Mapping[str, Any],
    grads: Mapping[str, torch.Tensor],
) -> dict[str, torch.Tensor]:
    """Run the backward pass once: `torch.autograd.grad(outputs, inputs, grad, retain_graph=True)`.

    Args:
        case: the case; its `requires_grad` arguments are differentiated, in order.
        forward_outputs: of a forward pass on `named_inputs`, still attached to its graph.
        named_inputs: the arguments; those with `requires_grad` are leaves.
        grads: incoming gradient by output name; outputs without one (integers) take no part.

    Returns:
        Gradients by `grad_<argument>`, each with the shape and dtype of its argument.

    Raises:
        OutputError: no graph, or no gradient reaches an argument.
    """
    leaves = {
        argument.name: named_inputs[argument.name] for argument in case.arguments if argument.requires_grad
    }
    heads = [forward_outputs[name] for name in grads]
    detached = [name for name in grads if not forward_outputs[name].requires_grad]
    if detached or not heads:
        sentence = f"output {detached[0] if detached else 'o'} carries no graph: nothing to differentiate"
        raise OutputError("gradient_missing", sentence)
    found = torch.autograd.grad(
        heads, list(leaves.values()), list(grads.values()), retain_graph=True, allow_unused=True
    )
    missing = [name for name, grad in zip(leaves, found, strict=True) if grad is None]
    if missing:
        raise OutputError("gradient_missing", f"no gradient reaches the argument {missing[0]!r}")
    named = {f"grad_{name}": grad for name, grad in zip(leaves, found, strict=True)}
    for name, grad in named.items():
        leaf = leaves[name.removeprefix("grad_")]
        if grad.dtype != leaf.dtype or grad.shape != leaf.shape:
            sentence = f"{name} is {short_name(grad.dtype)} {list(grad.shape)}, its argument is "
            raise OutputError("output_shape", sentence + f"{short_name(leaf.dtype)} {list(leaf.shape)}")
    return named
