"""Points and ids: what crosses, what couples, what a row pins."""

from support.planning import ids, only_case, plan, plan_with

ARGS = "args: {x: {init: randn, shape: [n, m], dtype: fp32}}"


def test_matrix_crosses_and_rows_couple() -> None:
    assert ids(plan_with()) == [
        "k[b=1,s=512,dtype=fp32]",
        "k[b=1,s=512,dtype=bf16]",
        "k[b=2,s=1024,dtype=fp32]",
        "k[b=2,s=1024,dtype=bf16]",
    ]


def test_a_row_that_pins_a_matrix_axis_leaves_that_crossing() -> None:
    expansion = plan_with(cases="[{b: 1, s: 512}, {b: 2, s: 8, dtype: fp16}]")
    assert ids(expansion) == [
        "k[b=1,s=512,dtype=fp32]",
        "k[b=1,s=512,dtype=bf16]",
        "k[b=2,s=8,dtype=fp16]",
    ]


def test_a_kernel_without_axes_is_one_case_of_its_bare_name() -> None:
    expansion = plan("{name: add, target: 'a:b', args: {x: {init: ones, shape: [4], dtype: fp32}}}")
    assert ids(expansion) == ["add"]


def test_ranges_include_both_ends() -> None:
    expansion = plan(
        "{name: k, target: 'a:b', matrix: {n: {pow2: [2, 16]}, m: {linear: [3, 10, 3]}}, " + ARGS + "}"
    )
    assert [(case.axes["n"], case.axes["m"]) for case in expansion.cases] == [
        (n, m) for n in (2, 4, 8, 16) for m in (3, 6, 9)
    ]


def test_a_range_in_a_row_makes_one_row_of_each_point() -> None:
    expansion = plan(
        "{name: k, target: 'a:b', cases: [{device: cpu, n: {pow2: [1, 2]}, m: 7}, {n: 9, m: 8}], "
        + ARGS
        + "}"
    )
    assert ids(expansion) == ["k[n=1,m=7]", "k[n=2,m=7]", "k[n=9,m=8]"]
    assert [case.device for case in expansion.cases] == ["cpu", "cpu", None]


def test_spellings_of_a_dtype_are_one_value() -> None:
    expansion = plan_with(matrix="{dtype: [torch.float32, bfloat16]}", cases="[{b: 1, s: 2}]")
    assert ids(expansion) == ["k[b=1,s=2,dtype=fp32]", "k[b=1,s=2,dtype=bf16]"]


def test_words_that_are_no_dtypes_stay_as_they_are() -> None:
    expansion = plan(
        "{name: k, target: 'a:b', matrix: {mode: [float32, half]}, kwargs: {m: {init: value, value: mode}}}"
    )
    assert ids(expansion) == ["k[mode=float32]", "k[mode=half]"]
    assert [case.arguments[0].options for case in expansion.cases] == [
        {"value": "float32"},
        {"value": "half"},
    ]


def test_values_in_ids() -> None:
    expansion = plan(
        "{name: k, target: 'a:b', matrix: {v: [true, 0.5, 1, 1.0, 'a b', \"x,y\", [1, 2, 3]]}, "
        "kwargs: {m: {init: value, value: v}}}"
    )
    assert ids(expansion) == [
        "k[v=true]",
        "k[v=0.5]",
        "k[v=1]",
        "k[v=1.0]",
        'k[v="a b"]',
        'k[v="x,y"]',
        "k[v=3:a36b1f2c]",
    ]


def test_the_same_point_on_devices_that_never_meet_has_one_id() -> None:
    expansion = plan_with(
        cases="[{device: cpu, b: 1, s: 2}, {device: gpu, b: 1, s: 2}]", matrix="{dtype: [fp32]}"
    )
    assert ids(expansion) == ["k[b=1,s=2,dtype=fp32]"] * 2
    expansion = plan_with(
        cases="[{device: h100-sxm, b: 1, s: 2}, {device: rtx-4090, b: 1, s: 2}]", matrix="{dtype: [fp32]}"
    )
    assert len(ids(expansion)) == 2


def test_exclude_takes_points_away_with_its_reason() -> None:
    expansion = plan_with(exclude="[{when: dtype == 'float32' and s > 600, reason: too slow}]")
    assert ids(expansion) == [
        "k[b=1,s=512,dtype=fp32]",
        "k[b=1,s=512,dtype=bf16]",
        "k[b=2,s=1024,dtype=bf16]",
    ]
    assert [(item.id, item.reason) for item in expansion.excluded] == [
        ("k[b=2,s=1024,dtype=fp32]", "too slow")
    ]


def test_an_excluded_point_need_not_make_sense() -> None:
    expansion = plan_with(
        cases="[{b: 1, s: 0}, {b: 1, s: 4}]",
        let="{empty: s == 0}",
        exclude="[{when: empty, reason: nothing to do}]",
    )
    assert ids(expansion) == ["k[b=1,s=4,dtype=fp32]", "k[b=1,s=4,dtype=bf16]"]


RAGGED = """
name: k
target: a:b
matrix: {count: [8]}
ragged: {lens: {dist: DIST, low: 16, high: 4 * count, count: count}}
args: {x: {init: randn, shape: [sum(lens), 4], dtype: fp32}, p: {init: indptr, lens: lens}}
bytes: 16 * sum(lens)
"""


def test_ragged_lengths_come_from_the_seed_alone() -> None:
    uniform = RAGGED.replace("DIST", "uniform")
    case, again = only_case(plan(uniform)), only_case(plan(uniform))
    lens = case.axes["lens"]
    assert case == again
    assert len(lens) == 8
    assert all(16 <= length <= 32 for length in lens)
    assert len(set(lens)) > 1
    assert case.id.startswith("k[count=8,lens=8:")
    assert case.arguments[0].shape == (sum(lens), 4)
    assert case.arguments[1].shape == (9,)
    assert case.arguments[1].options["lens"] == lens
    assert case.bytes == 16 * sum(lens)
    assert only_case(plan(uniform + "seed: 5")).axes["lens"] != lens
    assert only_case(plan(uniform, defaults="{seed: 5}")).axes["lens"] != lens


def test_zipf_lengths_are_mostly_short() -> None:
    kernel = RAGGED.replace("DIST", "zipf").replace("[8]", "[2000]")
    lens = sorted(only_case(plan(kernel)).axes["lens"])
    assert lens[0] >= 16
    assert lens[-1] <= 8000
    assert lens[len(lens) // 2] < 30
    assert lens[-1] > 300


def test_fixed_and_listed_lengths() -> None:
    base = (
        "{name: k, target: 'a:b', ragged: {lens: SPEC}, "
        "args: {x: {init: ones, shape: [sum(lens)], dtype: int8}}}"
    )
    fixed = plan(base.replace("SPEC", "{dist: fixed, value: 3 * 2, count: 4}"))
    assert only_case(fixed).axes["lens"] == (6, 6, 6, 6)
    listed = plan(base.replace("SPEC", "{dist: list, values: [1, 2 * 2, 9]}"))
    assert only_case(listed).axes["lens"] == (1, 4, 9)
