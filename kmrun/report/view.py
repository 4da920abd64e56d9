"""A result as it is shown: every number formatted, every unit chosen, nothing left to compute."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any

from kmrun.core.printable import printable
from kmrun.core.result import CaseResult, Result
from kmrun.core.slowdown import called, change
from kmrun.core.units import (
    BANDWIDTH,
    FLOP_RATE,
    TIME,
    Family,
    Unit,
    choose_unit,
    format_in,
    format_number,
    format_quantity,
    in_base,
)
from kmrun.report import numbers
from kmrun.report.machine import clock_sentence, machine_line, measured_when
from kmrun.report.outcome import outcome_of
from kmrun.report.places import place_text
from kmrun.report.shell import shell_word
from kmrun.report.words import LABELS, WORDS, case_labels, word_of

_TAIL_LINES = 8
"""Of a traceback or of what user code printed; the document has all that was kept."""

_KEPT = ("--device", "--isolation", "--card", "--cards", "--against", "--build", "--compare")
_FLAGS = ("--quick", "--no-flush-l2", "--hot-and-cold", "--lock-clocks", "--against-baseline")
"""What of a command line makes another measurement, or another judgement, of a case on the same inputs."""

_SMALLEST = 0.01
"""A number under this is better told in a smaller unit."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column. Where space is short, those with the lowest `expendable` go first; 0 stays."""

    name: str
    left: bool = False
    expendable: int = 0


@dataclass(frozen=True, slots=True)
class Row:
    """One case: a cell for each column, and the verdict word that colours it."""

    cells: tuple[str, ...]
    word: str


@dataclass(frozen=True, slots=True)
class Paragraph:
    """What one case needs said: the word, the case id, where it is written, sentences, supporting text."""

    word: str
    case_id: str
    place: str
    sentences: tuple[str, ...]
    detail: tuple[str, ...] = ()
    repro: str = ""


@dataclass(frozen=True, slots=True)
class View:
    """A whole result, formatted."""

    suite: str
    device: tuple[str, ...]
    ceilings: tuple[str, ...]
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    notes: tuple[str, ...]
    paragraphs: tuple[Paragraph, ...]
    summary: str
    complete: bool
    machine: str = ""
    """What the machine was doing meanwhile, for the line under the table."""


def view(result: Result) -> View:
    """Format a result."""
    # The speed of an implausible kernel is in the document; in a table it would look like a record.
    columns, rows = _table([_speedless(case) if case.verdict == "error" else case for case in result.cases])
    found: View = _harmless(
        View(
            suite=result.suite.name,
            device=_device(result),
            ceilings=_ceilings(result),
            columns=columns,
            rows=rows,
            notes=tuple(_notes(result.cases)),
            paragraphs=tuple(_paragraphs(result)),
            summary=outcome_of(result).summary,
            complete=result.complete,
            machine=machine_line(result.cases),
        )
    )
    return found


def _harmless(found: Any) -> Any:
    """Return a view whose every text is harmless for a terminal: kernels and suites are others' words."""
    if isinstance(found, str):
        return printable(found)
    if isinstance(found, tuple):
        return tuple(_harmless(one) for one in found)
    if is_dataclass(found) and not isinstance(found, type):
        return replace(found, **{each.name: _harmless(getattr(found, each.name)) for each in fields(found)})
    return found


def _speedless(case: CaseResult) -> CaseResult:
    return replace(
        case,
        median_ms=None,
        hot_median_ms=None,
        gb_per_s=None,
        tflop_per_s=None,
        bound=None,
        roof_fraction=None,
        roof_clk_fraction=None,
        ceiling_fraction=None,
        speedup=None,
        slowdown=None,
    )


def _table(cases: Sequence[CaseResult]) -> tuple[tuple[Column, ...], tuple[Row, ...]]:
    time = choose_unit([in_base(case.median_ms, 1e-3) for case in cases], TIME)
    rates = [in_base(case.gb_per_s, 1e9) for case in cases]
    bandwidth = _rate_unit(rates, BANDWIDTH)
    speeds = [in_base(case.tflop_per_s, 1e12) for case in cases]
    compute = _rate_unit(speeds, FLOP_RATE)
    against = {_against(case) for case in cases if case.speedup is not None}
    one = against.pop() if len(against) == 1 else None
    kernels = [case.kernel for case in cases]
    columns: list[tuple[Column, list[str]]] = [
        (Column("kernel", left=True), kernels),
        (Column("case", left=True), case_labels(cases)),
        (Column("time"), [_with_unit(case.median_ms, time) for case in cases]),
        (Column("±", expendable=2), [numbers.spread(_half_width(case)) for case in cases]),
        (Column("hot"), [_with_unit(case.hot_median_ms, time) for case in cases]),
        (Column(bandwidth.symbol), [format_in(rate, bandwidth) for rate in rates]),
        (Column(compute.symbol), [format_in(speed, compute) for speed in speeds]),
        (Column("bound", left=True, expendable=1), [case.bound or "-" for case in cases]),
        (Column("%roof"), [numbers.percent(case.roof_fraction) for case in cases]),
        (Column("@clk", expendable=4), [numbers.percent(case.roof_clk_fraction) for case in cases]),
        (Column("%ceil", expendable=3), [numbers.percent(case.ceiling_fraction) for case in cases]),
        (Column(f"vs {one}" if one else "speedup"), [_speedup(case, named=one is None) for case in cases]),
        (Column("delta"), [numbers.signed_percent(_slower(case)) for case in cases]),
        (Column("contract", left=True), [_contract(case) for case in cases]),
    ]
    always = {"kernel", "time", "contract"}
    shown = [
        (column, cells)
        for column, cells in columns
        if column.name in always or any(cell not in ("-", "") for cell in cells)
    ]
    rows = [Row(tuple(cells[index] for _, cells in shown), word_of(case)) for index, case in enumerate(cases)]
    return tuple(column for column, _ in shown), tuple(rows)


def _rate_unit(rates: Sequence[float | None], family: Family) -> Unit:
    """Return the unit of the highest rate, as the ceilings are told in it, unless the lowest would vanish."""
    known = [rate for rate in rates if rate]
    highest = choose_unit([max(known, default=None)], family)
    return highest if min(known, default=0.0) >= _SMALLEST * highest.factor else choose_unit(rates, family)


def _with_unit(milliseconds: float | None, unit: Unit) -> str:
    return "-" if milliseconds is None else f"{format_in(milliseconds * 1e-3, unit)} {unit.symbol}"


def _half_width(case: CaseResult) -> float | None:
    if not case.median_ms or case.ci_low_ms is None or case.ci_high_ms is None:
        return None
    return (case.ci_high_ms - case.ci_low_ms) / 2 / case.median_ms


def _against(case: CaseResult) -> str:
    name = case.speedup_against or ""
    entry = case.versus.get(name)
    return "ref" if entry is not None and entry.role == "reference" else name


def _slower(case: CaseResult) -> float | None:
    return case.slowdown.slowdown if case.slowdown else None


def _speedup(case: CaseResult, *, named: bool) -> str:
    if case.speedup is None:
        return "-"
    shown = f"{format_number(case.speedup, 2 if case.speedup < 10 else 3)}x"
    return f"{shown} {_against(case)}" if named else shown


def _contract(case: CaseResult) -> str:
    word = word_of(case)
    if word in (WORDS["fail"], WORDS["inconclusive"]):
        telling = "fail" if case.verdict == "fail" else "inconclusive"
        clauses = [clause for clause in case.clauses if clause.verdict == telling]
        if clauses:
            bound = "" if clauses[0].bound is None else f" {clauses[0].bound:g}"
            more = f" +{len(clauses) - 1}" if len(clauses) > 1 else ""
            return f"{word} {clauses[0].kind}{bound}{more}"
    return word


def _device(result: Result) -> tuple[str, ...]:
    device, environment = result.device, result.environment
    name = f"{device.name} ({device.card})" if device.card else device.name
    parts = [name]
    if device.kind == "cpu" and device.threads:
        parts.append(numbers.count(device.threads, "thread"))
    parts += [f"{key} {environment[key]}" for key in ("torch", "driver") if environment.get(key)]
    timed = [case for case in result.cases if case.l2 is not None]
    flushed = sorted({case.l2 or "" for case in timed})
    cache = "cache" if device.kind == "cpu" else "L2"
    modes = [f"{'/'.join(flushed)} {cache}"] if flushed else []
    if device.kind != "cpu":
        modes += [f"{clock} clocks" for clock in sorted({case.clock or "" for case in timed})]
    modes += sorted({case.isolation or "" for case in timed})
    return (*parts, ", ".join(modes)) if modes else tuple(parts)


def _ceilings(result: Result) -> tuple[str, ...]:
    best = max(result.ceilings.bandwidths, key=lambda seen: seen.gb_per_s, default=None)
    if best is None:
        return ()
    rates = [
        f"{format_quantity(in_base(rate.tflop_per_s, 1e12), FLOP_RATE)} {rate.dtype}"
        for rate in result.ceilings.matmuls
    ]
    memory = f"{format_quantity(in_base(best.gb_per_s, 1e9), BANDWIDTH)} {best.kind}"
    return (memory, *rates, measured_when(result.ceilings))


def _notes(cases: Sequence[CaseResult]) -> list[str]:
    """Return one line for each label and each warning, with how many cases it concerns."""
    total = len(cases)

    def of(number: int) -> str:
        return "all cases" if number == total > 1 else numbers.count(number, "case")

    labels = Counter(label for case in cases for label in dict.fromkeys(case.labels))
    warnings = Counter(warning for case in cases for warning in dict.fromkeys(case.warnings))
    said = [
        f"{label} ({of(number)}): {LABELS[label]}" if label in LABELS else f"{label} ({of(number)})"
        for label, number in labels.items()
    ]
    held = [case.slowdown for case in cases if case.slowdown and case.slowdown.verdict == "holds"]
    most = max((each.high for each in held if each.high is not None), default=None)
    seen = max((each.visible for each in held if each.visible is not None), default=None)
    if most is not None and seen is not None:
        # The scorecard has no room for each case's interval: what holds for all of them stands here.
        said.append(f"max_slowdown held ({of(len(held))}): at most {change(most)} (95 %); {called(seen)}")
    return said + [f"warning: {warning}, {of(number)}" for warning, number in warnings.items()]


def _paragraphs(result: Result) -> list[Paragraph]:
    """Return one paragraph for each thing that has to be said; one cause often stops many cases."""
    shown = [case for case in result.cases if case.verdict not in ("pass", "skipped")]
    shown += [case for case in result.cases if case.verdict == "skipped"]
    groups: dict[tuple[object, ...], list[Paragraph]] = {}
    for case in shown:
        told = _paragraph(result, case)
        groups.setdefault((told.word, told.place, told.sentences, told.detail), []).append(told)
    return [
        told[0] if len(told) == 1 else replace(told[0], case_id=f"{told[0].case_id} and {len(told) - 1} more")
        for told in groups.values()
    ]


def _paragraph(result: Result, case: CaseResult) -> Paragraph:
    word = word_of(case)
    return Paragraph(
        word=word,
        case_id=case.id,
        place=place_text(case),
        sentences=_sentences(case),
        detail=tuple(
            line for reason in case.reasons for line in _telling((reason.detail or "").splitlines())
        ),
        repro="" if case.verdict == "skipped" else repro(result, case.id),
    )


def _sentences(case: CaseResult) -> tuple[str, ...]:
    said = [reason.sentence.removeprefix("skipped: ") for reason in case.reasons]
    return tuple(sentence for sentence in dict.fromkeys([*said, clock_sentence(case)]) if sentence)


def _telling(lines: list[str]) -> list[str]:
    """Return the lines that say most: the last, but of a crash the innermost calls, which stand first."""
    crash = next((at for at, line in enumerate(lines) if "(most recent call first)" in line), None)
    return lines[-_TAIL_LINES:] if crash is None else lines[crash:][:_TAIL_LINES]


def repro(result: Result, case_id: str) -> str:
    """Return the command that runs one case of a result again, on the same inputs."""
    if result.suite.file is None:
        before = ("", *result.command)
        words = [
            word
            for last, word in zip(before, result.command, strict=False)
            if last != "--seed" and word.partition("=")[0] != "--seed"
        ]
    else:
        words = ["kmrun", result.suite.file, "-k", case_id]
        for option in _KEPT:
            values = _given(result.command, option)
            for value in values if option == "--cards" else values[-1:]:
                words += [option, value]
        words += [flag for flag in _FLAGS if flag in result.command]
    if result.seed is not None:
        words += ["--seed", str(result.seed)]
    return " ".join(shell_word(word) for word in words)


def _given(command: Sequence[str], option: str) -> list[str]:
    """Return what a command line gives an option, in either spelling: `--against REF` or `--against=REF`."""
    values = []
    for at, word in enumerate(command):
        if word == option and at + 1 < len(command):
            values.append(command[at + 1])
        elif word.startswith(f"{option}="):
            values.append(word.removeprefix(f"{option}="))
    return values
