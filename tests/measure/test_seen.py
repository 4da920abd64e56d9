"""Outputs that come out bit by bit as before are not compared again; any other bit is."""

import os

import pytest
import torch

from kmrun.core.case import Argument, Case, Implementation, Reference
from kmrun.core.measurement import OutputCheck
from kmrun.core.plain import to_plain
from kmrun.measure import seen as rooms
from kmrun.measure.exchange import Arena, HostStorage
from kmrun.measure.operations import Operations
from kmrun.measure.seen import Seen

PASSED = (OutputCheck("y", "auto", True, 0.0, 1.0),)


def held(outputs, found=PASSED, slot=0):
    seen = Seen()
    seen.hold(slot, outputs, found)
    return seen


def test_the_same_bits_have_the_same_verdict():
    y = torch.randn(37, 41)
    assert held({"y": y}).verdicts(0, {"y": y.clone()}) is PASSED


def other_bits():
    y = torch.randn(37, 41)
    last = y.clone()
    last[-1, -1] = torch.nextafter(last[-1, -1], torch.tensor(9.0))
    zero, nan = torch.zeros(8), torch.tensor([float("nan")])
    yield "last element", y, last
    yield "sign of zero", zero, -zero
    yield "payload of NaN", nan, (nan.view(torch.int32) + 1).view(torch.float32)
    yield "dtype", y, y.double()
    yield "bits alike, dtype not", zero, torch.zeros(8, dtype=torch.int32)
    yield "shape", y, y.view(41, 37)
    yield (
        "layout",
        torch.zeros(4, 4),
        torch.zeros(4, 4).t().contiguous().t()[:, :4].t().as_strided((4, 4), (1, 4)),
    )


@pytest.mark.parametrize(("one", "other"), [pytest.param(a, b, id=name) for name, a, b in other_bits()])
def test_any_other_bit_is_looked_at(one, other):
    assert held({"y": one}).verdicts(0, {"y": other}) is None


@pytest.mark.parametrize("count", [1, 7, 8, 9, 16, 17])
@pytest.mark.parametrize("start", [0, 1, 8])
def test_every_byte_counts_wherever_a_tensor_begins(count, start):
    base = torch.arange(40, dtype=torch.uint8)
    y, same = base[start : start + count], base[start : start + count].clone()
    assert held({"y": y}).verdicts(0, {"y": same}) is PASSED
    for place in range(count):
        other = same.clone()
        other[place] ^= 1
        assert held({"y": y}).verdicts(0, {"y": other}) is None


def test_another_slot_or_other_names_are_looked_at():
    y = torch.randn(5)
    seen = held({"y": y})
    assert seen.verdicts(1, {"y": y}) is None
    assert seen.verdicts(0, {"z": y}) is None
    assert seen.verdicts(0, {"y": y, "z": y}) is None
    assert seen.verdicts(0, {}) is None
    seen.hold(1, {"y": y}, PASSED)
    seen.forget(1)
    assert seen.verdicts(1, {"y": y}) is None
    assert seen.verdicts(0, {"y": y}) is PASSED
    seen.clear()
    assert seen.verdicts(0, {"y": y}) is None


@pytest.mark.parametrize(
    "check",
    [OutputCheck("y", "auto", False, 2.0, 1.0), OutputCheck("y", "property", True, None, None)],
    ids=["failed", "a function of the suite decided"],
)
def test_what_its_bits_do_not_settle_is_looked_at_again(check):
    y = torch.randn(5)
    assert held({"y": y}, (check,)).verdicts(0, {"y": y}) is None


def test_large_outputs_are_not_held(monkeypatch):
    monkeypatch.setattr(rooms, "MOST_BYTES", 16)
    assert held({"y": torch.zeros(5)}).verdicts(0, {"y": torch.zeros(5)}) is None
    assert held({"y": torch.zeros(4)}).verdicts(0, {"y": torch.zeros(4)}) is PASSED


def test_nothing_and_scalars():
    assert held({"y": torch.empty(0, 3)}).verdicts(0, {"y": torch.empty(0, 3)}) is PASSED
    assert held({"y": torch.tensor(1.5)}).verdicts(0, {"y": torch.tensor(1.5)}) is PASSED


def test_a_judge_looks_again_when_something_else_is_expected():
    """The same bits are right for one drawing and wrong for the next."""
    descriptors = [os.memfd_create(name) for name in ("arena", "vault")]
    arena, vault = (Arena(HostStorage(descriptor)) for descriptor in descriptors)
    judge = Operations(arena, vault, print)
    exp = Implementation("exp", "torch:exp")
    drawn = Argument("x", "randn", shape=(8, 8), dtype="fp32")
    case = Case("exp", "exp", {}, (), None, "/", exp, (drawn,), None, Reference(exp))
    judge.begin(to_plain(case))
    judge.load("reference")
    verdicts = []
    for seed in (1, 2):
        judge.draw(0, seed, share=False)
        name = judge.expect(0)["outputs"][0]["name"]
        if seed == 1:
            tree, _ = arena.write({name: torch.exp(judge._contents[0]["x"])})
        verdicts.append([judge.compare(0, tree, seed)[0]["check"]["ok"] for _ in range(2)])
    judge.end()
    assert verdicts == [[True, True], [False, False]]
    for descriptor in descriptors:
        os.close(descriptor)
