"""One result document as a part of a page."""

import math
import statistics
from collections.abc import Mapping, Sequence

from kmrun.core.card import Card
from kmrun.core.result import CaseResult, Result
from kmrun.core.units import BANDWIDTH, FLOP_RATE, format_number, format_quantity, in_base
from kmrun.report.html_facts import provenance_tables, repro_table, telemetry_table
from kmrun.report.html_figures import is_shown, roofline_figure, scaling_figures, telemetry_figure
from kmrun.report.html_parts import (
    CHIPS,
    SIGNS,
    Banner,
    Finding,
    Run,
    Section,
    Tile,
    verdict,
)
from kmrun.report.html_tables import clause_tables, correctness_table, kernel_tables, slowdown_table
from kmrun.report.html_timing import calls_table, rivals_table
from kmrun.report.numbers import percent
from kmrun.report.outcome import WORST_FIRST, outcome_of
from kmrun.report.view import Paragraph, View, view
from kmrun.report.words import WORDS, short_names

MOST_FINDINGS = 5
"""More are there, but folded."""


def run_of(result: Result, card: Card | None, anchor: str, heading: str) -> Run:
    """Return a result formatted; `card` is the device's share of the card that its document names."""
    shown = view(result)
    findings = [_finding(paragraph) for paragraph in sorted(shown.paragraphs, key=_urgency)]
    return Run(
        anchor=anchor,
        heading=heading,
        device=shown.device,
        ceilings=shown.ceilings,
        banner=banner_of(result),
        tiles=_tiles(result),
        findings=tuple(findings[:MOST_FINDINGS]),
        more_findings=tuple(findings[MOST_FINDINGS:]),
        more=f"{len(findings) - MOST_FINDINGS} more",
        sections=tuple(_sections(result, shown, card, anchor)),
        notes=shown.notes,
    )


def banner_of(result: Result) -> Banner:
    """Return the verdict of a whole run."""
    outcome = outcome_of(result)
    found = outcome.counts
    counts = tuple(verdict(each, f"{found[each]} {each.lower()}") for each in WORDS.values() if found[each])
    return Banner(outcome.headline, outcome.colour, SIGNS[outcome.colour], outcome.sentence, counts)


def _urgency(paragraph: Paragraph) -> int:
    return WORST_FIRST.index(paragraph.word)


def _finding(paragraph: Paragraph) -> Finding:
    css = CHIPS[paragraph.word]
    return Finding(
        chip=css,
        sign=SIGNS[css],
        word=paragraph.word,
        case_id=paragraph.case_id,
        place=paragraph.place,
        sentences=paragraph.sentences,
        detail=paragraph.detail,
        repro=paragraph.repro,
    )


def _tiles(result: Result) -> tuple[Tile, ...]:
    cases, names = [case for case in result.cases if is_shown(case)], short_names(result.cases)
    tiles = [*_share_tiles(cases, names), *_speedup_tile(cases), *_error_tile(result.cases, names)]
    best = max(result.ceilings.bandwidths, key=lambda seen: seen.gb_per_s, default=None)
    if best is not None:
        rate = format_quantity(in_base(best.gb_per_s, 1e9), BANDWIDTH)
        tiles.append(_tile("memory delivered", rate, f"{best.kind}, in this run"))
    fastest = max(result.ceilings.matmuls, key=lambda seen: seen.tflop_per_s, default=None)
    if fastest is not None:
        rate = format_quantity(in_base(fastest.tflop_per_s, 1e12), FLOP_RATE)
        when = "in this run" if fastest.age_s is None else "kept from an earlier run"
        tiles.append(_tile("compute delivered", rate, f"{fastest.dtype} matmul, {when}"))
    return tuple(tiles)


def _tile(name: str, text: str, note: str) -> Tile:
    value, _, unit = text.partition(" ")
    return Tile(name, value, unit, note)


def _share_tiles(cases: Sequence[CaseResult], names: Mapping[str, str]) -> list[Tile]:
    """Return the best and the worst share: of the published roof where there is one, else of the ceiling."""
    roofs = [(case.roof_fraction, case.id) for case in cases if case.roof_fraction is not None]
    ceilings = [(case.ceiling_fraction, case.id) for case in cases if case.ceiling_fraction is not None]
    shares, of = (roofs, "roof") if roofs else (ceilings, "ceiling")
    if not shares:
        return []
    best, worst = max(shares), min(shares)
    tiles = [_tile(f"nearest to its {of}", percent(best[0]), names[best[1]])]
    return tiles + (
        [_tile(f"farthest from its {of}", percent(worst[0]), names[worst[1]])] if len(shares) > 1 else []
    )


def _speedup_tile(cases: Sequence[CaseResult]) -> list[Tile]:
    found = [case.speedup for case in cases if case.speedup]
    if not found:
        return []
    mean = math.exp(statistics.fmean(math.log(each) for each in found))
    span = (
        f"{format_number(min(found), 2)}x to {format_number(max(found), 2)}x"
        if len(found) > 1
        else "of one case"
    )
    return [Tile("speedup, geometric mean", f"{format_number(mean)}x", "", span)]


def _error_tile(cases: Sequence[CaseResult], names: Mapping[str, str]) -> list[Tile]:
    used = [
        (check.error / check.allowed, case.id)
        for case in cases
        if case.correct  # what a wrong result is off by says nothing of how tight the tolerance is
        for check in case.checks
        if check.ok and check.allowed and check.error is not None and math.isfinite(check.error)
    ]
    return [_tile("most used of a tolerance", percent(max(used)[0]), names[max(used)[1]])] if used else []


def _sections(result: Result, shown: View, card: Card | None, anchor: str) -> list[Section]:
    roofline = roofline_figure(f"{anchor}-roof", result, card)
    scaling, left_out = scaling_figures(f"{anchor}-scale", result)
    strip = telemetry_figure(f"{anchor}-tele", result)
    telemetry, correctness = telemetry_table(result), correctness_table(result)
    rivals, calls = rivals_table(result), calls_table(result)
    clauses, slowdown = clause_tables(result), slowdown_table(result)
    sections = [
        Section(f"{anchor}-roofline", "Roofline", figures=() if roofline is None else (roofline,)),
        Section(
            f"{anchor}-slowdown", "Against the other version", tables=() if slowdown is None else (slowdown,)
        ),
        Section(f"{anchor}-kernels", "Kernels", tables=kernel_tables(result, shown, anchor)),
        Section(f"{anchor}-rivals", "Beside others", tables=() if rivals is None else (rivals,)),
        Section(f"{anchor}-scaling", "Scaling", left_out, figures=scaling, panels=True),
        Section(f"{anchor}-contracts", "Contract clauses", tables=clauses),
        Section(
            f"{anchor}-correctness",
            "Correctness",
            "Over all checked calls, before and after timing.",
            tables=() if correctness is None else (correctness,),
        ),
        Section(
            f"{anchor}-telemetry",
            "Telemetry",
            figures=() if strip is None else (strip,),
            tables=() if telemetry is None else (telemetry,),
        ),
        Section(f"{anchor}-calls", "How it was timed", tables=() if calls is None else (calls,)),
        Section(
            f"{anchor}-environment",
            "Environment and provenance",
            tables=provenance_tables(result),
            panels=True,
        ),
        Section(f"{anchor}-again", "Run it again", tables=(repro_table(result),) if result.cases else ()),
    ]
    return [section for section in sections if section.figures or section.tables]
