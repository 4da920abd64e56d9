import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kmrun.core.measurement import Finding
from kmrun.report.table import WIDTH, coloured, encodable, render
from kmrun.report.view import view
from support.cases import clause, make_case, make_found
from support.results import make_entry, make_result

WRONG = Finding(
    "wrong-result",
    "o differs from the fp64 reference by 3.1e-2 (allowed 2.1e-3), worst at [12, 7]: 0.418 for 0.449",
    "kernel",
    "fail",
    "Traceback\n  here",
)


def entry(kernel="add", ms=20.0, clauses=(), found=None, **axes):
    case_id = f"{kernel}[{','.join(f'{name}={value}' for name, value in axes.items())}]"
    case = make_case(
        id=case_id, kernel=kernel, axes=axes, shown_axes=tuple(axes), clauses=clauses, flops=10**9
    )
    samples = tuple(ms * 1e6 * (1 + ((i * 7) % 41 - 20) * 1e-4) for i in range(41))
    return make_entry(case, make_found(**({"samples_ns": samples} | (found or {}))))


def a_result():
    wrong = {"findings": (WRONG,), "correct": False, "samples_ns": (), "rivals": ()}
    return make_result(
        entry(s=512, ms=12.0),
        entry(s=4096, ms=120.0, clauses=(clause("min_ceiling", 0.5),)),
        entry("norm", n=8, found=wrong),
    )


WHOLE = """\
adding      Test CPU · 8 threads · torch 2.13.0 · cold cache, paired
ceilings    20.0 GB/s read · 200 GFLOP/s fp32 · 100 GFLOP/s bf16 · 90.0 GFLOP/s fp64
            measured now, 0.3 s

kernel  case       time      ±  GB/s  GFLOP/s  bound  %ceil  vs ref  contract
add     s=512   12.0 ms  0.1 %  16.7     83.3  mem     83 %    2.0x  pass
        s=4096   120 ms  0.1 %  1.67     8.33  mem      8 %    2.0x  FAIL min_ceiling 0.5
norm    n=8           -      -     -        -  -          -       -  WRONG

3 cases in 12 s: 1 pass, 1 fail, 1 wrong                                                      exit 1

FAIL   add[s=4096]                                                                 suites/add.yaml:7
       min_ceiling 0.5: 0.0833 (0.0832 to 0.0835)
       kmrun suites/add.yaml -k 'add[s=4096]' --seed 7

WRONG  norm[n=8]                                                                   suites/add.yaml:5
       o differs from the fp64 reference by 3.1e-2 (allowed 2.1e-3), worst at [12, 7]: 0.418 for
       0.449
       | Traceback
       |   here
       kmrun suites/add.yaml -k 'norm[n=8]' --seed 7
"""


def test_the_whole_scorecard():
    assert render(view(a_result()), 1) == WHOLE


def test_colour_changes_nothing_but_colour():
    painted = render(view(a_result()), 1, coloured)
    assert "\x1b[1;31mWRONG\x1b[0m" in painted
    assert re.sub(r"\x1b\[[\d;]*m", "", painted) == WHOLE


names = st.text("abcdefgh_", min_size=1, max_size=40)


@given(names, names, st.floats(1e-4, 1e5), st.integers(1, 10**12), st.booleans())
def test_it_fits_100_columns(kernel, axis, ms, value, broken):
    clauses = (clause("min_ceiling", 0.123456),) if broken else ()
    shown = view(make_result(entry(kernel, ms, clauses, **{axis: value}), entry(kernel, ms, **{axis: 1})))
    text = render(shown, 0)
    commands = [line for line in text.splitlines() if line.lstrip().startswith("kmrun ")]
    for line in text.splitlines():
        if line not in commands and not line.lstrip().startswith("FAIL"):
            assert len(line) <= WIDTH


def test_a_narrow_terminal_drops_what_counts_least():
    text = render(view(a_result()), width=60)
    head = next(line for line in text.splitlines() if line.startswith("kernel"))
    assert "bound" not in head
    assert "contract" in head
    assert len(head) <= 60


def test_a_broken_promise_outlasts_the_column_that_counts_least():
    cells = [
        entry("softmax", 20.0, (clause("max_ms", 1.0),), dtype="fp32", rows=rows, columns=4096 * rows)
        for rows in (1, 2)
    ]
    table = render(view(make_result(*cells)), width=91).splitlines()
    head = next(line for line in table if line.startswith("kernel"))
    assert "bound" not in head
    assert sum(line.endswith("FAIL max_ms 1") for line in table) == 2


def test_a_long_id_puts_its_place_below():
    text = render(view(make_result(entry("k" * 90, clauses=(clause("max_ms", 1.0),), s=1))), 1)
    assert "\n       suites/add.yaml:7\n" in text


def test_more_broken_cases_than_anyone_reads_are_counted():
    cases = [entry(s=size, ms=20.0 + size, clauses=(clause("max_ms", 1.0),)) for size in range(25)]
    text = render(view(make_result(*cases)), 1)
    assert text.count("\nFAIL ") == 20
    assert text.endswith("\nand 5 more: --json has every one of them\n")


def test_an_empty_result_is_only_a_summary():
    from dataclasses import replace

    text = render(view(replace(make_result(), cases=(), complete=False)), 130)
    assert "kernel" not in text
    assert "interrupted, partial: 0 cases in 12 s" in text


@pytest.mark.parametrize(
    ("encoding", "said"),
    [("utf-8", "± 1 · a…"), ("ascii", "+- 1 | a~"), (None, "+- 1 | a~"), ("no-such", "+- 1 | a~")],
)
def test_a_terminal_that_lacks_a_sign_gets_ascii(encoding, said):
    assert encodable("± 1 · a…", encoding) == said


def sizes(**more):
    """Return four long cases that differ in their last axis only by pairs."""
    return [
        entry("attention_decode", 20.0 + n, (clause("max_slowdown", 0.03),), batch=n, kv_heads=8 * n, **axes)
        for n in (64, 128)
        for axes in ({"layout": "paged", "causal": False}, {"layout": "paged", "causal": True})
    ]


def test_what_the_columns_leave_free_goes_to_the_names():
    shown = view(make_result(*sizes()))
    for width in range(60, 101):
        table = [
            line for line in render(shown, width=width).splitlines() if " GB/s  " in line or "batch=" in line
        ]
        widest = max(map(len, table))
        assert len(table) == 5
        assert widest <= width
        assert widest == width or not any("…" in line for line in table)
    assert "…" not in render(shown)


def test_cases_are_told_apart_as_long_as_a_column_can_go():
    shown = view(make_result(*sizes()))
    for width in range(86, 101):
        rows = [line for line in render(shown, width=width).splitlines() if "batch=" in line]
        cells = (re.search(r"(batch=.*?)  ", row) for row in rows)
        assert len({cell[1].rstrip("…") for cell in cells if cell is not None}) == 4
