"""Two results of one suite side by side: how each case's time changed, and what else did.

Only what the two documents say is compared: their intervals are of noise within a run, and the machine may
have been another one between the runs. A difference is a hint where to look; the gate is what judges.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from kmrun.core.result import CaseResult, Result


@dataclass(frozen=True, slots=True)
class CaseDifference:
    """One case in both results, or in one of them: the other is None then.

    `delta` is new time over old time, less one; `low` and `high` are its bounds: the intervals of both medians
    (99 % each) at their worst together, which is at least 98 %. None where a time is missing.
    """

    id: str
    old: CaseResult | None
    new: CaseResult | None
    delta: float | None = None
    low: float | None = None
    high: float | None = None

    @property
    def verdict_changed(self) -> bool:
        """Whether both have a verdict and it is another one."""
        return self.old is not None and self.new is not None and self.old.verdict != self.new.verdict


@dataclass(frozen=True, slots=True)
class Change:
    """Something of the surroundings that is not the same; None is what one of the two does not say."""

    name: str
    old: Any
    new: Any


@dataclass(frozen=True, slots=True)
class Difference:
    """Two results of one suite."""

    suite: str
    cases: tuple[CaseDifference, ...]
    changes: tuple[Change, ...]
    same_device: bool
    """False: the times are of two machines, and tell of the kernels only together with that."""


def compare(old: Result, new: Result) -> Difference:
    """Return what differs: cases in the order of the new result, then those that only the old one has."""
    before = {case.id: case for case in old.cases}
    after = {case.id: case for case in new.cases}
    pairs: list[tuple[CaseResult | None, CaseResult | None]] = [
        (before.get(case.id), case) for case in new.cases
    ]
    pairs += [(case, None) for case in old.cases if case.id not in after]
    changes = tuple(_changes(old, new))
    device = {"device", "card", "threads"}
    return Difference(
        new.suite.name,
        tuple(_case(*pair) for pair in pairs),
        changes,
        not any(change.name in device for change in changes),
    )


def _case(old: CaseResult | None, new: CaseResult | None) -> CaseDifference:
    known = new or old
    if known is None:
        raise ValueError("a case that neither result has")
    if old is None or new is None or not old.median_ms or not new.median_ms:
        return CaseDifference(known.id, old, new)
    low = high = None
    if new.ci_low_ms is not None and old.ci_high_ms:
        low = new.ci_low_ms / old.ci_high_ms - 1
    if new.ci_high_ms is not None and old.ci_low_ms:
        high = new.ci_high_ms / old.ci_low_ms - 1
    return CaseDifference(known.id, old, new, new.median_ms / old.median_ms - 1, low, high)


def _changes(old: Result, new: Result) -> Iterator[Change]:
    for name, before, after in (
        ("device", old.device.name, new.device.name),
        ("card", old.device.card, new.device.card),
        ("threads", old.device.threads, new.device.threads),
        ("suite's text", old.suite.digest, new.suite.digest),
    ):
        if before != after:
            yield Change(name, before, after)
    flat_old, flat_new = _flat(old.environment), _flat(new.environment)
    for name in dict.fromkeys([*flat_new, *flat_old]):
        if flat_old.get(name) != flat_new.get(name):
            yield Change(name, flat_old.get(name), flat_new.get(name))
    yield from _ceilings(old, new)


def _flat(environment: Mapping[str, Any], under: str = "") -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in environment.items():
        if isinstance(value, Mapping):
            found |= _flat(value, f"{under}{key}.")
        else:
            found[f"{under}{key}"] = value
    return found


def _ceilings(old: Result, new: Result) -> Iterator[Change]:
    """Yield the measured ceilings that moved by 5 % or more: a slower machine day, or another machine."""
    for name, before, after in (
        ("memory ceiling GB/s", _bandwidth(old), _bandwidth(new)),
        *(
            (f"{dtype} ceiling TFLOP/s", _rates(old).get(dtype), _rates(new).get(dtype))
            for dtype in dict.fromkeys([*_rates(new), *_rates(old)])
        ),
    ):
        if before and after and abs(after / before - 1) >= 0.05:
            yield Change(name, before, after)


def _bandwidth(result: Result) -> float | None:
    return max((seen.gb_per_s for seen in result.ceilings.bandwidths), default=None)


def _rates(result: Result) -> dict[str, float]:
    return {rate.dtype: rate.tflop_per_s for rate in result.ceilings.matmuls}
