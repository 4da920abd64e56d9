"""Why a case cannot run on a device, known before it is tried. No torch."""

import importlib.util
from collections.abc import Callable

from kmrun.core.case import Case
from kmrun.core.measurement import Finding, RunDevice
from kmrun.core.units import BYTES, format_quantity
from kmrun.measure.side import Arenas


def why_skipped(
    case: Case, device: RunDevice, free_bytes: Callable[[], int], arenas: Arenas | None = None
) -> Finding | None:
    """Return why a case is skipped, None when it is not.

    Args:
        case: the case.
        device: what it would run on.
        free_bytes: is asked for what is free there.
        arenas: are emptied where that is too little: what waits there for the next copies is more urgent elsewhere.
    """
    requires = case.requires
    if requires is not None and requires.module and importlib.util.find_spec(requires.module) is None:
        sentence = f"skipped: needs the module {requires.module!r}, which is not installed"
        return Finding("module_missing", sentence, "environment", "skipped")
    if requires is not None and requires.min_cc:
        have = device.compute_capability
        if device.kind != "cuda" or have is None or _version(have) < _version(requires.min_cc):
            here = f"compute capability {have}" if have else device.name
            sentence = f"skipped: needs compute capability {requires.min_cc}, this is {here}"
            return Finding("device_too_old", sentence, "environment", "skipped")
    if device.kind == "cpu" and any(each.graph for each in (case.implementation, *case.versus)):
        return Finding("graph_needs_gpu", "skipped: `graph: true` needs a GPU", "environment", "skipped")
    needed, free = sum(case.needed_bytes.values()), free_bytes()
    if needed > free and arenas is not None:
        arenas.empty()
        free = free_bytes()
    if needed > free:
        sentence = f"skipped: needs {format_quantity(needed, BYTES)} of {format_quantity(free, BYTES)}"
        return Finding("memory", sentence, "environment", "skipped")
    return None


def _version(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(".") if part.isdigit())
