"""The implementations of a case by key: `kernel`, `reference`, `versus:NAME`; and whose fault their failures are."""

from kmrun.core.case import Case, Implementation
from kmrun.core.measurement import FaultKind

KERNEL, REFERENCE, VERSUS = "kernel", "reference", "versus:"


def implementations(case: Case) -> list[Implementation]:
    """Return every implementation of a case."""
    reference = [case.reference.implementation] if case.reference else []
    return [case.implementation, *reference, *case.versus]


def have_setup(case: Case) -> bool:
    """Whether any of them is set up: state that it makes cannot be copied."""
    return any(each.setup is not None for each in implementations(case))


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


def at_work(case: Case, op: str, key: str | None) -> str:
    """Return what sentences call the user's code that runs in an operation of a side.

    Args:
        case: says whether there is a `setup`, which runs before the first call.
        op: the operation.
        key: the implementation that it names, if it names one.
    """
    if op == "draw":
        # In a backward mode the reference's forward pass gives the shapes of the incoming gradients.
        return "what builds the arguments" + ("" if case.mode == "forward" else ", or the reference")
    if op == "compare":
        return "a check of the suite"
    name = name_of(key or (REFERENCE if op in ("expect", "self_test") else KERNEL))
    own = KERNEL if op in ("load", "call", "prepare") and key in (None, KERNEL) else key
    has_setup = own is not None and implementation_of(case, own).setup is not None
    return f"{name} or its `setup`" if has_setup else name
