"""The tables of how a run timed: against reference and rivals, and what lies around a call."""

from dataclasses import replace

from kmrun.core.result import CaseResult, Result
from kmrun.core.units import TIME, choose_unit, format_in, format_number
from kmrun.report.html_figures import is_shown
from kmrun.report.html_parts import FOLD, Cell, Head, Line, Table, hoisted, number, without_empty_columns
from kmrun.report.numbers import readable
from kmrun.report.words import short_names


def rivals_table(result: Result) -> Table | None:
    """Return every reference and rival that was timed beside a kernel, None without any."""
    names = short_names(result.cases)
    pairs = [
        (case, name, entry) for case in result.cases if is_shown(case) for name, entry in case.versus.items()
    ]
    if not pairs:
        return None
    unit = choose_unit([entry.median_ms * 1e-3 for _, _, entry in pairs], TIME)
    heads = (
        Head("case"),
        Head("against"),
        Head("role"),
        Head("its time", "num", "median"),
        Head("kernel is faster", "num", "the rival's time over the kernel's"),
        Head("at least", "num", "one-sided confidence bound"),
        Head("at most", "num", "one-sided confidence bound"),
        Head("blocks", "num"),
        Head("timed", "", "in the same moments, or one after the other"),
    )
    lines = tuple(
        Line(
            (
                Cell(names[case.id], hover=case.id),
                Cell(name),
                Cell(entry.role),
                number(f"{format_in(entry.median_ms * 1e-3, unit)} {unit.symbol}"),
                number(f"{format_number(entry.speedup)}x"),
                number("-" if entry.low is None else f"{format_number(entry.low)}x"),
                number("-" if entry.high is None else f"{format_number(entry.high)}x"),
                number(str(len(entry.pairs_ms)) if entry.pairs_ms else "-"),
                Cell("alternately" if entry.alternated else "apart"),
            )
        )
        for case, name, entry in pairs
    )
    table = without_empty_columns(Table("Reference and rivals", heads, lines), ("case", "against"))
    return replace(hoisted(table, ("case", "against", "kernel is faster")), folded=len(lines) > FOLD)


def calls_table(result: Result) -> Table | None:
    """Return what lies around the calls that were timed, None where nothing was."""
    names = short_names(result.cases)
    cases = [case for case in result.cases if is_shown(case) and case.median_ms is not None]
    if not cases:
        return None
    heads = (
        Head("case"),
        Head("samples", "num"),
        Head("calls in a sample", "num"),
        Head("first call, ms", "num", "compiling and tuning included"),
        Head("submit, us", "num", "time of the host for one call"),
        Head("timer noise, us", "num", "spread of an empty timed call"),
        Head("memory, MiB", "num", "the most that a call held"),
        Head("caches"),
        Head("clock"),
        Head("isolation"),
        Head("exchange"),
        Head("second clock", "", "whether another clock confirmed the first"),
        Head("threads", "num"),
    )
    lines = tuple(Line(_call(names[case.id], case)) for case in cases)
    table = without_empty_columns(Table("Around the calls", heads, lines), ("case",))
    return replace(hoisted(table, ("case", "samples")), folded=len(lines) > FOLD)


def _call(name: str, case: CaseResult) -> tuple[Cell, ...]:
    memory = case.peak_memory_bytes
    verified = {True: "agrees", False: "does not agree", None: "-"}[case.time_verified]
    return (
        Cell(name, hover=case.id),
        number(str(len(case.samples_ms))),
        number("-" if case.batch is None else str(case.batch)),
        number(_plain(case.first_call_ms)),
        number(_plain(case.host_us)),
        number(_plain(case.event_us)),
        number("-" if memory is None else readable(memory / 2**20)),
        Cell(case.l2 or "-"),
        Cell(case.clock or "-"),
        Cell(case.isolation or "-"),
        Cell(case.exchange or "-"),
        Cell(verified),
        number("-" if case.threads is None else str(case.threads)),
    )


def _plain(value: float | None) -> str:
    return "-" if value is None else readable(value)
