"""The one name space of a kernel: axes, let names, arguments and outputs."""

from collections.abc import Iterator
from dataclasses import dataclass

from kmrun.core.case import Path
from kmrun.core.dtypes import is_dtype
from kmrun.core.formula import FUNCTIONS, KEYWORDS
from kmrun.plan.report import NAME_TAKEN, RESERVED_NAME, Report
from kmrun.schema.suite import Kernel

DEVICE = "device"
"""A row's key that restricts it; no axis."""


@dataclass(frozen=True, slots=True)
class Names:
    """The names of a kernel. `axes` in id order: the rows' keys, then the matrix's, then the ragged ones.

    `opaque` are arguments whose form is known only when `init: call` has run. `reserved` are words of the
    formulas themselves, `doubled` names with two meanings; with either nothing can be evaluated.
    """

    axes: tuple[str, ...]
    lets: tuple[str, ...]
    arguments: tuple[str, ...]
    outputs: tuple[str, ...]
    opaque: frozenset[str]
    reserved: frozenset[str] = frozenset()
    doubled: frozenset[str] = frozenset()

    @property
    def unusable(self) -> frozenset[str]:
        """Names that were told as wrong; what was meant to have them may now be missed elsewhere."""
        return self.reserved | self.doubled


def collect(kernel: Kernel, path: Path, report: Report) -> Names:
    """Return the names of a kernel; report those that are taken twice or cannot be used."""
    taken: dict[str, str] = {}
    reserved: set[str] = set()
    doubled: set[str] = set()
    for name, kind, place in _definitions(kernel, path):
        fault = _reserved(name, kind)
        if fault and name not in reserved:
            hint = "restrict rows of 'cases' with it" if name == DEVICE else "rename it"
            report.error(RESERVED_NAME, place, f"'{name}' {fault}", hint, on_key=True)
            reserved.add(name)
        elif name in taken and not fault and not (kind == "axis" and taken[name] == "axis"):
            doubled.add(name)
            hint = "axes, let names, arguments and outputs of a kernel share one name space"
            if kind == "an output" and name in kernel.mutates:
                hint = "what 'mutates' names is an output already: leave it out here"
            report.error(
                NAME_TAKEN,
                place,
                f"'{name}' is the name of {taken[name]} already".replace("of axis", "of an axis"),
                hint,
                on_key=True,
            )
        taken.setdefault(name, kind)
    rows = [key for row in kernel.cases or () for key in row if key not in kernel.matrix]
    axes = dict.fromkeys((*rows, *kernel.matrix, *kernel.ragged))
    axes.pop(DEVICE, None)
    arguments = {**kernel.args, **kernel.kwargs}
    return Names(
        axes=tuple(axes),
        lets=tuple(kernel.let),
        arguments=tuple(arguments),
        outputs=tuple(kernel.outputs or ()),
        opaque=frozenset(name for name, builder in arguments.items() if builder.init == "call"),
        reserved=frozenset(reserved),
        doubled=frozenset(doubled),
    )


def _definitions(kernel: Kernel, path: Path) -> Iterator[tuple[str, str, Path]]:
    """Yield (name, what it names, where its key stands) in document order of the sections."""
    for name in kernel.matrix:
        yield name, "axis", (*path, "matrix", name)
    for index, row in enumerate(kernel.cases or ()):
        for name in row:
            if name != DEVICE:
                yield name, "axis", (*path, "cases", index, name)
    for name in kernel.ragged:
        yield name, "a ragged axis", (*path, "ragged", name)
    for name in kernel.let:
        yield name, "a let name", (*path, "let", name)
    for name in kernel.args:
        yield name, "an argument", (*path, "args", name)
    for name in kernel.kwargs:
        yield name, "an argument", (*path, "kwargs", name)
    for name in kernel.outputs or ():
        yield name, "an output", (*path, "outputs", name)


def _reserved(name: str, kind: str) -> str:
    """Return why formulas could not mean this name, or an empty string."""
    if kind in ("an argument", "an output"):
        # `min`, `dtype` or `float32` may be what the kernel's own parameter is called.
        return ""
    noun = "an axis" if kind.endswith("axis") else kind
    if name == DEVICE:
        return f"cannot be {noun}: it is what restricts a row to a device"
    if name in FUNCTIONS:
        return f"cannot be {noun}: it is a function of formulas"
    if name in KEYWORDS:
        return f"cannot be {noun}: it is a keyword of formulas"
    if is_dtype(name):
        return f"cannot be {noun}: it is a dtype"
    return ""
