from dataclasses import replace

from kmrun.core.measurement import Finding
from kmrun.report.annotations import MOST, annotations
from support.cases import clause, make_case, make_found
from support.results import make_entry, make_result

SLOW = clause("max_ms", 1.0, place=("kernels", 0, "contract", 1))


def entry(name, *findings, **changes):
    return make_entry(make_case(id=name, **changes), make_found(findings=findings))


def finding(outcome, sentence="it broke"):
    return Finding("some-code", sentence, "kernel", outcome)


def test_a_broken_clause_is_an_error_at_its_own_line():
    (told,) = annotations([make_result(entry("k[n=1]", clauses=(SLOW,)), entry("k[n=2]"))])
    assert told.startswith("::error file=suites/add.yaml,line=7,title=FAIL k[n=1]::max_ms 1: 20")


def test_what_is_undecided_is_a_warning_at_the_kernel():
    (told,) = annotations([make_result(entry("k[n=1]", finding("inconclusive")))], lambda file: f"sub/{file}")
    assert told == "::warning file=sub/suites/add.yaml,line=5,title=INCONCLUSIVE k[n=1]::it broke"


def test_names_cannot_start_a_command_of_their_own():
    (told,) = annotations(
        [make_result(entry("k\n::set-output a,b:c%", finding("error", "x\n::error::y\x1b[1m")))]
    )
    assert "\n" not in told
    assert "title=ERROR k%0A%3A%3Aset-output a%2Cb%3Ac%25::x%0A::error::y\ufffd[1m" in told


def test_a_case_without_a_file_is_told_too():
    bare = make_entry(make_case(), make_found(findings=(finding("error"),)))
    (told,) = annotations([make_result(replace(bare, file=None, line=None))])
    assert told == "::error title=ERROR add[n=16777216%2Cdtype=fp32]::it broke"


def test_more_than_github_shows_are_counted():
    told = annotations([make_result(*(entry(f"k[n={n}]", finding("error")) for n in range(12)))])
    assert len(told) == MOST
    assert told[-1] == (
        "::error title=3 more::3 more cases are broken: the job's log and its summary have them all"
    )


def test_a_pass_and_a_skip_say_nothing():
    assert annotations([make_result(entry("k[n=1]"), entry("k[n=2]", finding("skipped")))]) == []
