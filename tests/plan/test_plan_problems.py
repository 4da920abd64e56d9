"""One mistake, one problem: its code, place, words."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from kmrun.plan import expansion
from support.planning import KERNEL, only_problem, plan, plan_with

HERE = ("kernels", 0)
X = "{x: {init: randn, shape: [b, s], dtype: dtype}"

MISTAKES = yaml.safe_load(Path(__file__).with_name("mistakes.yaml").read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    "mistake", MISTAKES, ids=lambda mistake: f"{mistake['code']} {mistake['message'][:40]}"
)
def test_one_mistake_is_one_problem(mistake: dict[str, Any]) -> None:
    expansion = plan_with(**mistake["keys"])
    problem = only_problem(expansion)
    assert problem.code == mistake["code"]
    assert problem.path == (*HERE, *mistake["place"])
    assert problem.message == mistake["message"]
    assert problem.hint == mistake.get("hint", problem.hint)
    assert problem.severity == "error"
    assert expansion.cases == ()


def test_a_formula_error_points_into_the_formula_and_lists_the_names() -> None:
    problem = only_problem(plan_with(flops="4 * b * sq"))
    assert (problem.offset, problem.length) == (8, 2)
    assert problem.notes == ("names here: b, dtype, s",)


def test_an_unknown_word_tells_its_other_places() -> None:
    assert only_problem(plan_with(matrix="{dtyp: [fp32]}")).notes == ("also in peak.in",)


def test_a_value_that_one_formula_cannot_take_is_told_with_the_formula() -> None:
    problem = only_problem(plan_with(flops="2 * b * s / (s - 512)"))
    assert problem.notes == ("in flops: 2 * b * s / (s - 512)",)


def test_several_guilty_axes_leave_the_formula_with_the_first_point() -> None:
    problem = only_problem(plan_with(flops="b - s + 512"))
    assert problem.path == (*HERE, "flops")
    assert problem.notes == ("first at b=2, s=1024, dtype=fp32",)


def test_all_mistakes_of_a_file_in_one_run() -> None:
    other = KERNEL.replace("name: k", "name: j").replace("flops: 2 * b * s", "flops: 2 * bb")
    expansion = plan(KERNEL.replace("[b, s]", "[b, t]"), other)
    assert [(problem.code, problem.path[:3]) for problem in expansion.problems] == [
        ("K201", ("kernels", 0, "args")),
        ("K201", ("kernels", 1, "flops")),
    ]


def test_a_kernel_with_errors_leaves_the_others_planned() -> None:
    expansion = plan(KERNEL.replace("[b, s]", "[b, t]"), KERNEL.replace("name: k", "name: j"))
    assert {case.kernel for case in expansion.cases} == {"j"}


def test_two_unknown_names_in_one_formula_are_two_mistakes() -> None:
    expansion = plan_with(flops="2 * bb * ss")
    assert [(problem.message, problem.offset) for problem in expansion.problems] == [
        ("unknown name 'bb' in formula", 4),
        ("unknown name 'ss' in formula", 9),
    ]


def test_a_suite_has_one_budget_of_cases(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(expansion, "MAX_POINTS", 100)
    many = KERNEL.replace("dtype: [fp32, bf16]", "dtype: [fp32], p: {linear: [1, 30, 1]}").replace(
        "2 * b", "p * b"
    )
    problem = only_problem(plan(many, many.replace("name: k", "name: j")))
    assert (problem.code, problem.path) == ("K406", ("kernels", 1, "matrix"))


def test_two_kernels_of_one_name() -> None:
    problem = only_problem(plan(KERNEL, KERNEL))
    assert (problem.code, problem.path) == ("K401", ("kernels", 1, "name"))


def test_flops_without_a_peak_is_a_warning() -> None:
    expansion = plan_with(peak=None)
    problem = only_problem(expansion)
    assert (problem.code, problem.severity, problem.path) == ("K430", "warning", (*HERE, "flops"))
    assert len(expansion.cases) == 4


def test_user_code_may_use_any_axis() -> None:
    for keys in (
        {"args": X + ", i: {init: call, target: 'a:f'}}"},
        {"setup": "a:s"},
        {"check": "{metric: property, target: 'a:p'}"},
    ):
        assert not plan_with(matrix="{dtype: [fp32], extra: [1, 2]}", **keys).problems


def test_unused_defaults_are_told_once_and_only_when_all_kernels_are_known() -> None:
    problem = only_problem(
        plan(KERNEL, KERNEL.replace("name: k", "name: j"), defaults="{tolerance: {int8: {rtol: 0.1}}}")
    )
    assert (problem.code, problem.path) == ("K424", ("defaults", "tolerance", "int8"))


def test_cards_are_not_judged_without_a_database() -> None:
    kernel = KERNEL + "contract: [{min_roof: {h1000: 0.5}}]\n"
    assert not plan(kernel, cards=None).problems
    assert only_problem(plan(kernel)).code == "K409"
