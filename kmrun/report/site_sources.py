"""What a name in kmrun's own source stands for: the definitions that the site's script is translated from."""

import ast
import importlib.util
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

Definition = ast.FunctionDef | ast.ClassDef | ast.expr


class Untranslatable(Exception):
    """The source says something that the translator does not know: a bug of ours, never a user's mistake."""


@dataclass(frozen=True, slots=True)
class Named:
    """A definition at the top of a module: a function, a class, or the value of a constant."""

    module: str
    name: str
    node: Definition

    @property
    def script_name(self) -> str:
        """The name in the script: `llm_fit$usable_bytes`."""
        return f"{self.module.rpartition('.')[2]}${self.name}"


class Module:
    """The top of one module: what it defines, and what it imports from kmrun."""

    def __init__(self, name: str) -> None:
        """Read the source of a module by its dotted name."""
        self.name = name
        spec = importlib.util.find_spec(name)
        if spec is None or spec.origin is None:
            raise Untranslatable(f"{name} has no source")
        self.definitions: dict[str, Definition] = {}
        self.imports: dict[str, tuple[str, str | None]] = {}
        for node in ast.parse(Path(spec.origin).read_text(encoding="utf-8"), spec.origin).body:
            self._read(node)

    def _read(self, node: ast.stmt) -> None:
        match node:
            case ast.FunctionDef() | ast.ClassDef():
                self.definitions[node.name] = node
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                self.definitions[name] = value
            case ast.Assign(targets=[ast.Tuple(elts=names)], value=ast.Tuple(elts=values)):
                pairs = zip(names, values, strict=True)
                self.definitions |= {name.id: value for name, value in pairs if isinstance(name, ast.Name)}
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                self.definitions[name] = value
            case ast.ImportFrom():
                self.imports |= imported(node)

    def find(self, name: str) -> "Named | tuple[str, str | None] | None":
        """Return the definition of a name, here or where it is imported from; a foreign import as it is."""
        if name in self.definitions:
            return Named(self.name, name, self.definitions[name])
        if name not in self.imports:
            return None
        return resolve(self.imports[name])


def imported(node: ast.ImportFrom) -> dict[str, tuple[str, str | None]]:
    """Return local name to (module, name) of an import."""
    return {alias.asname or alias.name: (node.module or "", alias.name) for alias in node.names}


def resolve(origin: tuple[str, str | None]) -> "Named | tuple[str, str | None]":
    """Return the definition that an import brings; (module, None) for a module of ours, else the import."""
    home, name = origin
    if not home.startswith("kmrun") or name is None:
        return origin
    if name in (top := module(home)).definitions or name in top.imports:
        return top.find(name) or origin
    return f"{home}.{name}", None


@cache
def module(name: str) -> Module:
    """Return a module's top, read once."""
    return Module(name)


def named(thing: Callable[..., object] | type) -> Named:
    """Return the definition of a function or class of ours."""
    found = module(thing.__module__).find(thing.__qualname__)
    if not isinstance(found, Named):
        raise Untranslatable(f"{thing!r} is not at the top of {thing.__module__}")
    return found


def fields(node: ast.ClassDef) -> dict[str, ast.expr | None]:
    """Return the fields of a named tuple or dataclass with their defaults, in order."""
    return {
        item.target.id: item.value
        for item in node.body
        if isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name)
    }


def signature(node: ast.FunctionDef, bound: bool = False) -> dict[str, ast.expr | None]:
    """Return parameters with their defaults, keyword-only ones last; without `self` where it is bound."""
    given = node.args
    if given.kwarg is not None or given.posonlyargs:
        raise Untranslatable(f"{node.name}: ** and / in parameters")
    plain = [argument.arg for argument in given.args]
    missing: list[ast.expr | None] = [None] * (len(plain) - len(given.defaults))
    found = dict(zip(plain, [*missing, *given.defaults], strict=True))
    found |= dict(zip((argument.arg for argument in given.kwonlyargs), given.kw_defaults, strict=True))
    if bound:
        found.pop(plain[0])
    return found


def constructor(node: ast.ClassDef) -> ast.FunctionDef | None:
    """Return the `__init__` that a class writes itself."""
    return next(
        (item for item in node.body if isinstance(item, ast.FunctionDef) and item.name == "__init__"), None
    )
