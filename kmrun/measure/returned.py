"""Which output is which in what a reference or a versus entry gives: they may work in place, or return new values.

A kernel that works in place (`mutates`) may be held against a function that returns what the kernel writes, and
one that returns its result against one that works in place. The rule: what is returned although it is a mutated
argument is that argument; what else is returned are the outputs that the kernel returns, then the new values of
the mutated arguments that were left as they were, each in the order in which the suite names them.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import torch

from kmrun.core.case import Case
from kmrun.measure import outputs
from kmrun.measure.outputs import OutputError


def by_name(
    case: Case, result: Any, named: Mapping[str, Any], written: Collection[str], who: str
) -> tuple[dict[str, torch.Tensor], list[str]]:
    """Name what an implementation of the suite's gave.

    Args:
        case: with `outputs` None, names are made: those of mutated arguments, then `o`, or `o0 o1 ...`.
        result: what the call returned.
        named: the arguments of that very call.
        written: those of `outputs.mutated` that the call wrote to.
        who: what sentences call the one that was called.

    Returns:
        The outputs by name, and the mutated arguments that it has no value for.

    Raises:
        OutputError: nothing came back, or it cannot be told which output is which.
    """
    held = outputs.mutated(case, named)
    tensors = [] if result is None and held else outputs.flatten(result, who)
    if not tensors and held and not written:
        sentence = f"{who} neither returned anything nor wrote to {_list(held)}"
        raise OutputError("output_none", sentence, outcome="error")
    others, aliased = outputs.without_aliases(tensors, held)
    present = {name: tensor for name, tensor in held.items() if name in written or name in aliased}
    left = [name for name in held if name not in present]
    if case.outputs is None:
        found, missing = _learned(others, held, present, left, who)
    else:
        found, missing = _declared(case, tensors, others, held, present, left, who)
    if not found:
        raise OutputError("output_none", f"{who} returned no tensor: nothing to compare", outcome="error")
    return found, missing


def _learned(
    others: Sequence[torch.Tensor],
    held: Mapping[str, torch.Tensor],
    present: Mapping[str, torch.Tensor],
    left: Sequence[str],
    who: str,
) -> tuple[dict[str, torch.Tensor], list[str]]:
    """Name outputs that no suite declares: what was left as it was may be among what was returned."""
    pairs = list(zip(left, others, strict=False))
    if left and len(others) == len(left) and all(_stands_for(tensor, held[name]) for name, tensor in pairs):
        values = dict(pairs)
        return {name: {**values, **present}[name] for name in held}, []
    doubtful = [name for name in left if any(_stands_for(tensor, held[name]) for tensor in others)]
    if doubtful:
        sentence = (
            f"{who} returned {outputs.count(len(others))} and left {_list(doubtful)} as it was, so it cannot be "
            "told which is which: declare `outputs`, and return those first, then the new values"
        )
        raise OutputError("output_count", sentence)
    return {**present, **dict(zip(outputs.output_names(len(others)), others, strict=True))}, list(left)


def _declared(
    case: Case,
    tensors: Sequence[torch.Tensor],
    others: Sequence[torch.Tensor],
    held: Mapping[str, torch.Tensor],
    present: Mapping[str, torch.Tensor],
    left: Sequence[str],
    who: str,
) -> tuple[dict[str, torch.Tensor], list[str]]:
    names = [output.name for output in case.outputs or ()]
    returned = [name for name in names if name not in held]
    if len(others) == len(returned):
        # A learned output that is left as it was this time: what it holds is its value.
        found = {**{name: held[name] for name in names if name in held}, **present}
        found |= dict(zip(returned, others, strict=True))
    elif len(others) == len(returned) + len(left):
        found = {**present, **dict(zip([*returned, *left], others, strict=True))}
    elif len(tensors) == len(names):
        found = {**present, **dict(zip(names, tensors, strict=True))}
    else:
        sentence = f"{who} returned {outputs.count(len(others))} for {len(returned)} outputs"
        if left:
            sentence += f", and left {_list(left)} as it was"
        raise OutputError("output_count", sentence)
    ordered = [*names, *(name for name in held if name in found and name not in names)]
    return {name: found[name] for name in ordered}, [name for name in left if name not in found]


def _stands_for(tensor: torch.Tensor, argument: torch.Tensor) -> bool:
    """Whether a tensor may be the new value of an argument: of its shape, and of its kind of numbers."""
    kinds = [(each.is_complex(), each.is_floating_point()) for each in (tensor, argument)]
    return tensor.shape == argument.shape and kinds[0] == kinds[1]


def _list(names: Collection[str]) -> str:
    quoted = [repr(name) for name in names]
    return quoted[0] if len(quoted) == 1 else f"{', '.join(quoted[:-1])} and {quoted[-1]}"
