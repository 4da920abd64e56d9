"""What a kernel handed back: plain tensors of the declared shape, dtype and device, or a clear refusal."""

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from kmrun.core.case import Case, Output
from kmrun.core.measurement import FaultKind
from kmrun.measure.builders import poison
from kmrun.measure.copies import tensors_in
from kmrun.measure.dtypes import short_name, torch_dtype
from kmrun.measure.faults import Outcome, SideFault, one_line
from kmrun.measure.inputs import arranged

__all__ = [
    "OutputError",
    "allocate",
    "collect",
    "declared",
    "flatten",
    "gradients",
    "hash_bytes",
    "learn",
    "output_names",
    "poison",
    "returned_outputs",
    "short_name",
]


class OutputError(SideFault):
    """What came back is not what a kernel may hand back; the kernel's fault.

    Codes with outcome `error`: `output_none`, `output_not_tensor`, `output_lazy`. With outcome `fail`:
    `output_count`, `output_shape`, `output_dtype`, `output_device`, `output_aliases_input`,
    `gradient_missing`.
    """

    default_fault: FaultKind = "kernel"
    default_outcome: Outcome = "fail"


def flatten(result: Any) -> list[torch.Tensor]:
    """Return the tensors of a result in order.

    Args:
        result: a tensor; anything with `__dlpack__`, `__cuda_array_interface__` or `__array_interface__`; or
            a tuple (also a named one), list or dict of such.

    Raises:
        OutputError: None, no tensor, a tensor subclass (it may compute later than it is timed), or a tensor
            without memory of its own (meta, sparse).
    """
    return _flatten(result, "the kernel returned")


def _flatten(result: Any, place: str) -> list[torch.Tensor]:
    if result is None:
        raise OutputError("output_none", f"{place} None", outcome="error")
    if isinstance(result, torch.Tensor):
        return [_plain(result, place)]
    if isinstance(result, Mapping):
        return [tensor for key in result for tensor in _flatten(result[key], f"output {key!r} is")]
    if isinstance(result, list | tuple):
        return [
            tensor for index, item in enumerate(result) for tensor in _flatten(item, f"output {index} is")
        ]
    return [_foreign(result, place)]


def _plain(tensor: torch.Tensor, place: str) -> torch.Tensor:
    kind = type(tensor)
    if kind is not torch.Tensor and kind is not torch.nn.Parameter:
        name = f"{kind.__module__}.{kind.__qualname__}"
        sentence = (
            f"{place} a {name}: a tensor subclass may compute after it was timed; return a plain tensor"
        )
        raise OutputError("output_lazy", sentence, outcome="error")
    if tensor.layout != torch.strided or tensor.device.type == "meta":
        what = str(tensor.layout).removeprefix("torch.") if tensor.device.type != "meta" else "meta"
        raise OutputError("output_not_tensor", f"{place} a {what} tensor, not a dense one", outcome="error")
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


def collect(
    case: Case,
    result: Any,
    named: Mapping[str, Any],
    buffers: Mapping[str, torch.Tensor] | None = None,
) -> dict[str, torch.Tensor]:
    """Return the outputs of one call by name, wherever they are: returned, in buffers, or mutated arguments.

    Args:
        case: the case; with `outputs` None, names and shapes are taken as they come.
        result: what the call returned; ignored when nothing is to be returned.
        named: the arguments of that very call.
        buffers: caller-allocated outputs by parameter name, as `allocate` made them.

    Raises:
        OutputError: see `flatten` and `declared`.
    """
    mutated = {name: named[name] for name in case.mutates if isinstance(named.get(name), torch.Tensor)}
    if case.outputs is None:
        returned = [] if result is None and mutated else flatten(result)
        return mutated | declared(case, returned, named)
    in_place: dict[str, torch.Tensor] = {}
    for output in case.outputs:
        if output.arg is not None:
            in_place[output.name] = {**named, **(buffers or {})}[output.arg]
            _check_form(output, in_place[output.name])
        elif output.name in mutated:
            in_place[output.name] = mutated[output.name]
    returns = [output for output in case.outputs if output.name not in in_place]
    found = declared(case, flatten(result), named) if returns else {}
    return {output.name: in_place.get(output.name, found.get(output.name)) for output in case.outputs}


def returned_outputs(case: Case) -> tuple[Output, ...] | None:
    """Return the declared outputs that the call itself returns; None when they are to be learned."""
    if case.outputs is None:
        return None
    return tuple(output for output in case.outputs if output.arg is None and output.name not in case.mutates)


def declared(
    case: Case,
    tensors: Sequence[torch.Tensor],
    named: Mapping[str, Any] | None = None,
    device: torch.device | None = None,
) -> dict[str, torch.Tensor]:
    """Check returned tensors against the case and name them.

    Args:
        case: with `outputs` None, one tensor is named `o`, several `o0`, `o1`, ...
        tensors: as `flatten` gave them.
        named: the arguments of the call; with them, outputs that share memory with an argument are refused.
        device: where the outputs must be; by default where the first tensor argument is.

    Raises:
        OutputError: another count, shape, dtype or device than declared, or memory shared with an argument.
    """
    outputs = returned_outputs(case)
    if outputs is None:
        found = dict(zip(output_names(len(tensors)), tensors, strict=True))
    else:
        if len(tensors) != len(outputs):
            sentence = f"returned {_count(len(tensors))}, declared {_count(len(outputs))}"
            raise OutputError("output_count", sentence)
        found = {}
        for output, tensor in zip(outputs, tensors, strict=True):
            _check_form(output, tensor)
            found[output.name] = tensor
    where = device or _main_device(named)
    for name, tensor in found.items():
        if where is not None and tensor.device.type != where.type:
            raise OutputError("output_device", f"{name} is on {tensor.device}, expected on {where}")
    if named is not None:
        _refuse_aliases(found, named)
    return found


def output_names(count: int) -> list[str]:
    """Return the names of learned outputs: `o`, or `o0 o1 ...`."""
    return ["o"] if count == 1 else [f"o{index}" for index in range(count)]


def _count(count: int) -> str:
    return "1 tensor" if count == 1 else f"{count} tensors"


def _check_form(output: Output, tensor: torch.Tensor) -> None:
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


_HASH_WORDS = 1 << 18


def hash_bytes(tensor: torch.Tensor) -> int:
    """Return a 64-bit hash of the raw storage behind a tensor (all of it, also what the view leaves out).

    A position-weighted sum of 8-byte words modulo 2**64, computed where the tensor lives: it tells a careless
    write at memory speed. It is no cryptographic hash.
    """
    storage = tensor.detach().untyped_storage()
    raw = torch.empty(0, dtype=torch.uint8, device=tensor.device).set_(storage)
    whole = raw.numel() // 8 * 8
    words = raw[:whole].view(torch.int64)
    weights = _weights(tensor.device)
    result = raw.numel()
    for start in range(0, words.numel(), _HASH_WORDS):
        part = words[start : start + _HASH_WORDS]
        # The shift folds high bits down: a plain product would never carry a change of the top bit further.
        mixed = (part ^ (part >> 29)) * weights[: part.numel()]
        result = (result * 0x100000001B3 + int(mixed.sum().item())) % (1 << 64)
    for byte in raw[whole:].tolist():
        result = (result * 0x100000001B3 + byte + 1) % (1 << 64)
    return int(result)


_WEIGHTS: dict[torch.device, torch.Tensor] = {}


def _weights(device: torch.device) -> torch.Tensor:
    if device not in _WEIGHTS:
        generator = torch.Generator().manual_seed(0x6B6D72756E)
        drawn = torch.empty(_HASH_WORDS, dtype=torch.int64).random_(generator=generator)
        _WEIGHTS[device] = (drawn | 1).to(device)
    return _WEIGHTS[device]
