"""Distinct copies of a call's inputs, so that timed calls find their data in no cache and never the same twice.

On a CPU all copies live in one pool that is mapped once and kept for the whole run: fresh pages cost more than
the copying. Each tensor still has a storage of its own, exactly as long as it needs, and its own alignment
within a page (64 bytes), since buffers that agree in their low address bits collide in the cache's sets.
"""

import math
import mmap
import random
import secrets
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch

MOST_COPIES = 8192
_STRETCH = 16
"""Of so many copies two hold what the one before them holds."""
_POOL_STEP = 256 * 2**20
_LINE = 64
_PAGE = 4096


class Pool:
    """Memory for copies on one device, reused from case to case; `memory` is taken where it is large enough."""

    def __init__(self, device: torch.device, memory: memoryview | None = None) -> None:
        self._device = device
        self._map = memory
        self._used = 0
        self._count = 0

    def reset(self, capacity: int) -> None:
        """Forget all copies and make room for `capacity` bytes; tensors handed out before must be gone.

        Raises:
            OSError: the system refuses the memory (ENOMEM).
        """
        self._used = self._count = 0
        if self._device.type == "cpu" and (self._map is None or len(self._map) < capacity):
            # Private: a child that the kernel forks must not write into its parent's copies.
            private = {"flags": mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS} if hasattr(mmap, "MAP_PRIVATE") else {}
            self._map = None  # both at once would take twice the memory
            # In large steps: cases differ by a little, a page is real only once it is written, and mapping anew
            # would pay for all of them again.
            self._map = memoryview(mmap.mmap(-1, -(-max(capacity, 1) // _POOL_STEP) * _POOL_STEP, **private))

    @staticmethod
    def room(tree: Any, copies: int) -> int:
        """Return the bytes that so many copies of a tree take, in whole pages."""
        one: int = sum(
            storage_span(tensor) * tensor.element_size() + 2 * _PAGE for tensor in tensors_in(tree)
        )
        return copies * -(-one // _PAGE) * _PAGE

    def look(self) -> None:
        """Look at every page: a first look that the system has to answer must not be timed."""
        if self._map is not None:
            torch.frombuffer(self._map, dtype=torch.uint8)[::_PAGE].sum()

    def flat(self, count: int) -> torch.Tensor:
        """Return all of the pool as `count` uninitialised fp32 numbers, forgetting the copies."""
        self.reset(4 * count)
        if self._map is None:
            return torch.empty(count, dtype=torch.float32, device=self._device)
        return torch.frombuffer(self._map, dtype=torch.float32, count=count)

    def like(self, tensor: torch.Tensor) -> torch.Tensor:
        """Return an uninitialised tensor with the shape, strides and dtype of `tensor`."""
        span = storage_span(tensor)
        nbytes = span * tensor.element_size()
        if self._map is None or nbytes == 0 or tensor.device.type != "cpu":
            fresh = torch.empty(span, dtype=tensor.dtype, device=tensor.device)
        else:
            start = -(-self._used // _PAGE) * _PAGE + _LINE * (self._count % 61)
            if start + nbytes > len(self._map):
                return torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype)
            self._used, self._count = start + nbytes, self._count + 1
            fresh = torch.frombuffer(self._map, dtype=tensor.dtype, count=span, offset=start)
        return torch.as_strided(fresh, tensor.shape, tensor.stride())


def storage_span(tensor: torch.Tensor) -> int:
    """Return how many elements of storage a strided tensor reaches over, 0 when it is empty."""
    if tensor.numel() == 0:
        return 0
    last: int = sum((size - 1) * step for size, step in zip(tensor.shape, tensor.stride(), strict=True))
    return last + 1


def same_bytes(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Whether the storage that two tensors of one layout reach over holds the same bytes."""
    left, right = (flat_storage(each).view(torch.uint8) for each in (one, other))
    if left.numel() != right.numel():
        return False
    aligned = left.storage_offset() % 8 == right.storage_offset() % 8 == 0
    whole = left.numel() // 8 * 8 if aligned else 0
    # By words: byte by byte it takes some three times as long.
    if whole and not torch.equal(left[:whole].view(torch.int64), right[:whole].view(torch.int64)):
        return False
    rest: bool = torch.equal(left[whole:], right[whole:])
    return rest


def flat_storage(tensor: torch.Tensor) -> torch.Tensor:
    """Return the storage that a tensor reaches over, in one dimension: overlaps, gaps and padding as they are."""
    return torch.as_strided(tensor.detach(), (storage_span(tensor),), (1,), tensor.storage_offset())


def tensors_in(tree: Any) -> Iterator[torch.Tensor]:
    """Yield every tensor of a tree of containers, in order."""
    if isinstance(tree, torch.Tensor):
        yield tree
    elif isinstance(tree, Mapping):
        for item in tree.values():
            yield from tensors_in(item)
    elif isinstance(tree, list | tuple):
        for item in tree:
            yield from tensors_in(item)


def bytes_in(tree: Any) -> int:
    """Return the storage bytes that the tensors of a tree reach over."""
    return sum(storage_span(tensor) * tensor.element_size() for tensor in tensors_in(tree))


def kept_alive(tree: Any) -> float:
    """Return the bytes of memory that a tree of results keeps alive, as far as can be seen; infinite where unknown.

    A view keeps all of its storage; what is no tensor (an array of another library) may say its bytes.
    """
    if isinstance(tree, torch.Tensor):
        return tree.untyped_storage().nbytes() if tree.layout == torch.strided else math.inf
    if isinstance(tree, Mapping):
        return sum(map(kept_alive, tree.values()))
    if isinstance(tree, list | tuple):
        return sum(map(kept_alive, tree))
    if is_plain(tree):
        return 0
    nbytes = getattr(tree, "nbytes", None)
    return nbytes if isinstance(nbytes, int) and getattr(tree, "base", None) is None else math.inf


def copy_tree(tree: Any, pool: Pool | None = None, *, fill: bool = True) -> Any:
    """Return the tree with every tensor copied (into the pool where given); leaves keep `requires_grad`.

    Without `fill` the memory of the pool stays as it is: it holds these very copies.
    """
    if isinstance(tree, torch.Tensor):
        source = tree.detach()
        twin = (
            pool.like(source)
            if pool
            else torch.empty_strided(source.shape, source.stride(), dtype=source.dtype, device=source.device)
        )
        if fill:
            _copy_storage(twin, source)
        return twin.requires_grad_(True) if tree.requires_grad else twin
    if isinstance(tree, Mapping):
        return {key: copy_tree(item, pool, fill=fill) for key, item in tree.items()}
    if isinstance(tree, tuple) and hasattr(tree, "_fields"):
        return type(tree)(*(copy_tree(item, pool, fill=fill) for item in tree))
    if isinstance(tree, list | tuple):
        return type(tree)(copy_tree(item, pool, fill=fill) for item in tree)
    return tree


def refill_tree(target: Any, source: Any) -> Any:
    """Give a copy another content: tensors are overwritten in place (same pointers), other leaves replaced."""
    if isinstance(target, torch.Tensor):
        _copy_storage(target.detach(), source.detach())
        return target
    if isinstance(target, Mapping):
        return {key: refill_tree(item, source[key]) for key, item in target.items()}
    if isinstance(target, list | tuple):
        items = [refill_tree(*each) for each in zip(target, source, strict=True)]
        return type(target)(*items) if hasattr(target, "_fields") else type(target)(items)
    return source


def is_opaque(tree: Any) -> bool:
    """Whether a tree holds something whose memory cannot be seen, and so neither copied nor counted."""
    if isinstance(tree, Mapping):
        return any(is_opaque(item) for item in tree.values())
    if isinstance(tree, list | tuple):
        return any(is_opaque(item) for item in tree)
    return not (is_plain(tree) or isinstance(tree, torch.Tensor | torch.dtype))


def is_plain(value: Any) -> bool:
    """Whether a value is a number, a text or None: it holds no memory, and is passed as it is."""
    return value is None or isinstance(value, bool | int | float | str)


def only_tensors(tree: Any) -> bool:
    """Whether a tree holds nothing but tensors: then a copy is refilled in place, and whoever holds it sees that."""
    if isinstance(tree, Mapping):
        return all(map(only_tensors, tree.values()))
    if isinstance(tree, list | tuple):
        return all(map(only_tensors, tree))
    return isinstance(tree, torch.Tensor)


def _copy_storage(into: torch.Tensor, source: torch.Tensor) -> None:
    if storage_span(source):
        flat_storage(into).copy_(flat_storage(source))


def how_many(bytes_per_copy: int, cache_bytes: int, memory_bytes: int) -> tuple[int, bool]:
    """Return the number of copies whose total is over twice the last-level cache, and whether that was reached.

    It is even where it is not one: contents alternate round and round.

    Args:
        bytes_per_copy: what one call touches.
        cache_bytes: the last-level cache.
        memory_bytes: what may be spent on copies.
    """
    if bytes_per_copy <= 0:
        return 1, False
    wanted = max(2, 2 * cache_bytes // bytes_per_copy + 1)
    wanted += wanted % 2
    affordable = max(1, memory_bytes // bytes_per_copy)
    count = min(wanted, affordable, MOST_COPIES)
    count -= count % 2 if count > 1 else 0
    return count, count >= wanted


def dealt(copies: int, contents: Sequence[int], seed: int | None = None) -> list[int]:
    """Return which content each copy holds: another than the copy before, but for two in sixteen where there are many.

    So what remembers its last content finds it again in fewer calls than a lower quartile shows, and what counts its
    calls instead of looking loses step.

    Args:
        copies: how many there are, an even number or one, in the order in which calls use them, round and round.
        contents: what there is to hold, each once.
        seed: of the order; by default nobody can know it before.
    """
    chance = random.Random(secrets.randbits(64) if seed is None else seed)
    # An even number, so that the round closes.
    again = set(chance.sample(range(copies), 2 * (copies // _STRETCH)))
    order, at = [], chance.randrange(len(contents))
    for place in range(copies):
        at = (at + (place not in again)) % len(contents)
        order.append(contents[at])
    return order
