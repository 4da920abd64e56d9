"""Floors (`min_...` clauses) that a result shows to be lower than they need be, and how high they may be set.

The new floor is the lowest bound that any case of the clause was shown to keep, less a head-room for the noise
between sessions that one run cannot see, rounded down to two digits. A floor is raised, never lowered.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from kmrun.core.case import Case, Path
from kmrun.core.clause import bound_for
from kmrun.core.result import CaseResult, ClauseEntry

HEADROOM = 0.10
"""Share of what was shown that is left to the noise of other days."""


@dataclass(frozen=True, slots=True)
class Floor:
    """One number of a suite: the clause's place, its kind, the key of its map (None: a plain number)."""

    place: Path
    kind: str
    key: str | None

    @property
    def path(self) -> Path:
        """Where the number itself stands in the document."""
        return (*self.place, self.kind) if self.key is None else (*self.place, self.kind, self.key)


@dataclass(frozen=True, slots=True)
class Shown:
    """What one case of a result showed for a floor; `low` is None where it showed nothing, and `why` says so."""

    floor: Floor
    case_id: str
    bound: float
    low: float | None
    why: str = ""


@dataclass(frozen=True, slots=True)
class Raised:
    """A floor that may be raised from `old` to `new`; `case_id` is the case that came nearest."""

    floor: Floor
    old: float
    new: float
    case_id: str


def key_for(bounds: Iterable[str], kind: str, card: str | None) -> str | None:
    """Return the key of a bound map that speaks of this device, None where none does; see `clause.bound_for`."""
    names = list(bounds)
    # Each key stands for its own place, so that the rule of precedence is written once.
    place = bound_for({name: float(at) for at, name in enumerate(names)}, kind, card)
    return None if place is None else names[int(place)]


def shown(cases: Sequence[Case], entries: Sequence[CaseResult], kind: str, card: str | None) -> list[Shown]:
    """Return what a result shows for every floor of the planned cases that speaks of its device."""
    known = {entry.id: entry for entry in entries}
    found = []
    for case in cases:
        applying = [clause for clause in case.clauses if key_for(clause.bounds, kind, card) is not None]
        entry = known.get(case.id)
        judged = _judged(entry, [clause.kind for clause in applying])
        for at, clause in enumerate(applying):
            if not clause.kind.startswith("min_"):
                continue
            key = key_for(clause.bounds, kind, card)
            floor = Floor(clause.place, clause.kind, None if key == "*" else key)
            low, why = _low(entry, judged[at] if judged else None, clause.xfail)
            found.append(Shown(floor, case.id, clause.bounds[key or "*"], low, why))
    return found


def _judged(entry: CaseResult | None, kinds: list[str]) -> list[ClauseEntry]:
    """Return the entries of the suite's clauses, in its order; empty where they are not those of this suite."""
    own = [] if entry is None else [clause for clause in entry.clauses if clause.kind != "correct"]
    own = own[: len(kinds)]  # what follows was assumed, not written
    return own if [clause.kind for clause in own] == kinds else []


def _low(entry: CaseResult | None, judged: ClauseEntry | None, xfail: str | None) -> tuple[float | None, str]:
    if entry is None:
        return None, "was not measured"
    if xfail is not None:
        return None, "is expected to fail"
    if entry.verdict != "pass":
        return None, f"is {entry.verdict}"
    if judged is None or judged.verdict != "pass" or judged.low is None:
        return None, "was not judged"
    return judged.low, ""


def raised(groups: Iterable[Sequence[Shown]], headroom: float = HEADROOM) -> list[Raised]:
    """Return the floors to raise; each group is all that was shown for one number of the suite.

    A number that any of its cases says nothing about stays: it would be promised unseen.
    """
    found = []
    for group in groups:
        if not group or any(seen.low is None for seen in group):
            continue
        nearest = min(group, key=lambda seen: seen.low or 0.0)
        new = rounded_down((nearest.low or 0.0) * (1 - headroom))
        if new > nearest.bound:
            found.append(Raised(nearest.floor, nearest.bound, new, nearest.case_id))
    return found


def could_rise(entries: Iterable[CaseResult], headroom: float = HEADROOM) -> int:
    """Return how many floors of a result `raised` would raise, told apart by where they are written."""
    lows: dict[tuple[str | None, int | None, str], list[tuple[float, float | None]]] = {}
    for entry in entries:
        for clause in entry.clauses:
            if clause.kind.startswith("min_") and clause.bound is not None:
                low = clause.low if entry.verdict == "pass" and clause.verdict == "pass" else None
                lows.setdefault((clause.file, clause.line, clause.kind), []).append((clause.bound, low))
    return sum(
        all(low is not None and rounded_down(low * (1 - headroom)) > bound for bound, low in seen)
        for seen in lows.values()
    )


def rounded_down(value: float) -> float:
    """Return the largest number of two significant digits that is not above a positive value."""
    if value <= 0:
        return 0.0
    unit = 10.0 ** (math.floor(math.log10(value)) - 1)
    digits = math.floor(value / unit + 1e-9)
    return float(f"{digits * unit:.2g}")
