"""What a suite's models cannot see: two kernels of one name, a promise with nothing to measure it against."""

from collections.abc import Iterator, Sequence

from kmrun.core.problem import Problem
from kmrun.schema.suite import Kernel

DUPLICATE_KERNEL, NOTHING_TO_COMPARE = "K311", "K313"


def problems(kernels: Sequence[tuple[int, Kernel]]) -> list[Problem]:
    """Return the problems of kernels that are valid by themselves; each comes with its index in the file."""
    found = list(_duplicates(kernels))
    for index, kernel in kernels:
        found += _unmeasurable(index, kernel)
    return found


def _duplicates(kernels: Sequence[tuple[int, Kernel]]) -> Iterator[Problem]:
    first: dict[str, int] = {}
    for index, kernel in kernels:
        if kernel.name in first:
            message = f"a second kernel named '{kernel.name}'"
            hint = f"the first is kernel {first[kernel.name] + 1} of the file"
            yield Problem(DUPLICATE_KERNEL, ("kernels", index, "name"), message, hint)
        else:
            first[kernel.name] = index


def _unmeasurable(index: int, kernel: Kernel) -> Iterator[Problem]:
    if kernel.reference is not None or kernel.versus:
        return
    for position, clause in enumerate(kernel.contract):
        if clause.kind == "min_speedup":
            path = ("kernels", index, "contract", position, clause.kind)
            message = "min_speedup needs something to be faster than"
            hint = "add `reference: module:attribute` or `versus: {name: module:attribute}`"
            yield Problem(NOTHING_TO_COMPARE, path, message, hint, on_key=True)
