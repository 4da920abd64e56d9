"""What is advised must hold, and ask for no more than is needed."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from kmrun.core.architectures import BY_COMPUTE_CAPABILITY
from kmrun.core.occupancy import Launch, limits_of, occupancy, occupancy_within, sweep
from kmrun.core.occupancy_advice import best_sizes, one_more_block

CAPABILITIES = [key for key, value in BY_COMPUTE_CAPABILITY.items() if value.occupancy]
launches = st.builds(
    Launch,
    block_threads=st.integers(1, 1024),
    regs_per_thread=st.integers(0, 255),
    dynamic_smem_bytes=st.integers(0, 230_000),
    block_barriers=st.integers(0, 16),
)


def changed(launch: Launch, changes: dict[str, int]) -> Launch:
    return replace(
        launch,
        regs_per_thread=changes.get("regs_per_thread", launch.regs_per_thread),
        dynamic_smem_bytes=changes.get("smem_bytes", launch.dynamic_smem_bytes),
        block_barriers=changes.get("block_barriers", launch.block_barriers),
    )


@given(cc=st.sampled_from(CAPABILITIES), launch=launches)
def test_the_changes_give_the_block_and_each_is_the_least(cc: str, launch: Launch) -> None:
    limits = limits_of(cc)
    now = occupancy_within(limits, launch)
    advice = one_more_block(limits, launch)
    if advice is None:
        return
    changes = {item.what: item.at_most for item in advice.changes}
    assert changes
    assert all(item.at_most < item.now for item in advice.changes)
    after = occupancy_within(limits, changed(launch, changes))
    assert after == advice.after
    assert after.blocks_per_sm > now.blocks_per_sm
    for what, value in changes.items():
        short = occupancy_within(limits, changed(launch, changes | {what: value + 1}))
        assert short.blocks_per_sm <= now.blocks_per_sm


@given(cc=st.sampled_from(CAPABILITIES), launch=launches)
def test_no_advice_means_that_slots_or_the_driver_s_reserve_forbid_it(cc: str, launch: Launch) -> None:
    limits = limits_of(cc)
    if one_more_block(limits, launch) is not None:
        return
    lightest = replace(launch, regs_per_thread=1, dynamic_smem_bytes=0, block_barriers=0)
    assert occupancy_within(limits, lightest).blocks_per_sm <= occupancy_within(limits, launch).blocks_per_sm


@given(cc=st.sampled_from(CAPABILITIES), launch=launches)
def test_no_block_size_is_better_than_the_best(cc: str, launch: Launch) -> None:
    sizes, best = best_sizes(limits_of(cc), launch)
    found = sweep(limits_of(cc), launch)
    assert best.warps_per_sm == max(item.warps_per_sm for item in found.values())
    assert sizes == [size for size, item in found.items() if item.warps_per_sm == best.warps_per_sm]


def test_a_known_case() -> None:
    advice = one_more_block(limits_of("8.6"), Launch(256, 64, 8192))
    assert advice is not None
    (change,) = advice.changes
    assert (change.what, change.now, change.at_most) == ("regs_per_thread", 64, 48)
    assert advice.after == occupancy("8.6", 256, 48, 8192)
