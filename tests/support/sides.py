"""Small cases for the tests of this room."""

from typing import Any

from kmrun.core.case import Argument, Case, Implementation, Reference


def make_case(*arguments: Argument, folder: str = "/", target: str = "torch:add", **changes: Any) -> Case:
    """Return a case whose reference is `target` too, unless `changes` say otherwise."""
    defaults: dict[str, Any] = {
        "id": "k[]",
        "kernel": "k",
        "axes": {},
        "shown_axes": (),
        "device": None,
        "folder": folder,
        "implementation": Implementation("kernel", target),
        "arguments": arguments,
        "outputs": None,
        "reference": Reference(Implementation("reference", target)),
    }
    return Case(**{**defaults, **changes})


def randn(name: str, *shape: int, dtype: str = "fp32", **changes: Any) -> Argument:
    """Return an argument of normal values."""
    return Argument(name, "randn", shape=shape, dtype=dtype, **changes)
