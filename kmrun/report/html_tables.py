"""The tables of a run: cases, clauses, correctness, telemetry, commands."""

import math
from collections.abc import Sequence
from dataclasses import replace

from markupsafe import Markup

from kmrun.core.result import CaseResult, ClauseEntry, Result
from kmrun.core.units import format_number
from kmrun.report.html_figures import is_shown
from kmrun.report.html_parts import Cell, Head, Line, Table, number, verdict, without_empty_columns
from kmrun.report.numbers import count, percent, readable
from kmrun.report.plots.distribution import Span, distribution, span_of
from kmrun.report.plots.element import element, title
from kmrun.report.shell import shell_word
from kmrun.report.view import View, repro
from kmrun.report.words import case_labels

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
_FOLD = 40
"""Tables that are longer begin folded, where nothing in them is broken."""
_BAR = 60.0


def kernel_tables(result: Result, shown: View, anchor: str) -> tuple[Table, ...]:
    """Return a table for each kernel: the scorecard's columns, with the samples of every case as a picture."""
    names = [column.name for column in shown.columns]
    labels = case_labels(result.cases)
    tables = []
    for kernel in dict.fromkeys(case.kernel for case in result.cases):
        members = [index for index, case in enumerate(result.cases) if case.kernel == kernel]
        timed = [result.cases[index] for index in members if is_shown(result.cases[index])]
        span = span_of([(case.samples_ms, case.median_ms or 0.0) for case in timed])
        heads = [Head("#", "num", "the number on the roofline"), Head("case", "left")]
        drawn = any(case.samples_ms for case in timed)
        for name in names:
            if name not in ("kernel", "case"):
                heads.append(Head(name, "left" if name in _LEFT else "num", HINTS.get(name, "")))
                if name == "time" and drawn:
                    heads.append(
                        Head(
                            "samples",
                            "left",
                            f"{span.text}; the tall line is the median, the bar its interval",
                        )
                    )
        lines = []
        for index in members:
            case, row = result.cases[index], dict(zip(names, shown.rows[index].cells, strict=True))
            cells = [number(str(index + 1)), Cell(labels[index] or case.kernel, "left", hover=case.id)]
            for name in names:
                if name == "contract":
                    cells.append(verdict(shown.rows[index].word, row[name]))
                elif name not in ("kernel", "case"):
                    cells.append(Cell(row[name], "left" if name in _LEFT else "num"))
                    if name == "time" and drawn:
                        cells.append(Cell("", "spark", svg=samples_picture(case, span)))
            lines.append(Line(tuple(cells), f"{anchor}-c{index + 1}"))
        note = f"Samples: {span.text}." if drawn else ""
        tables.append(
            without_empty_columns(Table(kernel, tuple(heads), tuple(lines), note), ("case", "time"))
        )
    return tuple(tables)


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
    pairs = [(case, clause) for case in result.cases for clause in case.clauses]
    order = ("fail", "inconclusive", "not judged")
    open_ones = sorted(
        (pair for pair in pairs if pair[1].verdict in order), key=lambda pair: order.index(pair[1].verdict)
    )
    kept = [pair for pair in pairs if pair[1].verdict == "pass"]
    tables = []
    if open_ones:
        tables.append(_clauses("Broken, undecided or not judged", open_ones, folded=False))
    if kept:
        tables.append(
            _clauses(f"Kept: {count(len(kept), 'clause')}", kept, folded=bool(open_ones) or len(kept) > _FOLD)
        )
    return tuple(tables)


def correctness_table(result: Result) -> Table | None:
    """Return the worst comparison of every output, the nearest to its tolerance first; None without any."""
    rows = []
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
                Cell(case.id, "left"),
                Cell(check.output, "left"),
                Cell(check.metric, "left"),
                number(format_number(check.error)),
                number(format_number(check.allowed)),
                Cell(percent(used), "num", svg=_bar(used)),
                Cell(worst or "-", "left"),
                Cell(percent(case.rechecked_fraction), "num"),
                verdict(word, "right" if check.ok else "wrong"),
            )
            rows.append((order, Line(cells)))
    if not rows:
        return None
    rows.sort(key=lambda pair: pair[0])
    heads = (
        Head("case", "left"),
        Head("output", "left"),
        Head("metric", "left"),
        Head("error", "num", "the worst over all checked calls"),
        Head("allowed", "num"),
        Head("used", "num", "error over what is allowed"),
        Head("worst element", "left"),
        Head("re-checked", "num", "share of the timed calls whose outputs were compared again"),
        Head("result", "left"),
    )
    wrong = any(not check.ok for case in result.cases for check in case.checks)
    table = Table("Worst comparison of every output", heads, tuple(line for _, line in rows), folded=False)
    kept = without_empty_columns(table, ("case", "result"))
    return replace(kept, folded=len(rows) > _FOLD and not wrong)


def telemetry_table(result: Result) -> Table | None:
    """Return what the machine was doing while each case was timed, None where nothing was read."""
    lines = []
    for case in result.cases:
        seen = case.telemetry
        if seen is None:
            continue
        throttle = ", ".join(
            f"{reason.replace('_', ' ')} {percent(seen.throttle_fraction.get(reason))}"
            for reason in seen.throttle
        )
        held = _of(seen.sm_mhz_held, seen.sm_mhz_max)
        lines.append(
            Line(
                (
                    Cell(case.id, "left"),
                    number(held),
                    number(_plain(seen.mem_mhz)),
                    number(_plain(seen.temp_c)),
                    number(_plain(seen.power_w)),
                    number("-" if seen.energy_mj_per_call is None else readable(seen.energy_mj_per_call)),
                    Cell(throttle or "-", "left"),
                    number("-" if seen.other_cores is None else readable(seen.other_cores, 2)),
                    number("-" if seen.stolen_cores is None else readable(seen.stolen_cores, 2)),
                    Cell(seen.note or "-", "left"),
                )
            )
        )
    if not lines:
        return None
    heads = (
        Head("case", "left"),
        Head("clock MHz", "num", "held, of the highest"),
        Head("memory MHz", "num"),
        Head("°C", "num"),
        Head("W", "num", "mean over a second or more of nothing but this kernel"),
        Head("mJ/call", "num"),
        Head("slowed by", "left"),
        Head("other cores", "num", "CPU cores that others used meanwhile"),
        Head("stolen cores", "num", "CPU cores that the hypervisor gave to others"),
        Head("note", "left"),
    )
    table = without_empty_columns(Table("While each case was timed", heads, tuple(lines)), ("case",))
    return (
        Table(table.caption, table.heads, table.lines, folded=len(lines) > _FOLD)
        if len(table.heads) > 1
        else None
    )


def repro_table(result: Result) -> Table:
    """Return the command that runs each case again."""
    heads = (Head("case", "left"), Head("command", "left"))
    lines = tuple(
        Line((Cell(case.id, "left"), Cell(repro(result, case.id), "code"))) for case in result.cases
    )
    return Table("One case again, on the same inputs", heads, lines, folded=len(lines) > _FOLD)


def provenance_tables(result: Result) -> tuple[Table, ...]:
    """Return what is needed to believe the figures: the run, the device, the software."""
    device, suite = result.device, result.suite
    run = [
        ("suite", suite.name),
        ("file", suite.file),
        ("SHA-256 of the file", suite.digest),
        ("command", " ".join(shell_word(word) for word in result.command)),
        ("started", result.started),
        ("complete", "yes" if result.complete else "no: interrupted, or still going on"),
        ("wall time", f"{readable(result.wall_s)} s"),
        ("seed", result.seed),
        ("error rate", f"{result.error_rate:g}, one-sided, of one clause"),
    ]
    machine = [
        ("device", device.name),
        ("kind", device.kind),
        ("card", device.card),
        ("memory", f"{readable(device.memory_bytes / 2**30)} GiB"),
        ("cache", None if device.cache_bytes is None else f"{readable(device.cache_bytes / 2**20)} MiB"),
        ("compute capability", device.compute_capability),
        ("multiprocessors", device.sm_count),
        (
            "highest clock",
            None if device.max_clock_hz is None else f"{readable(device.max_clock_hz / 1e6, 4)} MHz",
        ),
        ("cores", device.cores),
        ("threads used", device.threads),
        ("uuid", device.uuid),
    ]
    return (_pairs("Run", run), _pairs("Device", machine), _pairs("Software", flat(result.environment)))


def flat(found: object, name: str = "") -> list[tuple[str, object]]:
    """Return nested mappings as (dotted name, value) pairs."""
    if isinstance(found, dict):
        return [
            pair
            for key, value in found.items()
            for pair in flat(value, f"{name}.{key}" if name else str(key))
        ]
    if isinstance(found, list | tuple):
        return [(name, ", ".join(map(str, found)))]
    return [(name, found)]


def _pairs(caption: str, found: Sequence[tuple[str, object]]) -> Table:
    lines = [
        Line((Cell(name, "left"), Cell(_said(value), "left")))
        for name, value in found
        if value not in (None, "")
    ]
    return Table(caption, (Head("what", "left"), Head("value", "left")), tuple(lines), css="pairs")


def _said(value: object) -> str:
    return ("yes" if value else "no") if isinstance(value, bool) else str(value)


def _clauses(caption: str, pairs: Sequence[tuple[CaseResult, ClauseEntry]], *, folded: bool) -> Table:
    heads = (
        Head("case", "left"),
        Head("clause", "left"),
        Head("bound", "num"),
        Head("value", "num"),
        Head("lower", "num", "confidence bound"),
        Head("upper", "num", "confidence bound"),
        Head("verdict", "left"),
        Head("why", "left"),
        Head("where", "left"),
    )
    lines = tuple(Line(_clause(case, clause)) for case, clause in pairs)
    return without_empty_columns(Table(caption, heads, lines, folded=folded), ("case", "clause", "verdict"))


def _clause(case: CaseResult, clause: ClauseEntry) -> tuple[Cell, ...]:
    words = {"fail": "WRONG" if clause.kind == "correct" else "FAIL", "inconclusive": "INCONCLUSIVE"}
    return (
        Cell(case.id, "left"),
        Cell(clause.kind, "left"),
        number("-" if clause.bound is None else f"{clause.bound:g}"),
        number(format_number(clause.value)),
        number(format_number(clause.low)),
        number(format_number(clause.high)),
        verdict(words.get(clause.verdict, clause.verdict)),
        Cell(clause.reason or "-", "left"),
        Cell(f"{clause.file}:{clause.line}" if clause.file else "-", "left"),
    )


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


def _of(value: float | None, most: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:.0f}" if most is None else f"{value:.0f} of {most:.0f}"


def _plain(value: float | None) -> str:
    return "-" if value is None else f"{value:.0f}"
