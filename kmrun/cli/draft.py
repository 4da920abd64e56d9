"""A first suite for a function: what `init` writes and `time` runs."""

import ast
import difflib
import json
import os
import re
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from kmrun.core.dtypes import ALIASES, DTYPES, canonical, is_dtype
from kmrun.core.formula import FUNCTIONS, KEYWORDS
from kmrun.core.formula_error import did_you_mean
from kmrun.errors import InvalidInput, UsageError
from kmrun.source.diagnostics import InvalidSuite
from kmrun.source.suggest import some_of
from kmrun.source.suite_plan import PlannedSuite
from kmrun.source.suite_text import plan_text

GUESS = "randn[1024, 1024]:fp32"
"""What a parameter is when nobody said."""

_TARGET = re.compile(r"(?P<place>[^:\s]+):(?P<attribute>[A-Za-z_][\w.]*)", re.ASCII)
_TENSOR = re.compile(
    r"(?P<init>[a-z_]+)\s*(?:\{(?P<options>[^{}]*)\})?\s*\[(?P<shape>[^\[\]]*)\]\s*(?::\s*(?P<dtype>[\w.]+))?"
)
_NAMED = re.compile(r"(?P<name>[A-Za-z_]\w*)\s*=\s*(?P<rest>.+)", re.DOTALL)
_NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?")
_WORDS = {"true": "true", "false": "false", "none": "null", "null": "null"}
_HOW = "an argument is init[shape]:dtype, like 'randn[4096, 4096]:bf16', or a number, true, false, none"


@dataclass(frozen=True, slots=True)
class Drafted:
    """One argument: its name, its entry as YAML, whether it is passed by keyword, and as it was asked for."""

    name: str
    entry: str
    keyword: bool
    text: str


@dataclass(frozen=True, slots=True)
class Draft:
    """The YAML of a suite; `said` are the words of the command line that a line of it says."""

    text: str
    said: Mapping[int, str]

    def planned(self, name: str, folder: Path) -> PlannedSuite:
        """Read it as if it stood in `folder` under `name`: what is written was read once.

        Raises:
            UsageError: a mistake in it, told at the words that it comes from; there is no file to look into.
        """
        try:
            return plan_text(self.text, name, folder)
        except InvalidSuite as error:
            found = error.diagnostics[0]
            words = self.said.get(found.span.line)
            if words is None:
                raise
            note = textwrap.fill(found.notes[0], 94) if found.notes else ""
            raise UsageError(f"{words}: {found.message}", found.hint or note) from error


def draft(target: str, arguments: Sequence[str], reference: str | None, folder: Path) -> Draft:
    """Return a suite that times `target`, to stand in `folder`.

    Args:
        target: `module:attr` or `file.py:attr`, the file relative to the working directory.
        arguments: what it is called with, one text each; all parameters without a default when empty.
        reference: the trusted implementation as a target, None for none.
        folder: where the suite will stand: its files are relative to that.

    Raises:
        UsageError: a target or an argument cannot be read.
    """
    place, attribute = _split(target)
    found = _parameters(place, attribute)
    if not arguments and (found is None or found.any_number):
        raise UsageError(f"{target}: say what it is called with", f"--arg 'randn[4096, 4096]:bf16'; {_HOW}")
    parameters = found.by_place if found is not None else ()
    texts = list(arguments) or [GUESS] * len(parameters)
    drafted = [_drafted(text, index, parameters) for index, text in enumerate(texts)]
    names = [one.name for one in drafted]
    doubled = next((name for name in names if names.count(name) > 1), None)
    if doubled is not None:
        raise UsageError(f"two arguments are named '{doubled}'", "name one of them: --arg 'other=...'")
    given = sum(not one.keyword for one in drafted)
    needed = (*parameters, *(found.by_keyword if found is not None else ()))
    missing = [name for name in needed[min(given, len(parameters)) :] if name not in names]
    if missing:
        takes, here = ", ".join(needed), "is" if len(missing) == 1 else "are"
        raise UsageError(
            f"{attribute} takes {takes}: {', '.join(missing)} {here} missing",
            f"one --arg each, 'NAME=...' by keyword; {_HOW}"
            if found is not None and found.by_keyword
            else f"one --arg each; {_HOW}",
        )
    name = attribute.rpartition(".")[2]
    lines = [
        "kmrun: 1",
        f"suite: {_scalar(name)}",
        "kernels:",
        f"  - name: {_scalar(name)}",
        f"    target: {_scalar(_relative(target, folder))}  # module:attr, or file.py:attr beside this file",
    ]
    if reference is not None:
        _parameters(*_split(reference))  # it has to be there
        lines.append(
            f"    reference: {_scalar(_relative(reference, folder))}  # trusted: checked and timed beside"
        )
    else:
        lines.append(
            f"    # reference: torch:{name}  # name a trusted implementation: unchecked speed is no speed"
        )
    said = {5: target, 6: f"--ref {reference}"}
    for section, keyword in (("args", False), ("kwargs", True)):
        entries = [one for one in drafted if one.keyword == keyword]
        if entries:
            lines.append(f"    {section}:")
        for one in entries:
            lines.append(f"      {one.name}: {one.entry}")
            said[len(lines)] = f"--arg '{one.text}'"
    return Draft("\n".join(lines) + "\n" + _NEXT, said)


_NEXT = """\
    # What to add next (`kmrun list` shows the cases, `kmrun explain` what a mistake means):
    # matrix: {n: [1024, 4096], dtype: [bf16, fp32]}  # axes to cross; then write shape: [n, n], dtype: dtype
    # flops: 2 * n ** 3                    # work of one call, and the units that do it
    # peak: {units: matmul, in: dtype}
    # contract:                            # what CI holds it to
    #   - {min_speedup: 1.0}
    #   - {min_ceiling: {cpu: 0.2}, when: n >= 4096}
"""


def _split(target: str) -> tuple[str, str]:
    matched = _TARGET.fullmatch(target)
    if matched is None:
        hint = "a target is module:attr or file.py:attr"
        if target.endswith(".py"):
            hint = f"name a function in it: {target}:FUNCTION"
        elif re.search(r"\s", target) or not target.isascii():
            hint += ", without blanks, in ASCII"
        raise UsageError(f"'{target}' is no target", hint)
    return matched["place"], matched["attribute"]


@dataclass(frozen=True, slots=True)
class _Parameters:
    """The parameters of a function that have no default, and whether it takes any number of them (`*xs`)."""

    by_place: tuple[str, ...]
    by_keyword: tuple[str, ...]
    any_number: bool


def _parameters(place: str, attribute: str) -> _Parameters | None:
    """Return what a function has to be called with, read from the file without running it.

    None where there is no file to read, or where the name is not one of a function in it.

    Raises:
        InvalidInput: the file is missing or is no Python, or holds no such name.
    """
    if not place.endswith(".py"):
        return None
    try:
        tree = ast.parse(Path(place).read_bytes())
    except OSError as error:
        raise InvalidInput(f"{place}: {(error.strerror or str(error)).lower()}") from error
    except (SyntaxError, ValueError) as error:
        raise InvalidInput(f"{place}: no valid Python: {error}") from error
    functions = {node.name: node.args for node in _of_module(tree) if isinstance(node, _FUNCTIONS)}
    if attribute not in functions:
        known = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)} | {
            alias.asname or alias.name
            for node in ast.walk(tree)
            if isinstance(node, ast.ImportFrom | ast.Import)
            for alias in node.names
        }
        if attribute in known or "." in attribute:
            return None
        near = difflib.get_close_matches(attribute, functions, n=3)
        there = [name for name in functions if not name.startswith("_")]
        hint = f"did you mean {' or '.join(near)}?" if near else f"it has {some_of(there)}" if there else ""
        raise InvalidInput(f"{place} has no function '{attribute}'", hint)
    found = functions[attribute]
    by_place = [*found.posonlyargs, *found.args]
    keyword = zip(found.kwonlyargs, found.kw_defaults, strict=True)
    return _Parameters(
        by_place=tuple(one.arg for one in by_place[: len(by_place) - len(found.defaults)]),
        by_keyword=tuple(one.arg for one, default in keyword if default is None),
        any_number=found.vararg is not None and not by_place,
    )


_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def _of_module(node: ast.AST) -> Iterator[ast.AST]:
    """Yield what stands in a module itself, under `if` and `try` too, not what its functions and classes hold."""
    for child in ast.iter_child_nodes(node):
        yield child
        if not isinstance(child, (*_FUNCTIONS, ast.ClassDef)):
            yield from _of_module(child)


def _drafted(text: str, index: int, parameters: Sequence[str]) -> Drafted:
    named = _NAMED.fullmatch(text.strip())
    body = named["rest"].strip() if named else text.strip()
    if named is not None:
        return Drafted(named["name"], _entry(text, body), keyword=True, text=text)
    name = parameters[index] if index < len(parameters) else f"x{index}"
    return Drafted(_usable(name), _entry(text, body), keyword=False, text=text)


def _usable(name: str) -> str:
    """Return the name, changed where formulas need it for themselves (arguments are passed by place)."""
    return f"{name}_" if is_dtype(name) or name in FUNCTIONS or name in KEYWORDS else name


def _entry(text: str, body: str) -> str:
    if body.lower() in _WORDS:
        return f"{{init: value, value: {_WORDS[body.lower()]}}}"
    if _NUMBER.fullmatch(body):
        return f"{{init: value, value: {body}}}"
    matched = _TENSOR.fullmatch(body)
    if matched is None:
        raise UsageError(f"--arg '{text}' cannot be read", _HOW)
    dtype = canonical(matched["dtype"]) if matched["dtype"] else None
    if matched["dtype"] and dtype is None:
        hint = did_you_mean(matched["dtype"], [*DTYPES, *ALIASES]) or f"dtypes are {some_of([*DTYPES])}"
        raise UsageError(f"--arg '{text}': no dtype '{matched['dtype']}'", hint)
    extents = [part.strip() for part in matched["shape"].split(",") if part.strip()]
    parts = [f"init: {matched['init']}"]
    if matched["options"]:
        parts.append(matched["options"].strip())
    parts.append(f"shape: [{', '.join(extents)}]")
    if dtype is not None or matched["init"] not in ("randint", "permutation", "bernoulli"):
        parts.append(f"dtype: {dtype or 'fp32'}")
    return f"{{{', '.join(parts)}}}"


def _relative(target: str, folder: Path) -> str:
    """Return the target with its file relative to the folder of the suite."""
    place, attribute = _split(target)
    if not place.endswith(".py") or Path(place).is_absolute():
        return target
    return f"{Path(os.path.relpath(place, folder)).as_posix()}:{attribute}"


_NO_WORDS = frozenset(("true", "false", "null", "yes", "no", "on", "off"))


def _scalar(text: str) -> str:
    is_word = re.fullmatch(r"[\w./:-]+", text) and text.lower() not in _NO_WORDS
    return text if is_word else json.dumps(text, ensure_ascii=False)
