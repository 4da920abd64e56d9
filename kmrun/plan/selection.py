"""Which cases a run takes: by device, by `-k`, by `--tag`."""

import fnmatch
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Literal

from kmrun.core.case import Case
from kmrun.core.formula_error import nearest
from kmrun.errors import UsageError

DeviceKind = Literal["cpu", "cuda", "rocm"]


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A case that a run does not take, and why; `is_device` when its row is for another device."""

    case: Case
    reason: str
    is_device: bool = False


@dataclass(frozen=True, slots=True)
class Selection:
    """The cases to run, in order, and the others."""

    cases: tuple[Case, ...]
    left_out: tuple[LeftOut, ...] = ()


def select(
    cases: Sequence[Case],
    *,
    kind: DeviceKind | None = None,
    card: str | None = None,
    pattern: str | None = None,
    tags: Collection[str] = (),
) -> Selection:
    """Select cases.

    Args:
        cases: of all suites of the run.
        kind: what the device is; None leaves the device open.
        card: the id of its card in the database, None when it is not there.
        pattern: an exact id, else a glob (brackets are literal), else a part of an id.
        tags: a case needs one of them; empty: any case.

    Raises:
        UsageError: the pattern or a tag fits no case of any device.
    """
    wanted = matching(cases, pattern) if pattern is not None else set(range(len(cases)))
    _check_tags(cases, tags)
    chosen: list[Case] = []
    left_out: list[LeftOut] = []
    for index, case in enumerate(cases):
        if index not in wanted:
            left_out.append(LeftOut(case, f"does not match -k {pattern}"))
        elif tags and not set(tags) & set(case.tags):
            left_out.append(LeftOut(case, f"has no tag {' or '.join(tags)}"))
        elif not runs_on(case, kind, card):
            left_out.append(LeftOut(case, f"for {case.device}", is_device=True))
        else:
            chosen.append(case)
    return Selection(tuple(chosen), tuple(left_out))


def runs_on(case: Case, kind: DeviceKind | None, card: str | None) -> bool:
    """Return whether the row's own `device` allows this device."""
    if case.device is None or kind is None:
        return True
    if case.device == "gpu":
        return kind != "cpu"
    if case.device in ("cpu", "cuda", "rocm"):
        return case.device == kind
    return kind != "cpu" and case.device == card


def matching(cases: Sequence[Case], pattern: str) -> set[int]:
    """Return the indices of the cases that `-k` means.

    Raises:
        UsageError: there is none, or the pattern is empty, as a variable that is not set leaves it.
    """
    if not pattern.strip():
        raise UsageError("-k names no case: it is empty", "`kmrun list` shows the cases")
    exact = {index for index, case in enumerate(cases) if case.id == pattern}
    if exact:
        return exact
    if "*" in pattern or "?" in pattern:
        glob = pattern.replace("[", "[[]")
        found = {index for index, case in enumerate(cases) if fnmatch.fnmatchcase(case.id, glob)}
    else:
        found = {index for index, case in enumerate(cases) if pattern in case.id}
    if not found:
        raise UsageError(f"no case matches -k '{pattern}'", _suggestion(cases, pattern))
    return found


def _suggestion(cases: Sequence[Case], pattern: str) -> str:
    if not cases:
        return "the suite has no case"
    names = dict.fromkeys(case.kernel for case in cases)
    near = nearest(pattern.partition("[")[0].strip("*"), names)
    if near is not None and near != pattern:
        of_kernel = [case.id for case in cases if case.kernel == near]
        best = nearest(pattern, of_kernel) or of_kernel[0]
        return f"did you mean '{best if '[' in pattern else near}'?"
    shown = ", ".join(list(names)[:8])
    return f"kernels here: {shown}{', ...' if len(names) > 8 else ''}; `kmrun list` shows all cases"


def _check_tags(cases: Sequence[Case], tags: Collection[str]) -> None:
    known = dict.fromkeys(tag for case in cases for tag in case.tags)
    for tag in tags:
        if tag not in known:
            near = nearest(tag, known)
            hint = f"did you mean '{near}'?" if near else f"tags here: {', '.join(known) or 'none'}"
            raise UsageError(f"no case has the tag '{tag}'", hint)
