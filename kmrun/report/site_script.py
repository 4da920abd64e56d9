"""The site's formulas: kmrun's own functions, translated, with everything that they use and nothing else."""

import ast
from collections.abc import Callable, Iterable

from kmrun.report.site_expressions import Expressions
from kmrun.report.site_sources import Named, Untranslatable, module, named, resolve
from kmrun.report.site_statements import function, record

_ERRORS = "kmrun.errors"


def script(roots: Iterable[Callable[..., object] | type], constants: Iterable[tuple[str, str]] = ()) -> str:
    """Return JavaScript that defines these functions and classes, and these (module, name) constants.

    Every definition is named `MODULE$NAME`, by the last part of its module. It needs `py` of templates/site/python.js.

    Raises:
        Untranslatable: something that they use is beyond the subset, or two modules end alike.
    """
    wanted = [named(root) for root in roots] + [_constant(home, name) for home, name in constants]
    library = _Library({item.module for item in wanted})
    for item in wanted:
        library.add(item)
    return library.text()


def _constant(home: str, name: str) -> Named:
    found = module(home).find(name)
    if not isinstance(found, Named):
        raise Untranslatable(f"{home} does not define {name}")
    return found


class _Library:
    """Definitions in the order in which they may stand: constants after all that they are made of."""

    def __init__(self, homes: set[str]) -> None:
        self._parts: dict[tuple[str, str], str] = {}
        self._begun: dict[str, tuple[str, str]] = {}
        self._methods = _methods(homes)

    def add(self, item: Named) -> None:
        """Translate a definition and, before it, what it uses."""
        place = (item.module, item.name)
        if self._begun.setdefault(item.script_name, place) != place:
            raise Untranslatable(f"{place} and {self._begun[item.script_name]} would have one name")
        if place in self._parts:
            return
        # Held by now, so that functions may use each other.
        self._parts[place] = ""
        text = self._translated(item)
        del self._parts[place]
        self._parts[place] = text

    def text(self) -> str:
        """Return the script: functions and classes first, which may use constants only when they are called."""
        parts = sorted(self._parts.values(), key=lambda text: text.startswith("const "))
        return "\n\n".join(parts) + "\n"

    def _translated(self, item: Named) -> str:
        if item.module == _ERRORS:
            return f"class {item.script_name} extends py.KmrunError {{}}"
        write = Expressions(item.module, self.add, self._methods)
        match item.node:
            case ast.FunctionDef():
                return function(write, item.node, item.script_name)
            case ast.ClassDef():
                return record(write, item.node, item.script_name)
        return f"const {item.script_name} = {write.write(item.node)};"


def _methods(homes: set[str]) -> frozenset[str]:
    """Return the methods of all classes of these modules and of those that they import."""
    seen: set[str] = set()
    waiting = list(homes)
    names: set[str] = set()
    while waiting:
        home = waiting.pop()
        if home in seen:
            continue
        seen.add(home)
        top = module(home)
        for node in top.definitions.values():
            if isinstance(node, ast.ClassDef):
                names |= {part.name for part in node.body if isinstance(part, ast.FunctionDef)}
        for origin in top.imports.values():
            found = resolve(origin)
            if isinstance(found, Named):
                waiting.append(found.module)
            elif found[0].startswith("kmrun") and found[1] is None:
                waiting.append(found[0])
    return frozenset(names)
