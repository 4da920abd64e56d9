from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kmrun.core.floors import Floor, Shown, could_rise, key_for, raised, rounded_down, shown
from kmrun.core.measurement import Finding
from support.cases import clause, make_case, make_found
from support.results import make_entry

FLOOR = Floor(("kernels", 0, "contract", 0), "min_ceiling", "cpu")


def seen(low, bound=0.1, case_id="k[]", why=""):
    return Shown(FLOOR, case_id, bound, low, why)


@given(st.floats(1e-6, 1e6))
def test_rounding_goes_down_and_keeps_two_digits(value):
    floor = rounded_down(value)
    assert floor <= value * (1 + 1e-8)
    assert floor > value * 0.9
    assert float(f"{floor:.2g}") == floor


def test_rounding():
    assert [rounded_down(value) for value in (0.0, 0.4599, 0.46, 1.0, 12.9, 129.0, 0.00999)] == [
        *(0.0, 0.45, 0.46, 1.0, 12.0, 120.0, 0.0099)
    ]


def test_the_lowest_case_sets_the_floor():
    (one,) = raised([[seen(0.6), seen(0.5, case_id="low[]"), seen(0.9)]])
    assert (one.old, one.new, one.case_id) == (0.1, 0.45, "low[]")


@given(st.lists(st.floats(0.01, 1.0), min_size=1), st.floats(0.01, 1.0), st.floats(0, 0.9))
def test_a_floor_never_goes_down_and_never_above_what_was_shown(lows, bound, headroom):
    for one in raised([[seen(low, bound) for low in lows]], headroom):
        assert bound < one.new <= min(lows) * (1 - headroom) * (1 + 1e-8)


def test_what_was_not_shown_is_not_promised():
    assert raised([[seen(0.9), seen(None)], []]) == []
    assert raised([[seen(0.11)]]) == []


@pytest.mark.parametrize(
    ("keys", "kind", "card", "key"),
    [
        (["*"], "cpu", None, "*"),
        (["cpu", "h100-sxm"], "cpu", None, "cpu"),
        (["gpu", "h100-*", "h100-sxm"], "cuda", "h100-sxm", "h100-sxm"),
        (["gpu", "h100-*", "h*"], "cuda", "h100-sxm", "h100-*"),
        (["gpu", "mi300x"], "cuda", "h100-sxm", "gpu"),
        (["h100-sxm"], "cpu", None, None),
    ],
)
def test_the_key_is_the_one_that_the_judge_takes(keys, kind, card, key):
    assert key_for(keys, kind, card) == key


def test_a_passing_clause_shows_its_bound():
    case = make_case(
        clauses=(clause("min_speedup", 1.0), clause("max_ms", 100), clause("min_ceiling", {"cpu": 0.1}))
    )
    found = shown([case], [make_entry(case)], "cpu", None)
    assert [(one.floor.kind, one.floor.key, one.bound) for one in found] == [
        ("min_speedup", None, 1.0),
        ("min_ceiling", "cpu", 0.1),
    ]
    assert 1.9 < found[0].low < 2.0
    assert found[0].floor.path == ("kernels", 0, "contract", 0, "min_speedup")
    assert found[1].floor.path == ("kernels", 0, "contract", 0, "min_ceiling", "cpu")


def test_why_a_clause_shows_nothing():
    case = make_case(clauses=(clause("min_speedup", 1.0),))
    broken = make_found(findings=(Finding("raised", "boom", "kernel", "error"),))
    expected = make_case(clauses=(clause("min_speedup", 3.0, xfail="slow"),))
    other = replace(make_entry(case), clauses=())
    whys = [
        shown([case], [], "cpu", None)[0].why,
        shown([case], [make_entry(case, broken)], "cpu", None)[0].why,
        shown([expected], [make_entry(expected)], "cpu", None)[0].why,
        shown([case], [other], "cpu", None)[0].why,
    ]
    assert whys == ["was not measured", "is error", "is expected to fail", "was not judged"]


def test_floors_that_could_rise_are_counted_where_they_are_written():
    at = [("kernels", 0, "contract", place) for place in range(2)]
    case = make_case(
        clauses=(clause("min_speedup", 1.0, place=at[0]), clause("min_ceiling", 0.49, place=at[1]))
    )
    entry = make_entry(case)
    assert could_rise([entry, entry]) == 1
    assert could_rise([entry, replace(entry, verdict="error")]) == 0
    assert could_rise([]) == 0
