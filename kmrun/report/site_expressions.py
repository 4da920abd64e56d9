"""Expressions of Python as expressions of JavaScript that mean the same: a small subset, all else refused.

What differs between the languages (truth of an empty list, `+` of lists, equality, formats, rounding) goes
through `py`, the run-time part in templates/site/python.js. Numbers are doubles, so integers must stay below 2 ** 53;
an integer and a float of the same value are one.
"""

import ast
from collections.abc import Callable, Mapping, Sequence

from kmrun.report.site_calls import Calls, local
from kmrun.report.site_sources import Untranslatable

_ARITHMETIC: Mapping[type[ast.operator], str] = {ast.Sub: "-", ast.Mult: "*"}
_THROUGH_PY: Mapping[type[ast.operator], str] = {
    ast.Add: "add", ast.Div: "div", ast.FloorDiv: "floordiv", ast.Mod: "mod", ast.Pow: "pow",
    ast.LShift: "shift", ast.BitOr: "union",
}  # fmt: skip
_ORDER: Mapping[type[ast.cmpop], str] = {ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">="}


class Expressions(Calls):
    """Translates the expressions of one function. `need` is told of every definition that they use."""

    def write(self, node: ast.expr) -> str:
        """Return the expression in JavaScript."""
        match node:
            case ast.Constant():
                return _constant(node)
            case ast.Name(id=name):
                return self._name(name, node)
            case ast.Attribute():
                return self._attribute(node)
            case ast.Call():
                return self._call(node)
            case ast.BinOp():
                return self._arithmetic(node)
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return f"(-{self.write(operand)})"
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return f"!{self.test(operand)}"
            case ast.BoolOp(op=operator, values=values):
                name = "and" if isinstance(operator, ast.And) else "or"
                return f"py.{name}({', '.join(f'() => {self._value(item)}' for item in values)})"
            case ast.Compare():
                return self._compare(node)
            case ast.IfExp():
                parts = (self.test(node.test), self.write(node.body), self.write(node.orelse))
                return "({} ? {} : {})".format(*parts)
            case ast.Subscript():
                return self._subscript(node)
            case ast.List(elts=items) | ast.Tuple(elts=items):
                return self._items(items)
            case ast.Set(elts=items):
                return f"py.set({self._items(items)})"
            case ast.Dict():
                return self._dict(node)
            case ast.JoinedStr(values=parts):
                return "`" + "".join(self._part(part) for part in parts) + "`"
            case ast.Lambda(args=arguments, body=body):
                names = [argument.arg for argument in arguments.args]
                with_names = self._within(set(names), lambda: self._value(body))
                return f"(({', '.join(map(local, names))}) => {with_names})"
            case ast.NamedExpr(target=target, value=value):
                return f"({self.write(target)} = {self.write(value)})"
            case ast.ListComp(elt=item) | ast.GeneratorExp(elt=item):
                return self._comprehension(node.generators, lambda: self.write(item))
            case ast.SetComp(elt=item):
                return f"py.set({self._comprehension(node.generators, lambda: self.write(item))})"
            case ast.DictComp(key=key, value=value):
                pair = self._comprehension(
                    node.generators, lambda: f"[{self.write(key)}, {self.write(value)}]"
                )
                return f"py.dict({pair})"
        raise self.refused(node, type(node).__name__)

    def test(self, node: ast.expr) -> str:
        """Return the expression as a condition: Python's truth of it."""
        match node:
            case ast.BoolOp(op=operator, values=values):
                sign = " && " if isinstance(operator, ast.And) else " || "
                return f"({sign.join(self.test(item) for item in values)})"
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return f"!{self.test(operand)}"
            case ast.Compare():
                return self.write(node)
        return f"py.truth({self.write(node)})"

    def _within(self, names: set[str], write: Callable[[], str]) -> str:
        self.locals.append(names)
        try:
            return write()
        finally:
            self.locals.pop()

    def _value(self, node: ast.expr) -> str:
        text = self.write(node)
        return f"({text})" if text.startswith("{") else text

    def _dict(self, node: ast.Dict) -> str:
        pairs = [
            f"...py.method.items({self.write(value)})"
            if key is None
            else f"[{self.write(key)}, {self.write(value)}]"
            for key, value in zip(node.keys, node.values, strict=True)
        ]
        return f"py.dict([{', '.join(pairs)}])"

    def _arithmetic(self, node: ast.BinOp) -> str:
        left, right, kind = self.write(node.left), self.write(node.right), type(node.op)
        if kind in _ARITHMETIC:
            return f"({left} {_ARITHMETIC[kind]} {right})"
        if kind not in _THROUGH_PY:
            raise self.refused(node, kind.__name__)
        return f"py.{_THROUGH_PY[kind]}({left}, {right})"

    def _compare(self, node: ast.Compare) -> str:
        operands = [self.write(item) for item in (node.left, *node.comparators)]
        if isinstance(node.left, ast.Set) and isinstance(node.ops[0], ast.LtE):
            return f"py.subset({operands[0]}, {operands[1]})"
        parts = [
            self._pair(node, operator, left, right)
            for operator, left, right in zip(node.ops, operands[:-1], operands[1:], strict=True)
        ]
        return parts[0] if len(parts) == 1 else f"({' && '.join(parts)})"

    def _pair(self, node: ast.Compare, operator: ast.cmpop, left: str, right: str) -> str:
        match operator:
            case ast.Is():
                return f"({left} === {right})"
            case ast.IsNot():
                return f"({left} !== {right})"
            case ast.Eq():
                return f"py.eq({left}, {right})"
            case ast.NotEq():
                return f"!py.eq({left}, {right})"
            case ast.In():
                return f"py.has({right}, {left})"
            case ast.NotIn():
                return f"!py.has({right}, {left})"
        if type(operator) not in _ORDER:
            raise self.refused(node, type(operator).__name__)
        return f"({left} {_ORDER[type(operator)]} {right})"

    def _subscript(self, node: ast.Subscript) -> str:
        value = self.write(node.value)
        if not isinstance(node.slice, ast.Slice):
            return f"py.item({value}, {self.write(node.slice)})"
        if node.slice.step is not None:
            raise self.refused(node, "a step in a slice")
        ends = (node.slice.lower, node.slice.upper)
        low, high = ("undefined" if end is None else self.write(end) for end in ends)
        return f"py.slice({value}, {low}, {high})"

    def _comprehension(self, loops: Sequence[ast.comprehension], item: Callable[[], str]) -> str:
        def nested(rest: Sequence[ast.comprehension]) -> str:
            if not rest:
                return f"$out.push({item()});"
            loop = rest[0]
            sequence = self.write(loop.iter)
            names = target_names(loop.target)

            def body() -> str:
                inner = nested(rest[1:])
                for condition in reversed(loop.ifs):
                    inner = f"if ({self.test(condition)}) {{ {inner} }}"
                return f"for (const {self._target(loop.target)} of py.iter({sequence})) {{ {inner} }}"

            return self._within(set(names), body)

        return f"py.gather(($out) => {{ {nested(loops)} }})"

    def _target(self, node: ast.expr) -> str:
        if isinstance(node, ast.Tuple):
            return f"[{', '.join(self._target(item) for item in node.elts)}]"
        return self.write(node)

    def _part(self, node: ast.expr) -> str:
        if isinstance(node, ast.Constant):
            return _escaped(str(node.value))
        if not isinstance(node, ast.FormattedValue):
            raise self.refused(node, "that part of an f-string")
        value = self.write(node.value)
        if node.conversion == ord("r"):
            value = f"py.repr({value})"
        elif node.conversion != -1:
            raise self.refused(node, "that conversion of an f-string")
        if node.format_spec is None:
            return f"${{py.str({value})}}"
        return f"${{py.format({value}, {self.write(node.format_spec)})}}"


def target_names(node: ast.expr) -> list[str]:
    """Return the names that an assignment's or a loop's target binds."""
    match node:
        case ast.Name(id=name):
            return [name]
        case ast.Tuple(elts=items):
            return [name for item in items for name in target_names(item)]
    return []


def _constant(node: ast.Constant) -> str:
    value = node.value
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return "`" + _escaped(value) + "`"
    if isinstance(value, int | float) and abs(value) <= 2**53:
        return repr(value)
    raise Untranslatable(f"the constant {value!r} at line {node.lineno}")


def _escaped(text: str) -> str:
    for old, new in (("\\", "\\\\"), ("`", "\\`"), ("$", "\\$"), ("\n", "\\n"), ("</", "<\\/")):
        text = text.replace(old, new)
    return text
