"""The arguments of a call: from the builders of the suite to definitions that make a `core.case.Argument`."""

from collections.abc import Callable, Mapping
from typing import Any

from kmrun.core.case import Argument, Path
from kmrun.core.dtypes import find
from kmrun.core.formula import Scope, TensorValue, Value
from kmrun.core.formula_error import did_you_mean
from kmrun.core.plain import to_plain
from kmrun.plan.builders import layout_fault
from kmrun.plan.definition import Definition, Work
from kmrun.plan.derived import derived_maker, lengths_maker
from kmrun.plan.expression import Expressions, needs
from kmrun.plan.filling import Fault, fault
from kmrun.plan.maker import Maker, exact
from kmrun.plan.parts import Options, compile_layout, compile_options, compile_shape
from kmrun.plan.report import BAD_GRADIENT, BAD_OPTION, BAD_SHAPE, UNKNOWN_ARGUMENT, Failure
from kmrun.plan.values import compile_value
from kmrun.schema.arguments import (
    Builder,
    Call,
    DerivedBuilder,
    Indptr,
    ListOf,
    PageTable,
    PlainValue,
    TensorBuilder,
    options,
)
from kmrun.schema.suite import Kernel


class Arguments:
    """Compiles all arguments of a kernel, in call order: `args`, then `kwargs`."""

    def __init__(self, kernel: Kernel, path: Path, expressions: Expressions) -> None:
        self.path = path
        self.expressions = expressions
        self.report = expressions.report
        # A name in both sections was told where names are collected; elsewhere it means the first.
        by_keyword = {name: builder for name, builder in kernel.kwargs.items() if name not in kernel.args}
        self.builders: dict[str, Builder] = {**kernel.args, **by_keyword}
        self.keywords = frozenset(by_keyword)
        self.tensors = frozenset(
            name
            for name, builder in self.builders.items()
            if not isinstance(builder, PlainValue | ListOf | Call)
        )
        self.before: list[str] = []

    def definitions(self) -> list[Definition]:
        """Return one definition per sound argument."""
        found: list[Definition] = []
        for name, builder in self.builders.items():
            section = "kwargs" if name in self.keywords else "args"
            maker = self._maker(name, builder, (*self.path, section, name))
            if maker is not None:
                maker = _remembering(maker) if not isinstance(builder, PlainValue) else maker
                found.append(
                    Definition(name, (*self.path, section, name), maker.needs, _definer(name, maker))
                )
            self.before.append(name)
        return found

    def find_argument(self, name: str, path: Path, among: frozenset[str] | None = None) -> bool:
        """Return whether `name` is an argument (one of `among`, where given); report it otherwise."""
        allowed = self.builders.keys() if among is None else among
        if name in allowed:
            return True
        if name in self.builders:
            self.report.error(UNKNOWN_ARGUMENT, path, f"'{name}' is not a single tensor")
        else:
            hint = did_you_mean(name, allowed) or f"arguments here: {', '.join(self.builders) or 'none'}"
            self.report.unknown(name, UNKNOWN_ARGUMENT, path, f"there is no argument '{name}'", hint)
        return False

    def _maker(self, name: str, builder: Builder, path: Path) -> Maker | None:
        keyword = name in self.keywords
        match builder:
            case PlainValue():
                return self._plain(name, keyword, builder, path)
            case ListOf():
                return self._list(name, keyword, builder, path)
            case Call():
                good = [self._earlier(source, (*path, "from", i)) for i, source in enumerate(builder.sources)]
                made = Argument(
                    name,
                    builder.init,
                    keyword,
                    requires_grad=builder.requires_grad,
                    options={**options(builder), "from": builder.sources},
                )
                return Maker(frozenset(), lambda scope: made) if all(good) else None
            case Indptr() | PageTable():
                return lengths_maker(name, keyword, builder, path, self.expressions)
            case DerivedBuilder():
                if not self._earlier(builder.of, (*path, "of"), self.tensors):
                    return None
                return derived_maker(name, keyword, builder, path, self.expressions)
            case TensorBuilder():
                return self._tensor(name, keyword, builder, path)
        raise TypeError(f"no rule for init: {builder.init}")

    def _plain(self, name: str, keyword: bool, builder: PlainValue, path: Path) -> Maker | None:
        passed = compile_value(builder.value, (*path, "value"), self.expressions)
        if passed is None:
            return None

        def make(scope: Scope) -> Argument:
            found = passed.find(scope)
            own = {"value": found.value, "is_dtype": True} if found.is_dtype else {"value": found.value}
            return Argument(name, "value", keyword, options=own)

        return Maker(passed.needs, make)

    def _list(self, name: str, keyword: bool, builder: ListOf, path: Path) -> Maker | None:
        makers = [
            self._maker(f"{name}.{index}", item, (*path, "items", index))
            for index, item in enumerate(builder.items)
        ]
        good = [maker for maker in makers if maker is not None]
        if len(good) != len(makers):
            return None
        return Maker(
            frozenset().union(*(maker.needs for maker in good)),
            lambda scope: Argument(
                name, "list", keyword, options={"items": tuple(to_plain(maker.make(scope)) for maker in good)}
            ),
        )

    def _tensor(self, name: str, keyword: bool, builder: TensorBuilder, path: Path) -> Maker | None:
        expressions, like = self.expressions, builder.like
        shape = compile_shape(builder.shape or (), (*path, "shape"), expressions)
        own = compile_options(builder, path, expressions)
        layout = compile_layout(builder.layout, (*path, "layout"), expressions)
        dtype = expressions.dtype((*path, "dtype"), builder.dtype) if builder.dtype is not None else None
        if like is not None and not self.find_argument(like, (*path, "like"), self.tensors):
            return None
        if shape is None or own is None or layout is None or (builder.dtype is not None and dtype is None):
            return None
        default = builder.default_dtype

        def make(scope: Scope) -> Argument:
            base: TensorValue | None = scope[like] if like is not None else None
            sizes = shape.evaluate(scope) if base is None else base.shape
            inherited = base.dtype if base is not None else str(default)
            element = dtype.resolve(scope) if dtype is not None else inherited
            settings = own.evaluate(scope)
            wrong = fault(builder.init, settings, sizes, element)
            if wrong is not None:
                raise _option_failure(wrong, own, path, "shape" if like is None else "like")
            arranged = layout.evaluate(scope)
            unfit = layout_fault(arranged, sizes)
            if unfit:
                raise Failure(BAD_SHAPE, (*path, "layout"), unfit)
            if builder.requires_grad and not find(element).is_float:
                sentence = f"a tensor of {element} carries no gradient"
                raise Failure(BAD_GRADIENT, (*path, "requires_grad"), sentence)
            return Argument(
                name,
                builder.init,
                keyword,
                sizes,
                element,
                builder.requires_grad,
                arranged,
                builder.device,
                settings,
            )

        wanted = shape.needs | own.needs | layout.needs | needs(dtype)
        return Maker(wanted if like is None else wanted | {like}, make)

    def _earlier(self, name: str, path: Path, among: frozenset[str] | None = None) -> bool:
        """Return whether `name` is an argument that is built before this one; report it otherwise."""
        if not self.find_argument(name, path, among):
            return False
        if name not in self.before:
            self.report.error(
                UNKNOWN_ARGUMENT, path, f"'{name}' comes later in the call", "write it above this argument"
            )
            return False
        return True


def _option_failure(wrong: Fault, own: Options, path: Path, shape_key: str) -> Failure:
    key, sentence, hint, item = wrong
    if key is None or key == "dtype":
        return Failure(BAD_SHAPE, (*path, key or shape_key), sentence, hint)
    return own.whole(key, BAD_OPTION, sentence, hint, path, item)


def _definer(name: str, maker: Maker) -> Callable[[Work], Value]:
    def define(work: Work) -> Value:
        argument = maker.make(work.scope)
        work.arguments[name] = argument
        if argument.shape is not None and argument.dtype is not None:
            return TensorValue(argument.shape, argument.dtype)
        if argument.init == "list":
            return tuple(_tensor_value(item) for item in argument.options["items"])
        return argument.options["value"] if argument.init == "value" else None

    return define


def _tensor_value(item: Mapping[str, Any]) -> Value:
    return TensorValue(tuple(item["shape"]), item["dtype"]) if item["shape"] is not None else None


def _remembering(maker: Maker) -> Maker:
    """Return a maker that gives points with the same needed values the very same argument."""
    wanted = tuple(sorted(maker.needs))
    made: dict[Value, Argument] = {}

    def make(scope: Scope) -> Argument:
        key = exact(tuple([scope[name] for name in wanted]))
        argument = made.get(key)
        if argument is None:
            argument = made[key] = maker.make(scope)
        return argument

    return Maker(maker.needs, make)
