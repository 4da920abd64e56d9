"""Arguments made of another argument (quantize, pack, view, transpose) or of ragged lengths."""

from kmrun.core.case import Argument, Path
from kmrun.core.dtypes import find
from kmrun.core.formula import Scope, TensorValue
from kmrun.core.formula_error import did_you_mean
from kmrun.core.formula_functions import described
from kmrun.plan.builders import derived_shape, view_fault
from kmrun.plan.expression import Expressions, needs
from kmrun.plan.fit import misfit
from kmrun.plan.maker import Maker
from kmrun.plan.parts import compile_options, compile_shape
from kmrun.plan.report import BAD_OPTION, BAD_SHAPE, UNKNOWN_ARGUMENT, Failure
from kmrun.schema.arguments import DerivedBuilder, Indptr, Pack, PageTable, Quantize, View

SCALES_DTYPE = "fp32"


def derived_maker(
    name: str, keyword: bool, builder: DerivedBuilder, path: Path, expressions: Expressions
) -> Maker | None:
    """Return the maker of an argument that is made of the tensor `builder.of`, None when it is wrong."""
    own = compile_options(builder, path, expressions)
    key, written = _dtype_key(builder)
    dtype = expressions.dtype((*path, key), written) if written is not None else None
    shape = compile_shape(builder.shape, (*path, "shape"), expressions) if isinstance(builder, View) else None
    if isinstance(builder, Quantize) and builder.scale != "block" and builder.block is not None:
        hint = "write scale: block, or take it out"
        expressions.report.error(BAD_OPTION, (*path, "block"), "'block' goes with scale: block", hint)
    if (
        own is None
        or (written is not None and dtype is None)
        or (isinstance(builder, View) and shape is None)
    ):
        return None

    def make(scope: Scope) -> Argument:
        base: TensorValue = scope[builder.of]
        settings = dict(own.evaluate(scope))
        narrow = dtype.resolve(scope) if dtype is not None else base.dtype
        element = narrow
        if isinstance(builder, Quantize):
            settings["to"] = narrow
            wrong = _quantize_fault(builder, base, narrow, settings["block"])
            if wrong is not None:
                raise own.whole(*wrong, "", path)
            element = SCALES_DTYPE if builder.part == "scales" else narrow
        if isinstance(builder, Pack):
            wrong = _pack_fault(builder, base, narrow)
            if wrong is not None:
                raise own.whole(*wrong, "", path)
        if shape is not None:
            sizes = shape.evaluate(scope)
            unfit = view_fault(sizes, settings["strides"], settings["offset"], base.numel)
            if unfit:
                raise Failure(BAD_SHAPE, (*path, "shape"), unfit)
            return Argument(name, builder.init, keyword, sizes, element, options=settings)
        try:
            sizes = derived_shape(builder.init, settings, base.shape, find(narrow).bits)
        except ValueError as error:
            at = "dims" if "dims" in builder.model_fields_set else "of"
            raise Failure(BAD_SHAPE, (*path, at), str(error)) from None
        return Argument(name, builder.init, keyword, sizes, element, options=settings)

    wanted = own.needs | needs(dtype) | {builder.of}
    return Maker(wanted | shape.needs if shape is not None else wanted, make)


def _quantize_fault(
    builder: Quantize, base: TensorValue, narrow: str, block: int | float | None
) -> tuple[str, str, str] | None:
    """Return (key, code, sentence) of what makes no sense in quantizing such a tensor, None when it does."""
    wide = find(base.dtype)
    if not wide.is_float:
        return "of", BAD_OPTION, f"quantize takes floating tensors, '{builder.of}' holds {base.dtype}"
    if find(narrow).bits >= wide.bits or find(narrow).kind in ("bool", "complex"):
        return "to", BAD_OPTION, f"{narrow} is not narrower than {base.dtype}, which '{builder.of}' holds"
    if builder.scale != "tensor" and not base.shape:
        return "scale", BAD_OPTION, f"'{builder.of}' is a single number, without rows or columns"
    if builder.scale == "block":
        if not isinstance(block, int) or block < 1:
            return "block", BAD_OPTION, "scale: block needs a whole number 'block'"
        if base.shape[-1] % block:
            sentence = f"a row of {base.shape[-1]} elements does not divide into blocks of {block}"
            return "block", BAD_OPTION, sentence
    return None


def _pack_fault(builder: Pack, base: TensorValue, into: str) -> tuple[str, str, str] | None:
    """Return (key, code, sentence) of what makes no sense in packing such a tensor, None when it does."""
    if find(base.dtype).kind not in ("int", "uint", "bool"):
        return "of", BAD_OPTION, f"pack takes whole numbers, '{builder.of}' holds {base.dtype}"
    container = find(into)
    if container.kind not in ("int", "uint"):
        return "dtype", BAD_OPTION, f"values are packed into integers, not {into}"
    if container.bits < builder.bits:
        return "bits", BAD_OPTION, f"{into} has {container.bits} bits, too few for one value"
    if base.shape and base.shape[-1] * builder.bits % container.bits:
        sentence = f"a row of {base.shape[-1]} values of {builder.bits} bits does not fill whole {into}s"
        return "of", BAD_SHAPE, sentence
    return None


def _dtype_key(builder: DerivedBuilder) -> tuple[str, str | None]:
    if isinstance(builder, Quantize):
        return "to", builder.to
    if isinstance(builder, Pack):
        return "dtype", builder.dtype
    return "of", None


def lengths_maker(
    name: str, keyword: bool, builder: Indptr | PageTable, path: Path, expressions: Expressions
) -> Maker | None:
    """Return the maker of the offsets or the page table of a list of lengths, None when it is wrong."""
    dtype = expressions.dtype((*path, "dtype"), builder.dtype)
    own = compile_options(builder, path, expressions)
    lens = builder.lens
    if lens not in expressions.names:
        hint = did_you_mean(lens, expressions.shown) or "a 'ragged' axis is a list of lengths"
        expressions.report.unknown(
            lens, UNKNOWN_ARGUMENT, (*path, "lens"), f"there is no list '{lens}'", hint
        )
        return None
    expressions.use(lens)
    if dtype is None or own is None:
        return None

    def make(scope: Scope) -> Argument:
        lengths = scope[lens]
        if not isinstance(lengths, tuple) or not all(type(item) is int and item >= 0 for item in lengths):
            raise Failure(BAD_OPTION, (*path, "lens"), f"'{lens}' is not a list of lengths")
        settings = {**own.evaluate(scope), "lens": lengths}
        element = dtype.resolve(scope)
        if isinstance(builder, Indptr):
            last = sum(lengths)
            sizes: tuple[int, ...] = (len(lengths) + 1,)
        else:
            size = settings["page_size"]
            if not isinstance(size, int) or size < 1:
                raise own.whole("page_size", BAD_OPTION, f"a page has 1 row or more, not {size}", "", path)
            used = [-(-length // size) for length in lengths]
            pages = settings["pages"]
            settings["pages"] = sum(used) if pages is None else pages
            if not isinstance(settings["pages"], int):
                sentence = f"pages must be a whole number, this is {described(pages)}"
                raise own.whole("pages", BAD_OPTION, sentence, "'//' divides to whole numbers", path)
            last = max(settings["pages"] - 1, 0)
            if settings["pages"] < sum(used):
                sentence = f"{settings['pages']} pages are too few: the lengths fill {sum(used)}"
                raise own.whole("pages", BAD_OPTION, sentence, "", path)
            sizes = (len(lengths), max(used, default=0))
        wrong = misfit(last, element)
        if wrong:
            raise dtype.whole(BAD_OPTION, f"the largest entry: {wrong}")
        return Argument(name, builder.init, keyword, sizes, element, device=builder.device, options=settings)

    return Maker(own.needs | needs(dtype) | {lens}, make)
