import shlex
from dataclasses import replace

import pytest

from kmrun.core.entries import device_entry
from kmrun.core.measurement import Finding
from kmrun.core.score import Roofs
from kmrun.core.slowdown import Slowdown
from kmrun.report.table import render
from kmrun.report.view import repro, view
from kmrun.report.words import LABELS, axes_label, case_labels, word_of
from support.cases import GPU, clause, make_case, make_found, make_rival
from support.results import make_entry, make_result

WRONG = Finding("wrong-result", "o differs", "kernel", "fail")
SKIP = Finding("missing-module", "needs triton", "environment", "skipped")


def entry(kernel="add", found=None, clauses=(), **axes):
    case_id = f"{kernel}[{','.join(f'{name}={value}' for name, value in axes.items())}]"
    case = make_case(id=case_id, kernel=kernel, axes=axes, shown_axes=tuple(axes), clauses=clauses)
    return make_entry(case, make_found(**(found or {})))


def cells(shown, name):
    index = [column.name for column in shown.columns].index(name)
    return [row.cells[index] for row in shown.rows]


@pytest.mark.parametrize(
    ("axes", "label"),
    [
        ({"s": 4096, "dtype": "bf16", "causal": True}, "s=4096 bf16 causal"),
        ({"s": 4096, "causal": False}, "s=4096"),
        ({"causal": False}, "causal=false"),
        ({"lens": [1, 2, 3]}, "lens=<3>"),
        ({"layout": "nhwc"}, "layout=nhwc"),
        ({}, ""),
    ],
)
def test_axes_label(axes, label):
    assert axes_label(axes, list(axes)) == label


def test_only_the_axes_that_vary_within_a_kernel_are_shown():
    cases = [entry(b=1, s=512), entry(b=1, s=1024), entry("other", b=1, s=512)]
    assert case_labels(cases) == ["s=512", "s=1024", "b=1 s=512"]


def test_an_axis_that_one_row_lacks_varies():
    assert case_labels([entry(s=2), entry(s=2, g=3)]) == ["", "g=3"]


def test_columns_that_do_not_apply_are_left_out():
    shown = view(make_result(entry(s=1)))
    assert [column.name for column in shown.columns] == [
        *("kernel", "case", "time", "±", "GB/s", "MFLOP/s", "bound", "%ceil", "vs ref", "contract")
    ]
    assert cells(shown, "time") == ["20.0 ms"]
    assert cells(shown, "GB/s") == ["10.0"]
    assert cells(shown, "%ceil") == ["50 %"]
    assert cells(shown, "vs ref") == ["2.0x"]


def test_the_roof_column_comes_with_a_card():
    case = make_entry(device=GPU, roofs=Roofs(1e11, 1e13, 1e13, 1e13, "l4"))
    shown = view(make_result(case, device=device_entry(GPU, "l4")))
    assert cells(shown, "%roof") == ["10 %"]
    assert shown.device == ("Test GPU (l4)", "torch 2.13.0", "cold L2, sustained clocks, paired")


def test_speedups_against_different_rivals_are_named():
    cases = [entry(s=1), entry(s=2, found={"rivals": (make_rival("eager", "versus", 12.0),)})]
    assert cells(view(make_result(*cases)), "speedup") == ["2.0x ref", "12.0x eager"]


def test_words_of_verdicts():
    assert word_of(entry(s=1)) == "pass"
    assert word_of(entry(s=1, clauses=(clause("max_ms", 1.0),))) == "FAIL"
    assert word_of(entry(s=1, clauses=(clause("max_ms", 20.0),))) == "INCONCLUSIVE"
    assert word_of(entry(found={"findings": (WRONG,), "correct": False, "samples_ns": ()})) == "WRONG"
    assert word_of(entry(found={"findings": (SKIP,), "samples_ns": ()})) == "skipped"


def test_the_contract_names_the_broken_clause_and_counts_the_others():
    clauses = (clause("max_ms", 1.0), clause("min_ceiling", 0.9), clause("min_speedup", 1.0))
    assert cells(view(make_result(entry(s=1, clauses=clauses))), "contract") == ["FAIL max_ms 1 +1"]


def test_an_implausible_speed_is_not_in_the_table():
    fast = make_found(samples_ns=tuple(1e3 + i for i in range(20)))
    case = make_entry(found=fast, device=GPU, roofs=Roofs(1e11, 1e13, 1e13, 1e13, "l4"))
    assert case.median_ms is not None
    shown = view(make_result(case, entry(s=2)))
    assert cells(shown, "time") == ["-", "20.0 ms"]
    assert cells(shown, "contract") == ["ERROR", "pass"]
    assert "times the compute roof" in shown.paragraphs[0].sentences[0]


def test_a_case_without_a_speed_has_dashes():
    wrong = entry(s=1, found={"findings": (WRONG,), "correct": False, "samples_ns": (), "rivals": ()})
    shown = view(make_result(wrong, entry(s=2)))
    assert cells(shown, "time") == ["-", "20.0 ms"]
    assert cells(shown, "contract") == ["WRONG", "pass"]


def test_head_lines():
    shown = view(make_result())
    assert shown.device == ("Test CPU", "8 threads", "torch 2.13.0", "cold cache, paired")
    assert shown.ceilings == (
        *("20.0 GB/s read", "200 GFLOP/s fp32", "100 GFLOP/s bf16", "90.0 GFLOP/s fp64"),
        "measured now, 0.3 s",
    )
    bare = view(make_result(ceilings=replace(make_result().ceilings, bandwidths=())))
    assert bare.ceilings == ()


def test_labels_are_explained_once_with_their_number():
    cases = [entry(s=1, found={"labels": ("unisolated",)}), entry(s=2, found={"labels": ("odd",)})]
    assert view(make_result(*cases)).notes == (
        f"unisolated (1 case): {LABELS['unisolated']}",
        "odd (1 case)",
    )


def test_equal_warnings_are_one_note():
    cases = [entry(s=size, clauses=(clause("max_slowdown", 0.03),)) for size in (1, 2)]
    (note,) = view(make_result(*cases)).notes
    assert note.startswith("warning: not judged: max_slowdown 0.03 (")
    assert note.endswith(", all cases")


def test_a_paragraph_has_the_place_of_the_clause_and_a_command_that_repeats_the_case():
    (told,) = view(make_result(entry(s=1, clauses=(clause("max_ms", 1.0),)))).paragraphs
    assert (told.word, told.case_id, told.place) == ("FAIL", "add[s=1]", "suites/add.yaml:7")
    assert told.sentences == ("max_ms 1: 20.0 ms (20.0 to 20.0)",)
    assert shlex.split(told.repro) == ["kmrun", "suites/add.yaml", "-k", "add[s=1]", "--seed", "7"]


def test_a_wrong_kernel_points_at_the_kernel_and_shows_the_tail():
    long = replace(WRONG, detail="\n".join(f"line {i}" for i in range(20)))
    wrong = entry(
        found={"findings": (long,), "correct": False, "samples_ns": ()}, clauses=(clause("max_ms", 1),)
    )
    (told,) = view(make_result(wrong)).paragraphs
    assert told.place == "suites/add.yaml:5"
    assert told.detail == tuple(f"line {i}" for i in range(12, 20))


def test_of_a_crash_the_innermost_calls_are_shown():
    frames = "\n".join(f'  File "k.py", line {i} in f' for i in range(20))
    text = f"printed before\nFatal Python error: Segmentation fault\n\nThread 1 (most recent call first):\n{frames}"
    crash = Finding("signal", "the kernel crashed with SIGSEGV", "kernel", "error", text)
    (told,) = view(make_result(entry(found={"findings": (crash,), "samples_ns": ()}))).paragraphs
    assert told.detail[:2] == ("Thread 1 (most recent call first):", '  File "k.py", line 0 in f')
    assert len(told.detail) == 8


def test_a_wrong_shape_is_a_wrong_result_but_a_broken_promise_is_not():
    shape = Finding("output_shape", "o has shape [3], the reference's is [4]", "kernel", "fail")
    wrong = entry(s=1, found={"findings": (shape,), "correct": None, "samples_ns": (), "rivals": ()})
    broken = entry(s=2, clauses=(clause("max_ms", 1.0),))
    assert cells(view(make_result(wrong, broken)), "contract") == ["WRONG", "FAIL max_ms 1"]


@pytest.mark.parametrize(
    ("rates", "head", "shown"),
    [
        ((11.5, 0.267), "GB/s", ["11.5", "0.267"]),
        ((0.5, 0.267), "MB/s", ["500", "267"]),
        ((1100.0, 11.0), "TB/s", ["1.10", "0.0110"]),
        ((1100.0, 1.0), "GB/s", ["1100", "1.00"]),
    ],
)
def test_rates_are_told_in_the_unit_of_the_highest(rates, head, shown):
    cases = [replace(entry(s=size), gb_per_s=rate) for size, rate in enumerate(rates)]
    assert cells(view(make_result(*cases)), head) == shown


def test_what_was_skipped_for_one_reason_is_told_once():
    cases = [entry(s=size, found={"findings": (SKIP,), "samples_ns": ()}) for size in (1, 2, 3)]
    (told,) = view(make_result(*cases)).paragraphs
    assert (told.case_id, told.sentences) == ("add[s=1] and 2 more", ("needs triton",))


def test_what_stops_many_cases_is_told_once():
    raised = Finding("raised", "the kernel raised ValueError: no", "kernel", "error", "Traceback")
    broken = {"findings": (raised,), "samples_ns": ()}
    cases = [entry(s=1, found=broken), entry(s=2), entry(s=3, found=broken)]
    (told,) = view(make_result(*cases)).paragraphs
    assert (told.word, told.case_id) == ("ERROR", "add[s=1] and 1 more")
    assert shlex.split(told.repro)[3] == "add[s=1]"


def test_what_others_wrote_cannot_reach_the_terminal():
    loud = Finding("raised", "it raised \udcff\0\x1b[31mred", "kernel", "error", "a\x1b[2Jb\n\u202ec")
    broken = entry(s=1, found={"findings": (loud,), "samples_ns": (), "labels": ("odd\x07",)})
    result = make_result(broken)
    result = replace(
        result,
        suite=replace(result.suite, name="a\rb", file="bad\udcff.yaml"),
        device=replace(result.device, name="CPU\x1b]0;title\x07"),
        environment={"torch": "2\x9b31m"},
    )
    text = render(view(result), 1)
    assert all(char.isprintable() for char in text.replace("\n", ""))
    assert "it raised \ufffd\ufffd\ufffd[31mred" in text
    assert "kmrun $'bad\\xff.yaml' -k 'add[s=1]' --seed 7" in text


def test_the_command_keeps_the_device():
    result = make_result(command=("kmrun", "a.yaml", "--device", "cuda:1"))
    assert "--device cuda:1" in repro(result, "x")


def test_the_summary_counts_words_and_says_when_it_is_partial():
    cases = [entry(s=1), entry(s=2, clauses=(clause("max_ms", 1.0),))]
    assert view(make_result(*cases)).summary == "2 cases in 12 s: 1 pass, 1 fail"
    assert view(make_result(complete=False)).summary == "interrupted, partial: 1 case in 12 s: 1 pass"


def test_the_command_compares_with_the_same_version_again():
    command = ("kmrun", "suites/add.yaml", "--against", "HEAD~1", "--device", "cpu", "--build", "make it")
    told = repro(make_result(command=command), "add[s=1]")
    assert told == (
        "kmrun suites/add.yaml -k 'add[s=1]' --device cpu --against 'HEAD~1' --build 'make it' --seed 7"
    )


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        (["--against=main", "--build=make it"], "--against main --build 'make it'"),
        (["--against-baseline"], "--against-baseline"),
        (["--compare", "before.json"], "--compare before.json"),
        (["--save-baseline"], ""),
        (["--quick", "--isolation", "inline", "--no-flush-l2"], "--isolation inline --quick --no-flush-l2"),
        (["--cards=a.yaml", "--cards", "b.yaml", "--card=x"], "--card x --cards a.yaml --cards b.yaml"),
        (["--hot-and-cold", "--lock-clocks", "--seed", "3"], "--hot-and-cold --lock-clocks"),
        (["--against", "v1", "--against=v2"], "--against v2"),  # the last one counts
    ],
)
def test_the_command_measures_in_the_same_way_however_that_was_spelled(given, kept):
    told = repro(make_result(command=("kmrun", "suites/add.yaml", *given)), "add")
    assert told == " ".join(filter(None, ["kmrun suites/add.yaml -k add", kept, "--seed 7"]))


@pytest.mark.parametrize("seed", [["--seed", "3"], ["--seed=3"], []])
def test_the_command_without_a_suite_has_one_seed(seed):
    result = make_result(command=("kmrun", "time", "k.py:f", *seed, "--quick"))
    result = replace(result, suite=replace(result.suite, file=None))
    assert repro(result, "f") == "kmrun time k.py:f --quick --seed 7"


def test_what_held_against_another_version_says_within_what_and_from_what_on_it_would_have_been_too_slow():
    def held(size, high, visible, verdict="holds"):
        compared = Slowdown("main", "alternated", 0.03, verdict, 0.001, -0.01, high, visible)
        return entry(s=size, found={"slowdown": compared})

    cases = [held(1, 0.012, 0.046), held(2, 0.021, 0.041), held(3, 0.3, 0.4, "inconclusive"), entry(s=4)]
    said = (
        "max_slowdown held (2 cases): at most 2.1 % slower (95 %); called too slow from a measured 4.6 % on"
    )
    assert said in view(make_result(*cases)).notes
    assert not any("max_slowdown" in note for note in view(make_result(*cases[2:])).notes)
