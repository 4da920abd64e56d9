"""Theoretical occupancy of a launch: NVIDIA's own model, down to its rounding.

After cuda_occupancy.h of the CUDA toolkit (cudaOccMaxActiveBlocksPerMultiprocessor): registers are handed out
a warp at a time within a sub-partition of the SM, a block's registers are checked as if its warps filled all
sub-partitions alike, shared memory carries the driver's reserve and is rounded up, the carve-out snaps to
what the hardware knows, and from Hopper on barriers count.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from kmrun.core.architecture import OccupancyLimits
from kmrun.core.architectures import BY_COMPUTE_CAPABILITY
from kmrun.errors import UnknownName, UsageError

WARP = 32
THREADS_PER_BLOCK = 1024
REGISTERS_PER_THREAD = 256
"""What the calculator allows on every architecture it knows; compilers stop at 255."""

RESOURCES = ("warps", "registers", "shared memory", "blocks", "barriers")


class InvalidLaunch(UsageError, ValueError):
    """The launch is outside what any hardware has."""


class UnknownComputeCapability(UnknownName, ValueError):
    """No limits are known for that compute capability; a neighbour's are not used instead."""


@dataclass(frozen=True, slots=True)
class Launch:
    """What a launch asks of an SM. Bytes are per block.

    `carveout_percent` is the share of the SM's L1 and shared memory that the kernel prefers as shared;
    `opt_in` whether it set cudaFuncAttributeMaxDynamicSharedMemorySize, without which a block has 48 KiB.
    """

    block_threads: int
    regs_per_thread: int
    static_smem_bytes: int = 0
    dynamic_smem_bytes: int = 0
    block_barriers: int = 1
    carveout_percent: int = 100
    opt_in: bool = True

    @property
    def warps(self) -> int:
        """Warps per block."""
        return _round_up(self.block_threads, WARP) // WARP


@dataclass(frozen=True, slots=True)
class Occupancy:
    """How many blocks of a launch an SM holds at once, and what stops the next one.

    `limits` gives for each resource the blocks it allows, None where it sets no limit. `limited_by` names
    every resource that allows no more than `blocks_per_sm`; with 0 blocks, those that cannot hold one.
    """

    blocks_per_sm: int
    warps_per_sm: int
    max_warps_per_sm: int
    limited_by: tuple[str, ...]
    limits: Mapping[str, int | None]

    @property
    def fraction(self) -> float:
        """Resident warps over what the SM holds."""
        return self.warps_per_sm / self.max_warps_per_sm


def occupancy(
    cc: str,
    block_threads: int,
    regs_per_thread: int,
    static_smem_bytes: int = 0,
    dynamic_smem_bytes: int = 0,
    block_barriers: int = 1,
) -> Occupancy:
    """Return the occupancy of a launch on a compute capability.

    Args:
        cc: `8.6`, also `86`, `sm_86`.
        block_threads: threads per block, 1 to 1024.
        regs_per_thread: registers per thread; 0 sets no register limit.
        static_smem_bytes: shared memory declared in the kernel, per block.
        dynamic_smem_bytes: shared memory of the launch, per block, opted in where over 48 KiB.
        block_barriers: named barriers that a block uses; ptxas says how many.

    Raises:
        UnknownComputeCapability: nothing is known of that compute capability (a ValueError).
        InvalidLaunch: no hardware has such a launch (a ValueError); one that only this hardware cannot run
            has `blocks_per_sm` 0.
    """
    launch = Launch(block_threads, regs_per_thread, static_smem_bytes, dynamic_smem_bytes, block_barriers)
    return occupancy_within(limits_of(cc), launch)


def limits_of(cc: str) -> OccupancyLimits:
    """Return what an SM of a compute capability holds.

    Raises:
        UnknownComputeCapability: nothing is known of it.
    """
    architecture = BY_COMPUTE_CAPABILITY.get(compute_capability(cc))
    if architecture is None or architecture.occupancy is None:
        known = ", ".join(key for key, value in BY_COMPUTE_CAPABILITY.items() if value.occupancy)
        raise UnknownComputeCapability(
            f"no occupancy limits for compute capability {cc!r}", f"known: {known}"
        )
    return architecture.occupancy


def compute_capability(spelling: str) -> str:
    """Return `8.6` for `8.6`, `86`, `sm_86` and `sm_90a`'s like; other text as it is."""
    digits = spelling.strip().lower().removeprefix("sm_").removeprefix("compute_").rstrip("af")
    return f"{digits[:-1]}.{digits[-1]}" if digits.isdecimal() and len(digits) > 1 else digits


def occupancy_within(limits: OccupancyLimits, launch: Launch) -> Occupancy:
    """Return the occupancy of a launch on an SM with these limits.

    Raises:
        InvalidLaunch: no hardware has such a launch.
    """
    _refuse_impossible(launch)
    by_resource = {
        "warps": limits.threads_per_sm // WARP // launch.warps,
        "registers": _register_limit(limits, launch),
        "shared memory": _shared_limit(limits, launch),
        "blocks": limits.blocks_per_sm,
        "barriers": _barrier_limit(limits, launch),
    }
    blocks = min(limit for limit in by_resource.values() if limit is not None)
    return Occupancy(
        blocks_per_sm=blocks,
        warps_per_sm=blocks * launch.warps,
        max_warps_per_sm=limits.threads_per_sm // WARP,
        limited_by=tuple(name for name in RESOURCES if by_resource[name] == blocks),
        limits=by_resource,
    )


def sweep(
    limits: OccupancyLimits,
    launch: Launch,
    sizes: Sequence[int] = tuple(range(WARP, THREADS_PER_BLOCK + 1, WARP)),
) -> dict[int, Occupancy]:
    """Return the occupancy by block size, all else as in the launch (shared memory is per block)."""
    return {size: occupancy_within(limits, replace(launch, block_threads=size)) for size in sizes}


def shared_bytes(limits: OccupancyLimits, launch: Launch) -> int:
    """Return the shared memory that a block takes, with the driver's reserve and rounded up."""
    asked = launch.static_smem_bytes + launch.dynamic_smem_bytes + limits.reserved_shared_bytes_per_block
    return _round_up(asked, limits.shared_alloc_bytes)


def _register_limit(limits: OccupancyLimits, launch: Launch) -> int | None:
    per_warp = _round_up(launch.regs_per_thread * WARP, limits.register_alloc_per_warp)
    if per_warp == 0:
        return None
    assumed = per_warp * _round_up(launch.warps, limits.sub_partitions)
    if assumed > limits.registers_per_block:
        return 0
    per_partition = limits.registers_per_sm // limits.sub_partitions // per_warp
    return per_partition * limits.sub_partitions // launch.warps


def _shared_limit(limits: OccupancyLimits, launch: Launch) -> int | None:
    taken = shared_bytes(limits, launch)
    asked = launch.static_smem_bytes + launch.dynamic_smem_bytes + limits.reserved_shared_bytes_per_block
    per_block = limits.shared_bytes_per_block
    if launch.opt_in and asked > per_block:
        per_block = limits.shared_bytes_per_block_optin
    if taken > per_block + limits.reserved_shared_bytes_per_block:
        return 0
    preferred = _carveout(limits, launch.carveout_percent * limits.shared_bytes_per_sm // 100)
    return max(preferred, _carveout(limits, taken)) // taken if taken else None


def _carveout(limits: OccupancyLimits, wanted: int) -> int:
    """Return the smallest split of the SM's memory that gives the wanted shared memory."""
    return min(size for size in limits.shared_carveouts if size >= wanted)


def _barrier_limit(limits: OccupancyLimits, launch: Launch) -> int | None:
    if limits.block_barriers_per_sm is None or launch.block_barriers == 0:
        return None
    return limits.block_barriers_per_sm // launch.block_barriers


def _refuse_impossible(launch: Launch) -> None:
    if not 1 <= launch.block_threads <= THREADS_PER_BLOCK:
        raise InvalidLaunch(f"a block has 1 to {THREADS_PER_BLOCK} threads, not {launch.block_threads}")
    if not 0 <= launch.regs_per_thread <= REGISTERS_PER_THREAD:
        raise InvalidLaunch(
            f"a thread has 0 to {REGISTERS_PER_THREAD - 1} registers, not {launch.regs_per_thread}"
        )
    if launch.static_smem_bytes < 0 or launch.dynamic_smem_bytes < 0:
        raise InvalidLaunch("shared memory is not negative")
    if not 0 <= launch.block_barriers <= 16:
        raise InvalidLaunch(f"a block has 0 to 16 barriers, not {launch.block_barriers}")
    if not 0 <= launch.carveout_percent <= 100:
        raise InvalidLaunch(f"a carve-out is 0 to 100 percent, not {launch.carveout_percent}")


def _round_up(value: int, unit: int) -> int:
    return -(-value // unit) * unit
