"""Is the output right? Which metric judges which output, and what its verdict says to a person."""

from collections.abc import Mapping
from typing import Any

import torch

from kmrun.core.case import Case, Check
from kmrun.core.measurement import OutputCheck
from kmrun.measure import machine, metrics
from kmrun.measure.copies import copy_tree
from kmrun.measure.dtypes import epsilon, short_name, torch_dtype
from kmrun.measure.faults import SideFault, traceback_tail, what_it_did
from kmrun.measure.metrics import Verdict
from kmrun.measure.references import compute_reference, own_reference, references
from kmrun.measure.slabs import Pair
from kmrun.measure.target import TargetError, resolve

__all__ = [
    "CheckError",
    "check_for",
    "compare",
    "compute_reference",
    "own_reference",
    "references",
    "sentence",
]

TF32_EPSILON = 2.0**-10


class CheckError(SideFault):
    """A comparison cannot be made (`property_raised`, `property_invalid`, `metric_unknown`): the suite's fault."""


def check_for(case: Case, name: str, dtype: torch.dtype) -> Check:
    """Return how output `name` is compared: its own check, the kernel's, its dtype's tolerance, or `auto`."""
    for key in (name, "*"):
        check = case.checks.get(key)
        if check is not None and check.metric != "auto":
            return check
    for key, tolerance in case.tolerance.items():
        if torch_dtype(key) == dtype:
            return tolerance
    return Check()


def compare(
    case: Case,
    got: Mapping[str, torch.Tensor],
    want_high: Mapping[str, torch.Tensor],
    ref_same_dtype: Mapping[str, torch.Tensor] | None,
    seed: int,
    inputs: Mapping[str, Any] | None = None,
) -> tuple[OutputCheck, ...]:
    """Compare every output with its reference.

    Args:
        case: says which metric judges which output.
        got: outputs of the kernel by name (in backward mode `grad_<arg>`).
        want_high: outputs of the reference in its `compute` precision; empty without a reference, and then only
            `metric: property` is judged.
        ref_same_dtype: outputs of the reference in the case's own dtype; they measure what error is usual.
        seed: of the inputs, for the record.
        inputs: the arguments by name; only `metric: property` looks at them.

    Returns:
        One check an output, in the order of `got`.

    Raises:
        CheckError: a user's property function raised.
    """
    found = []
    for name, output in got.items():
        same = None if ref_same_dtype is None else ref_same_dtype.get(name)
        want = want_high.get(name)
        if want is not None or check_for(case, name, output.dtype).metric == "property":
            found.append(_compare_one(case, name, output, want, same, seed, got, inputs))
    return tuple(found)


def _compare_one(
    case: Case,
    name: str,
    got: torch.Tensor,
    want: torch.Tensor | None,
    same: torch.Tensor | None,
    seed: int,
    outputs: Mapping[str, torch.Tensor],
    inputs: Mapping[str, Any] | None,
) -> OutputCheck:
    check = check_for(case, name, got.dtype)
    if check.metric == "none":
        return OutputCheck(name, "none", True, None, None, seed=seed)
    if check.metric == "property":
        ok = _holds(case, check, outputs, inputs)
        return OutputCheck(name, "property", ok, None, None, seed=seed)
    if want is None:
        raise ValueError(f"{name} has nothing to be compared with")
    if tuple(got.shape) != tuple(want.shape):
        raise CheckError("shape_mismatch", f"{name} is {list(got.shape)}, the reference {list(want.shape)}")
    if got.numel() == 0:
        return OutputCheck(name, check.metric, True, 0.0, 0.0, seed=seed)
    pair = Pair.of(got, want, same)
    metric, verdict = _judge(case, name, check, pair)
    index, shown, wanted = _worst_element(got, pair, verdict.place)
    part = f"{metric}/{verdict.part}" if verdict.part else metric
    return OutputCheck(name, part, verdict.ok, verdict.error, verdict.allowed, index, shown, wanted, seed)


def _judge(case: Case, name: str, check: Check, pair: Pair) -> tuple[str, Verdict]:
    dtype = pair.got.dtype
    if check.metric == "exact" or (check.metric in ("auto", "ulp") and not dtype.is_floating_point):
        return "exact", metrics.exact(pair)
    if check.metric == "auto":
        return "auto", metrics.auto(pair, _epsilon(case, dtype))
    if check.metric == "allclose":
        return "allclose", metrics.allclose(pair, check)
    threshold = float(
        check.threshold if check.threshold is not None else _DEFAULT_THRESHOLD.get(check.metric, 0)
    )
    if check.metric == "rel_l2":
        return "rel_l2", metrics.rel_l2(pair, threshold)
    if check.metric == "cosine":
        return "cosine", metrics.cosine(pair, threshold)
    if check.metric == "ulp":
        return "ulp", metrics.ulp(pair, threshold)
    if check.metric == "matched_ratio":
        return "matched_ratio", metrics.matched_ratio(pair, check, threshold)
    if check.metric == "statistical":
        return "statistical", metrics.statistical(pair, threshold)
    raise CheckError("metric_unknown", f"{name}: metric {check.metric!r} is unknown to this version")


_DEFAULT_THRESHOLD = {"rel_l2": 1e-3, "cosine": 0.999, "ulp": 4.0, "matched_ratio": 0.99, "statistical": 5.0}


def _epsilon(case: Case, dtype: torch.dtype) -> float:
    spoken = {argument.dtype for argument in case.arguments} | {output.dtype for output in case.outputs or ()}
    if dtype == torch.float32 and "tf32" in spoken:
        return TF32_EPSILON
    return epsilon(dtype)


def _holds(
    case: Case, check: Check, outputs: Mapping[str, torch.Tensor], inputs: Mapping[str, Any] | None
) -> bool:
    target = check.options["target"]
    try:
        function = resolve(target, case.folder)
    except TargetError as error:
        raise error.blamed_on("suite") from error
    try:
        with machine.steady(f"the property {target}", "suite"):
            answer = function(copy_tree(dict(inputs or {})), dict(outputs))
    except SideFault:
        raise
    except BaseException as error:
        raise CheckError(
            "property_raised", f"property {target} {what_it_did(error)}", "suite", traceback_tail(error)
        ) from error
    return _truth(answer, target)


def _truth(answer: Any, target: str) -> bool:
    """Return a property's answer; one that forgot its `return` must not look like a wrong kernel."""
    if isinstance(answer, torch.Tensor) and answer.dtype == torch.bool and answer.dim() == 0:
        return bool(answer)
    kind = type(answer)
    if kind is bool or (kind.__module__ == "numpy" and kind.__name__ in ("bool", "bool_")):
        return bool(answer)
    shown = "None" if answer is None else f"a {kind.__module__}.{kind.__qualname__}".replace("builtins.", "")
    if isinstance(answer, torch.Tensor):
        shown = f"a tensor of {short_name(answer.dtype)} {list(answer.shape)}"
    sentence = f"property {target} returned {shown}: it must return True or False"
    raise CheckError("property_invalid", sentence)


def _worst_element(
    got: torch.Tensor, pair: Pair, place: int | None
) -> tuple[tuple[int, ...] | None, float | None, float | None]:
    if place is None:
        return None, None, None
    shown, wanted = float(pair.got[place]), float(pair.want[place])
    flat = place // 2 if got.dtype.is_complex else place
    return tuple(int(index) for index in torch.unravel_index(torch.tensor(flat), got.shape)), shown, wanted


_LARGER_IS_BETTER = frozenset({"cosine", "matched_ratio"})


def sentence(check: OutputCheck, compute: str | None = None) -> str:
    """Return what a failed check says to a person, in one line without a full stop."""
    reference = f"the {compute} reference" if compute else "the reference"
    metric, _, part = check.metric.partition("/")
    where = ""
    if check.worst_index is not None and check.got is not None and check.want is not None:
        index = ", ".join(str(position) for position in check.worst_index)
        where = f"at [{index}]: {check.got:.6g} for {check.want:.6g}"
    if check.error == float("inf") and check.allowed is None:
        return f"{check.name} is not finite where {reference} is, or the other way round, {where}"
    if metric == "property":
        return f"{check.name} does not have the property that the suite asks for"
    if metric == "exact":
        return f"{check.name} differs from {reference} in {check.error:.0f} elements, first {where}"
    scope = {"block": " in a block", "element": " in an element"}.get(part, "")
    limit = "needed at least" if metric in _LARGER_IS_BETTER else "allowed"
    figure = f"{check.error:.2g} ({limit} {check.allowed:.2g})"
    what = f"has a {metric} of {figure} to" if metric in _LARGER_IS_BETTER else "differs from"
    by = "" if metric in _LARGER_IS_BETTER else f" by {figure}{scope}"
    worst = f", worst {where}" if where else ""
    return f"{check.name} {what} {reference}{by}{worst}"
