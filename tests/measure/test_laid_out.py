"""Copies that the processes of two versions share."""

import os
import resource

import pytest
import torch

from kmrun.core.case import Argument, Case, Implementation, Reference
from kmrun.core.plain import to_plain
from kmrun.measure import laid_out
from kmrun.measure.copies import Pool, copy_tree, tensors_in
from kmrun.measure.exchange import Arena, HostStorage
from kmrun.measure.laid_out import LaidOut
from kmrun.measure.operations import Operations

CACHE = 1 << 20


@pytest.fixture
def storage():
    descriptor = os.memfd_create("copies")
    yield HostStorage(descriptor)
    os.close(descriptor)


def contents(tensors=3):
    """Return inputs of many layouts: padded rows, a scalar, nothing at all, a leaf that wants gradients."""
    named = {f"x{place}": torch.randn(37 + place, 50)[:, :41] for place in range(tensors)}
    return named | {
        "scale": 2.0,
        "empty": torch.empty(0, 3),
        "pair": (torch.arange(7, dtype=torch.int32), torch.tensor(1.5)),
        "leaf": torch.randn(64, requires_grad=True),
    }


def same(one, other):
    pairs = list(zip(tensors_in(one), tensors_in(other), strict=True))
    assert pairs
    assert all(left.stride() == right.stride() for left, right in pairs)
    return all(torch.equal(left, right) for left, right in pairs)


@pytest.mark.parametrize("tensors", [1, 40])
def test_both_halves_hold_the_very_inputs_in_memory_of_their_own(storage, tensors):
    inputs = contents(tensors)
    other = contents(tensors)
    assert not same(inputs, other)
    by_slot = {2: inputs, 3: other}
    found = laid_out.lay_out(by_slot, storage, 12345, 0, CACHE, 1 << 30)
    halves = [laid_out.take(found, half, by_slot, storage) for half in (0, 1)]
    assert len(halves[0]) == len(halves[1]) == len(found.holds) == found.count
    assert set(found.holds) == {2, 3}
    for half in halves:
        assert all(same(copy, by_slot[slot]) for copy, slot in zip(half, found.holds, strict=True))
    assert halves[0][0]["leaf"].requires_grad
    assert not halves[0][0]["x0"].requires_grad
    # Together they are more than twice the cache: what one version reads is gone when it comes round again.
    assert found.end - found.at > 2 * CACHE
    assert found.at % 4096 == 0
    assert found.at >= 12345


def test_a_call_that_writes_back_what_it_read_pays_for_no_page_fault(storage):
    inputs = {2: {"x": torch.randn(1 << 18)}}
    found = laid_out.lay_out(inputs, storage, 0, 0, 16 * CACHE, 1 << 30)
    copies = laid_out.take(found, 0, inputs, storage)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for copy in copies:
        copy["x"].add_(0.0)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before < found.half_bytes / 4096 / 10
    assert all(same(copy, inputs[2]) for copy in laid_out.take(found, 0, inputs, storage))


def test_what_would_not_be_cold_or_cannot_be_copied_is_not_laid_out(storage):
    assert laid_out.lay_out({2: contents()}, storage, 0, 0, CACHE, CACHE // 4) is None
    assert laid_out.lay_out({2: contents() | {"state": object()}}, storage, 0, 0, CACHE, 1 << 30) is None


def test_a_side_finds_its_own_inputs_in_them_and_nothing_that_only_the_judge_may_see(tmp_path):
    (tmp_path / "k.py").write_text("def work(x, y):\n    return x + y\n")
    work = Implementation("work", "k.py:work")
    secret = Argument("secret", "randn", shape=(5000,), dtype="fp32", options={"visible": "judge"})
    shown = [Argument(name, "randn", shape=(3000,), dtype="fp32") for name in "xy"]
    case = to_plain(
        Case("work", "work", {}, (), None, str(tmp_path), work, (secret, *shown), None, Reference(work))
    )
    descriptor = os.memfd_create("arena")
    sides = [Operations(Arena(HostStorage(descriptor)), Arena(HostStorage(descriptor)), print) for _ in "ab"]
    judge, kernel = sides
    for side in sides:
        side.set_cache(CACHE)
        side.begin(case)
    drawn = judge.draw(2, 7, share=True)
    more = judge.draw(3, 8, share=True, at=drawn["next"])
    ready = judge.lay_out([2, 3], more["next"], 0)
    kernel.load("kernel")
    kernel.receive(2, drawn["tree"])
    kernel.receive(3, more["tree"])
    staged = kernel.stage(True, 0, ready=ready, half=1)
    assert staged == {"copies": ready["count"], "cold": True, "means": "rotation"}
    assert list(kernel._contents[2]) == ["x", "y"]
    assert set(kernel._bench.holds) == {2, 3}
    for copy, slot in zip(kernel._bench.copies, kernel._bench.holds, strict=True):
        assert same(copy, kernel._contents[slot])
    hidden = judge._contents[2]["secret"].numpy().tobytes()
    assert hidden not in os.pread(descriptor, os.fstat(descriptor).st_size, 0)
    for side in sides:
        side.end()
    os.close(descriptor)


def test_the_memory_goes_back(storage):
    storage.holds(5000)
    found = laid_out.lay_out({2: contents()}, storage, 5000, 0, CACHE, 1 << 30)
    assert os.fstat(storage._descriptor).st_size >= found.end
    storage.end_at(found.at)
    assert os.fstat(storage._descriptor).st_size == found.at
    storage.holds(9000)
    storage.bytes(8000, 1000).fill_(3)  # and the file can grow again
    assert int(storage.bytes(8000, 1000).sum()) == 3000


@pytest.mark.parametrize(("free", "kept"), [(1 << 40, 1 << 28), (8 * CACHE, CACHE), (0, 5000)])
def test_memory_that_is_plentiful_waits_for_the_next_case(storage, monkeypatch, free, kept):
    side = Operations(Arena(storage), Arena(storage), print)
    monkeypatch.setattr(side, "memory", lambda: {"free": free})
    storage.holds(2 * CACHE)
    side.take_away(5000)
    assert os.fstat(storage._descriptor).st_size == kept


def test_what_grows_a_little_is_not_mapped_anew(storage):
    storage.holds(5000)
    storage.bytes(0, 5000).fill_(1)
    mapped = storage.view(0, 10).obj
    storage.holds(2 * CACHE)
    assert storage.view(CACHE, 10).obj is mapped
    storage.holds((1 << 28) + 1)
    assert storage.view(1 << 28, 1).obj is not mapped
    assert int(storage.bytes(0, 5000).sum()) == 5000


def test_a_pool_has_room_for_as_many_copies_as_it_was_made_for():
    inputs = contents(40)
    pool = Pool(torch.device("cpu"))
    pool.reset(Pool.room(inputs, 5))
    limit = len(pool._map)
    copies = [copy_tree(inputs, pool) for _ in range(5)]
    assert pool._used <= Pool.room(inputs, 5) <= limit
    assert all(same(copy, inputs) for copy in copies)


def test_a_description_is_plain():
    assert LaidOut(4096, 3, 8192, (2, 3), 1).end == 4096 + 2 * 8192
