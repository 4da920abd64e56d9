"""Names and calls of Python in JavaScript: which definition a name is, and in which order arguments go."""

import ast
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence

from kmrun.report.site_sources import Named, Untranslatable, constructor, fields, module, resolve, signature

_MATH = ("isfinite", "isnan", "log10", "ceil", "floor", "nan", "inf")
_TAKES_KEY: Mapping[str, tuple[str, ...]] = {
    "max": ("key", "default"), "min": ("key", "default"), "sorted": ("key", "reverse"), "sum": ("start",),
}  # fmt: skip
_BUILTINS = (
    "abs", "all", "any", "divmod", "enumerate", "float", "frozenset", "int", "len", "list", "map", "max", "min", "next",
    "range", "round", "set", "sorted", "str", "sum", "tuple", "zip",
)  # fmt: skip
_METHODS = (
    "append", "endswith", "extend", "get", "insert", "isascii", "isalnum", "isdigit", "items", "join", "keys",
    "lower", "partition", "pop", "removeprefix", "removesuffix", "replace", "rpartition", "rstrip", "split",
    "startswith", "strip", "values",
)  # fmt: skip
_RESERVED = frozenset((
    "arguments", "await", "break", "case", "catch", "class", "const", "continue", "debugger", "default",
    "delete", "do", "else", "enum", "eval", "export", "extends", "false", "finally", "for", "function", "if",
    "implements", "import", "in", "instanceof", "interface", "let", "new", "null", "package", "private",
    "protected", "public", "py", "return", "static", "super", "switch", "this", "throw", "true", "try",
    "typeof", "undefined", "var", "void", "while", "with", "yield",
))  # fmt: skip


def local(name: str) -> str:
    """Return a local name as the script may carry it."""
    if name == "self":
        return "this"
    return f"{name}_" if name in _RESERVED else name


class Calls(ABC):
    """The names of one function, and what is called in it. `need` is told of every definition that it uses."""

    def __init__(self, home: str, need: Callable[[Named], None], methods: Collection[str]) -> None:
        """Take the module that the names belong to, and the names of methods that classes of ours have."""
        self.home = home
        self.locals: list[set[str]] = [set()]
        self.imports: dict[str, tuple[str, str | None]] = {}
        self._need = need
        self._methods = methods

    @abstractmethod
    def write(self, node: ast.expr) -> str:
        """Return the expression in JavaScript."""

    def refused(self, node: ast.AST, what: str) -> Untranslatable:
        """Return the error for what the subset does not have."""
        return Untranslatable(f"{self.home}:{getattr(node, 'lineno', '?')}: {what} is not translated")

    def declared(self, name: str) -> bool:
        """Return whether a name is local here."""
        return any(name in names for names in self.locals)

    def _name(self, name: str, node: ast.AST) -> str:
        if self.declared(name):
            return local(name)
        found = self._resolved(name)
        if isinstance(found, Named):
            self._need(found)
            return found.script_name
        if name in _BUILTINS:
            return f"py.{name}"
        raise self.refused(node, f"the name {name}")

    def _resolved(self, name: str) -> "Named | tuple[str, str | None] | None":
        if name in self.imports:
            return resolve(self.imports[name])
        return module(self.home).find(name)

    def _attribute(self, node: ast.Attribute) -> str:
        if isinstance(node.value, ast.Name) and not self.declared(node.value.id):
            if node.value.id == "math" and node.attr in _MATH:
                return f"py.math.{node.attr}"
            home = self._resolved(node.value.id)
            if isinstance(home, tuple) and home[1] is None:
                found = module(home[0]).find(node.attr)
                if isinstance(found, Named):
                    self._need(found)
                    return found.script_name
        return f"{self.write(node.value)}.{node.attr}"

    def _call(self, node: ast.Call) -> str:
        match node.func:
            case ast.Attribute(attr="_replace", value=value):
                return f"py.replaced({self.write(value)}, {self._changes(node)})"
            case ast.Attribute(attr="fromkeys", value=ast.Name(id="dict")):
                return f"py.fromkeys({', '.join(self._arguments(node))})"
            case ast.Attribute(attr=method, value=value) if self._is_method(node.func):
                return self._method_call(self.write(value), method, node)
            case ast.Name(id=name) if not self.declared(name):
                return self._named_call(name, node)
        if isinstance(node.func, ast.Attribute) and not _is_math(node.func):
            return self._known_call(node, self._definition(node.func))
        if node.keywords:
            raise self.refused(node, "a keyword to a local function")
        return f"{self.write(node.func)}({', '.join(self._arguments(node))})"

    def _method_call(self, value: str, method: str, node: ast.Call) -> str:
        if node.keywords or method not in (*_METHODS, *self._methods):
            raise self.refused(node, f"that call of the method {method}")
        if method in _METHODS:
            return f"py.method.{method}({', '.join([value, *self._arguments(node)])})"
        return f"{value}.{method}({', '.join(self._arguments(node))})"

    def _is_method(self, node: ast.Attribute) -> bool:
        """Return whether this is a method of a value, not a function of a module."""
        if not isinstance(node.value, ast.Name) or self.declared(node.value.id):
            return True
        return not _is_math(node) and not isinstance(self._resolved(node.value.id), tuple)

    def _definition(self, node: ast.Attribute) -> Named:
        home = self._resolved(node.value.id) if isinstance(node.value, ast.Name) else None
        found = module(home[0]).find(node.attr) if isinstance(home, tuple) else None
        if not isinstance(found, Named):
            raise self.refused(node, f"the call of {node.attr}")
        return found

    def _named_call(self, name: str, node: ast.Call) -> str:
        found = self._resolved(name)
        if isinstance(found, Named):
            return self._known_call(node, found)
        if found == ("dataclasses", "replace"):
            return f"py.replaced({self.write(node.args[0])}, {self._changes(node)})"
        if name not in _BUILTINS:
            raise self.refused(node, f"the call of {name}")
        arguments = self._arguments(node)
        if name in ("max", "min") and (len(node.args) > 1 or isinstance(node.args[0], ast.Starred)):
            arguments = [f"[{', '.join(arguments)}]"]
        given = {
            keyword.arg: self.write(keyword.value) for keyword in node.keywords if keyword.arg != "strict"
        }
        if (name == "sum" and len(arguments) > 1) or given.keys() - set(_TAKES_KEY.get(name, ())):
            raise self.refused(node, f"that call of {name}")
        if given:
            arguments += [given.get(option, "undefined") for option in _TAKES_KEY[name]]
        return f"py.{name}({', '.join(arguments)})"

    def _known_call(self, node: ast.Call, found: Named) -> str:
        self._need(found)
        if isinstance(found.node, ast.ClassDef):
            own = constructor(found.node)
            wanted = fields(found.node) if own is None else signature(own, bound=True)
            if found.module == "kmrun.errors":
                wanted = {"sentence": None, "hint": ast.Constant("")}
            return f"new {found.script_name}({self._bound(node, wanted)})"
        if not isinstance(found.node, ast.FunctionDef):
            return f"{found.script_name}({', '.join(self._arguments(node))})"
        if found.node.args.vararg is not None and not node.keywords:
            return f"{found.script_name}({', '.join(self._arguments(node))})"
        return f"{found.script_name}({self._bound(node, signature(found.node))})"

    def _bound(self, node: ast.Call, wanted: Mapping[str, ast.expr | None]) -> str:
        """Return the arguments in the order of the parameters, as JavaScript has no others."""
        names = list(wanted)
        if any(isinstance(argument, ast.Starred) for argument in node.args):
            if node.keywords:
                raise self.refused(node, "* beside keywords")
            return ", ".join(self._arguments(node))
        given = dict(zip(names, self._arguments(node), strict=False))
        given |= {keyword.arg or "**": self.write(keyword.value) for keyword in node.keywords}
        wrong = given.keys() - wanted.keys()
        lacking = [name for name, default in wanted.items() if default is None and name not in given]
        if wrong or lacking or len(node.args) > len(names):
            raise self.refused(node, f"a call with {sorted(wrong)} and without {lacking}")
        last = max((names.index(name) for name in given), default=-1)
        return ", ".join(given.get(name, "undefined") for name in names[: last + 1])

    def _arguments(self, node: ast.Call) -> list[str]:
        return [self._item(argument) for argument in node.args]

    def _changes(self, node: ast.Call) -> str:
        pairs = (f"{keyword.arg}: {self.write(keyword.value)}" for keyword in node.keywords)
        return "{" + ", ".join(pairs) + "}"

    def _items(self, nodes: Sequence[ast.expr]) -> str:
        return f"[{', '.join(self._item(item) for item in nodes)}]"

    def _item(self, node: ast.expr) -> str:
        if isinstance(node, ast.Starred):
            return f"...py.iter({self.write(node.value)})"
        return self.write(node)


def _is_math(node: ast.Attribute) -> bool:
    return isinstance(node.value, ast.Name) and node.value.id == "math"
