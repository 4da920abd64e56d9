"""Flops, bytes and the peak of a kernel: what the score divides by."""

import math
from collections.abc import Callable, Sequence

from kmrun.core.case import Argument, Output, Path, Peak
from kmrun.core.dtypes import find
from kmrun.core.formula import Scope, TensorValue
from kmrun.core.formula_functions import described, is_number
from kmrun.plan.expression import DtypeRef, Expression, Expressions
from kmrun.plan.report import BAD_FIGURE, BYTES_AUTO, FLOPS_WITHOUT_PEAK, Failure
from kmrun.plan.traffic import Held, auto_refusal, compulsory_bytes
from kmrun.schema.suite import FigurePeak, Kernel, MatmulPeak

AUTO = "auto"


class Figures:
    """The formulas of `flops` and `bytes`, and the rule of `bytes: auto`, the default.

    Where the traffic cannot be told from the sizes, `auto` that was written is an error; where nothing was
    written the bytes stay unknown.
    """

    def __init__(self, kernel: Kernel, path: Path, expressions: Expressions) -> None:
        self.path = path
        self.kernel = kernel
        self.written_auto = kernel.bytes == AUTO
        self._flops = _compiled(kernel.flops, (*path, "flops"), expressions)
        self._bytes = _compiled(None if self.written_auto else kernel.bytes, (*path, "bytes"), expressions)
        self.auto = kernel.bytes is None or self.written_auto
        refusal = _static_refusal(kernel)
        if self.auto and refusal:
            self.auto = False
            if self.written_auto:
                failure = self._refused(refusal)
                expressions.report.error(failure.code, failure.path, failure.sentence, failure.hint)

    def flops(self, scope: Scope) -> int | float | None:
        """Return the operations of one call, None when the suite gives none.

        Raises:
            Failure: not a number from 0 on.
        """
        return None if self._flops is None else _figure(self._flops, scope)

    def bytes(
        self,
        scope: Scope,
        arguments: Sequence[Argument],
        held: Sequence[Held],
        outputs: Sequence[Output] | None,
    ) -> tuple[int | None, bool]:
        """Return (bytes of one call or None where unknown before the run, whether they are automatic).

        Raises:
            Failure: not a number from 0 on, or `auto` was written where nobody can know.
        """
        if self._bytes is not None:
            moved = math.ceil(_figure(self._bytes, scope))
            if not moved and any(tensor.nbytes for tensor in held):
                hint = "write the compulsory traffic, or leave 'bytes' out"
                raise self._bytes.whole(BAD_FIGURE, "a call with tensors moves more than 0 bytes", hint)
            return moved, False
        if not self.auto:
            return None, False
        refusal = auto_refusal(held)
        if refusal:
            if self.written_auto:
                raise self._refused(refusal)
            return None, False
        unsized = any(
            argument.init == "call" and argument.options["visible"] != "judge" for argument in arguments
        )
        if outputs is None or unsized:
            return None, True
        return compulsory_bytes(held, outputs, self.kernel.mutates), True

    def _refused(self, reason: str) -> Failure:
        hint = "write the compulsory traffic as a formula"
        return Failure(BYTES_AUTO, (*self.path, "bytes"), f"bytes cannot be auto: {reason}", hint)


def compile_peak(kernel: Kernel, path: Path, expressions: Expressions) -> Callable[[Scope], Peak | None]:
    """Return what gives the compute roof of a point; warn where flops have none."""
    spec = kernel.peak
    if spec is None:
        if (*path, "flops") in expressions.texts:  # one that is no formula is told as such, not also for this
            expressions.report.warning(
                FLOPS_WITHOUT_PEAK,
                (*path, "flops"),
                f"'{kernel.name}' has flops but no peak: there is no compute roof",
                "add for example peak: {units: matmul, in: bf16}",
                on_key=True,
            )
        return lambda scope: None
    if isinstance(spec, FigurePeak):
        figure = Peak(tflops=spec.tflops)
        return lambda scope: figure
    is_matmul = isinstance(spec, MatmulPeak)
    dtype = expressions.dtype((*path, "peak", "in"), spec.dtype)
    acc: DtypeRef | None = None
    if isinstance(spec, MatmulPeak) and spec.acc is not None:
        acc = expressions.dtype((*path, "peak", "acc"), spec.acc)
    made: dict[tuple[str, str | None], Peak] = {}

    def find_peak(scope: Scope) -> Peak | None:
        if dtype is None:
            return None
        name = dtype.resolve(scope)
        accumulator = acc.resolve(scope) if acc is not None else None
        if is_matmul and accumulator is None:
            accumulator = default_accumulator(name)
        wrong = _accumulator_fault(name, accumulator) if acc is not None and accumulator is not None else ""
        if acc is not None and wrong:
            raise acc.whole(BAD_FIGURE, wrong, f"acc: {default_accumulator(name)} is the usual one")
        key = (name, accumulator)
        if key not in made:
            made[key] = Peak(spec.units, name, accumulator)
        return made[key]

    return find_peak


def default_accumulator(dtype: str) -> str:
    """Return what a matrix unit sums in unless the suite says otherwise: int32, fp64 or fp32."""
    element = find(dtype)
    if element.kind in ("int", "uint"):
        return "int32"
    return "fp64" if element.name == "fp64" else "fp32"


def _accumulator_fault(dtype: str, acc: str) -> str:
    """Return why no unit sums products of such elements in that, or an empty string."""
    element, kept = find(dtype), find(acc)
    if element.kind in ("int", "uint"):
        if kept.kind not in ("int", "uint"):
            return f"products of {dtype} are whole numbers, which are not summed in {acc}"
    elif kept.kind != element.kind:
        return f"products of {dtype} are not summed in {acc}"
    return f"{acc} is narrower than {dtype}, whose products it sums" if kept.bits < element.bits else ""


def _static_refusal(kernel: Kernel) -> str:
    if kernel.mode != "forward":
        return "a backward pass reads what the forward pass saved"
    if kernel.ragged:
        return f"'{next(iter(kernel.ragged))}' is ragged: what is allocated is not what is read"
    return ""


def _compiled(source: int | float | str | None, path: Path, expressions: Expressions) -> Expression | None:
    return expressions.compile(path, source) if source is not None else None


def _figure(expression: Expression, scope: Scope) -> int | float:
    value = expression.evaluate(scope)
    if not is_number(value) or isinstance(value, bool) or value < 0:
        hint = ""
        if isinstance(value, TensorValue):
            hint = "nbytes(x) gives an argument's bytes, numel(x) its elements"
        raise expression.whole(BAD_FIGURE, f"this is a number from 0 on, not {described(value)}", hint)
    return value
