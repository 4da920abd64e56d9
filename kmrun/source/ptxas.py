"""Reads what `nvcc -Xptxas -v` prints: registers, shared memory, barriers and spills of every kernel."""

import re
from dataclasses import dataclass

from kmrun.core.printable import printable

# Counts have at most nine digits: no hardware has more, and Python does not convert text of thousands of them.
_ENTRY = re.compile(r"Compiling entry function '(?P<name>[^']+)' for '(?P<arch>[^']+)'")
_USED = re.compile(r"Used (?P<registers>\d{1,9}) registers(?P<rest>[^\n]*)")
_SHARED = re.compile(r"\b(\d{1,9})(?:\+(\d{1,9}))? bytes smem")
_BARRIERS = re.compile(r"used (\d{1,9}) barriers")
_SPILLS = re.compile(r"\b(\d{1,9}) bytes spill stores, (\d{1,9}) bytes spill loads")
_LENGTH = re.compile(r"L?(\d{1,5})(?!\d)")
_ARGUMENT = re.compile(r"L[a-z](n?\d{1,19})E|([a-z])")
_TYPES = {
    "b": "bool",
    "c": "char",
    "a": "signed char",
    "h": "unsigned char",
    "s": "short",
    "t": "unsigned short",
    "i": "int",
    "j": "unsigned",
    "l": "long",
    "m": "unsigned long",
    "x": "long long",
    "y": "unsigned long long",
    "f": "float",
    "d": "double",
}
"""Built-in types by their letter in a mangled name."""


@dataclass(frozen=True, slots=True)
class CompiledKernel:
    """One kernel as compiled for one architecture. Shared memory is the static part, bytes per block.

    `barriers` is None where ptxas did not say (before CUDA 12).
    """

    mangled: str
    cc: str
    registers: int
    static_smem_bytes: int
    barriers: int | None
    spill_bytes: int

    @property
    def name(self) -> str:
        """The function's own name, with its namespaces and simple template arguments, without parameters."""
        return demangled(self.mangled)


def read_kernels(text: str) -> list[CompiledKernel]:
    """Return every kernel of the output, in its order; empty when there is none in it."""
    found: list[CompiledKernel] = []
    entries = list(_ENTRY.finditer(text))
    for index, entry in enumerate(entries):
        end = entries[index + 1].start() if index + 1 < len(entries) else len(text)
        part = text[entry.end() : end]
        used = _USED.search(part)
        if used is None:
            continue
        shared, barriers, spills = (
            pattern.search(where)
            for pattern, where in ((_SHARED, used["rest"]), (_BARRIERS, used["rest"]), (_SPILLS, part))
        )
        found.append(
            CompiledKernel(
                mangled=printable(entry["name"]),
                cc=printable(entry["arch"]),
                registers=int(used["registers"]),
                static_smem_bytes=sum(int(group or 0) for group in shared.groups()) if shared else 0,
                barriers=int(barriers[1]) if barriers else None,
                spill_bytes=sum(map(int, spills.groups())) if spills else 0,
            )
        )
    return found


def demangled(name: str) -> str:
    """Return the readable part of a mangled name: `_ZN2my3addILi4EfEvPf` is `my::add<4, float>`.

    Template arguments are shown where all are numbers and built-in types; names of C stay as they are.
    """
    if not name.startswith("_Z"):
        return name
    rest = name[2:].removeprefix("N")
    parts = []
    while match := _LENGTH.match(rest):
        end = match.end() + int(match[1])
        part, rest = rest[match.end() : end], rest[end:]
        if not part.startswith("_GLOBAL__N_"):
            parts.append(part)
        if parts and rest.startswith("I"):
            arguments, rest = _template_arguments(rest)
            parts[-1] += arguments
        if not name.startswith("_ZN"):
            break
    return "::".join(parts) or name


def _template_arguments(rest: str) -> tuple[str, str]:
    """Return the arguments that a mangled name goes on with, and what comes after; none where one is not simple."""
    at, found = 1, []
    while match := _ARGUMENT.match(rest, at):
        value, letter = match.groups()
        if letter is not None and letter not in _TYPES:
            break
        found.append(_TYPES[letter] if letter else value.replace("n", "-"))
        at = match.end()
    complete = bool(found) and rest[at : at + 1] == "E"
    return (f"<{', '.join(found)}>", rest[at + 1 :]) if complete else ("", rest)
