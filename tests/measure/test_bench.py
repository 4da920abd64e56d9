"""Turns in alternated blocks: which calls count, and in which memory their outputs lie."""

import math
import os
from contextlib import nullcontext
from dataclasses import replace

import numpy as np
import pytest
import torch

from kmrun.core.case import Argument, Case, Implementation, Reference
from kmrun.core.plain import to_plain
from kmrun.measure import bench
from kmrun.measure.bench import MOST_HELD
from kmrun.measure.exchange import Arena, HostStorage
from kmrun.measure.faults import SideFault
from kmrun.measure.operations import Operations

KERNEL = """
places = []

def work(x):
    out = x + 1
    places.append(out.data_ptr())
    return out
"""


@pytest.fixture
def side(tmp_path):
    """A side that is ready to take turns, and the addresses of all outputs so far."""
    (tmp_path / "k.py").write_text(KERNEL)
    work = Implementation("work", "k.py:work")
    inputs = (Argument("x", "randn", shape=(1 << 16,), dtype="fp32"),)
    case = Case("work", "work", {}, (), None, str(tmp_path), work, inputs, None, Reference(work))
    descriptor = os.memfd_create("arena")
    made = Operations(Arena(HostStorage(descriptor)), Arena(HostStorage(descriptor)), print)
    made.set_cache(1 << 20)
    made.begin(to_plain(case))
    made.load("kernel")
    made.draw(0, 7, share=False)
    made.stage(True, 0)
    made.prepare("kernel")
    places = made._loaded["kernel"].function.__globals__["places"]
    yield made, places
    made.end()
    os.close(descriptor)


def test_all_outputs_that_will_be_held_exist_before_the_first_call_that_counts(side):
    made, places = side
    places.clear()
    samples = made.turn("kernel", calls=3, discard=1)
    batch = made._bench.timed["kernel"].sampler.batch
    assert len(samples) == 3
    assert len(places) == (MOST_HELD + 1 + 3) * batch
    assert len(set(places[: MOST_HELD * batch])) == MOST_HELD * batch
    places.clear()
    made.turn("kernel", calls=3, discard=1)
    assert len(places) == (1 + 3) * batch


def test_a_turn_of_long_calls_throws_none_away_and_moves_its_outputs_all_the_same(side):
    made, places = side
    made.turn("kernel", calls=2, discard=0)
    places.clear()
    for _ in range(10):
        assert len(made.turn("kernel", calls=2, discard=0)) == 2
    assert len(places) == 10 * 2 * made._bench.timed["kernel"].sampler.batch
    assert len(set(places)) > 2


@pytest.mark.parametrize(("bound", "value"), [("HELD_BYTES", 1024), ("LONGEST_HELD_NS", 1.0)])
def test_nothing_is_held_of_large_outputs_and_of_long_calls(side, monkeypatch, bound, value):
    monkeypatch.setattr(bench, bound, value)
    made, places = side
    places.clear()
    made.turn("kernel", calls=3, discard=1)
    batch = made._bench.timed["kernel"].sampler.batch
    assert len(places) == (1 + 1 + 3) * batch
    places.clear()
    made.turn("kernel", calls=3, discard=1)
    assert len(places) == (1 + 3) * batch
    assert not made._bench._held


@pytest.mark.parametrize(
    "body",
    ["torch.empty(1 << 23)[: x.numel()]", "np.empty(1 << 23, np.float32)[: x.numel()]", "Opaque()"],
)
def test_nothing_is_held_of_what_keeps_much_memory_alive_or_does_not_say(side, body):
    made, _ = side
    scope = {"torch": torch, "np": np, "Opaque": object}
    exec(f"def work(x):\n    return {body}", scope)
    made._loaded["kernel"] = replace(made._loaded["kernel"], function=scope["work"])
    made.prepare("kernel")
    made.turn("kernel", calls=3, discard=1)
    assert not made._bench._held


def test_outputs_of_turns_are_those_that_are_held_and_of_one_more_call(side):
    made, places = side
    made.turn("kernel", calls=3, discard=1)
    places.clear()
    found = made._bench.of_turns("kernel", 3)
    assert len(places) == made._bench.timed["kernel"].sampler.batch
    assert len(found) == 3
    assert all(torch.equal(each.outputs["o"], found[0].outputs["o"]) for each in found)
    assert len({each.outputs["o"].data_ptr() for each in found}) == len(found)


def test_only_as_many_outputs_of_turns_are_shown_as_fit(side, monkeypatch):
    made, _ = side
    monkeypatch.setattr(bench, "KEPT_BYTES", 1)
    made.turn("kernel", calls=3, discard=1)
    assert len(made._bench.of_turns("kernel", 3)) == 1


def test_no_more_outputs_of_turns_are_shown_than_were_asked_for(side):
    made, _ = side
    made.turn("kernel", calls=3, discard=1)
    assert len(made.show_turns("kernel", most=1)) == 1
    assert made.show_turns("kernel") == []


@pytest.mark.parametrize("declared", [True, False])
def test_a_copy_that_was_written_to_is_refused_unless_that_is_declared(side, declared):
    made, _ = side
    bench_of = made._bench
    bench_of.refuse_written()
    if declared:
        bench_of.case = replace(bench_of.case, mutates=("x",))
    bench_of.copies[-1]["x"][-1] = math.nan
    with nullcontext() if declared else pytest.raises(SideFault, match="wrote to its input 'x'"):
        bench_of.refuse_written()
