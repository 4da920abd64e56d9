import math

import pytest
import torch

from kmrun.core.case import Argument, Implementation, Output, Reference
from kmrun.core.plain import from_plain, to_plain
from kmrun.measure import inputs
from kmrun.measure.inputs import InputError
from support.sides import make_case, randn

CPU = torch.device("cpu")


def build_one(argument, seed=1):
    return inputs.build(make_case(argument), seed, CPU)[argument.name]


def test_equal_seeds_give_equal_bytes_and_others_do_not():
    case = make_case(randn("x", 64), randn("y", 64))
    first, again, other = (inputs.build(case, seed, CPU) for seed in (5, 5, 6))
    assert torch.equal(first["x"], again["x"])
    assert not torch.equal(first["x"], other["x"])
    assert not torch.equal(first["x"], first["y"])


def test_another_argument_changes_nothing_in_the_rest():
    alone = inputs.build(make_case(randn("x", 64)), 5, CPU)
    beside = inputs.build(make_case(randn("w", 8), randn("x", 64)), 5, CPU)
    assert torch.equal(alone["x"], beside["x"])


def test_torchs_global_generator_is_left_alone():
    before = torch.random.get_rng_state()
    build_one(randn("x", 64))
    assert torch.equal(before, torch.random.get_rng_state())


def test_the_form_of_a_drawing_tells_dtypes_shapes_strides_and_structure():
    transposed = torch.empty(3, 2).T
    named = {
        "x": torch.empty(2, 3, dtype=torch.bfloat16),
        "pair": (transposed, 2.5),
        "packed": {"q": torch.empty(4, dtype=torch.int8), "of": [None]},
        "box": object(),
    }
    assert inputs.forms(named) == {
        "x": "bf16 [2, 3]",
        "pair": "[fp32 [2, 3] with strides [1, 2], a plain value]",
        "packed": "{q: int8 [4], of: [a plain value]}",
        "box": "object",
    }


@pytest.mark.parametrize(
    ("init", "dtype", "options", "holds"),
    [
        ("randn", "fp32", {"mean": 5.0, "std": 0.1}, lambda x: abs(x.mean() - 5) < 0.05 and x.std() < 0.2),
        ("uniform", "fp32", {"low": 2.0, "high": 3.0}, lambda x: x.min() >= 2 and x.max() <= 3),
        ("randint", "int64", {"low": -3, "high": 4}, lambda x: set(x.unique().tolist()) == set(range(-3, 4))),
        ("bernoulli", "bool", {"p": 0.25}, lambda x: 0.15 < x.float().mean() < 0.35),
        (
            "permutation",
            "int64",
            {},
            lambda x: torch.equal(x.sort(-1).values, torch.arange(64).expand(32, 64)),
        ),
        ("zeros", "bf16", {}, lambda x: not x.any()),
        ("ones", "int8", {}, lambda x: bool((x == 1).all())),
        ("full", "fp16", {"value": 2.5}, lambda x: bool((x == 2.5).all())),
        ("empty", "fp32", {}, lambda x: bool(x.isnan().all())),
        ("empty", "int32", {}, lambda x: bool((x == -1).all())),
        ("cauchy", "fp32", {"scale": 2.0}, lambda x: x.abs().max() > 50 and bool(x.isfinite().all())),
        ("cauchy", "fp16", {}, lambda x: bool(x.isfinite().all())),
        ("hot_value", "fp32", {"value": 7.0, "p": 0.5}, lambda x: 0.4 < (x == 7).float().mean() < 0.6),
        ("hot_value", "int32", {"value": 3, "p": 1.0}, lambda x: bool((x == 3).all())),
        ("sorted", "fp32", {}, lambda x: bool((x.diff(dim=-1) >= 0).all())),
        ("sorted", "fp32", {"descending": True}, lambda x: bool((x.diff(dim=-1) <= 0).all())),
    ],
)
def test_builders_draw_what_they_say(init, dtype, options, holds):
    drawn = build_one(Argument("x", init, shape=(32, 64), dtype=dtype, options=options))
    assert holds(drawn)


def test_arange_and_values_run_in_row_major_order():
    options = {"start": 10, "step": 2}
    assert build_one(Argument("x", "arange", shape=(2, 2), dtype="int32", options=options)).tolist() == [
        [10, 12],
        [14, 16],
    ]
    given = {"values": [1.5, 2.5, 3.5]}
    assert build_one(Argument("x", "values", shape=(4,), dtype="fp32", options=given)).tolist() == [
        1.5, 2.5, 3.5, 1.5,
    ]  # fmt: skip


def test_spd_matrices_have_a_cholesky_factor_and_the_condition_asked_for():
    matrix = build_one(Argument("a", "spd", shape=(3, 16, 16), dtype="fp64", options={"condition": 50.0}))
    torch.linalg.cholesky(matrix)
    assert torch.equal(matrix, matrix.mT)
    assert torch.linalg.cond(matrix) == pytest.approx(torch.full((3,), 50.0).double(), rel=1e-6)


def test_a_causal_mask_is_boolean_or_additive():
    assert build_one(Argument("m", "causal_mask", shape=(2, 2), dtype="bool")).tolist() == [
        [True, False],
        [True, True],
    ]
    additive = build_one(Argument("m", "causal_mask", shape=(2, 2), dtype="bf16"))
    assert additive.tolist() == [[0, -math.inf], [0, 0]]


def test_layouts():
    assert build_one(randn("x", 4, 8, layout="transposed")).stride() == (1, 4)
    image = build_one(randn("x", 2, 3, 4, 5, layout="channels_last"))
    assert image.is_contiguous(memory_format=torch.channels_last)
    padded = build_one(randn("x", 4, 8, layout={"strides": [16, 1]}))
    assert padded.stride() == (16, 1)
    gaps = padded.as_strided((3, 8), (16, 1), 8)
    assert bool(gaps.isnan().all())


def test_values_are_passed_as_they_are_and_lists_as_tuples():
    assert build_one(Argument("eps", "value", options={"value": 1e-5})) == 1e-5
    assert build_one(Argument("shape", "value", options={"value": [4, 8]})) == (4, 8)


def test_views_and_transposes_share_memory():
    case = make_case(
        randn("x", 4, 8),
        Argument("t", "transpose", options={"of": "x", "dims": [0, 1]}),
        Argument("v", "view", shape=(2, 8), options={"of": "x", "offset": 16}),
    )
    named = inputs.build(case, 1, CPU)
    assert torch.equal(named["t"], named["x"].T)
    assert torch.equal(named["v"], named["x"][2:])
    assert named["t"].data_ptr() == named["x"].data_ptr()


def test_a_view_beyond_its_source_is_refused():
    case = make_case(randn("x", 4), Argument("v", "view", shape=(8,), options={"of": "x"}))
    with pytest.raises(InputError, match="init: view"):
        inputs.build(case, 1, CPU)


def test_a_list_holds_tensors_of_their_own():
    items = [to_plain(randn("", 4)), to_plain(randn("", 4, dtype="bf16"))]
    case = make_case(Argument("params", "list", options={"items": items}))
    case = from_plain(type(case), to_plain(case))
    named = inputs.build(case, 1, CPU)
    first, second = named["params"]
    assert not torch.equal(first, second.float())


CALLED = """
import torch

def pack(axes, seed, w):
    generator = torch.Generator().manual_seed(seed)
    return {"packed": w * axes["s"], "noise": torch.rand(3, generator=generator), "bits": axes["s"]}

def broken(axes, seed):
    raise ValueError("no such layout")
"""


def test_a_call_gets_axes_seed_and_the_named_arguments(tmp_path):
    (tmp_path / "packing.py").write_text(CALLED)
    call = Argument("p", "call", options={"target": "packing.py:pack", "from": ["w"]})
    case = make_case(randn("w", 4), call, folder=str(tmp_path), axes={"s": 3})
    named = inputs.build(case, 1, CPU)
    assert torch.equal(named["p"]["packed"], named["w"] * 3)
    assert not torch.equal(named["p"]["noise"], inputs.build(case, 2, CPU)["p"]["noise"])


def test_a_call_that_raises_is_the_suites_fault(tmp_path):
    (tmp_path / "packing2.py").write_text(CALLED)
    call = Argument("p", "call", options={"target": "packing2.py:broken", "from": []})
    with pytest.raises(InputError) as caught:
        inputs.build(make_case(call, folder=str(tmp_path)), 1, CPU)
    assert (caught.value.code, caught.value.fault) == ("input_raised", "suite")
    assert caught.value.sentence == "p: packing2.py:broken raised ValueError: no such layout"


@pytest.mark.parametrize("init", ["indptr", "page_table", "topk_router", "quantize", "pack"])
def test_what_is_not_built_yet_says_so(init):
    with pytest.raises(InputError, match=f"init: {init} is validated but not built yet"):
        build_one(Argument("t", init, options={}))


@pytest.mark.parametrize(
    ("argument", "says"),
    [
        (Argument("x", "randint", shape=(4,), dtype="int32", options={"low": 3, "high": 3}), "low < high"),
        (Argument("x", "bernoulli", shape=(4,), dtype="bool", options={"p": 2.0}), "0 <= p <= 1"),
        (Argument("x", "spd", shape=(4, 3), dtype="fp32"), "square matrices"),
        (Argument("x", "causal_mask", shape=(4,), dtype="bool"), "needs a matrix"),
        (randn("x", 4, layout="channels_last"), "channels_last needs 4 or 5"),
        (randn("x", 4, 4, layout={"strides": [1]}), "strides [1] do not fit shape [4, 4]"),
    ],
)
def test_options_that_make_no_sense_are_refused(argument, says):
    with pytest.raises(InputError) as caught:
        build_one(argument)
    assert says in caught.value.sentence
    assert caught.value.fault == "suite"


def test_gradients_are_wanted_of_leaves():
    leaf = build_one(randn("x", 4, requires_grad=True))
    assert leaf.requires_grad
    assert leaf.is_leaf


def test_incoming_gradients_look_like_the_outputs():
    case = make_case(randn("x", 4), mode="backward", grad="ones")
    forward = {"o": torch.zeros(3, 2, dtype=torch.bfloat16), "index": torch.zeros(3, dtype=torch.int64)}
    grads = inputs.draw_grads(case, forward, 1)
    assert list(grads) == ["o"]
    assert torch.equal(grads["o"], torch.ones_like(forward["o"]))


def test_keyword_arguments_buffers_and_visibility():
    case = make_case(
        randn("x", 4),
        Argument("plan", "value", options={"value": 1, "visible": "kernel"}),
        Argument("answer", "value", options={"value": 2, "visible": "judge"}),
        Argument("alpha", "value", keyword=True, options={"value": 3}),
        outputs=(Output("o", (4,), "fp32", arg="out"),),
    )
    named = inputs.build(case, 1, CPU)
    buffer = torch.empty(4)
    args, kwargs = inputs.call_arguments(case, named, {"out": buffer})
    assert args == (named["x"], 1)
    assert kwargs == {"alpha": 3, "out": buffer}
    assert case.reference is not None
    args, kwargs = inputs.call_arguments_for(case, case.reference.implementation, named, {"out": buffer})
    assert args == (named["x"], 2)
    assert kwargs == {"alpha": 3}


def test_an_implementation_may_take_other_arguments():
    reference = Implementation("reference", "torch:add", args=("y", "alpha", "x"))
    case = make_case(
        randn("x", 4),
        randn("y", 4),
        Argument("alpha", "value", keyword=True, options={"value": 3}),
        reference=Reference(reference),
    )
    named = inputs.build(case, 1, CPU)
    args, kwargs = inputs.call_arguments_for(case, reference, named)
    assert args == (named["y"], named["x"])
    assert kwargs == {"alpha": 3}
