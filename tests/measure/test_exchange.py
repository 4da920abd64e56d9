"""Trees of tensors through shared memory, and the copies that calls rotate over."""

import enum
import os
from collections import OrderedDict
from typing import NamedTuple

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from kmrun.measure.copies import (
    Pool,
    bytes_in,
    copy_tree,
    dealt,
    how_many,
    is_opaque,
    only_tensors,
    refill_tree,
    storage_span,
    tensors_in,
)
from kmrun.measure.exchange import Arena, CannotCross, HostStorage

CPU = torch.device("cpu")


@pytest.fixture
def ends():
    descriptor = os.memfd_create("test")
    yield Arena(HostStorage(descriptor)), Arena(HostStorage(os.dup(descriptor)))
    os.close(descriptor)


def through(ends, tree, at=0):
    written, _ = ends[0].write(tree, at)
    return ends[1].read(written, CPU)


LAYOUTS = {
    "plain": torch.arange(24.0).reshape(4, 6),
    "transposed": torch.arange(24.0).reshape(4, 6).t(),
    "channels_last": torch.randn(2, 3, 4, 5).contiguous(memory_format=torch.channels_last),
    "strided": torch.arange(24.0)[::3],
    "expanded": torch.arange(4.0).expand(3, 4),
    "offset": torch.arange(24.0)[5:17].reshape(3, 4),
    "empty": torch.empty(0, 3),
    "scalar": torch.tensor(2.5),
    "bool": torch.tensor([True, False, True]),
    "bf16": torch.randn(5, 7).bfloat16(),
    "fp8": torch.randn(5, 7).to(torch.float8_e4m3fn),
    "int64": torch.arange(9),
}


@pytest.mark.parametrize("name", LAYOUTS)
def test_a_tensor_arrives_as_it_was(ends, name):
    tensor = LAYOUTS[name]
    found = through(ends, tensor)
    assert found.dtype == tensor.dtype
    assert found.shape == tensor.shape
    assert found.stride() == tensor.stride()
    assert torch.equal(
        found.view(torch.uint8) if name == "fp8" else found,
        tensor.view(torch.uint8) if name == "fp8" else tensor,
    )


def test_containers_and_scalars_arrive_as_they_were(ends):
    tree = {"a": [1, 2.5, None, True, "x"], "b": (torch.ones(2), {"c": torch.zeros(3)}), "d": torch.bfloat16}
    found = through(ends, tree)
    assert found["a"] == tree["a"]
    assert isinstance(found["b"], tuple)
    assert torch.equal(found["b"][1]["c"], torch.zeros(3))
    assert found["d"] is torch.bfloat16


def test_requires_grad_travels_and_memory_does_not(ends):
    leaf = torch.randn(4, requires_grad=True)
    found = through(ends, leaf)
    assert found.requires_grad
    assert found.is_leaf
    with torch.no_grad():
        found.zero_()
    assert leaf.detach().abs().sum() > 0


def test_several_trees_lie_behind_each_other(ends):
    first, after = ends[0].write(torch.ones(1000))
    second, _ = ends[0].write(torch.zeros(1000), after)
    assert ends[1].read(first, CPU).sum() == 1000
    assert ends[1].read(second, CPU).sum() == 0


def test_what_has_no_description_cannot_cross(ends):
    with pytest.raises(CannotCross, match=r"object cannot cross"):
        ends[0].write({"x": object()})


class Pair(NamedTuple):
    a: torch.Tensor
    b: int


class Kind(enum.IntEnum):
    ONE = 1


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (Pair(torch.ones(1), 2), "Pair cannot cross"),
        ({0: torch.ones(1)}, "a dict whose keys are not text cannot cross"),
        (OrderedDict(a=1), "a collections.OrderedDict cannot cross"),
        (Kind.ONE, "Kind cannot cross"),
    ],
)
def test_what_would_arrive_as_something_else_cannot_cross(ends, value, told):
    with pytest.raises(CannotCross, match=told):
        ends[0].write({"x": value})


def test_nothing_is_read_outside_the_arena(ends):
    written, _ = ends[0].write(torch.ones(4))
    written["tree"]["at"] = 10**9
    with pytest.raises(ValueError, match="outside an arena"):
        ends[1].read(written, CPU)


@pytest.mark.parametrize("name", LAYOUTS)
def test_copies_have_storages_of_their_own_and_the_same_layout(name):
    tensor = LAYOUTS[name]
    pool = Pool(CPU)
    pool.reset(1 << 20)
    copies = [copy_tree({"x": tensor}, pool)["x"] for _ in range(3)]
    for copy in copies:
        assert copy.stride() == tensor.stride()
        assert torch.equal(copy.to(torch.float64), tensor.to(torch.float64))
        assert copy.untyped_storage().nbytes() == storage_span(tensor) * tensor.element_size()
    if tensor.numel():
        assert len({copy.data_ptr() for copy in copies}) == 3
        assert all(copy.data_ptr() % 64 == 0 for copy in copies)


def test_refilling_keeps_pointers_and_replaces_what_is_no_tensor():
    marker = object()
    target = {"x": torch.zeros(3), "y": [torch.zeros(2), 1], "z": object()}
    pointers = [tensor.data_ptr() for tensor in tensors_in(target)]
    found = refill_tree(target, {"x": torch.ones(3), "y": [torch.ones(2), 2], "z": marker})
    assert [tensor.data_ptr() for tensor in tensors_in(found)] == pointers
    assert found["x"].sum() == 3
    assert found["y"][1] == 2
    assert found["z"] is marker


def test_a_full_pool_falls_back_to_memory_of_its_own():
    pool = Pool(CPU)
    pool.reset(4096)
    big = torch.ones(10_000)
    assert torch.equal(copy_tree(big, pool), big)


def test_opaque_is_what_cannot_be_counted():
    assert not is_opaque({"a": [torch.ones(1), 1, "x", None, torch.float32], "b": (2.0, True)})
    assert is_opaque({"a": [object()]})
    assert bytes_in({"a": torch.ones(3, 4), "b": [torch.ones(2, dtype=torch.int8)], "c": 5}) == 50


@given(touched=st.integers(1, 10**9), cache=st.integers(2**10, 2**30), memory=st.integers(2**20, 2**36))
def test_enough_copies_are_over_twice_the_cache_and_never_over_the_memory(touched, cache, memory):
    count, enough = how_many(touched, cache, memory)
    assert count >= 1
    assert count == 1 or count * touched <= memory
    assert count == 1 or count % 2 == 0
    if enough:
        assert count * touched > 2 * cache
        assert count >= 2


@given(
    half=st.integers(1, 200),
    slots=st.lists(st.integers(0, 5), min_size=1, max_size=2, unique=True),
    seed=st.integers(),
)
def test_contents_alternate_round_and_round_but_for_two_in_sixteen(half, slots, seed):
    copies = 2 * half
    order = dealt(copies, slots, seed)
    assert order == dealt(copies, slots, seed)
    assert len(order) == copies
    again = sum(order[place] == order[place - 1] for place in range(copies))
    assert again == (2 * (copies // 16) if len(slots) == 2 else copies)
    assert set(order) == set(slots)
    assert dealt(1, slots, seed)[0] in slots


def test_what_counts_its_calls_loses_step():
    orders = [dealt(4000, [2, 3]) for _ in range(8)]
    for order in orders:
        assert 0.3 < sum(order[at] == (2, 3)[at % 2] for at in range(4000)) / 4000 < 0.7
    assert len({order[0] for order in [*orders, *(dealt(1, [2, 3], seed) for seed in range(20))]}) == 2


def test_a_tree_of_tensors_alone_is_refilled_in_place_and_one_with_numbers_is_not():
    assert only_tensors({"x": torch.ones(2), "pair": (torch.ones(1), [torch.ones(1)])})
    assert not only_tensors({"x": torch.ones(2), "scale": 0.5})
    with pytest.raises(ValueError, match="zip"):
        refill_tree([torch.ones(2)], [torch.ones(2), torch.ones(2)])
