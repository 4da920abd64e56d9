"""What a kernel says and nothing uses; judged on its whole expansion, where nothing else is wrong."""

from collections.abc import Collection, Sequence

from kmrun.core.case import Case, Path
from kmrun.core.dtypes import canonical
from kmrun.plan import settings
from kmrun.plan.kernel import PreparedKernel
from kmrun.plan.names import DEVICE
from kmrun.plan.report import (
    NOTHING_LEFT,
    UNUSED_AXIS,
    UNUSED_EXCLUDE,
    UNUSED_LET,
    UNUSED_TOLERANCE,
    Report,
)
from kmrun.plan.traffic import tensors
from kmrun.schema.suite import Kernel


def report_unused(prepared: PreparedKernel, cases: Sequence[Case], exclude_hits: Sequence[int]) -> None:
    """Report each exclude, let name, axis, clause and tolerance of a kernel that makes no difference."""
    kernel, path, report = prepared.kernel, prepared.path, prepared.report
    if not cases:
        report.error(NOTHING_LEFT, (*path, "exclude"), "every point is excluded", on_key=True)
        return
    for index, hits in enumerate(exclude_hits):
        if not hits:
            place = (*path, "exclude", index, "when")
            report.error(UNUSED_EXCLUDE, place, "this excludes no point", "its condition is never true")
    used = prepared.expressions.used
    if not _user_code_sees_axes(kernel, prepared):
        for axis in prepared.names.axes:
            if axis not in used:
                report.error(
                    UNUSED_AXIS,
                    _where(kernel, path, axis),
                    f"nothing uses the axis '{axis}'",
                    "each of its values would measure the same: mention it in a formula, or remove it",
                    on_key=True,
                )
    for name in kernel.let:
        if name not in used:
            report.error(UNUSED_LET, (*path, "let", name), f"nothing uses '{name}'", "remove it", on_key=True)
    reference = prepared.reference
    if reference is not None and reference.chunk is not None and not reference.chunk_dims:
        report.error(*settings.chunk_fault(reference.chunk, path, prepared.expressions.shown))
    prepared.contract.report_unused(report)
    if kernel.tolerance:
        report_unused_tolerances(kernel.tolerance, (*path, "tolerance"), output_dtypes(cases), report)


def report_unused_tolerances(
    written: Collection[str], path: Path, dtypes: Collection[str] | None, report: Report
) -> None:
    """Report the tolerances of dtypes that no output has; None: some outputs are learned, nobody knows."""
    if dtypes is None:
        return
    for key in written:
        if canonical(key) not in dtypes:
            hint = f"outputs here: {', '.join(sorted(dtypes))}"
            report.error(UNUSED_TOLERANCE, (*path, key), f"no output has dtype '{key}'", hint, on_key=True)


def output_dtypes(cases: Sequence[Case]) -> frozenset[str] | None:
    """Return the dtypes of outputs, mutated arguments and gradients; None when some outputs are learned."""
    found: set[str] = set()
    for case in cases:
        if case.outputs is None:
            return None
        found.update([output.dtype for output in case.outputs])
        for tensor in tensors(case.arguments) if case.mutates or case.mode != "forward" else ():
            graded = case.mode != "forward" and tensor.requires_grad
            if graded or tensor.name in case.mutates:
                found.add(tensor.dtype)
    return frozenset(found)


def _user_code_sees_axes(kernel: Kernel, prepared: PreparedKernel) -> bool:
    return bool(prepared.names.opaque) or kernel.setup is not None or settings.has_property(kernel)


def _where(kernel: Kernel, path: Path, axis: str) -> Path:
    if axis in kernel.matrix:
        return (*path, "matrix", axis)
    if axis in kernel.ragged:
        return (*path, "ragged", axis)
    row = next(index for index, row in enumerate(kernel.cases or ()) if axis in row and axis != DEVICE)
    return (*path, "cases", row, axis)
