"""Arguments made of another argument (quantize, pack, view, transpose) or of ragged lengths."""

from kmrun.core.case import Argument, Path
from kmrun.core.dtypes import find
from kmrun.core.formula import Scope, TensorValue
from kmrun.core.formula_error import did_you_mean
from kmrun.plan.builders import derived_shape, view_fault
from kmrun.plan.expression import Expressions, needs
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
            block = settings["block"]
            if builder.scale == "block" and (not isinstance(block, int) or block < 1):
                raise own.whole("block", BAD_OPTION, "scale: block needs a whole number 'block'", "", path)
            element = SCALES_DTYPE if builder.part == "scales" else narrow
        if shape is not None:
            sizes = shape.evaluate(scope)
            unfit = view_fault(sizes, settings["strides"], settings["offset"], base.numel)
            if unfit:
                raise Failure(BAD_SHAPE, (*path, "shape"), unfit)
            return Argument(name, builder.init, keyword, sizes, element, options=settings)
        try:
            sizes = derived_shape(builder.init, settings, base.shape, find(narrow).bits)
        except ValueError as error:
            raise Failure(BAD_SHAPE, (*path, "of"), str(error)) from None
        return Argument(name, builder.init, keyword, sizes, element, options=settings)

    wanted = own.needs | needs(dtype) | {builder.of}
    return Maker(wanted | shape.needs if shape is not None else wanted, make)


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
        expressions.report.error(UNKNOWN_ARGUMENT, (*path, "lens"), f"there is no list '{lens}'", hint)
        return None
    expressions.use(lens)
    if dtype is None or own is None:
        return None

    def make(scope: Scope) -> Argument:
        lengths = scope[lens]
        if not isinstance(lengths, tuple) or not all(type(item) is int and item >= 0 for item in lengths):
            raise Failure(BAD_OPTION, (*path, "lens"), f"'{lens}' is not a list of lengths")
        settings = {**own.evaluate(scope), "lens": lengths}
        if isinstance(builder, Indptr):
            sizes: tuple[int, ...] = (len(lengths) + 1,)
        else:
            size = settings["page_size"]
            if not isinstance(size, int) or size < 1:
                raise own.whole("page_size", BAD_OPTION, f"a page has 1 row or more, not {size}", "", path)
            used = [-(-length // size) for length in lengths]
            pages = settings["pages"]
            settings["pages"] = sum(used) if pages is None else pages
            if settings["pages"] < sum(used):
                sentence = f"{settings['pages']} pages are too few: the lengths fill {sum(used)}"
                raise own.whole("pages", BAD_OPTION, sentence, "", path)
            sizes = (len(lengths), max(used, default=0))
        return Argument(
            name, builder.init, keyword, sizes, dtype.resolve(scope), device=builder.device, options=settings
        )

    return Maker(own.needs | needs(dtype) | {lens}, make)
