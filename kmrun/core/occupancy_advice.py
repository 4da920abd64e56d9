"""What to change about a launch so that an SM holds one more block, and which block size fills it best."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from kmrun.core.architecture import OccupancyLimits
from kmrun.core.occupancy import Launch, Occupancy, occupancy_within, sweep


@dataclass(frozen=True, slots=True)
class Change:
    """A parameter of the launch that has to come down to `at_most` from `now`."""

    what: str
    now: int
    at_most: int


@dataclass(frozen=True, slots=True)
class Advice:
    """All of `changes` together give `after`."""

    changes: tuple[Change, ...]
    after: Occupancy


def one_more_block(limits: OccupancyLimits, launch: Launch) -> Advice | None:
    """Return what would let an SM hold one more block; None when warps or block slots forbid one."""
    now = occupancy_within(limits, launch)
    target = now.blocks_per_sm + 1
    if target * launch.warps > now.max_warps_per_sm or target > limits.blocks_per_sm:
        return None
    better = launch
    changes: list[Change] = []
    if not _allows(now, "registers", target):
        regs = range(launch.regs_per_thread, 0, -1)
        better = _first(
            limits, "registers", target, (replace(better, regs_per_thread=value) for value in regs)
        )
        changes.append(Change("regs_per_thread", launch.regs_per_thread, better.regs_per_thread))
    if not _allows(now, "shared memory", target):
        asked = launch.static_smem_bytes + launch.dynamic_smem_bytes
        room = limits.shared_bytes_per_sm // target // limits.shared_alloc_bytes * limits.shared_alloc_bytes
        left = min(room - limits.reserved_shared_bytes_per_block, limits.shared_bytes_per_block_optin)
        if left < 0:
            return None
        better = replace(better, static_smem_bytes=0, dynamic_smem_bytes=left)
        changes.append(Change("smem_bytes", asked, left))
    if not _allows(now, "barriers", target):
        counts = range(launch.block_barriers, -1, -1)
        better = _first(
            limits, "barriers", target, (replace(better, block_barriers=value) for value in counts)
        )
        changes.append(Change("block_barriers", launch.block_barriers, better.block_barriers))
    after = occupancy_within(limits, better)
    return Advice(tuple(changes), after) if after.blocks_per_sm >= target else None


def best_sizes(limits: OccupancyLimits, launch: Launch) -> tuple[list[int], Occupancy]:
    """Return the block sizes (whole warps) that fill an SM best with all else unchanged, and how well."""
    found = sweep(limits, launch)
    most = max(found.values(), key=lambda item: item.warps_per_sm)
    return [size for size, item in found.items() if item.warps_per_sm == most.warps_per_sm], most


def _allows(now: Occupancy, resource: str, target: int) -> bool:
    limit = now.limits[resource]
    return limit is None or limit >= target


def _first(limits: OccupancyLimits, resource: str, target: int, launches: Iterable[Launch]) -> Launch:
    """Return the first launch with which the resource holds `target` blocks, the last where none does."""
    for launch in launches:
        if _allows(occupancy_within(limits, launch), resource, target):
            break
    return launch
