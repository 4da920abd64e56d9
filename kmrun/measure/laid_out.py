"""Copies that two versions of a case share: written once, mapped by each fresh process of both.

Making its own, a process took longer than to measure: fresh pages cost more than the calls on them. Each version
rotates over one half, so that none finds warm what the other has just read. The halves are dealt by lot for every
pair, since where memory lies can make one of them faster for good.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch

from kmrun.measure.copies import Pool, bytes_in, copy_tree, how_many, is_opaque
from kmrun.measure.exchange import HostStorage, aligned


@dataclass(frozen=True, slots=True)
class LaidOut:
    """Where they lie in the arena: from byte `at` on two halves of `half_bytes`, with `count` copies each."""

    at: int
    count: int
    half_bytes: int

    def begin_of(self, half: int) -> int:
        """Return the first byte of a half."""
        return self.at + half * self.half_bytes

    @property
    def end(self) -> int:
        """First byte behind them."""
        return self.at + 2 * self.half_bytes


def lay_out(
    contents: Mapping[str, Any],
    storage: HostStorage,
    at: int,
    bytes_per_call: int,
    cache_bytes: int,
    memory_bytes: int,
) -> LaidOut | None:
    """Write the copies for two versions; None where too few fit to keep calls cold, or these cannot be copied.

    Args:
        contents: the inputs by name.
        storage: of the arena.
        at: first byte that is free there.
        bytes_per_call: what a call moves, outputs included.
        cache_bytes: the last-level cache, through which both versions' copies pass in turn.
        memory_bytes: what may be spent in all.
    """
    if is_opaque(contents):
        return None
    touched = max(bytes_in(contents), 1)
    count, enough = how_many(max(touched, bytes_per_call), cache_bytes // 2, memory_bytes // 2)
    if not enough:
        return None
    found = LaidOut(aligned(at), count, Pool.room(contents, count))
    storage.holds(found.end)
    for half in (0, 1):
        pool = Pool(torch.device("cpu"), storage.view(found.begin_of(half), found.half_bytes))
        for _ in range(count):
            copy_tree(contents, pool)
    return found


def take(
    found: LaidOut, half: int, contents: Mapping[str, Any], storage: HostStorage
) -> list[dict[str, Any]]:
    """Return the copies of one half.

    Writing to them costs what it costs in any memory: were they copied on write, a version that writes back what it
    read would pay for a page fault each time. One that changes them was found out in its first call.
    """
    pool = Pool(torch.device("cpu"), storage.region(found.begin_of(half), found.half_bytes))
    copies = [copy_tree(contents, pool, fill=False) for _ in range(found.count)]
    pool.look()
    return copies
