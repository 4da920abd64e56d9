"""Several results of one suite beside each other: devices, commits or days as columns."""

import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from kmrun.core.result import CaseResult, Result
from kmrun.core.units import TIME, Unit, choose_unit, format_in, format_number
from kmrun.report.html_figures import is_shown
from kmrun.report.html_parts import Cell, Head, Line, Section, Table, number, verdict
from kmrun.report.html_run import banner_of
from kmrun.report.numbers import count, percent
from kmrun.report.outcome import PARTIAL
from kmrun.report.words import short_names, word_of

_HASH = 9
_MANY_ROWS = 400
_BESIDE = 2
"""Runs whose columns a page has room for side by side, on paper too; more stand below each other."""


def headings_of(results: Sequence[Result]) -> list[str]:
    """Return a name for each result: what differs among them, of suite, device, commit, torch, start."""
    if len(results) == 1:
        return [results[0].suite.name]
    asked: list[Callable[[Result], str]] = [_suite, _device, _commit, _torch, _started]
    told = [[ask(result) for result in results] for ask in asked]
    chosen: list[list[str]] = []
    for column in told:
        if len(set(column)) > 1:
            chosen.append(column)
            if len(set(zip(*chosen, strict=True))) == len(results):
                break
    names = [" · ".join(part for part in parts if part) for parts in zip(*chosen, strict=True)]
    names = names or [results[0].suite.name] * len(results)
    return [
        f"{name} ({names[: index + 1].count(name)})" if names.count(name) > 1 else name
        for index, name in enumerate(names)
    ]


def overview_of(results: Sequence[Result], headings: Sequence[str], anchors: Sequence[str]) -> Section | None:
    """Return what stands before the single runs of a page, None for a page of one run."""
    if len(results) == 1:
        return None
    heads = (
        Head("run"),
        Head("verdict"),
        Head("cases", "num"),
        Head("device"),
        Head("commit"),
        Head("started"),
    )
    lines = []
    for result, heading, anchor in zip(results, headings, anchors, strict=True):
        banner = banner_of(result)
        cells = (
            Cell(heading, link=anchor),
            Cell(
                banner.word,
                "verdict text",
                chip=banner.css,
                sign=banner.sign,
                after="" if result.complete or banner.css == "warn" else PARTIAL,
            ),
            number(str(len(result.cases))),
            Cell(_device(result)),
            Cell(_commit(result)),
            Cell(_started(result)),
        )
        lines.append(Line(cells))
    tables = [Table("Runs on this page", heads, tuple(lines))]
    for suite in dict.fromkeys(result.suite.name for result in results):
        members = [index for index, result in enumerate(results) if result.suite.name == suite]
        if len(members) > 1:
            tables.append(_compared([results[at] for at in members], [headings[at] for at in members], suite))
    return Section("overview", "Side by side" if len(tables) > 1 else "Runs", tables=tuple(tables))


def _compared(results: Sequence[Result], headings: Sequence[str], suite: str) -> Table:
    every = {case.id: case for result in reversed(results) for case in result.cases}
    ids = list(dict.fromkeys(case.id for result in results for case in result.cases))
    names = short_names([every[ident] for ident in ids])
    cases = [{case.id: case for case in result.cases} for result in results]
    unit = choose_unit([_time(case) for each in cases for case in each.values()], TIME)
    fractions = [
        (head, read)
        for head, read in _FRACTIONS
        if any(read(case) is not None for result in results for case in result.cases)
    ]
    columns = _Columns(unit, tuple(fractions), headings)
    rows = [(ident, names[ident], [each.get(ident) for each in cases]) for ident in ids]
    table = (_beside if len(results) <= _BESIDE else _below)(columns, rows)
    said = [
        text for index in range(1, len(results)) if (text := _mean(cases[0], cases[index], headings[index]))
    ]
    if len({result.suite.digest for result in results}) > 1:
        said.append("The suite's text differs between these runs: cases of one id may not be the same work.")
    said.append("Runs at different times: what differs by a few percent may be the machine, not the kernel.")
    return replace(table, caption=f"{suite}: times beside each other", note=" ".join(said))


@dataclass(frozen=True, slots=True)
class _Columns:
    """What is said of a case in one run: its time, its shares, how much faster than in the first run, its verdict."""

    unit: Unit
    fractions: tuple[tuple[str, Callable[[CaseResult], float | None]], ...]
    headings: Sequence[str]

    def heads(self, *, versus: bool) -> list[Head]:
        own = [Head("time", "num", "median"), *(Head(head, "num") for head, _ in self.fractions)]
        if versus:
            own.append(Head("vs first", "num", f"how often faster than {self.headings[0]}"))
        return [*own, Head("verdict")]

    def cells(self, case: CaseResult | None, first: CaseResult | None, *, versus: bool) -> list[Cell]:
        seconds, base = _time(case), _time(first)
        told = "-" if seconds is None else f"{format_in(seconds, self.unit)} {self.unit.symbol}"
        cells = [number(told)]
        cells += [number(percent(read(case) if case and seconds else None)) for _, read in self.fractions]
        if versus:
            cells.append(number(f"{format_number(base / seconds)}x" if base and seconds else "-"))
        return [*cells, Cell("-") if case is None else verdict(word_of(case))]


_Row = tuple[str, str, list[CaseResult | None]]
"""Id and short name of a case, and what each run has of it."""


def _beside(columns: _Columns, rows: Sequence[_Row]) -> Table:
    """Return a table with a group of columns for each run: for as few runs as a page is wide."""
    heads, groups = [Head("case")], []
    for index, heading in enumerate(columns.headings):
        own = columns.heads(versus=index > 0)
        heads += own
        groups.append((heading, len(own)))
    lines = [
        Line(
            (
                Cell(name, hover=ident),
                *(
                    cell
                    for index, case in enumerate(found)
                    for cell in columns.cells(case, found[0], versus=index > 0)
                ),
            )
        )
        for ident, name, found in rows
    ]
    return Table("", tuple(heads), tuple(lines), groups=tuple(groups))


def _below(columns: _Columns, rows: Sequence[_Row]) -> Table:
    """Return a table with a row for each run of each case, for any number of runs; a case is named once."""
    lines = []
    for ident, name, found in rows:
        for index, (heading, case) in enumerate(zip(columns.headings, found, strict=True)):
            cells = columns.cells(case, found[0] if index else None, versus=True)
            lines.append(Line((Cell("" if index else name, "case", hover=ident), Cell(heading), *cells)))
    heads = (Head("case"), Head("run"), *columns.heads(versus=True))
    return Table("", heads, tuple(lines), css="below", row_head=1, folded=len(lines) > _MANY_ROWS)


_FRACTIONS: tuple[tuple[str, Callable[[CaseResult], float | None]], ...] = (
    ("%roof", lambda case: case.roof_fraction),
    ("%ceil", lambda case: case.ceiling_fraction),
)


def _mean(first: dict[str, CaseResult], other: dict[str, CaseResult], heading: str) -> str:
    ratios = [
        base / own
        for ident in first
        if (base := _time(first[ident])) is not None and (own := _time(other.get(ident))) is not None
    ]
    if not ratios:
        return ""
    mean = math.exp(statistics.fmean(math.log(each) for each in ratios))
    return f"{heading}: {mean:.2f}x as fast as the first, geometric mean over {count(len(ratios), 'case')}."


def _time(case: CaseResult | None) -> float | None:
    return case.median_ms * 1e-3 if case is not None and case.median_ms and is_shown(case) else None


def _suite(result: Result) -> str:
    return result.suite.name


def _device(result: Result) -> str:
    return result.device.card or result.device.name


def _commit(result: Result) -> str:
    state = result.environment.get("git")
    if not isinstance(state, dict) or not state.get("commit"):
        return "no commit"
    return str(state["commit"])[:_HASH] + (" + changes" if state.get("dirty") else "")


def _torch(result: Result) -> str:
    return f"torch {result.environment.get('torch', '-')}"


def _started(result: Result) -> str:
    return result.started.replace("T", " ").partition("+")[0].partition(".")[0]
