"""Reads what `nvcc -Xptxas -v` prints: registers, shared memory, barriers and spills of every kernel."""

import re
from dataclasses import dataclass

_ENTRY = re.compile(r"Compiling entry function '(?P<name>[^']+)' for '(?P<arch>[^']+)'")
_USED = re.compile(r"Used (?P<registers>\d+) registers(?P<rest>[^\n]*)")
_SHARED = re.compile(r"(\d+)(?:\+(\d+))? bytes smem")
_BARRIERS = re.compile(r"used (\d+) barriers")
_SPILLS = re.compile(r"(\d+) bytes spill stores, (\d+) bytes spill loads")


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
        """The function's own name, without its namespace's and parameters' code."""
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
                mangled=entry["name"],
                cc=entry["arch"],
                registers=int(used["registers"]),
                static_smem_bytes=sum(int(group or 0) for group in shared.groups()) if shared else 0,
                barriers=int(barriers[1]) if barriers else None,
                spill_bytes=sum(map(int, spills.groups())) if spills else 0,
            )
        )
    return found


def demangled(name: str) -> str:
    """Return the readable part of a mangled name: `_ZN2my3addEPf` is `my::add`; others as they are."""
    if not name.startswith("_Z"):
        return name
    rest = name[2:].removeprefix("N")
    parts = []
    while match := re.match(r"(?:L?)(\d+)", rest):
        length = int(match[1])
        start = match.end()
        parts.append(rest[start : start + length])
        rest = rest[start + length :]
        if not name.startswith("_ZN"):
            break
    return "::".join(part for part in parts if not part.startswith("_GLOBAL__N_")) or name
