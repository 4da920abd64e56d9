"""What is not there: null as a value of an axis, empty tensors, and words that only look like nothing."""

import pytest

from support.planning import ids, only_case, only_problem, plan_with

BIAS = "{bias: {init: value, value: t}}"


def test_null_is_a_value_of_an_axis() -> None:
    expansion = plan_with(
        matrix='{dtype: [fp32], t: [abc, null, "null"]}', cases="[{b: 1, s: 4}]", kwargs=BIAS
    )
    assert ids(expansion) == [
        "k[b=1,s=4,dtype=fp32,t=abc]",
        "k[b=1,s=4,dtype=fp32,t=null]",
        'k[b=1,s=4,dtype=fp32,t="null"]',
    ]
    assert [case.arguments[1].options["value"] for case in expansion.cases] == ["abc", None, "null"]


def test_formulas_compare_with_null() -> None:
    expansion = plan_with(
        matrix="{dtype: [fp32], t: [3, null]}",
        cases="[{b: 1, s: 4}]",
        flops="b * s if t == null else b * s * t",
        contract="[{max_ms: 1, when: t != null}]",
    )
    assert [case.flops for case in expansion.cases] == [12, 4]
    assert [len(case.clauses) for case in expansion.cases] == [1, 0]


def test_null_stands_in_rows_and_in_lists() -> None:
    expansion = plan_with(
        matrix="{dtype: [fp32]}", cases="[{b: 1, s: 4, t: null}, {b: 1, s: 4, t: [1, null]}]", kwargs=BIAS
    )
    assert [case.axes["t"] for case in expansion.cases] == [None, (1, None)]


def test_null_is_no_number_and_no_dtype() -> None:
    problem = only_problem(plan_with(cases="[{b: 1, s: 4}, {b: 1, s: null}]"))
    assert problem.path == ("kernels", 0, "cases", 1, "s")
    assert problem.message == "a dimension must be a whole number from 0 on, this is null"
    assert only_problem(plan_with(matrix="{dtype: [fp32, null]}")).message == "null is not a dtype"


@pytest.mark.parametrize("text", ["4", "4.5", "-1e3", "true", "false", "null", "8:0123abcd"])
def test_a_text_that_reads_as_another_value_is_quoted_in_ids(text: str) -> None:
    expansion = plan_with(matrix=f'{{dtype: [fp32], t: ["{text}"]}}', cases="[{b: 1, s: 4}]", kwargs=BIAS)
    assert ids(expansion) == [f'k[b=1,s=4,dtype=fp32,t="{text}"]']


def test_a_number_and_its_text_are_two_cases() -> None:
    expansion = plan_with(
        matrix='{dtype: [fp32], t: [4, "4", 4.0, true, 1]}', cases="[{b: 1, s: 4}]", kwargs=BIAS
    )
    values = [case.arguments[1].options["value"] for case in expansion.cases]
    assert [(type(value), value) for value in values] == [
        (int, 4),
        (str, "4"),
        (float, 4.0),
        (bool, True),
        (int, 1),
    ]
    assert len(set(ids(expansion))) == 5


def test_an_axis_or_a_plain_0_makes_an_empty_tensor() -> None:
    case = only_case(
        plan_with(
            matrix="{dtype: [fp32]}",
            cases="[{b: 0, s: 4}]",
            args="{x: {init: randn, shape: [b, s], dtype: dtype}, y: {init: ones, shape: [0], dtype: fp32}}",
            bytes="4 * b * s",
        )
    )
    assert [argument.shape for argument in case.arguments] == [(0, 4), (0,)]
    assert case.bytes == 0


def test_a_view_of_nothing_lies_anywhere() -> None:
    args = "{x: {init: randn, shape: [b, s], dtype: dtype}, v: {init: view, of: x, shape: [0, 4], strides: [4, 1]}}"
    expansion = plan_with(args=args, outputs=None, bytes=None)
    assert expansion.problems == ()
    assert expansion.cases[0].arguments[1].shape == (0, 4)


@pytest.mark.parametrize("word", ["none", "None"])
def test_the_word_none_is_passed_with_a_warning(word: str) -> None:
    expansion = plan_with(kwargs=f"{{z: {{init: value, value: {word}}}}}")
    problem = only_problem(expansion)
    assert (problem.code, problem.severity) == ("K432", "warning")
    assert problem.hint == f"write null, or \"'{word}'\" for the word"
    assert expansion.cases[0].arguments[1].options["value"] == word


def test_the_word_none_in_quotes_of_its_own_is_meant() -> None:
    expansion = plan_with(kwargs="{z: {init: value, value: \"'none'\"}, y: {init: value, value: null}}")
    assert expansion.problems == ()
    assert [it.options["value"] for it in expansion.cases[0].arguments[1:]] == ["none", None]


def test_an_incoming_gradient_of_a_forward_pass_is_a_warning() -> None:
    expansion = plan_with(grad="ones")
    problem = only_problem(expansion)
    assert (problem.code, problem.severity, problem.path) == ("K431", "warning", ("kernels", 0, "grad"))
    assert expansion.cases


def test_a_tensor_may_be_passed_to_the_reference_twice_by_position() -> None:
    expansion = plan_with(reference="{target: 'torch:matmul', args: [x, x]}")
    assert expansion.problems == ()
    reference = expansion.cases[0].reference
    assert reference is not None and reference.implementation.args == ("x", "x")


def test_a_reference_takes_nothing_where_there_is_nothing_to_take() -> None:
    expansion = plan_with(
        args="{x: {init: empty, shape: [b, s], dtype: dtype}}",
        reference="{target: 'k.py:ref', args: []}",
        mutates="[x]",
        outputs=None,
    )
    assert expansion.problems == ()


def test_the_layout_of_an_output_is_that_of_its_buffer() -> None:
    expansion = plan_with(outputs="{o: {like: x, arg: out, layout: {strides: [s + 1, 1]}}}")
    outputs = expansion.cases[0].outputs
    assert outputs is not None and outputs[0].layout == {"strides": (513, 1)}
    outputs = expansion.cases[-1].outputs
    assert outputs is not None and outputs[0].layout == {"strides": (1025, 1)}
