"""Timing inside a side: the copies that calls rotate over, one sampler per implementation, outputs kept to check."""

import random
import secrets
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from kmrun.core.case import Case
from kmrun.measure.bound import Bound, Loaded, bind, user_code
from kmrun.measure.copies import (
    Pool,
    bytes_in,
    copy_tree,
    dealt,
    how_many,
    is_opaque,
    kept_alive,
    only_tensors,
    refill_tree,
    same_bytes,
    tensors_in,
)
from kmrun.measure.faults import SideFault, written_to
from kmrun.measure.timer import Budget, Flusher, Rotation, Sampler, Stopwatch, Window

LONG_NS = 100e6
"""One call says enough of what takes longer."""
HOT_COPIES = 8
MOST_KEPT, FEWEST_KEPT, KEPT_BYTES = 64, 1, 32 * 2**20
"""How many timed calls' outputs are kept to be compared, beside the last: as many as fit the bytes, within bounds."""
KEPT_SHARE = 0.05
MOST_HELD, HELD_BYTES, LONGEST_HELD_NS = 6, 16 * 2**20, 20e6
"""Outputs of each turn's first call that are held, so that the next ones lie elsewhere; larger ones do anyway."""

LOOKED_AT_BYTES = 8 * 2**20
"""How much of the copies is looked at for what calls of a pair's turns wrote; see `looking.MOST_SHOWN`."""


@dataclass(slots=True)
class Kept:
    """The outputs of a timed call, and which content it ran on."""

    slot: int
    outputs: dict[str, torch.Tensor]


@dataclass(slots=True)
class Timed:
    """One implementation, bound to every copy."""

    loaded: Loaded
    bounds: list[Bound]
    sampler: Sampler


@dataclass(slots=True)
class Bench:
    """All that a side needs to time one case.

    `contents` are the pristine inputs by slot, `grads` the incoming gradients by slot. `cold` is reached by
    rotating over `copies` where the inputs can be copied freely, by flushing where they cannot.
    """

    case: Case
    device: torch.device
    stopwatch: Stopwatch
    pool: Pool
    cache_bytes: int
    memory_bytes: int
    flusher: Callable[[], Flusher]
    contents: Mapping[int, Mapping[str, Any]]
    grads: Mapping[int, Mapping[str, Any]]
    copies: list[dict[str, Any]] = field(default_factory=list)
    holds: list[int] = field(default_factory=list)
    """The slot whose content each copy holds."""
    has_setup: bool = False
    cold: bool = True
    flushes: bool = False
    timed: dict[str, Timed] = field(default_factory=dict)
    kept: list[Kept] = field(default_factory=list)
    _held: list[tuple[list[int], list[Any]]] = field(default_factory=list)
    """Samples of turns: which copies were used, and what the calls returned."""
    _moves_outputs: bool | None = None
    """Whether each turn's outputs land in other memory; None before the first turn."""

    def stage(self, cold: bool, bytes_per_call: int, deal: int | None = None) -> dict[str, Any]:
        """Make the copies. Returns how many, whether calls are cold, and by which means.

        Args:
            cold: whether calls are to find their data in no cache.
            bytes_per_call: what a call touches beside its inputs.
            deal: seed of which content each copy holds, so that two versions get the same ones in the same order.
                One copy then becomes two where the cache has room for both, or is flushed before each call: a
                version that remembers its last content must not find it in each.
        """
        self.timed.clear()
        self.copies.clear()
        self._held.clear()
        self._moves_outputs = None
        slots = sorted(self.contents)
        # Rotation cannot make cold what it cannot copy: state that `setup` made, and opaque arguments.
        flush_only = self.has_setup or is_opaque(self.contents[slots[0]])
        touched = max(bytes_in(self.contents[slots[0]]), 1)
        self.cold, self.flushes = cold, cold and flush_only
        count, enough = (1, False)
        if cold and not flush_only:
            count, enough = how_many(max(touched, bytes_per_call), self.cache_bytes, self.memory_bytes)
            self.cold = enough
            if not enough:
                # Hot then, and honestly so: thousands of small copies would time the interpreter's own misses.
                count = min(count, HOT_COPIES)
        room = self.flushes or 2 * max(touched, bytes_per_call) <= self.cache_bytes
        # What `setup` keeps is meant to be kept.
        if count == 1 and deal is not None and room and not self.has_setup:
            count = 2
        self.pool.reset(Pool.room(self.contents[slots[0]], count))
        self.holds = dealt(count, slots, deal)
        self.copies = [copy_tree(self.contents[slot], self.pool) for slot in self.holds]
        means = "flush" if self.flushes else "rotation" if self.cold else "none"
        return {"copies": count, "cold": self.cold, "means": means}

    def take_copies(self, copies: list[dict[str, Any]], holds: list[int]) -> dict[str, Any]:
        """Rotate over copies that are there already, cold, each of its slot's content; as `stage`."""
        self.copies, self.holds = copies, holds
        self.cold, self.flushes = True, False
        return {"copies": len(copies), "cold": True, "means": "rotation"}

    def refresh(self) -> None:
        """Deal the contents to the copies anew, under the same pointers; recorded forward passes are run again."""
        for place, slot in enumerate(dealt(len(self.copies), sorted(self.contents))):
            if slot != self.holds[place] or self.case.mutates:
                self._refill(place, slot)

    def prepare(self, key: str, loaded: Loaded) -> dict[str, Any]:
        """Bind an implementation to the copies and choose its batch. Returns a first estimate of one call."""
        self._bind(key, loaded, 1)
        sampler = self.timed[key].sampler
        with user_code(loaded):
            self.stopwatch.learn(sampler.rotation.thunks[0])
            first = sampler.one()[0]
            if not self.flushes and first < LONG_NS:
                first = min(first, *(sampler.one()[0] for _ in range(2)))
            batch = 1 if self.flushes else sampler.choose_batch(first)
            if self.case.mutates:  # a copy is good for one call until it is restored
                batch = sampler.batch = min(batch, len(self.copies))
        if self.cold and batch == 1 and self.stopwatch.kind == "cuda":
            # A long call is worth a flush: it leaves no dirty line of the call before for this one to evict.
            sampler.before = self._flush
        return {"call_ns": first, "batch": batch, "flushes": sampler.before is not None}

    def _flush(self) -> None:
        self.flusher()()

    def warm_up(self, key: str, most_ns: float, at_least: int) -> float:
        """Call until the level is stable; return it in ns per call."""
        timed = self.timed[key]
        if self.flushes:  # a flush costs far more than a call and warms nothing
            at_least = min(at_least, 3)
        with user_code(timed.loaded):
            return timed.sampler.warm_up(most_ns / 10, most_ns, at_least)[1]

    def window(self, key: str, budget: Budget, progress: Callable[[int], None]) -> Window:
        """Time the implementation alone; some outputs are kept, the first and the last always."""
        timed = self.timed[key]
        self.kept.clear()
        chance = random.Random(secrets.randbits(64))
        most = FEWEST_KEPT

        def wants(index: int) -> bool:
            return index == 0 or (len(self.kept) < most and chance.random() < KEPT_SHARE)

        def keep(_: int, places: Sequence[int], results: Sequence[Any]) -> None:
            nonlocal most
            choice = chance.randrange(len(places))
            collected = timed.bounds[places[choice]].collect(results[choice])
            newest = timed.bounds[places[-1]].collect(results[-1])
            if _share_memory(
                collected, newest
            ):  # a buffer of the kernel's own: only the last call is still there
                choice, collected = -1, newest
            # Copied: buffers of the copy, or of the kernel, will be written again.
            self.kept.append(Kept(self.holds[places[choice]], copy_tree(collected)))
            most = min(MOST_KEPT, max(FEWEST_KEPT, KEPT_BYTES // max(bytes_in(collected), 1)))

        graphs = _compiled_graphs()
        with user_code(timed.loaded):
            samples = timed.sampler.window(budget, keep, wants, progress)
        if timed.loaded.implementation.compile is not None and _compiled_graphs() != graphs:
            sentence = f"torch.compile compiled {timed.loaded.who} again while it was timed"
            raise SideFault("recompiled", sentence, timed.loaded.fault)
        self._check_last(timed)
        return samples

    def slot(self, key: str, calls: int, discard: int) -> list[float]:
        """Take `calls` samples after `discard` thrown away ones, as one side's turn in an alternated block."""
        timed = self.timed[key]
        with user_code(timed.loaded):
            if self._moves_outputs is None:
                self._moves_outputs = not self.flushes and self._fill_held(timed)
            taken = [self._held_call(timed) if self._moves_outputs else timed.sampler.one()[0]]
            taken += [timed.sampler.one()[0] for _ in range(discard + calls - 1)]
            return taken[discard:]

    def _fill_held(self, timed: Timed) -> bool:
        """Make all outputs that will be held: new memory, whose pages are made as a call first writes to them.

        Not in timed calls: how many of them there were went with the process. Returns whether any will be held: none
        of calls so long that this would cost more than the turns, nor outputs that lie elsewhere each time anyway.
        """
        for _ in range(MOST_HELD):
            if self._held_call(timed) * timed.sampler.batch > LONGEST_HELD_NS or not self._held:
                self._held.clear()
                return False
        return True

    def _held_call(self, timed: Timed) -> float:
        """Make a call and keep what it returned for some turns, so that later outputs land in other memory.

        The allocator hands out the same block again and again, and how that block lies in the caches went with
        the process: equal versions differed by a few percent for good. Returns the call's time in ns.
        """
        held: list[Any] = []
        took, places = timed.sampler.one(held)
        if timed.sampler.after is not None:
            timed.sampler.after(places)
        if kept_alive(held) <= HELD_BYTES:
            self._held.append((places, held))
        if len(self._held) > MOST_HELD:
            self._held.pop(random.randrange(MOST_HELD))
        return took

    def of_turns(self, key: str, most: int) -> list[Kept]:
        """Return outputs of up to `most` samples of turns: of one more, taken as they were, and of those held still."""
        timed = self.timed[key]
        with user_code(timed.loaded):
            results: list[Any] = []
            _, places = timed.sampler.one(results)
            found = [self._one_of(timed, places, results)]
            if timed.sampler.after is not None:
                timed.sampler.after(places)
            if self.case.mutates or any(output.arg is not None for output in self.case.outputs or ()):
                return found  # what is held was written again since
            more = min(KEPT_BYTES // max(bytes_in(found[0].outputs), 1), most) - 1
            held = random.sample(self._held, max(0, min(more, len(self._held))))
            return found + [self._one_of(timed, *each) for each in held]

    def _one_of(self, timed: Timed, places: Sequence[int], results: Sequence[Any]) -> Kept:
        choice = random.randrange(len(places))
        collected = timed.bounds[places[choice]].collect(results[choice])
        return Kept(self.holds[places[choice]], copy_tree(collected))

    def refuse_written(self) -> None:
        """Look at the copies, a random part where there are many, for what calls wrote to them.

        Raises:
            SideFault: one is no longer what its slot holds, in an argument that the suite does not say is mutated.
        """
        left = LOOKED_AT_BYTES
        for place in random.sample(range(len(self.copies)), len(self.copies)):
            copy, content = self.copies[place], self.contents[self.holds[place]]
            for name in copy.keys() - set(self.case.mutates):
                pairs = zip(tensors_in(copy[name]), tensors_in(content[name]), strict=True)
                if not all(same_bytes(one, other) for one, other in pairs):
                    raise written_to(name)
            left -= bytes_in(copy)
            if left <= 0:
                return

    def burst(self, key: str, calls: int) -> float:
        """Run calls back to back without flush or pause; return this side's own time for all of them in ns."""
        timed = self.timed[key]
        thunks, _ = timed.sampler.rotation.take(calls)
        with user_code(timed.loaded):
            took = self.stopwatch.batch_ns(thunks, None)
        self._restore(range(len(self.copies)))
        return took

    def _check_last(self, timed: Timed) -> None:
        """Keep the outputs of one more call: other content under pointers that were just used.

        What a kernel remembers by pointer, shape or id is stale now.
        """
        place = timed.sampler.rotation.last
        others = [slot for slot in sorted(self.contents) if slot != self.holds[place]]
        self._refill(place, others[0] if others else self.holds[place])
        bound = timed.bounds[place]
        with user_code(timed.loaded):
            self.kept.append(Kept(self.holds[place], copy_tree(bound.collect(bound.thunk()))))

    def _refill(self, place: int, slot: int) -> None:
        """Give one copy another content; what was worked out from the old one is worked out again."""
        self.holds[place] = slot
        self.copies[place] = refill_tree(self.copies[place], self.contents[slot])
        if self.case.mode != "forward" or self.flushes or not only_tensors(self.contents[slot]):
            for timed in self.timed.values():
                timed.bounds[place] = self._bound(timed.loaded, place)
                timed.sampler.rotation.thunks[place] = timed.bounds[place].thunk

    def _bound(self, loaded: Loaded, place: int) -> Bound:
        grads = self.grads.get(self.holds[place], {})
        return bind(self.case, loaded, self.copies[place], grads, self.device)

    def _bind(self, key: str, loaded: Loaded, batch: int) -> None:
        bounds = [self._bound(loaded, place) for place in range(len(self.copies))]
        sampler = Sampler(
            self.stopwatch,
            Rotation([bound.thunk for bound in bounds]),
            before=self._flush if self.flushes else None,
            after=self._restore if self.case.mutates else None,
            batch=batch,
        )
        self.timed[key] = Timed(loaded, bounds, sampler)

    def _restore(self, places: Iterable[int]) -> None:
        """Undo what calls did to mutated arguments; long before a copy's next turn, so that it is cold again."""
        for place in places:
            for name in self.case.mutates:
                refill_tree(self.copies[place][name], self.contents[self.holds[place]][name])


def _share_memory(one: Mapping[str, torch.Tensor], other: Mapping[str, torch.Tensor]) -> bool:
    return any(
        one[name].untyped_storage().data_ptr() == other[name].untyped_storage().data_ptr()
        for name in one
        if one[name].numel()
    )


def _compiled_graphs() -> int:
    """Return how many graphs torch.compile has made in this process; 0 before it was ever used."""
    utils = sys.modules.get("torch._dynamo.utils")
    return int(utils.counters["stats"]["unique_graphs"]) if utils is not None else 0
