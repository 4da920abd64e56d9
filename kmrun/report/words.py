"""The words of a scorecard: verdicts, remarks, and what a case is called beside its neighbours."""

from collections.abc import Mapping, Sequence
from typing import Any

from kmrun.core.dtypes import is_dtype
from kmrun.core.result import CaseResult

WORDS = {
    "pass": "pass",
    "fail": "FAIL",
    "wrong": "WRONG",
    "error": "ERROR",
    "inconclusive": "INCONCLUSIVE",
    "skipped": "skipped",
}
"""How a verdict reads in a table; a failing case whose result is wrong is `WRONG`."""

LONGEST_NAME = 120
"""Characters of a name that are shown where one is named in passing; its own case tells all of it."""

LABELS = {
    "in cache": "the working set lives in the cache: %ceil is of the cache's own bandwidth",
    "ceiling beaten": "faster than the measured ceiling, which was measured too low: it counts as 100 %"
    " (`kmrun ceiling` measures a kept one again)",
    "far above ceiling": "far faster than the measured ceiling: a cache effect or a wrong formula, no %ceil",
    "unverified roof": "no card of the database matches this device: name one with --card",
    "slice": "a MIG slice has no published roof: only %ceil says how good this is",
    "time unverified": "the second clock did not confirm the first: calls too short, or a machine too busy",
    "untested on hardware": "no such card has run kmrun yet: believe these figures with care",
    "hot": "caches were not flushed between calls",
    "card slowed down": "samples taken while the card was too hot, or short of power, were dropped",
    "clock not locked": "the suite asks for a locked clock: --lock-clocks holds it, where the user may",
    "clock not known": "faster than the clock that was read allows: it is not the one that the kernel ran at",
    "clock not held": "the clock was locked, but load showed that the card does not hold it",
    "clock limited": "application clocks, or locked ones, kept the card below its highest: `nvidia-smi -q -d CLOCK`",
    "clock not verified": "the clock was locked, and no sensor told under load whether it held",
    "same code on both sides": "neither version's tree has this target: both sides ran the same file",
    "some calls slower": "the mean call became slower than allowed, the fast ones did not: no clause judges that",
    "unisolated": "the reference ran in the kernel's own process",
    "reference reachable": "a process of the same user could have read the reference",
}


def word_of(case: CaseResult) -> str:
    """Return how the verdict of a case reads."""
    return WORDS["wrong" if case.verdict == "fail" and _is_wrong(case) else case.verdict]


def _is_wrong(case: CaseResult) -> bool:
    """Say whether what was computed is wrong: its numbers, or already their shape, dtype or place."""
    promised = {"unlisted-device", *(clause.kind for clause in case.clauses)}
    found = {reason.code for reason in case.reasons if reason.outcome == "fail"}
    return case.correct is False or bool(found - promised)


def case_labels(cases: Sequence[CaseResult]) -> list[str]:
    """Return a short label for each case: of a kernel with several, only the axes that vary among them."""
    varying: dict[str, list[str]] = {}
    for kernel in {case.kernel for case in cases}:
        own = [case.axes for case in cases if case.kernel == kernel]
        names = list(dict.fromkeys(name for axes in own for name in axes))
        varying[kernel] = [
            name for name in names if len(own) == 1 or len({repr(axes.get(name)) for axes in own}) > 1
        ]
    return [axes_label(case.axes, varying[case.kernel]) for case in cases]


def short_names(cases: Sequence[CaseResult]) -> dict[str, str]:
    """Return `sdpa s=4096 bf16` for each case id: the kernel, and the axes that vary among its cases."""
    labels = case_labels(cases)
    return {case.id: f"{case.kernel} {label}".rstrip() for case, label in zip(cases, labels, strict=True)}


def brief(text: str, most: int = LONGEST_NAME) -> str:
    """Return a name that is longer than so many characters without its middle: both ends tell it apart."""
    if len(text) <= most:
        return text
    tail = most // 3
    return f"{text[: most - tail - 1]}\N{HORIZONTAL ELLIPSIS}{text[-tail:]}"


def axes_label(axes: Mapping[str, Any], names: Sequence[str]) -> str:
    """Return `s=4096 bf16 causal`: dtypes by value, switches by name where they are on."""
    words = [_axis(name, axes[name]) for name in names if name in axes]
    said = [word for word in words if word]
    return " ".join(said) or ", ".join(f"{name}={_plain(axes[name])}" for name in names if name in axes)


def _axis(name: str, value: Any) -> str:
    if isinstance(value, bool):
        return name if value else ""
    if isinstance(value, str) and is_dtype(value):
        return value
    return f"{name}={_plain(value)}"


def _plain(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list | tuple):
        return f"<{len(value)}>"
    return str(value)
