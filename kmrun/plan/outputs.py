"""Declared outputs: `like` an argument, or a shape and a dtype."""

from kmrun.core.case import Output, Path
from kmrun.core.formula import TensorValue, Value
from kmrun.plan.arguments import Arguments
from kmrun.plan.builders import layout_fault
from kmrun.plan.definition import Definition, Work
from kmrun.plan.expression import needs
from kmrun.plan.parts import compile_layout, compile_shape
from kmrun.plan.report import BAD_OUTPUT, BAD_SHAPE, Failure
from kmrun.schema.suite import OutputSpec


def output_definitions(specs: dict[str, OutputSpec], path: Path, arguments: Arguments) -> list[Definition]:
    """Return one definition per sound output; report the others."""
    found = [_definition(name, spec, (*path, name), arguments) for name, spec in specs.items()]
    return [definition for definition in found if definition is not None]


def _definition(name: str, spec: OutputSpec, path: Path, arguments: Arguments) -> Definition | None:
    expressions, like, buffer = arguments.expressions, spec.like, spec.arg
    report = expressions.report
    if buffer is not None and buffer in arguments.builders:
        report.error(
            BAD_OUTPUT,
            (*path, "arg"),
            f"'{buffer}' is an argument already",
            "leave it out of the arguments: the buffer is allocated here and passed by that keyword",
        )
        return None
    if like is None and (spec.shape is None or spec.dtype is None):
        missing = "dtype" if spec.shape is not None else "shape"
        report.error(
            BAD_OUTPUT, path, f"output '{name}' has no {missing}", "write `like`, or `shape` and `dtype`"
        )
        return None
    if like is not None and spec.shape is not None:
        report.error(BAD_OUTPUT, (*path, "shape"), "`like` already gives the shape", "write one of the two")
        return None
    if like is not None and not arguments.find_argument(like, (*path, "like"), arguments.tensors):
        return None
    if spec.layout is not None and buffer is None:
        hint = "name the parameter that takes the buffer with 'arg', or leave the layout out"
        sentence = "the kernel itself decides how what it returns lies in memory"
        report.error(BAD_OUTPUT, (*path, "layout"), sentence, hint, on_key=True)
        return None
    shape = compile_shape(spec.shape or (), (*path, "shape"), expressions)
    dtype = expressions.dtype((*path, "dtype"), spec.dtype) if spec.dtype is not None else None
    layout = compile_layout(spec.layout, (*path, "layout"), expressions)
    if shape is None or layout is None or (spec.dtype is not None and dtype is None):
        return None
    wanted = shape.needs | layout.needs | needs(dtype)

    def define(work: Work) -> Value:
        base: TensorValue | None = work.scope[like] if like is not None else None
        sizes = base.shape if base is not None else shape.evaluate(work.scope)
        if dtype is not None:
            element = dtype.resolve(work.scope)
        else:
            assert base is not None
            element = base.dtype
        value = TensorValue(sizes, element)
        arranged = layout.evaluate(work.scope)
        unfit = layout_fault(arranged, sizes)
        if unfit:
            raise Failure(BAD_SHAPE, (*path, "layout"), unfit)
        made = Output(name, sizes, element, buffer, layout=arranged)
        work.outputs[name] = outputs.setdefault((value, repr(arranged)), made)
        return value

    outputs: dict[tuple[TensorValue, str], Output] = {}
    return Definition(name, path, wanted if like is None else wanted | {like}, define)
