"""The arguments of a case as real tensors: drawn fresh from a seed, arranged for a call.

Every argument has a generator of its own, seeded from (seed, name): another argument, or another order,
changes nothing in the rest, and torch's global generators are never touched.
"""

import hashlib
from collections.abc import Mapping
from typing import Any

import torch

from kmrun.core.case import Argument, Case, Implementation
from kmrun.core.plain import from_plain
from kmrun.measure import machine
from kmrun.measure.builders import FILLERS, NOT_BUILT_YET, InputError
from kmrun.measure.copies import is_plain
from kmrun.measure.dtypes import short_name, torch_dtype, unusable
from kmrun.measure.faults import SideFault, one_line, traceback_tail, what_it_did
from kmrun.measure.target import resolve

__all__ = [
    "InputError",
    "arranged",
    "build",
    "call_arguments",
    "call_arguments_for",
    "derived_seed",
    "draw_grads",
    "forms",
]

_ALIASES = frozenset({"view", "transpose"})


def derived_seed(seed: int, name: str) -> int:
    """Return the 63-bit seed of one argument: equal for equal (seed, name), unrelated otherwise."""
    digest = hashlib.blake2b(f"{seed}:{name}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little") >> 1


def build(case: Case, seed: int, device: torch.device) -> dict[str, Any]:
    """Draw every argument of the case, positional and keyword, in order.

    Caller-allocated output buffers are not among them (`outputs.allocate`).

    Args:
        case: the case.
        seed: of the contents; equal seeds give equal bytes on one kind of device.
        device: where the arguments live, except those that say `device: cpu`.

    Returns:
        Arguments by name: tensors, lists of tensors, plain values, or what a `call` target returned.

    Raises:
        InputError: a builder is not built yet, or its options make no sense.
        TargetError: the target of an `init: call` cannot be had.
    """
    named: dict[str, Any] = {}
    for argument in case.arguments:
        named[argument.name] = _build_one(argument, case, seed, device, named)
    return named


def forms(named: Mapping[str, Any]) -> dict[str, str]:
    """Return what does not depend on the seed, by argument: dtypes, shapes, strides, the structure around them."""
    return {name: _form(value) for name, value in named.items()}


def _form(value: Any) -> str:
    if isinstance(value, torch.Tensor):
        strides = "" if value.is_contiguous() else f" with strides {list(value.stride())}"
        return f"{short_name(value.dtype)} {list(value.shape)}{strides}"
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key}: {_form(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list | tuple):
        name = "" if type(value) in (list, tuple) else type(value).__name__
        return f"{name}[" + ", ".join(map(_form, value)) + "]"
    return "a plain value" if is_plain(value) else type(value).__name__


def draw_grads(case: Case, forward: Mapping[str, torch.Tensor], seed: int) -> dict[str, torch.Tensor]:
    """Draw the incoming gradient (`grad:` of a kernel) of each floating output: its shape, dtype, device."""
    grads: dict[str, torch.Tensor] = {}
    for name, output in forward.items():
        if not (output.dtype.is_floating_point or output.dtype.is_complex):
            continue
        grad = torch.empty(output.shape, dtype=output.dtype, device=output.device)
        FILLERS[case.grad](grad, _generator(output.device, derived_seed(seed, f"grad of {name}")), {})
        grads[name] = grad
    return grads


def call_arguments(
    case: Case, named: Mapping[str, Any], buffers: Mapping[str, Any] | None = None
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return (args, kwargs) of the kernel's call.

    Args:
        case: the case.
        named: the arguments, as `build` made them; what is visible to the judge alone may be absent.
        buffers: caller-allocated outputs by the name of their parameter; passed by keyword.
    """
    kernel = [argument for argument in case.arguments if argument.options.get("visible") != "judge"]
    args = tuple(named[argument.name] for argument in kernel if not argument.keyword)
    kwargs = {argument.name: named[argument.name] for argument in kernel if argument.keyword}
    return args, kwargs | dict(buffers or {})


def call_arguments_for(
    case: Case,
    implementation: Implementation,
    named: Mapping[str, Any],
    buffers: Mapping[str, Any] | None = None,
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return (args, kwargs) for the reference, a versus entry or the kernel itself.

    `implementation.args`, where given, names what is taken, in that order; keyword arguments among them stay
    keywords. The reference returns its outputs: it gets no caller-allocated buffers unless its `args` name
    them.
    """
    is_reference = case.reference is not None and implementation == case.reference.implementation
    if implementation.args is None:
        if not is_reference:
            return call_arguments(case, named, buffers)
        seen = [argument for argument in case.arguments if argument.options.get("visible") != "kernel"]
        return (
            tuple(named[argument.name] for argument in seen if not argument.keyword),
            {argument.name: named[argument.name] for argument in seen if argument.keyword},
        )
    keyword = {argument.name for argument in case.arguments if argument.keyword}
    known = {**named, **(buffers or {})}
    missing = [name for name in implementation.args if name not in known]
    if missing:
        raise InputError(
            "input_invalid", f"{implementation.name} takes {missing[0]!r}, which is no argument here"
        )
    args = tuple(known[name] for name in implementation.args if name not in keyword | set(buffers or {}))
    kwargs = {name: known[name] for name in implementation.args if name in keyword | set(buffers or {})}
    return args, kwargs


def _generator(device: torch.device, seed: int) -> torch.Generator:
    return torch.Generator(device=device).manual_seed(seed)


def _build_one(
    argument: Argument, case: Case, seed: int, device: torch.device, named: Mapping[str, Any]
) -> Any:
    if argument.init == "value" and argument.options.get("is_dtype"):
        return torch_dtype(argument.options["value"], device)
    if argument.init == "value":
        return _as_passed(argument.options.get("value"), named)
    if argument.init in FILLERS:
        tensor = _allocate(argument, device)
        _fill_one(tensor, argument, derived_seed(seed, argument.name))
        return tensor.requires_grad_(True) if argument.requires_grad else tensor
    if argument.init == "list":
        return [_build_one(item, case, seed, device, named) for item in _items(argument)]
    if argument.init in _ALIASES:
        return _alias(argument, named)
    if argument.init == "call":
        return _call(argument, case, seed, named)
    if argument.init in NOT_BUILT_YET:
        raise InputError(
            "init_unbuilt", f"{argument.name}: init: {argument.init} is validated but not built yet"
        )
    raise InputError("input_invalid", f"{argument.name}: init: {argument.init} is unknown to this version")


def _as_passed(value: Any, named: Mapping[str, Any]) -> Any:
    """Return a list of the document as a tuple (it crossed a process boundary as JSON)."""
    return tuple(_as_passed(item, named) for item in value) if isinstance(value, list | tuple) else value


def _allocate(argument: Argument, device: torch.device) -> torch.Tensor:
    if argument.shape is None or argument.dtype is None:
        raise InputError(
            "input_invalid", f"{argument.name}: init: {argument.init} came without shape or dtype"
        )
    where = torch.device(argument.device) if argument.device else device
    return arranged(argument.name, argument.shape, torch_dtype(argument.dtype, where), argument.layout, where)


def arranged(
    name: str, shape: tuple[int, ...], dtype: torch.dtype, layout: Any, where: torch.device
) -> torch.Tensor:
    """Return a tensor of this shape that lies in memory as `layout` says; its content is not defined.

    Raises:
        InputError: the layout does not fit the shape.
    """
    if layout in (None, "contiguous"):
        return torch.empty(shape, dtype=dtype, device=where)
    if layout == "channels_last":
        if len(shape) not in (4, 5):
            raise InputError("input_invalid", f"{name}: layout: channels_last needs 4 or 5 dimensions")
        memory = torch.channels_last if len(shape) == 4 else torch.channels_last_3d
        return torch.empty(shape, dtype=dtype, device=where, memory_format=memory)
    if layout == "transposed":
        if len(shape) < 2:
            raise InputError("input_invalid", f"{name}: layout: transposed needs 2 dimensions or more")
        return torch.empty((*shape[:-2], shape[-1], shape[-2]), dtype=dtype, device=where).mT
    strides = tuple(layout["strides"]) if isinstance(layout, Mapping) else tuple(layout)
    if len(strides) != len(shape) or any(stride < 0 for stride in strides):
        raise InputError("input_invalid", f"{name}: strides {list(strides)} do not fit shape {list(shape)}")
    # Gaps between rows are part of the storage: poisoned, so that reading them shows.
    extent = (
        1 + sum((size - 1) * stride for size, stride in zip(shape, strides, strict=True)) if all(shape) else 0
    )
    storage = torch.empty(extent, dtype=dtype, device=where)
    FILLERS["empty"](storage, _generator(where, 0), {})
    return storage.as_strided(shape, strides)


def _fill_one(tensor: torch.Tensor, argument: Argument, seed: int) -> None:
    with torch.no_grad():
        try:
            FILLERS[argument.init](tensor.detach(), _generator(tensor.device, seed), argument.options)
        except (RuntimeError, TypeError, ValueError, KeyError) as error:
            raise InputError(
                "input_invalid",
                f"{argument.name}: init: {argument.init} cannot fill {list(tensor.shape)} {tensor.dtype}: "
                + one_line(error),
            ) from error


def _alias(argument: Argument, named: Mapping[str, Any]) -> torch.Tensor:
    source = named.get(argument.options["of"])
    if not isinstance(source, torch.Tensor):
        raise InputError(
            "input_invalid", f"{argument.name}: of: {argument.options['of']} is no tensor before it"
        )
    try:
        if argument.init == "transpose":
            first, second = argument.options.get("dims", (-2, -1))
            return source.detach().transpose(first, second)
        shape = tuple(argument.shape or argument.options["shape"])
        strides = argument.options.get("strides")
        contiguous = torch.empty(shape, device="meta").stride()
        offset = source.storage_offset() + int(argument.options.get("offset", 0))
        return source.detach().as_strided(shape, tuple(strides) if strides else contiguous, offset)
    except (RuntimeError, IndexError) as error:
        raise InputError(
            "input_invalid", f"{argument.name}: init: {argument.init}: {one_line(error)}"
        ) from error


def _items(argument: Argument) -> list[Argument]:
    """Return the items of a `list` as arguments of their own, named `params.0`, `params.1`, ..."""
    items = []
    for index, item in enumerate(argument.options["items"]):
        plain = item if isinstance(item, Argument) else from_plain(Argument, {"name": "", **item})
        name = f"{argument.name}.{index}"
        items.append(
            Argument(
                name,
                plain.init,
                shape=plain.shape,
                dtype=plain.dtype,
                requires_grad=plain.requires_grad or argument.requires_grad,
                layout=plain.layout,
                device=plain.device or argument.device,
                options=plain.options,
            )
        )
    return items


def _call(argument: Argument, case: Case, seed: int, named: Mapping[str, Any]) -> Any:
    function = resolve(argument.options["target"], case.folder)
    sources = {name: named[name] for name in argument.options.get("from", ())}
    try:
        with machine.steady(f"{argument.name}: {argument.options['target']}", "suite"):
            made = function(axes=dict(case.axes), seed=derived_seed(seed, argument.name), **sources)
    except SideFault:
        raise
    except BaseException as error:
        sentence = f"{argument.name}: {argument.options['target']} {what_it_did(error)}"
        raise InputError("input_raised", sentence, "suite", traceback_tail(error)) from error
    made = _usable(made, f"{argument.name}: {argument.options['target']} returned")
    if argument.requires_grad:
        if not isinstance(made, torch.Tensor):
            raise InputError("input_invalid", f"{argument.name}: requires_grad needs a tensor from its call")
        made = made.detach().requires_grad_(True)
    return made


def _usable(made: Any, place: str) -> Any:
    """Return what a `call` made, its tensors in a form that can be copied between processes.

    Raises:
        InputError: a tensor cannot be: sparse, quantized, without memory, of a class of its own.
    """
    if isinstance(made, torch.Tensor):
        kind, why_not = type(made), unusable(made)
        if kind is not torch.Tensor and kind is not torch.nn.Parameter:
            why_not = f"a {kind.__module__}.{kind.__qualname__}, not a plain tensor"
        if why_not is not None:
            sentence = f"{place} {why_not}; return its parts, and put them together in `setup`"
            raise InputError("input_invalid", sentence)
        return made.resolve_conj().resolve_neg() if made.is_conj() or made.is_neg() else made
    if type(made) is list:
        return [_usable(item, place) for item in made]
    if isinstance(made, tuple):
        items = [_usable(item, place) for item in made]
        return type(made)(*items) if hasattr(made, "_fields") else tuple(items)
    if type(made) is dict:
        return {key: _usable(item, place) for key, item in made.items()}
    return made
