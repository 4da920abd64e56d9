"""What a case carries: arguments, outputs, figures, settings."""

import json

import pytest
import yaml

from kmrun.core.case import Case, Check, Peak, Requires, Timing
from kmrun.core.plain import from_plain, to_plain
from support.planning import KERNEL, only_case, plan, plan_with

FULL = """
name: sdpa
target: torch.nn.functional:scaled_dot_product_attention
reference: {target: kernels/attention.py:sdpa_math, compute: fp64, chunk: b}
versus: {eager: kernels/attention.py:sdpa_eager}
tags: [ci]
matrix: {dtype: [bf16], causal: [true]}
cases: [{device: cpu, b: 2, h: 8, s: 512, d: 64}]
let: {pairs: s * (s + 1) // 2 if causal else s * s}
args:
  q: {init: randn, shape: [b, h, s, d], dtype: dtype}
  k: {init: randn, like: q}
  v: {init: randn, like: q, std: 1 / d}
kwargs:
  is_causal: {init: value, value: causal}
outputs: {o: {like: q}}
flops: 4 * b * h * pairs * d
bytes: auto
peak: {units: matmul, in: dtype}
contract:
  - {min_roof: {h100-sxm: 0.55, "rtx-*": 0.6}, when: d == 64}
  - {min_ceiling: 0.1, when: dtype == 'bf16', xfail: known}
  - {min_speedup: 1.0, tags: [ci]}
"""


def test_the_full_example() -> None:
    case = only_case(plan(FULL))
    size = 2 * 8 * 512 * 64 * 2
    assert case.id == "sdpa[b=2,h=8,s=512,d=64,dtype=bf16,causal=true]"
    assert case.shown_axes == ("b", "h", "s", "d", "dtype", "causal")
    assert case.flops == 4 * 2 * 8 * (512 * 513 // 2) * 64
    assert case.bytes == 4 * size
    assert case.bytes_auto
    assert [(it.name, it.keyword, it.shape, it.dtype) for it in case.arguments] == [
        ("q", False, (2, 8, 512, 64), "bf16"),
        ("k", False, (2, 8, 512, 64), "bf16"),
        ("v", False, (2, 8, 512, 64), "bf16"),
        ("is_causal", True, None, None),
    ]
    assert case.arguments[2].options == {"mean": 0.0, "std": 1 / 64}
    assert case.arguments[3].options == {"value": True}
    assert case.outputs is not None
    assert (case.outputs[0].name, case.outputs[0].shape) == ("o", (2, 8, 512, 64))
    assert case.peak == Peak("matmul", "bf16", "fp32")
    assert case.reference is not None
    assert case.reference.chunk_dims == {"q": 0, "k": 0, "v": 0, "o": 0}
    assert [(clause.kind, dict(clause.bounds), clause.xfail) for clause in case.clauses] == [
        ("min_roof", {"h100-sxm": 0.55, "rtx-*": 0.6}, None),
        ("min_ceiling", {"*": 0.1}, "known"),
        ("min_speedup", {"*": 1.0}, None),
    ]
    assert case.clauses[1].place == ("kernels", 0, "contract", 1)
    # Three inputs and an output of one size in bf16. Judge: drawn twice, copied twice, in the exchange once; outputs
    # five times; in fp64 both expected outputs, and one of two slices of the inputs.
    assert case.needed_bytes == {
        "kernel": 4 * 4 * size,
        "judge": 5 * 3 * size + 5 * size + 4 * (2 * size + 3 * size // 2),
    }


def test_a_case_survives_the_way_through_json() -> None:
    case = only_case(plan(FULL))
    assert from_plain(Case, json.loads(json.dumps(to_plain(case)))) == case


def test_learned_outputs_leave_bytes_open() -> None:
    case = only_case(plan(KERNEL_WITHOUT_OUTPUTS))
    assert (case.outputs, case.bytes, case.bytes_auto) == (None, None, True)
    assert case.needed_bytes["kernel"] == 4 * 2 * 4 * 4


KERNEL_WITHOUT_OUTPUTS = """
name: add
target: mine.py:add
reference: torch:add
args: {x: {init: randn, shape: [4], dtype: fp32}, y: {init: randn, like: x}}
"""


def test_mutated_arguments_are_read_and_written_and_scratch_is_neither() -> None:
    case = only_case(
        plan(
            "{name: k, target: 'a:b', "
            "args: {p: {init: randn, shape: [8], dtype: fp32}, g: {init: randn, like: p}, "
            "w: {init: empty, like: p}}, mutates: [p], outputs: {o: {shape: [2], dtype: int8}}}"
        )
    )
    assert case.bytes == 2 * 32 + 32 + 2


def test_bytes_left_out_stay_unknown_where_sizes_do_not_tell() -> None:
    expansion = plan_with(
        args="{x: {init: randn, shape: [b, s], dtype: dtype}, i: {init: randint, shape: [s], high: b + 1}}"
    )
    assert {(case.bytes, case.bytes_auto) for case in expansion.cases} == {(None, False)}


def test_written_bytes_win_and_round_up() -> None:
    assert [case.bytes for case in plan_with(bytes="s * 1.001").cases] == [513, 513, 1026, 1026]
    assert not plan_with(bytes="nbytes(x)").cases[0].bytes_auto


def test_every_builder_gets_a_shape() -> None:
    kernel = """
name: k
target: a:b
ragged: {lens: {dist: list, values: [5, 9, 2]}}
args:
  w: {init: randn, shape: [16, 32], dtype: bf16}
  wq: {init: quantize, of: w, to: fp8_e4m3, scale: row}
  ws: {init: quantize, of: w, to: fp8_e4m3, scale: row, part: scales}
  wb: {init: quantize, of: w, to: int8, scale: block, block: 8, part: scales}
  wc: {init: quantize, of: w, to: int8, scale: column, part: scales}
  wt: {init: quantize, of: w, to: int8, part: scales}
  wi: {init: quantize, of: w, to: int8}
  p: {init: pack, of: wi, bits: 4}
  view: {init: view, of: w, shape: [4, 8], strides: [32, 1], offset: 8}
  t: {init: transpose, of: w}
  pages: {init: page_table, lens: lens, page_size: 4}
  r: {init: topk_router, shape: [10, 2], experts: 8}
  xs: {init: list, items: [{init: randn, like: w}, {init: zeros, shape: [3], dtype: fp32}]}
  c: {init: call, target: 'f.py:g', from: [w], visible: kernel}
"""
    case = only_case(plan(kernel))
    shapes = {it.name: (it.shape, it.dtype) for it in case.arguments}
    assert shapes == {
        "w": ((16, 32), "bf16"),
        "wi": ((16, 32), "int8"),
        "wq": ((16, 32), "fp8_e4m3"),
        "ws": ((16, 1), "fp32"),
        "wb": ((16, 4), "fp32"),
        "wc": ((1, 32), "fp32"),
        "wt": ((), "fp32"),
        "p": ((16, 16), "uint8"),
        "view": ((4, 8), "bf16"),
        "t": ((32, 16), "bf16"),
        "pages": ((3, 3), "int32"),
        "r": ((10, 2), "int64"),
        "xs": (None, None),
        "c": (None, None),
    }
    options = {it.name: it.options for it in case.arguments}
    assert options["pages"]["pages"] == 2 + 3 + 1
    assert [(item["init"], tuple(item["shape"])) for item in options["xs"]["items"]] == [
        ("randn", (16, 32)),
        ("zeros", (3,)),
    ]
    assert options["c"] == {"target": "f.py:g", "from": ("w",), "visible": "kernel"}


def test_values_are_formulas_strings_dtypes_and_tuples() -> None:
    expansion = plan_with(
        kwargs="""
a: {init: value, value: s // 2}
b2: {init: value, value: mean}
c: {init: value, value: "ij,jk->ik"}
d: {init: value, value: dtype}
e: {init: value, value: bf16}
f: {init: value, value: "'fp32'"}
g: {init: value, value: [b, "s + 1", null, true, "'none'"]}
h: {init: value, value: 2 ** 3}
"""
    )
    assert not expansion.problems
    options = {it.name: dict(it.options) for it in expansion.cases[0].arguments[1:]}
    assert options == {
        "a": {"value": 256},
        "b2": {"value": "mean"},
        "c": {"value": "ij,jk->ik"},
        "d": {"value": "fp32", "is_dtype": True},
        "e": {"value": "bf16", "is_dtype": True},
        "f": {"value": "fp32"},
        "g": {"value": (1, 513, None, True, "none")},
        "h": {"value": 8},
    }


def test_layouts() -> None:
    case = only_case(
        plan(
            "{name: k, target: 'a:b', "
            "args: {x: {init: ones, shape: [4, 8], dtype: fp32, layout: {strides: [2 * 8, 1]}}, "
            "y: {init: ones, shape: [4, 8], dtype: fp32, layout: transposed, device: cpu}}}"
        )
    )
    assert case.arguments[0].layout == {"strides": (16, 1)}
    assert (case.arguments[1].layout, case.arguments[1].device) == ("transposed", "cpu")
    assert not case.bytes_auto  # strides with gaps: allocated is not read


def test_a_dtype_may_be_chosen_by_a_formula() -> None:
    case = only_case(
        plan(
            "{name: k, target: 'a:b', matrix: {n: [4]}, "
            "args: {x: {init: ones, shape: [n], dtype: fp16 if n > 2 else fp32}}}"
        )
    )
    assert case.arguments[0].dtype == "fp16"


@pytest.mark.parametrize(
    ("peak", "expected"),
    [
        ("{units: matmul, in: int8}", Peak("matmul", "int8", "int32")),
        ("{units: matmul, in: fp16, acc: fp16}", Peak("matmul", "fp16", "fp16")),
        ("{units: matmul, in: fp64}", Peak("matmul", "fp64", "fp64")),
        ("{units: vector, in: float32}", Peak("vector", "fp32", None)),
        ("{tflops: 312.5}", Peak(tflops=312.5)),
    ],
)
def test_peaks(peak: str, expected: Peak) -> None:
    assert plan_with(peak=peak).cases[0].peak == expected


def test_defaults_are_merged_key_by_key() -> None:
    kernel = yaml.safe_load(KERNEL) | {
        "timing": {"max_time_ms": 500.0},
        "tolerance": {"float32": {"rtol": 0.25}},
        "timeout_s": {"case": 5.0},
    }
    defaults = """
seed: 7
timing: {l2: hot, max_time_ms: 9.0}
tolerance: {fp32: {rtol: 0.5, atol: 0.5}, bf16: {atol: 0.125}}
timeout_s: {first_call: 11.0, case: 12.0}
unlisted_device: fail
"""
    case = plan(yaml.safe_dump(kernel), defaults=defaults).cases[0]
    assert case.timing == Timing(l2="hot", max_time_ms=500.0)
    assert case.tolerance == {
        "fp32": Check("allclose", rtol=0.25, atol=0.0),
        "bf16": Check("allclose", rtol=0.0, atol=0.125),
    }
    assert (case.first_call_timeout_s, case.case_timeout_s) == (11.0, 5.0)
    assert (case.seed, case.unlisted_device) == (7, "fail")


def test_compile_and_graph_carry_over_to_versus_unless_it_says_otherwise() -> None:
    case = plan_with(
        compile="{mode: max-autotune}",
        graph="true",
        versus="""
same: a:b
plain: {target: 'a:b', compile: false, graph: false, env: {X: '1'}, args: [x]}
""",
    ).cases[0]
    assert case.implementation.compile == {"mode": "max-autotune", "dynamic": False, "fullgraph": True}
    same, plain = case.versus
    assert (same.compile, same.graph) == (case.implementation.compile, True)
    assert (plain.compile, plain.graph, plain.env, plain.args) == (None, False, {"X": "1"}, ("x",))


def test_checks_by_output_and_for_the_kernel() -> None:
    case = plan_with(
        check="{metric: rel_l2, threshold: 0.01}",
        outputs="{o: {like: x, check: {metric: property, target: 'c.py:ok'}}, p: {shape: [b], dtype: int32}}",
    ).cases[0]
    assert case.checks == {
        "*": Check("rel_l2", threshold=0.01),
        "o": Check("property", options={"target": "c.py:ok"}),
    }


def test_backward_holds_gradients() -> None:
    case = only_case(
        plan(
            "{name: k, target: 'a:b', reference: 'a:r', mode: backward, grad: ones, "
            "args: {x: {init: randn, shape: [8], dtype: fp32, requires_grad: true}, "
            "y: {init: randn, like: x}}, "
            "outputs: {o: {like: x}}, requires: {module: triton, min_cc: '8.0'}}"
        )
    )
    assert (case.mode, case.grad, case.bytes, case.bytes_auto) == ("backward", "ones", None, False)
    assert case.requires == Requires("triton", "8.0")
    # What is made: the output, the incoming gradient and that of x.
    assert case.needed_bytes["kernel"] == 4 * 32 * (2 + 3)
    # In fp64: the output, the incoming gradient and that of x twice; x and y once.
    assert case.needed_bytes["judge"] == 5 * 32 * (2 + 3) + 64 * (2 * 3 + 2)


def test_a_tolerance_of_a_gradient_is_used() -> None:
    expansion = plan(
        "{name: k, target: 'a:b', mode: backward, outputs: {o: {shape: [1], dtype: fp32}}, "
        "args: {x: {init: randn, shape: [8], dtype: bf16, requires_grad: true}}, "
        "tolerance: {bf16: {rtol: 0.1}}}"
    )
    assert not expansion.problems


def test_buffers_are_named_by_their_keyword() -> None:
    case = plan_with(
        outputs="{o: {like: x, arg: out, dtype: fp32}}", reference="{target: 'a:r', args: [x, out]}"
    ).cases[0]
    assert case.outputs is not None
    assert (case.outputs[0].arg, case.outputs[0].dtype) == ("out", "fp32")
    assert case.reference is not None
    assert case.reference.implementation.args == ("x", "out")
