"""The tables around the figures of a run: what the machine did, where all this comes from, how to run it again."""

from collections.abc import Sequence
from dataclasses import replace

from kmrun.core.result import Result
from kmrun.report.html_parts import FOLD, Cell, Head, Line, Table, hoisted, number, without_empty_columns
from kmrun.report.numbers import percent, readable, whole
from kmrun.report.shell import shell_word
from kmrun.report.view import repro
from kmrun.report.words import short_names

_SLIM = 4
"""Columns; a table of fewer need not be stretched over the page."""


def telemetry_table(result: Result) -> Table | None:
    """Return what the machine was doing while each case was timed, None where nothing was read."""
    names, lines = short_names(result.cases), []
    for case in result.cases:
        seen = case.telemetry
        if seen is None:
            continue
        throttle = ", ".join(
            f"{reason.replace('_', ' ')} {percent(seen.throttle_fraction.get(reason))}"
            for reason in seen.throttle or ()
        )
        held = _of(seen.sm_mhz_held, seen.sm_mhz_max)
        lines.append(
            Line(
                (
                    Cell(names[case.id], hover=case.id),
                    number(held),
                    number(_plain(seen.mem_mhz)),
                    number(_plain(seen.temp_c)),
                    number(_plain(seen.power_w)),
                    number("-" if seen.energy_mj_per_call is None else readable(seen.energy_mj_per_call)),
                    Cell(throttle or ("-" if seen.throttle is None else "nothing")),
                    number("-" if seen.other_cores is None else readable(seen.other_cores, 2)),
                    number("-" if seen.stolen_cores is None else readable(seen.stolen_cores, 2)),
                    Cell(seen.note or "-"),
                )
            )
        )
    if not lines:
        return None
    heads = (
        Head("case"),
        Head("clock MHz", "num", "held, of the highest"),
        Head("memory MHz", "num"),
        Head("°C", "num"),
        Head("W", "num", "mean over a second or more of nothing but this kernel"),
        Head("mJ/call", "num"),
        Head("slowed by"),
        Head("other cores", "num", "CPU cores that others used meanwhile"),
        Head("stolen cores", "num", "CPU cores that the hypervisor gave to others"),
        Head("note"),
    )
    table = without_empty_columns(Table("While each case was timed", heads, tuple(lines)), ("case",))
    table = hoisted(table, ("case", "clock MHz", "W"))
    if len(table.heads) == 1:
        return None
    return replace(table, folded=len(lines) > FOLD, css="slim" if len(table.heads) <= _SLIM else "")


def repro_table(result: Result) -> Table:
    """Return the command that runs each case again."""
    names = short_names(result.cases)
    heads = (Head("case"), Head("command"))
    lines = tuple(
        Line((Cell(names[case.id], hover=case.id), Cell(repro(result, case.id), "code")))
        for case in result.cases
    )
    return Table("One case again, on the same inputs", heads, lines, folded=len(lines) > FOLD)


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
    lines = [Line((Cell(name), Cell(_said(value)))) for name, value in found if value not in (None, "")]
    return Table(caption, (Head("what"), Head("value")), tuple(lines), css="pairs")


def _said(value: object) -> str:
    return ("yes" if value else "no") if isinstance(value, bool) else str(value)


def _of(value: float | None, most: float | None) -> str:
    if value is None:
        return "-"
    return whole(value) if most is None else f"{whole(value)} of {whole(most)}"


def _plain(value: float | None) -> str:
    return "-" if value is None else whole(value)
