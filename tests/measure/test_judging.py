"""A case's operations in one process: whatever a suite or a kernel gives, a check or a finding comes of it."""

import os

import pytest

from kmrun.core.case import Argument, Check, Implementation, Reference
from kmrun.core.plain import to_plain
from kmrun.measure.exchange import Arena, HostStorage
from kmrun.measure.faults import SideFault
from kmrun.measure.operations import Operations
from support.sides import make_case, randn

torch = pytest.importorskip("torch")

SUITE = """
import numpy as np
import torch

def twice(x): return x * 2
def threads(x): torch.set_num_threads(torch.get_num_threads() + 1); return x * 2
def device(x): torch.set_default_device("meta"); return x * 2
def raises_with_device(x): torch.set_default_device("meta"); raise ValueError("after it")
def interrupts(x): raise KeyboardInterrupt
def in_place(x): return x.mul_(2)
def nothing(x): return None
def empty(x): return []
def shorter(x): return (x * 2)[:-1]
def both(x): return x * 2, x

def e4m3fn(x): return x.to(torch.float8_e4m3fn)
def e5m2(x): return x.to(torch.float8_e5m2)
def e4m3fnuz(x): return x.to(torch.float8_e4m3fnuz)
def e5m2fnuz(x): return x.to(torch.float8_e5m2fnuz)
def e8m0(x): return x.abs().to(torch.float8_e8m0fnu)
def complex_half(x): return torch.complex(x, x + 1).to(torch.complex32)
def e4m3fn_wrong(x): return (x + 1).to(torch.float8_e4m3fn)
def e5m2_wrong(x): return (x + 1).to(torch.float8_e5m2)
def e4m3fnuz_wrong(x): return (x + 1).to(torch.float8_e4m3fnuz)
def e5m2fnuz_wrong(x): return (-x).to(torch.float8_e5m2fnuz)
def e8m0_wrong(x): return (x.abs() + 4).to(torch.float8_e8m0fnu)
def complex_half_wrong(x): return torch.complex(x, x - 1).to(torch.complex32)

def quantized(x): return torch.quantize_per_tensor(x, 0.1, 0, torch.qint8)
def sparse(x): return x.to_sparse()
def packed(x): return torch.zeros(4, dtype=torch.uint8).view(torch.uint4)
def nested(x): return torch.nested.nested_tensor([x[0], x[1, :2]])

class Own(torch.Tensor): pass
def make_sparse(axes, seed): return torch.eye(3).to_sparse()
def make_meta(axes, seed): return torch.empty(3, device="meta")
def make_quantized(axes, seed): return [torch.quantize_per_tensor(torch.ones(3), 0.1, 0, torch.qint8)]
def make_own(axes, seed): return {"a": (torch.ones(3).as_subclass(Own),)}
def make_conjugate(axes, seed): return (torch.tensor([1 + 2j]).conj(), torch.tensor([1j]).conj().imag)
def make_threads(axes, seed): torch.set_num_threads(torch.get_num_threads() + 1)
def takes_more(x, more): return x * 2
def adds_conjugate(x, more): return x + more[0].imag + more[1]

def says_none(inputs, outputs): pass
def says_yes(inputs, outputs): return "yes"
def says_many(inputs, outputs): return torch.tensor([True, False])
def says_one(inputs, outputs): return 1
def says_true(inputs, outputs): return True
def says_false(inputs, outputs): return False
def says_numpy(inputs, outputs): return np.bool_(True)
def says_tensor(inputs, outputs): return (outputs["o"] == inputs["x"] * 2).all()
def writes_first(inputs, outputs): inputs["x"].zero_(); return True
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("judging")
    (place / "odd.py").write_text(SUITE)
    return str(place)


@pytest.fixture
def side():
    files = [os.memfd_create("arena"), os.memfd_create("vault")]
    yield Operations(Arena(HostStorage(files[0])), Arena(HostStorage(files[1])), lambda text: None)
    for file in files:
        os.close(file)


def course(side, case):
    """Draw, expect, call and compare as in a run; return what the comparison said."""
    side.begin(to_plain(case))
    side.load("kernel")
    if case.reference is not None:
        side.load("reference")
    for each in case.versus:
        side.load(f"versus:{each.name}")
    side.draw(0, 5, share=True)
    if case.reference is not None:
        expected = side.expect(0)
        if case.outputs is None and case.mode == "forward":
            side.learn(expected["outputs"])
        assert side.self_test(0)["worthless"] == []
    tree = side.call(0, share=True)["tree"]
    for each in case.versus:
        assert side.rival_agrees(f"versus:{each.name}", 0, 5)
    return side.compare(0, tree, 5)


def of(folder, kernel, reference="twice", *more, **changes):
    return make_case(
        randn("x", 32, 48),
        *more,
        folder=folder,
        target=f"odd.py:{kernel}",
        reference=Reference(
            Implementation("reference", f"odd.py:{reference}", args=("x",) if more else None)
        ),
        **changes,
    )


def fault(side, case):
    before = torch.get_num_threads(), torch.get_default_device()
    with pytest.raises(SideFault) as caught:
        course(side, case)
    assert (torch.get_num_threads(), torch.get_default_device()) == before
    return caught.value


NARROW = ["e4m3fn", "e5m2", "e4m3fnuz", "e5m2fnuz", "complex_half"]
if hasattr(torch, "float8_e8m0fnu"):
    NARROW.append("e8m0")
METRICS = ["auto", "allclose", "exact", "rel_l2", "cosine", "ulp", "matched_ratio"]


@pytest.mark.filterwarnings("ignore:ComplexHalf")
@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("kind", NARROW)
def test_outputs_of_few_bits_are_judged_by_every_metric(side, folder, kind, metric):
    threshold = {"cosine": 0.9999, "ulp": 1.0}.get(metric)
    checks = {"*": Check(metric, threshold=threshold)}
    (same,) = course(side, of(folder, kind, kind, checks=checks))
    assert same["check"]["ok"] is True
    (other,) = course(side, of(folder, f"{kind}_wrong", kind, checks=checks))
    assert other["check"]["ok"] is False


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize(
    ("kernel", "says"),
    [
        ("quantized", "a quantized tensor, not plain numbers"),
        ("sparse", "a sparse_coo tensor, not a dense one"),
        ("packed", "a tensor of uint4, which torch cannot compute with"),
        ("nested", "a nested tensor, not a dense one"),
    ],
)
def test_tensors_that_cannot_be_compared_are_whose_they_are(side, folder, kernel, says):
    ours = fault(side, of(folder, kernel))
    assert (ours.code, ours.fault) == ("output_not_tensor", "kernel")
    assert ours.sentence.startswith(f"the kernel returned {says}")
    theirs = fault(side, of(folder, "twice", kernel))
    assert (theirs.code, theirs.fault) == ("reference_output", "suite")
    assert theirs.sentence.startswith(f"the reference odd.py:{kernel} returned {says}")


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize(
    ("make", "says"),
    [
        ("make_sparse", "returned a sparse_coo tensor, not a dense one; return its parts"),
        ("make_meta", "returned a meta tensor"),
        ("make_quantized", "returned a quantized tensor"),
        ("make_own", r"\.Own, not a plain tensor"),
        ("make_threads", "changed the number of threads"),
    ],
)
def test_arguments_that_cannot_be_copied_are_the_suite_s_fault(side, folder, make, says):
    argument = Argument("more", "call", options={"target": f"odd.py:{make}"})
    found = fault(side, of(folder, "takes_more", "twice", argument))
    assert found.fault == "suite"
    assert found.sentence.startswith(f"more: odd.py:{make} ")
    with pytest.raises(SideFault, match=says):
        raise found


def test_conjugate_arguments_arrive_with_their_values(side, folder):
    argument = Argument("more", "call", options={"target": "odd.py:make_conjugate"})
    case = of(folder, "adds_conjugate", "adds_conjugate", argument)
    both = Reference(Implementation("reference", "odd.py:adds_conjugate", args=("x", "more")))
    (found,) = course(
        side, make_case(*case.arguments, folder=folder, target="odd.py:adds_conjugate", reference=both)
    )
    assert found["check"]["ok"] is True


@pytest.mark.parametrize("change", ["threads", "device"])
def test_global_settings_are_whose_they_are(side, folder, change):
    for case, who, blamed in (
        (of(folder, change), "the kernel", "kernel"),
        (of(folder, "twice", change), "the reference", "suite"),
        (
            of(folder, "twice", versus=(Implementation("rival", f"odd.py:{change}"),)),
            "the versus entry 'rival'",
            "suite",
        ),
    ):
        found = fault(side, case)
        assert (found.code, found.fault) == ("flags_changed", blamed)
        assert found.sentence.startswith(f"{who} changed ")


def test_what_a_reference_raises_is_told_and_its_device_is_put_back(side, folder):
    found = fault(side, of(folder, "twice", "raises_with_device"))
    assert (found.code, found.sentence) == (
        "reference_raised",
        "the reference odd.py:raises_with_device raised ValueError: after it",
    )
    assert fault(side, of(folder, "twice", "interrupts")).code == "reference_raised"


@pytest.mark.parametrize(
    ("kernel", "code", "sentence"),
    [
        (
            "nothing",
            "output_none",
            "the kernel returned None; if it writes its result to an argument, declare `mutates: [ARGUMENT]`",
        ),
        ("empty", "output_count", "the kernel returned 0 tensors, the reference 1 tensor"),
        ("both", "output_count", "the kernel returned 2 tensors, the reference 1 tensor"),
        ("shorter", "output_shape", "o has shape [31, 48], the reference's is [32, 48]"),
        (
            "in_place",
            "input_mutated",
            "the kernel wrote to its input 'x'; declare `mutates: [x]` if it should",
        ),
    ],
)
def test_sentences_name_the_right_party(side, folder, kernel, code, sentence):
    ours = fault(side, of(folder, kernel))
    assert (ours.code, ours.fault, ours.sentence) == (code, "kernel", sentence)
    rival = Implementation("rival", f"odd.py:{kernel}")
    theirs = fault(side, of(folder, "twice", versus=(rival,)))
    assert theirs.fault == "suite"
    assert theirs.sentence.startswith("the versus entry 'rival'")
    assert "the kernel" not in theirs.sentence


def test_a_rival_need_not_work_in_place_where_the_kernel_does(side, folder):
    rivals = tuple(Implementation(name, f"odd.py:{name}") for name in ("twice", "in_place"))
    for reference in ("twice", "in_place"):
        (found,) = course(side, of(folder, "in_place", reference, mutates=("x",), versus=rivals))
        assert (found["check"]["name"], found["check"]["ok"]) == ("x", True)


@pytest.mark.parametrize(
    ("answer", "ok"), [("true", True), ("numpy", True), ("tensor", True), ("false", False)]
)
def test_a_property_says_true_or_false(side, folder, answer, ok):
    check = {"*": Check("property", options={"target": f"odd.py:says_{answer}"})}
    (found,) = course(side, of(folder, "twice", checks=check))
    assert found["check"]["ok"] is ok


@pytest.mark.parametrize(
    ("answer", "says"),
    [("none", "None"), ("yes", "a str"), ("one", "a int"), ("many", "a tensor of bool [2]")],
)
def test_another_answer_is_the_suite_s_fault(side, folder, answer, says):
    check = {"*": Check("property", options={"target": f"odd.py:says_{answer}"})}
    found = fault(side, of(folder, "twice", checks=check))
    assert (found.code, found.fault) == ("property_invalid", "suite")
    assert found.sentence == f"property odd.py:says_{answer} returned {says}: it must return True or False"


def test_a_property_works_on_copies(side, folder):
    checks = {"*": Check("property", options={"target": "odd.py:writes_first"})}
    case = of(folder, "twice", checks=checks)
    course(side, case)
    tree = side.call(0, share=True)["tree"]
    side.compare(0, tree, 5)
    assert side._contents[0]["x"].abs().sum() > 0
