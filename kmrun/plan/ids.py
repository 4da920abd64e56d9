"""Case ids: the stable name of a point, as printed, selected and stored."""

import hashlib
import json
import re
from collections.abc import Mapping, Sequence

from kmrun.core.formula import Value

_PLAIN = re.compile(r"[^\s,=\[\]\"]+")
_OTHER = re.compile(r"true|false|null|[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)(e[-+]?[0-9]+)?|[0-9]+:[0-9a-f]{8}")
"""Texts that would read as a value of another kind: in quotes, so that both may stand in one axis."""


def case_id(kernel: str, shown_axes: Sequence[str], axes: Mapping[str, Value]) -> str:
    """Return `sdpa[b=1,dtype=bf16,causal=false]`; the bare name for a kernel without axes."""
    if not shown_axes:
        return kernel
    return f"{kernel}[{','.join(f'{name}={shown_value(axes[name])}' for name in shown_axes)}]"


def shown_value(value: Value) -> str:
    """Return an axis value as an id shows it; a list as its length and a digest: `8:1f0c22ab`."""
    if isinstance(value, bool) or value is None:
        return json.dumps(value)
    if isinstance(value, tuple):
        digest = hashlib.sha256(json.dumps(value).encode()).hexdigest()
        return f"{len(value)}:{digest[:8]}"
    if isinstance(value, str) and (not _PLAIN.fullmatch(value) or _OTHER.fullmatch(value)):
        return json.dumps(value)
    return str(value)
