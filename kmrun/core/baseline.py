"""A baseline, version 1: how fast the cases of a suite were on one device, measured against yardsticks.

The classes are the document, key by key; `schema/baseline.py` is the same document as a schema. A *session* is one
fresh process: its times lie apart from another one's by where memory happened to lie, which no number of samples
within it can average out. So a baseline keeps the sessions themselves, and their spread decides what can be told.
"""

import hashlib
import json
import math
import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from kmrun.core.case import Case
from kmrun.core.measurement import RunDevice
from kmrun.core.plain import to_plain
from kmrun.core.statistics import median, median_interval
from kmrun.core.yardstick import Session

VERSION = 1
"""The major of the baseline document."""

TELLING = ("torch", "driver", "cuda", "hip", "threads", "openmp_spin_count", "glibc_tunables")
"""What of the environment makes other times of the same code."""

_DEFINES = (
    *("kernel", "axes", "implementation", "arguments", "outputs", "mutates", "mode", "grad", "seed"),
    "device",
)
_CONSISTENT = 1.4826
"""Times the median absolute deviation is the standard deviation of a normal distribution."""


@dataclass(frozen=True, slots=True)
class BaselineCase:
    """One case: `digest` of its definition, the median of its sessions with its interval, and all of them.

    `spread` is the standard deviation between sessions, as a fraction, estimated from the median absolute
    deviation of the log ratios over the yardstick of the case's own bound.
    """

    id: str
    digest: str
    saved: str
    """UTC, ISO 8601."""
    bound: str | None
    median_ms: float
    ci_low_ms: float | None
    ci_high_ms: float | None
    spread: float
    sessions: tuple[Session, ...]


@dataclass(frozen=True, slots=True)
class BaselineDevice:
    """What the times are of; `key` is part of the file's name."""

    key: str
    kind: str
    name: str
    card: str | None
    threads: int | None


@dataclass(frozen=True, slots=True)
class Baseline:
    """The document of one suite on one device."""

    kmrun_baseline: int
    suite: str
    device: BaselineDevice
    environment: Mapping[str, Any] = field(default_factory=dict)
    cases: tuple[BaselineCase, ...] = ()

    def case(self, case_id: str) -> BaselineCase | None:
        """Return a case by its id."""
        return next((case for case in self.cases if case.id == case_id), None)


def device_key(device: RunDevice, card: str | None) -> str:
    """Return what the device is called in a file's name: `cpu-<model>-<n>c`, a card's id, or the driver's name."""
    if device.kind == "cpu":
        return f"cpu-{slug(device.name)}-{device.threads or device.cores or 0}c"
    return card or slug(device.name)


def slug(name: str) -> str:
    """Return a name in lower-case ASCII letters, digits and dashes; trade marks and fill words are left out."""
    plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode("ascii").lower()
    plain = re.sub(r"\((r|tm|c)\)|\b(cpu|processor)\b|@.*", " ", plain)
    return re.sub(r"[^a-z0-9]+", "-", plain).strip("-") or "unknown"


def baseline_device(device: RunDevice, card: str | None) -> BaselineDevice:
    """Return the document's entry of the device that ran."""
    return BaselineDevice(device_key(device, card), device.kind, device.name, card, device.threads)


def other_environment(there: Mapping[str, Any], here: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return what makes other times in two environments: `("torch 2.13.0", "2.14.0")`."""
    return [
        (f"{name} {_said(there.get(name))}", _said(here.get(name)))
        for name in TELLING
        if there.get(name) != here.get(name)
    ]


def _said(value: Any) -> str:
    return "none" if value is None else str(value)


def definition_digest(case: Case, l2: str, root: str) -> str:
    """Return the SHA-256 of what is timed: kernel, arguments, mode, cold or hot caches.

    `root` is the tree that the suite lies in, which stands in the values of its environment.

    What is promised, checked or compared may change without making another case of it.
    """
    plain = {name: to_plain(getattr(case, name)) for name in _DEFINES}
    plain |= {"l2": l2, "clock": case.timing.clock}
    # Tree and folder are others in every checkout.
    implementation = plain["implementation"]
    implementation["env"] = _with_replaced(implementation["env"], root, "{root}")
    plain = _with_replaced(plain, case.folder, ".")
    return hashlib.sha256(json.dumps(plain, sort_keys=True, default=str).encode()).hexdigest()


def _with_replaced(plain: Any, old: str, new: str) -> Any:
    """Return plain values with a part of all texts replaced; keys stay."""
    if isinstance(plain, str):
        return plain.replace(old, new)
    if isinstance(plain, dict):
        return {key: _with_replaced(value, old, new) for key, value in plain.items()}
    return [_with_replaced(value, old, new) for value in plain] if isinstance(plain, list) else plain


def case_of(
    case_id: str, digest: str, bound: str | None, sessions: Sequence[Session], saved: str
) -> BaselineCase:
    """Return the entry of a case.

    Raises:
        ValueError: there are no sessions.
    """
    times = median_interval([session.kernel_ms for session in sessions], 0.95)
    return BaselineCase(
        id=case_id,
        digest=digest,
        saved=saved,
        bound=bound,
        median_ms=times.value,
        ci_low_ms=times.low if math.isfinite(times.low) else None,
        ci_high_ms=times.high if math.isfinite(times.high) else None,
        spread=spread([session.over("memory" if bound == "mem" else "compute") for session in sessions]),
        sessions=tuple(sessions),
    )


def spread(logs: Sequence[float]) -> float:
    """Return the standard deviation between sessions as a fraction; 0 for a single one."""
    middle = median(logs)
    return math.expm1(_CONSISTENT * median([abs(log - middle) for log in logs]))
