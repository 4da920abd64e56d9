"""The implementations of a case by key: `kernel`, `reference`, `versus:NAME`; and whose fault their failures are."""

from kmrun.core.case import Case, Implementation
from kmrun.core.measurement import FaultKind

KERNEL, REFERENCE, VERSUS = "kernel", "reference", "versus:"


def implementations(case: Case) -> list[Implementation]:
    """Return every implementation of a case."""
    reference = [case.reference.implementation] if case.reference else []
    return [case.implementation, *reference, *case.versus]


def implementation_of(case: Case, key: str) -> Implementation:
    """Return the implementation that a key stands for.

    Raises:
        StopIteration: none has that key.
    """
    if key == KERNEL:
        return case.implementation
    if key == REFERENCE and case.reference is not None:
        return case.reference.implementation
    return next(each for each in case.versus if key == VERSUS + each.name)


def fault_of(key: str) -> FaultKind:
    """Return whose fault it is when this implementation fails."""
    return "kernel" if key == KERNEL else "suite"


def name_of(key: str) -> str:
    """Return what sentences call it."""
    if key.startswith(VERSUS):
        return f"the versus entry {key.removeprefix(VERSUS)!r}"
    return f"the {key}"
