"""The difference of two results as a table, and as a document for scripts."""

import math
import textwrap
from collections.abc import Sequence
from typing import Any

from kmrun.core.difference import CaseDifference, Change, Difference
from kmrun.core.printable import printable
from kmrun.core.result import CaseResult
from kmrun.core.units import TIME, choose_unit, format_in
from kmrun.report.columns import WIDTH, Column
from kmrun.report.columns import render as columns_of
from kmrun.report.numbers import count, readable, signed_percent
from kmrun.report.words import case_labels, word_of


def interval(low: float | None, high: float | None) -> str:
    """Return `-0.4 to +2.1 %`, with `?` for an end that nothing bounds; `-` where neither is known."""
    if low is None and high is None:
        return "-"
    ends = ["?" if end is None else signed_percent(end).removesuffix(" %") for end in (low, high)]
    return f"{ends[0]} to {ends[1]} %"


def render(differences: Sequence[Difference], names: tuple[str, str]) -> str:
    """Return the text: for each suite what else changed, the table, and what became of verdicts."""
    return "\n".join("".join(f"{line}\n" for line in _suite(each, names)) for each in differences)


def document(differences: Sequence[Difference], names: tuple[str, str]) -> dict[str, Any]:
    """Return the plain values that `--json` prints."""
    return {"old": names[0], "new": names[1], "suites": [_record(each) for each in differences]}


def _suite(difference: Difference, names: tuple[str, str]) -> list[str]:
    old, new = (printable(name) for name in names)
    lines = [f"{printable(difference.suite)}   {old} -> {new}"]
    if not difference.same_device:
        lines.append("different devices: the times tell of both machines, not of the kernels alone")
    lines += [line for change in difference.changes for line in _change(change)]
    lines += ["", *_table(difference.cases), ""]
    lines += _summary(difference)
    return [line.rstrip() for line in lines]


def _change(change: Change) -> list[str]:
    told = f"{change.name}: {_value(change.old)} -> {_value(change.new)}"
    return textwrap.wrap(printable(told), WIDTH, subsequent_indent="  ")


def _value(value: Any) -> str:
    if value is None:
        return "not said"
    if isinstance(value, float):
        return readable(value)
    text = str(value)
    return text[:12] if len(text) == 64 and text.isalnum() else text


def _table(cases: Sequence[CaseDifference]) -> list[str]:
    known = [case.new or case.old for case in cases]
    shown = [case for case in known if case is not None]
    if not shown:
        return ["no case in either"]
    times = [case.median_ms for each in cases for case in (each.old, each.new) if case is not None]
    unit = choose_unit([time * 1e-3 for time in times if time is not None], TIME)

    def time(case: CaseResult | None) -> str:
        if case is None or case.median_ms is None:
            return "-"
        return f"{format_in(case.median_ms * 1e-3, unit)} {unit.symbol}"

    return columns_of(
        [
            Column("kernel", [printable(case.kernel) for case in shown], left=True),
            Column("case", [printable(label) for label in case_labels(shown)], left=True),
            Column("old", [time(each.old) for each in cases]),
            Column("new", [time(each.new) for each in cases]),
            Column("delta", [signed_percent(each.delta) for each in cases]),
            Column("interval", [interval(each.low, each.high) for each in cases]),
            Column("contract", [_verdicts(each) for each in cases], left=True),
        ]
    )


def _verdicts(case: CaseDifference) -> str:
    if case.old is None or case.new is None:
        known = case.new or case.old
        return f"only in the {'new' if case.old is None else 'old'}: {word_of(known)}" if known else ""
    before, after = word_of(case.old), word_of(case.new)
    return after if before == after else f"{before} -> {after}"


def _summary(difference: Difference) -> list[str]:
    both = [case for case in difference.cases if case.old is not None and case.new is not None]
    slower = sum(1 for case in both if case.low is not None and case.low > 0)
    faster = sum(1 for case in both if case.high is not None and case.high < 0)
    alone = len(difference.cases) - len(both)
    changed = sum(case.verdict_changed for case in both)
    told = [count(len(both), "case") + " in both", f"{slower} slower", f"{faster} faster"]
    told += [f"{count(changed, 'verdict')} changed"] if changed else []
    told += [f"{count(alone, 'case')} in one only"] if alone else []
    aside = "intervals are of the noise within each run: between two runs there is more (--against judges)"
    return [", ".join(told), aside]


def _record(difference: Difference) -> dict[str, Any]:
    return {
        "suite": difference.suite,
        "same_device": difference.same_device,
        "changes": [
            {"name": each.name, "old": _finite(each.old), "new": _finite(each.new)}
            for each in difference.changes
        ],
        "cases": [
            {
                "id": case.id,
                "old_ms": _figure(case.old, "median_ms"),
                "new_ms": _figure(case.new, "median_ms"),
                "delta": _finite(case.delta),
                "low": _finite(case.low),
                "high": _finite(case.high),
                "old_verdict": _figure(case.old, "verdict"),
                "new_verdict": _figure(case.new, "verdict"),
            }
            for case in difference.cases
        ],
    }


def _finite(value: Any) -> Any:
    """Return a value, or None for a number that JSON has no word for, as edited documents bring about."""
    if isinstance(value, list):
        return [_finite(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _figure(case: CaseResult | None, name: str) -> Any:
    return None if case is None else getattr(case, name)
