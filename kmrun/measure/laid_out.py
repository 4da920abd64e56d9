"""Copies that two versions of a case share: written once, mapped by each fresh process of both.

Making its own, a process took longer than to measure: fresh pages cost more than the calls on them. Each version
rotates over one half, so that none finds warm what the other has just read. The halves are dealt by lot for every
pair, since where memory lies can make one of them faster for good.
"""

import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch

from kmrun.measure.copies import Pool, bytes_in, copy_tree, dealt, how_many, is_opaque
from kmrun.measure.exchange import HostStorage, aligned


@dataclass(frozen=True, slots=True)
class LaidOut:
    """Where they lie in the arena: from byte `at` on two halves of `half_bytes`, with `count` copies each.

    `slots` are those whose contents they hold, `seed` decides which holds which: the same in both halves.
    """

    at: int
    count: int
    half_bytes: int
    slots: tuple[int, ...]
    seed: int

    @property
    def holds(self) -> list[int]:
        """The slot whose content each copy of a half holds."""
        return dealt(self.count, self.slots, self.seed)

    def begin_of(self, half: int) -> int:
        """Return the first byte of a half."""
        return self.at + half * self.half_bytes

    @property
    def end(self) -> int:
        """First byte behind them."""
        return self.at + 2 * self.half_bytes


def lay_out(
    contents: Mapping[int, Mapping[str, Any]],
    storage: HostStorage,
    at: int,
    bytes_per_call: int,
    cache_bytes: int,
    memory_bytes: int,
) -> LaidOut | None:
    """Write the copies for two versions; None where too few fit to keep calls cold, or these cannot be copied.

    Args:
        contents: the inputs by name, of each slot.
        storage: of the arena.
        at: first byte that is free there.
        bytes_per_call: what a call moves, outputs included.
        cache_bytes: the last-level cache, through which both versions' copies pass in turn.
        memory_bytes: what may be spent in all.
    """
    one = next(iter(contents.values()))
    if is_opaque(one):
        return None
    touched = max(bytes_in(one), 1)
    count, enough = how_many(max(touched, bytes_per_call), cache_bytes // 2, memory_bytes // 2)
    if not enough:
        return None
    found = LaidOut(aligned(at), count, Pool.room(one, count), tuple(contents), secrets.randbits(32))
    storage.holds(found.end)
    for half in (0, 1):
        pool = Pool(torch.device("cpu"), storage.view(found.begin_of(half), found.half_bytes))
        for slot in found.holds:
            copy_tree(contents[slot], pool)
    return found


def take(
    found: LaidOut, half: int, contents: Mapping[int, Mapping[str, Any]], storage: HostStorage
) -> list[dict[str, Any]]:
    """Return the copies of one half.

    Writing to them costs what it costs in any memory: were they copied on write, a version that writes back what it
    read would pay for a page fault each time. One that changes them was found out in its first call.
    """
    pool = Pool(torch.device("cpu"), storage.region(found.begin_of(half), found.half_bytes))
    copies = [copy_tree(contents[slot], pool, fill=False) for slot in found.holds]
    pool.look()
    return copies
