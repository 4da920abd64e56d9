"""Functions and classes of Python as JavaScript: the statements around the expressions."""

import ast
from collections.abc import Iterable, Iterator

from kmrun.report.site_calls import local
from kmrun.report.site_expressions import Expressions, target_names
from kmrun.report.site_sources import Untranslatable, constructor, fields, imported, signature

_INDENT = "  "


def function(write: Expressions, node: ast.FunctionDef, name: str) -> str:
    """Return a function declaration."""
    return f"function {name}{_callable(write, node, bound=False)}"


def record(write: Expressions, node: ast.ClassDef, name: str) -> str:
    """Return a class: its fields or its `__init__`, properties and methods."""
    own = constructor(node)
    lines = [f"class {name} extends py.Record {{"]
    if own is None:
        wanted = fields(node)
        body = "".join(f" this.{item} = {item};" for item in wanted)
        defaults = {item: _default(value) for item, value in wanted.items()}
        lines.append(f"static fields = {[*wanted]};")
        lines.append(f"constructor({_parameters(write, defaults)}) {{ super();{body} }}")
    else:
        head, _, rest = _callable(write, own, bound=True).partition("{")
        lines.append(f"constructor{head}{{ super();{rest}")
    for item in node.body:
        if isinstance(item, ast.FunctionDef) and item is not own:
            getter = "get " if _is_property(write, item) else ""
            lines.append(f"{getter}{item.name}{_callable(write, item, bound=True)}")
    return "\n".join([*lines, "}"])


def _is_property(write: Expressions, node: ast.FunctionDef) -> bool:
    for decorator in node.decorator_list:
        if not (isinstance(decorator, ast.Name) and decorator.id == "property"):
            raise write.refused(node, "a decorator other than property")
    return bool(node.decorator_list)


def _default(value: ast.expr | None) -> ast.expr | None:
    """Return a field's default; that of `field(default_factory=dict)` is an empty one."""
    match value:
        case ast.Call(
            func=ast.Name(id="field"),
            keywords=[ast.keyword(arg="default_factory", value=ast.Name(id="dict"))],
        ):
            return ast.Dict(keys=[], values=[])
    return value


def _callable(write: Expressions, node: ast.FunctionDef, bound: bool) -> str:
    wanted = signature(node, bound)
    spread = node.args.vararg
    names = (
        {*wanted, *_assigned(node.body)}
        | ({spread.arg} if spread else set())
        | ({"self"} if bound else set())
    )
    parameters = _parameters(write, wanted, spread.arg if spread else None)
    write.locals.append(names)
    try:
        own = sorted({*_assigned(node.body)} - {*wanted})
        head = f"let {', '.join(map(local, own))};\n" if own else ""
        return f"({parameters}) {{\n{head}{_block(write, node.body)}\n}}"
    finally:
        write.locals.pop()


def _parameters(write: Expressions, wanted: dict[str, ast.expr | None], spread: str | None = None) -> str:
    parts = [
        local(name) if default is None else f"{local(name)} = {write.write(default)}"
        for name, default in wanted.items()
    ]
    return ", ".join([*parts, *([f"...{local(spread)}"] if spread else [])])


def _assigned(body: Iterable[ast.stmt]) -> Iterator[str]:
    """Yield the names that a function's own body binds, those in the conditions of comprehensions among them."""
    for statement in body:
        for node in _own(statement):
            match node:
                case ast.Assign(targets=targets):
                    for target in targets:
                        yield from target_names(target)
                case (
                    ast.AnnAssign(target=target) | ast.AugAssign(target=target) | ast.NamedExpr(target=target)
                ):
                    yield from target_names(target)
                case ast.For(target=target):
                    yield from target_names(target)
                case ast.FunctionDef(name=name):
                    yield name


def _own(node: ast.AST) -> Iterator[ast.AST]:
    yield node
    if isinstance(node, ast.FunctionDef | ast.Lambda):
        return
    for child in ast.iter_child_nodes(node):
        yield from _own(child)


def _block(write: Expressions, body: Iterable[ast.stmt]) -> str:
    lines = [line for statement in body if (line := _statement(write, statement))]
    return "\n".join(_INDENT + line.replace("\n", "\n" + _INDENT) for line in lines)


def _statement(write: Expressions, node: ast.stmt) -> str:
    match node:
        case ast.Expr(value=ast.Constant(value=str())) | ast.Pass():
            return ""
        case ast.Expr(value=value):
            return f"{write.write(value)};"
        case ast.Return(value=value):
            return f"return {'null' if value is None else write.write(value)};"
        case (
            ast.Assign(targets=[target], value=value)
            | ast.AnnAssign(target=target, value=ast.expr() as value)
        ):
            return _assignment(write, target, write.write(value))
        case ast.AugAssign(target=ast.Name() | ast.Subscript() as target):
            right = ast.copy_location(ast.BinOp(target, node.op, node.value), node)
            return _assignment(write, target, write.write(right))
        case ast.If(test=test, body=body, orelse=orelse):
            other = f" else {{\n{_block(write, orelse)}\n}}" if orelse else ""
            return f"if ({write.test(test)}) {{\n{_block(write, body)}\n}}{other}"
        case ast.For(target=target, iter=sequence, body=body, orelse=[]):
            head = f"for ({_target(write, target)} of py.iter({write.write(sequence)}))"
            return f"{head} {{\n{_block(write, body)}\n}}"
        case ast.While(test=test, body=body, orelse=[]):
            return f"while ({write.test(test)}) {{\n{_block(write, body)}\n}}"
        case ast.Break():
            return "break;"
        case ast.Continue():
            return "continue;"
        case ast.Raise(exc=ast.Call() as error):
            return f"throw {write.write(error)};"
        case ast.Try(handlers=[handler], orelse=[], finalbody=[], body=body):
            return _guarded(write, handler, body)
        case ast.FunctionDef(name=name, decorator_list=[]):
            return f"{local(name)} = {_arrow(write, node)};"
        case ast.ImportFrom():
            write.imports |= imported(node)
            return ""
    raise write.refused(node, type(node).__name__)


def _arrow(write: Expressions, node: ast.FunctionDef) -> str:
    """Return a nested function; an arrow keeps the `this` around it."""
    parameters, _, body = _callable(write, node, bound=False).partition(") {")
    return f"{parameters}) => {{{body}"


def _guarded(write: Expressions, handler: ast.ExceptHandler, body: Iterable[ast.stmt]) -> str:
    if not isinstance(handler.type, ast.Name) or handler.type.id != "ValueError" or handler.name:
        raise write.refused(handler, "that except")
    caught = f"if (!($error instanceof py.ValueError)) throw $error;\n{_block(write, handler.body)}"
    return f"try {{\n{_block(write, body)}\n}} catch ($error) {{\n{caught}\n}}"


def _assignment(write: Expressions, target: ast.expr, value: str) -> str:
    match target:
        case ast.Subscript(slice=ast.Slice()):
            raise write.refused(target, "assignment to a slice")
        case ast.Subscript(value=container, slice=key):
            return f"py.put({write.write(container)}, {write.write(key)}, {value});"
        case ast.Tuple(elts=items) if any(isinstance(item, ast.Subscript) for item in items):
            parts = (_assignment(write, item, f"$values[{index}]") for index, item in enumerate(items))
            return f"{{ const $values = {value}; {' '.join(parts)} }}"
    return f"{_target(write, target)} = {value};"


def _target(write: Expressions, node: ast.expr) -> str:
    match node:
        case ast.Name() | ast.Attribute():
            return write.write(node)
        case ast.Tuple(elts=items):
            return f"[{', '.join(_target(write, item) for item in items)}]"
    raise Untranslatable(f"{write.home}:{node.lineno}: assignment to {type(node).__name__}")
