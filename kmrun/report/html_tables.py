"""The tables of a run: its cases, their clauses, comparisons and correctness."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from markupsafe import Markup

from kmrun.core.result import CaseResult, ClauseEntry, Result
from kmrun.core.units import format_number
from kmrun.report.html_figures import is_shown
from kmrun.report.html_parts import (
    FOLD,
    Cell,
    Head,
    Line,
    Table,
    hoisted,
    number,
    verdict,
    without_empty_columns,
)
from kmrun.report.numbers import count, percent, readable
from kmrun.report.places import place_named
from kmrun.report.plots.distribution import Span, distribution, span_of
from kmrun.report.plots.element import element, title
from kmrun.report.plots.interval import axis_of, interval, signed
from kmrun.report.view import View
from kmrun.report.words import case_labels, short_names

HINTS = {
    "time": "median over samples of the kernel alone",
    "±": "half of the 99 % interval of the median, over the median",
    "hot": "median with caches that were not flushed",
    "bound": "the roof above this kernel: memory or compute",
    "%roof": "of what the card's published peaks allow at this intensity",
    "@clk": "the same at the clocks that were held",
    "%ceil": "of what this machine delivered in the same run",
    "speedup": "how often faster, from blocks that alternate between the two",
    "contract": "the verdict",
}
_LEFT = ("case", "bound", "contract")
_BAR = 60.0
_MANY_KEPT = 12


def kernel_tables(result: Result, shown: View, anchor: str) -> tuple[Table, ...]:
    """Return a table for each kernel: the scorecard's columns, with the samples of every case as a picture."""
    # The verdict stands where a narrow screen shows it without scrolling.
    at = {column.name: index for index, column in enumerate(shown.columns)}
    names = ["contract", *(name for name in at if name not in ("kernel", "case", "contract"))]
    labels = case_labels(result.cases)
    tables = []
    for kernel in dict.fromkeys(case.kernel for case in result.cases):
        members = [index for index, case in enumerate(result.cases) if case.kernel == kernel]
        timed = [result.cases[index] for index in members if is_shown(result.cases[index])]
        span = span_of([(case.samples_ms, case.median_ms or 0.0) for case in timed])
        lines = []
        for index in members:
            case, row = result.cases[index], shown.rows[index]
            cells = [number(str(index + 1)), Cell(labels[index] or case.kernel, hover=case.id)]
            for name in names:
                cells += _case_cells(name, case, row.cells[at[name]], row.word, span)
            lines.append(Line(tuple(cells), f"{anchor}-c{index + 1}"))
        table = Table(kernel, _case_heads(names, span), tuple(lines), css="cases", row_head=1)
        if any(case.samples_ms for case in timed):
            table = replace(table, note=f"Samples: {span.text}.")
        tables.append(without_empty_columns(table, ("#", "case", "time")))
    return tuple(tables)


def _case_heads(names: Sequence[str], span: Span) -> tuple[Head, ...]:
    heads = [Head("#", "num", "the number on the roofline"), Head("case")]
    for name in names:
        heads.append(Head(name, "" if name in _LEFT else "num", HINTS.get(name, "")))
        if name == "time":
            heads.append(
                Head("samples", "", f"{span.text}; the tall line is the median, the bar its interval")
            )
    return tuple(heads)


def _case_cells(name: str, case: CaseResult, text: str, word: str, span: Span) -> list[Cell]:
    """Return the cell of one column of the scorecard; beside the time stands the picture of its samples."""
    if name == "contract":
        return [verdict(word, after=text.removeprefix(word).strip())]
    if name == "time":
        return [number(text), Cell("", "spark", svg=samples_picture(case, span))]
    return [Cell(text, "" if name in _LEFT else "num")]


def samples_picture(case: CaseResult, span: Span) -> Markup | None:
    """Return the picture of a case's samples, None where its speed is not to be shown."""
    if not is_shown(case) or not case.samples_ms or not case.median_ms:
        return None
    least, most = min(case.samples_ms), max(case.samples_ms)
    said = (
        f"{count(len(case.samples_ms), 'sample')}: least {percent(least / case.median_ms)}, "
        f"most {percent(most / case.median_ms)} of the median"
    )
    ends = (case.ci_low_ms, case.ci_high_ms)
    band = (ends[0], ends[1]) if ends[0] is not None and ends[1] is not None else None
    return Markup(distribution(case.samples_ms, case.median_ms, band, span, said)) or None


def clause_tables(result: Result) -> tuple[Table, ...]:
    """Return every promise and what became of it: what does not hold first, what holds in a table of its own."""
    names = short_names(result.cases)
    pairs = [(case, clause) for case in result.cases for clause in case.clauses]
    order = ("fail", "inconclusive", "not judged")
    open_ones = sorted(
        (pair for pair in pairs if pair[1].verdict in order), key=lambda pair: order.index(pair[1].verdict)
    )
    kept = [pair for pair in pairs if pair[1].verdict == "pass"]
    tables = []
    if open_ones:
        tables.append(_clauses("Broken, undecided or not judged", open_ones, names, folded=False))
    if kept:
        tables.append(
            _clauses(
                f"Kept: {count(len(kept), 'clause')}",
                kept,
                names,
                folded=bool(open_ones) or len(kept) > _MANY_KEPT,
            )
        )
    return tuple(tables)


def slowdown_table(result: Result) -> Table | None:
    """Return every comparison with another version of the same kernel, the slowest first; None without any."""
    pairs = [(case, case.slowdown) for case in result.cases if case.slowdown is not None]
    if not pairs:
        return None
    names, axis = short_names(result.cases), axis_of([found for _, found in pairs])
    words = {"holds": "pass", "broken": "FAIL", "inconclusive": "INCONCLUSIVE"}
    pairs.sort(key=lambda pair: (list(words).index(pair[1].verdict) != 1, -(pair[1].slowdown or 0.0)))
    heads = (
        Head("case"),
        Head("slower by", "num", "new time over old time, less one"),
        Head("with its interval", hint="the solid line is no change, the dashed line what is allowed"),
        Head("from", "num"),
        Head("to", "num"),
        Head("allowed", "num"),
        Head("visible", "num", "the smallest measured slowdown that would have been called too slow"),
        Head("median", "num", "of all timed calls: no clause is judged by it"),
        Head("p95", "num", "of the slow calls: no clause is judged by it"),
        Head("blocks", "num"),
        Head("processes", "num"),
        Head("against"),
        Head("verdict"),
        Head("why"),
    )
    lines = []
    for case, found in pairs:
        word = words[found.verdict]
        picture = Markup(interval(found, axis, "fail" if found.verdict == "broken" else "kept"))
        cells = (
            Cell(names[case.id], hover=case.id),
            number("-" if found.slowdown is None else signed(found.slowdown)),
            Cell("", "spark", svg=picture or None),
            *(number("-" if end is None else signed(end)) for end in (found.low, found.high)),
            number(signed(found.margin)),
            *(
                number("-" if each is None else signed(each))
                for each in (found.visible, found.median, found.p95)
            ),
            number(str(found.blocks)),
            number(str(found.processes)),
            Cell(f"{found.against} ({found.method})"),
            verdict(word, found.verdict),
            Cell(found.reason or "-"),
        )
        lines.append(Line(cells))
    table = Table("Slower or faster than the other version", heads, tuple(lines))
    table = without_empty_columns(table, ("case", "slower by", "verdict"))
    return hoisted(table, ("case", "slower by", "with its interval", "verdict"))


def correctness_table(result: Result) -> Table | None:
    """Return the worst comparison of every output, the nearest to its tolerance first; None without any."""
    names, rows = short_names(result.cases), []
    for case in result.cases:
        for check in case.checks:
            used = check.error / check.allowed if check.allowed and check.error is not None else None
            order = (check.ok, -(used if used is not None and math.isfinite(used) else 0.0))
            where = "" if check.worst_index is None else "[" + ", ".join(map(str, check.worst_index)) + "]"
            worst = (
                ""
                if check.got is None
                else f"{readable(check.got)} for {readable(check.want or 0.0)} at {where}"
            )
            word = "pass" if check.ok else "WRONG"
            cells = (
                Cell(names[case.id], hover=case.id),
                Cell(check.output),
                Cell(check.metric),
                number(format_number(check.error)),
                number(format_number(check.allowed)),
                Cell(percent(used), "num", svg=_bar(used)),
                Cell(worst or "-"),
                Cell(percent(case.rechecked_fraction), "num"),
                verdict(word, "right" if check.ok else "wrong"),
            )
            rows.append((order, Line(cells)))
    if not rows:
        return None
    rows.sort(key=lambda pair: pair[0])
    heads = (
        Head("case"),
        Head("output"),
        Head("metric"),
        Head("error", "num", "the worst over all checked calls"),
        Head("allowed", "num"),
        Head("used", "num", "error over what is allowed"),
        Head("worst element"),
        Head("re-checked", "num", "share of the timed calls whose outputs were compared again"),
        Head("result"),
    )
    wrong = any(not check.ok for case in result.cases for check in case.checks)
    table = Table("Worst comparison of every output", heads, tuple(line for _, line in rows), folded=False)
    kept = hoisted(without_empty_columns(table, ("case", "result")), ("case", "used", "result"))
    return replace(kept, folded=len(rows) > FOLD and not wrong)


def _clauses(
    caption: str, pairs: Sequence[tuple[CaseResult, ClauseEntry]], names: Mapping[str, str], *, folded: bool
) -> Table:
    heads = (
        Head("case"),
        Head("clause"),
        Head("bound", "num"),
        Head("value", "num"),
        Head("lower", "num", "confidence bound"),
        Head("upper", "num", "confidence bound"),
        Head("verdict"),
        Head("why"),
        Head("where"),
    )
    lines = tuple(Line(_clause(names[case.id], case, clause)) for case, clause in pairs)
    return without_empty_columns(Table(caption, heads, lines, folded=folded), ("case", "clause", "verdict"))


def _clause(name: str, case: CaseResult, clause: ClauseEntry) -> tuple[Cell, ...]:
    words = {"fail": "WRONG" if clause.kind == "correct" else "FAIL", "inconclusive": "INCONCLUSIVE"}
    return (
        Cell(name, hover=case.id),
        Cell(clause.kind),
        number(_bound(clause.bound)),
        number(format_number(clause.value)),
        number(format_number(clause.low)),
        number(format_number(clause.high)),
        verdict(words.get(clause.verdict, clause.verdict)),
        # Of a clause that holds the numbers beside it say all there is.
        Cell("-" if clause.verdict == "pass" else clause.reason or "-"),
        Cell(place_named(clause.file, clause.line)),
    )


def _bound(bound: float | None) -> str:
    """Return the suite's own number as it was written, unless it was computed to more digits than one reads."""
    if bound is None:
        return "-"
    return f"{bound:g}" if len(f"{bound:g}") <= 5 else format_number(bound)


def _bar(used: float | None) -> Markup | None:
    """Return how much of a tolerance was used, as a bar; one that is used up is full."""
    if used is None or not math.isfinite(used):
        return None
    filled = min(max(used, 0.0), 1.0) * _BAR
    return Markup(
        element(
            "svg",
            title(f"{percent(used)} of the tolerance"),
            element("rect", x=0, y=2, width=_BAR, height=8, class_="trough"),
            element("rect", x=0, y=2, width=filled, height=8, class_="filled over" if used > 1 else "filled"),
            viewBox=f"0 0 {_BAR:g} 12",
            role="img",
            class_="plot bar",
        )
    )
