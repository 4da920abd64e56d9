"""The pages as text: sections, order, tables, and what is folded."""

import copy
import re
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kmrun.core.peaks import BANDWIDTH, peaks
from kmrun.core.plain import to_plain
from kmrun.core.result import Reason
from kmrun.core.slowdown import Slowdown
from kmrun.core.units import format_number
from kmrun.errors import InvalidInput
from kmrun.report.html import is_report, page_of, result_page
from kmrun.report.html_card import card_parts, known_limits
from kmrun.report.html_compare import headings_of
from kmrun.report.html_parts import Cell, Head, Line, Table, hoisted
from kmrun.report.html_run import banner_of
from kmrun.report.numbers import percent, readable
from kmrun.source.catalogue import load_cards
from kmrun.store.results import parse
from support.gpu_results import broken, gpu_result
from support.markup import parsed
from support.results import make_entry, make_result

CARD = load_cards().card("h100-sxm")
CARDS = {CARD.id: CARD}


def undecided(case):
    return replace(
        case, verdict="inconclusive", reasons=(Reason("min_roof", "undecided", "undecided", "inconclusive"),)
    )


def with_cases(result, *changed):
    return replace(result, cases=(*changed, *result.cases[len(changed) :]))


def section(page, heading):
    return next(item for item in page.all("section") if item.all("h2")[0].text == heading)


def test_broken_clauses_come_first():
    run = gpu_result()
    run = with_cases(run, undecided(run.cases[0]), broken(run.cases[1]), broken(run.cases[2], "another"))
    page = parsed(result_page([run], CARDS))
    headings = [item.text for item in page.all("h2")]
    assert headings == [
        "What to look at",
        "Roofline",
        "Kernels",
        "Beside others",
        "Scaling",
        "Contract clauses",
        "Correctness",
        "Telemetry",
        "How it was timed",
        "Environment and provenance",
        "Run it again",
        "What the numbers are",
    ]
    assert [item.all("span", class_="chip")[0].text for item in page.all("article")] == [
        "✕ FAIL",
        "✕ FAIL",
        "? INCONCLUSIVE",
    ]
    clauses = section(page, "Contract clauses").all("table")
    assert [row.all("th")[0].text for row in clauses[0].all("tbody")[0].all("tr")] == [
        "sdpa s=256 fp16",
        "sdpa s=512 bf16",
    ]
    assert clauses[1].under("details")


@pytest.mark.parametrize(
    ("change", "word", "css"),
    [
        (lambda case: case, "All contracts hold", "pass"),
        (broken, "A contract is broken", "fail"),
        (undecided, "Nothing broken, something undecided", "warn"),
        (lambda case: replace(case, verdict="error"), "A case could not be measured", "fail"),
        (lambda case: replace(broken(case), correct=False), "A result is wrong", "fail"),
        (lambda case: replace(case, verdict="skipped"), "Nothing was measured", "skip"),
    ],
)
def test_the_banner_says_the_worst(change, word, css):
    banner = banner_of(make_result(change(make_entry())))
    assert (banner.word, banner.css) == (word, css)
    assert banner.sign == {"pass": "✓", "fail": "✕", "warn": "?", "skip": "\u2013"}[css]


def test_an_interrupted_run_says_so():
    banner = banner_of(make_result(complete=False))
    assert (banner.word, banner.css) == ("Interrupted: only a part was measured", "warn")
    assert banner.sentence.endswith("The run was interrupted: this is a part of it.")


def test_the_table_of_runs_marks_the_partial_one():
    page = parsed(result_page([make_result(), make_result(complete=False)], {}))
    rows = section(page, "Side by side").all("table")[0].all("tbody")[0].all("tr")
    assert "All contracts hold" in rows[0].text
    assert "partial" not in rows[0].text
    assert "Interrupted: only a part was measured" in rows[1].text
    failed = make_result(broken(make_entry()), complete=False)
    page = parsed(result_page([make_result(), failed], {}))
    rows = section(page, "Side by side").all("table")[0].all("tbody")[0].all("tr")
    assert "A contract is broken interrupted, partial" in rows[1].text


def test_a_wrong_result_uses_no_tolerance():
    right = make_entry()
    (check,) = right.checks
    off = replace(
        right, id="off", verdict="fail", correct=False, checks=(replace(check, ok=False, error=3e5),)
    )
    page = parsed(result_page([make_result(right, off)], {}))
    tiles = {tile.all("dt")[0].text: tile.text for tile in page.all("div", class_="tile")}
    used = percent(check.error / check.allowed)
    assert used in tiles["most used of a tolerance"]
    only = parsed(result_page([make_result(off)], {}))
    assert "most used of a tolerance" not in [item.text for item in only.all("dt")]


def test_every_case_has_its_row_its_samples_and_its_command():
    run = gpu_result()
    page = parsed(result_page([run], CARDS))
    rows = [row for table in page.all("table", class_="cases") for row in table.all("tbody")[0].all("tr")]
    assert [row.attributes["id"] for row in rows] == [f"r1-c{index}" for index in range(1, 33)]
    assert [row.all("th")[0].attributes["title"] for row in rows] == [case.id for case in run.cases]
    assert all(len(row.all("svg", class_="small")) == 1 for row in rows)
    commands = [item.text for item in section(page, "Run it again").all("code")]
    assert commands == [f"kmrun suites/add.yaml -k '{case.id}' --seed 7" for case in run.cases]


def test_the_speed_of_what_is_wrong_or_implausible_is_shown_nowhere():
    entry = make_entry()
    for change in ({"verdict": "error"}, {"verdict": "fail", "correct": False}):
        page = parsed(result_page([make_result(replace(entry, **change))], {}))
        assert page.all("svg", class_="small") == []
        assert page.all("g", class_="points")[0].children == []


def test_an_axis_of_three_sizes_is_plotted_one_line_an_implementation():
    page = parsed(result_page([gpu_result(sizes=3)], CARDS))
    figures = section(page, "Scaling").all("figure")
    assert len(figures) == 4 * 2 * 2
    assert [item.text for item in figures[0].all("li")] == ["sdpa", "eager", "compiled"]
    assert len(figures[0].all("svg", class_="lines")[0].all("path", class_="line")) == 3
    assert not [
        item for item in parsed(result_page([gpu_result(sizes=2)], CARDS)).all("h2") if item.text == "Scaling"
    ]


def test_more_combinations_than_there_is_room_for_are_counted():
    run = gpu_result(sizes=3)
    cases = [
        replace(case, id=f"{case.id}{extra}", kernel="k", axes={**case.axes, "extra": extra})
        for extra in range(3)
        for case in run.cases[:6]
    ]
    many = [
        replace(case, id=f"{case.id}{more}", axes={**case.axes, "more": more})
        for more in "abcd"
        for case in cases
    ]
    page = parsed(result_page([replace(run, cases=tuple(many))], CARDS))
    assert "further combinations of other axes are in the tables only." in section(page, "Scaling").text


def test_a_comparison_with_another_version():
    slow = Slowdown("HEAD~1", "alternated", 0.05, "broken", 0.09, 0.07, 0.11, 0.03, 24, 10)
    slow = replace(slow, median=0.12, p95=0.34)
    fine = replace(slow, verdict="holds", slowdown=-0.01, low=-0.02, high=0.01, median=0.0, p95=None)
    run = gpu_result()
    run = replace(
        run,
        cases=tuple(replace(case, slowdown=slow if at == 5 else fine) for at, case in enumerate(run.cases)),
    )
    table = section(parsed(result_page([run], CARDS)), "Against the other version")
    rows = table.all("tbody")[0].all("tr")
    assert len(rows) == 32
    assert rows[0].text.startswith("sdpa s=1024 fp16+9.0 %")
    assert rows[0].text.endswith("+12 %+34 %✕ broken")
    assert "0.0 %-" in rows[1].text
    assert len(table.all("svg", class_="interval")) == 32
    assert (
        "In every row: allowed +5.0 %, visible +3.0 %, blocks 24, processes 10, against HEAD~1 (alternated)."
        in table.text
    )


def test_every_rival_has_a_row_and_what_is_around_a_call_is_told():
    page = parsed(result_page([gpu_result()], CARDS))
    rivals = section(page, "Beside others")
    rows = rivals.all("tbody")[0].all("tr")
    assert len(rows) == 64
    assert rows[0].text.startswith("sdpa s=256 bf16eagerreference")
    assert "2.50x" in rows[0].text
    assert "In every row: timed alternately." in rivals.text
    assert rivals.all("details")
    calls = section(page, "How it was timed")
    assert len(calls.all("tbody")[0].all("tr")) == 32
    assert "caches cold, clock sustained, isolation paired, exchange shm" in calls.text


def test_telemetry_is_drawn_and_told():
    telemetry = section(parsed(result_page([gpu_result()], CARDS)), "Telemetry")
    assert len(telemetry.all("svg", class_="strip")) == 2
    assert len(telemetry.all("tbody")[0].all("tr")) == 32
    assert "1695 of 1980" in telemetry.text
    assert (
        "In every row: memory MHz 2619, \N{DEGREE SIGN}C 64, mJ/call 210, slowed by power cap 80 %"
        in telemetry.text
    )
    assert "Telemetry" not in [heading.text for heading in parsed(result_page([make_result()], {})).all("h2")]


def test_results_of_one_suite_stand_side_by_side():
    first = gpu_result(environment={"git": {"commit": "a" * 40, "dirty": False}})
    other = gpu_result(seed=8, environment={"git": {"commit": "b" * 40, "dirty": True}})
    other = replace(other, cases=other.cases[:-1])
    page = parsed(result_page([first, other], CARDS))
    assert [item.text for item in page.all("nav")[0].all("a")] == [
        "Side by side",
        "aaaaaaaaa",
        "bbbbbbbbb + changes",
    ]
    table = section(page, "Side by side").all("table")[1]
    assert [item.text for item in table.all("th", scope="colgroup")] == ["aaaaaaaaa", "bbbbbbbbb + changes"]
    rows = table.all("tbody")[0].all("tr")
    assert len(rows) == 32
    base, own = first.cases[0].median_ms, other.cases[0].median_ms
    assert f"{format_number(base / own)}x" in rows[0].text
    assert rows[-1].text.endswith("-" * 4 + "-")
    said = section(page, "Side by side").text
    assert "geometric mean over 31 cases" in said
    assert "may be the machine, not the kernel" in said


def test_of_more_than_two_runs_each_has_a_row_of_its_own_under_the_case():
    runs = [gpu_result(sizes=1, seed=seed) for seed in range(4)]
    runs[2] = replace(runs[2], cases=runs[2].cases[1:])
    table = section(parsed(result_page(runs, CARDS)), "Side by side").all("table")[1]
    rows = table.all("tbody")[0].all("tr")
    assert [head.text for head in table.all("th", scope="col")] == [
        "case", "run", "time", "%roof", "%ceil", "vs first", "verdict",
    ]  # fmt: skip
    assert [row.all("th")[0].text for row in rows] == [f"adding ({at})" for at in (1, 2, 3, 4)] * 8
    cells = [[cell.text for cell in row.all("td")] for row in rows[:4]]
    assert [row[0] for row in cells] == ["sdpa bf16", "", "", ""]
    first, other = (runs[at].cases[0].median_ms for at in (0, 1))
    assert [row[4] for row in cells] == ["-", f"{format_number(first / other)}x", "-", cells[3][4]]
    assert cells[3][4].endswith("x")
    assert cells[2][1:] == ["-"] * 5


def test_results_of_different_suites_are_not_compared():
    one, other = make_result(), make_result()
    other = replace(other, suite=replace(other.suite, name="other"))
    page = page_of([one, other], {})
    assert page.overview is not None
    assert [table.caption for table in page.overview.tables] == ["Runs on this page"]
    assert page.title == "adding, other"


def test_a_changed_suite_is_told():
    one = make_result()
    other = replace(one, started="2026-03-03T00:00:00+00:00", suite=replace(one.suite, digest="1" * 64))
    assert "may not be the same work" in parsed(result_page([one, other], {})).text


@pytest.mark.parametrize(
    ("changes", "names"),
    [
        (({}, {}), ["adding (1)", "adding (2)"]),
        (({}, {"started": "2026-02-02T00:00:00+00:00"}), ["2026-01-02 03:04:05", "2026-02-02 00:00:00"]),
        (({}, {"environment": {"torch": "3.0"}}), ["torch 2.13.0", "torch 3.0"]),
        (({}, {"environment": {"torch": "2.13.0", "git": {"commit": "c" * 40}}}), ["no commit", "ccccccccc"]),
    ],
)
def test_runs_are_called_by_what_differs(changes, names):
    assert headings_of([make_result(**change) for change in changes]) == names


def test_a_document_without_cases_is_a_page():
    page = parsed(result_page([replace(make_result(), cases=(), complete=False)], {}))
    assert page.all("p", class_="word")[0].text == "Interrupted: nothing was measured"


def test_columns_that_never_vary_are_said_once():
    lines = tuple(Line((Cell(str(at)), Cell("5"), Cell(str(at * 2)), Cell("pass"))) for at in range(5))
    table = hoisted(
        Table("t", (Head("case"), Head("blocks"), Head("x"), Head("verdict")), lines), ("case", "verdict")
    )
    assert [head.text for head in table.heads] == ["case", "x", "verdict"]
    assert table.note == "In every row: blocks 5."
    short = Table("t", table.heads, table.lines[:2])
    assert hoisted(short, ()) == short


def test_a_page_of_ours_is_known_again():
    assert is_report(result_page([make_result()], {}).encode())
    assert not is_report(b"<!doctype html><title>mine</title>")


def leaves(plain, path=()):
    """The path of every number in a document."""
    if isinstance(plain, dict | list):
        for key, inner in plain.items() if isinstance(plain, dict) else enumerate(plain):
            yield from leaves(inner, (*path, key))
    elif isinstance(plain, int | float) and not isinstance(plain, bool):
        yield path


DOCUMENT = to_plain(gpu_result(sizes=3, samples=5))
LEAVES = list(leaves(DOCUMENT))
DIGEST = DOCUMENT["suite"]["digest"]
EXTREMES = st.sampled_from([0.0, 5e-324, 1e-300, 1e-9, 1e300, 1.7e308, -1.0, 12345678901234567890])


@settings(max_examples=40)
@given(st.lists(st.tuples(st.sampled_from(LEAVES), EXTREMES), min_size=1, max_size=6))
def test_whatever_numbers_a_document_holds_it_is_refused_or_shown(changes):
    plain = copy.deepcopy(DOCUMENT)
    for path, value in changes:
        inner = plain
        for key in path[:-1]:
            inner = inner[key]
        inner[path[-1]] = value
    try:
        result = parse(plain, "edited.json")
    except InvalidInput:
        return
    page = parsed(result_page([result], CARDS))
    rows = [row for table in page.all("table", class_="cases") for row in table.all("tbody")[0].all("tr")]
    assert [row.all("th")[0].attributes["title"] for row in rows] == [case.id for case in result.cases]
    shown = [text for item in page.all("body")[0].all() for text in item.own if isinstance(text, str)]
    bad = re.compile(r"(?<![\w.])(?:inf|nan|None)\b|\d{22,}")
    assert [text for text in shown if bad.search(text.replace(DIGEST, ""))] == []


def test_how_many_marks_carry_their_number_is_said():
    figure = parsed(result_page([gpu_result(sizes=12, samples=9)], CARDS)).all("figure")[0]
    (wide, _) = figure.all("svg", class_="roofline")
    numbered = [item for item in wide.all("g", class_="labels")[0].all("text") if item.text.isdigit()]
    said = figure.all("figcaption")[0].text
    assert 0 < len(numbered) < 96
    assert f"{len(numbered)} of 96 marks carry theirs: the broken first, then those that stand alone." in said


def test_a_clause_whose_line_nobody_knows_is_placed_in_its_file():
    case = broken(make_entry())
    clause = replace(case.clauses[0], line=None)
    page = parsed(result_page([make_result(replace(case, clauses=(clause,)))], {}))
    row = section(page, "Contract clauses").all("tbody")[0].all("tr")[0]
    assert row.all("td")[-1].text == "suites/attention.yaml"


def test_a_card_begins_with_its_ridge():
    found = peaks(CARD)
    tiles = {tile.name: tile for tile in card_parts(CARD, found, "of the database", known_limits(CARD)).tiles}
    tile = tiles["ridge point"]
    ridge = found.values["bf16_tensor_tflops"] / found.values[BANDWIDTH]
    assert (tile.value, tile.unit, tile.note) == (readable(ridge), "flop/byte", "of bf16 tensor")
