"""Occupancy against NVIDIA's own calculator, recorded and live."""

import csv
import random
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kmrun.core.architectures import BY_COMPUTE_CAPABILITY
from kmrun.core.occupancy import (
    InvalidLaunch,
    Launch,
    UnknownComputeCapability,
    compute_capability,
    limits_of,
    occupancy,
    occupancy_within,
    sweep,
)

DATA = Path(__file__).with_name("data")
CAPABILITIES = [key for key, value in BY_COMPUTE_CAPABILITY.items() if value.occupancy]
RANDOM_LAUNCHES = 20_000
BITS = {"warps": 1, "registers": 2, "shared memory": 4, "blocks": 8, "barriers": 16}
HEADERS = sorted(Path("/usr/local").glob("cuda*/include/cuda_occupancy.h"), reverse=True)


def test_no_difference_from_600_recorded_launches() -> None:
    """The figures are from cuda_occupancy.h of CUDA 13 (opt-in, largest carve-out, one barrier)."""
    rows = list(csv.DictReader((DATA / "occupancy_golden.csv").read_text(encoding="utf-8").splitlines()))
    assert len(rows) == 600
    wrong = []
    for row in rows:
        number = {key: int(value) for key, value in row.items()}
        found = occupancy(
            f"{number['cc_major']}.{number['cc_minor']}",
            number["block_threads"],
            number["regs_per_thread"],
            number["static_smem_bytes"],
            number["dynamic_smem_bytes"],
        )
        if found.blocks_per_sm != number["active_blocks_per_sm"]:
            wrong.append((row, found))
    assert wrong == []


@pytest.mark.skipif(
    not HEADERS or shutil.which("g++") is None, reason="needs the CUDA toolkit's header and g++"
)
def test_no_difference_from_nvidia_s_calculator_on_random_launches(tmp_path: Path) -> None:
    program = tmp_path / "reference"
    source = DATA / "occupancy_reference.cpp"
    command = ["g++", "-O1", "-w", f"-I{HEADERS[0].parent}", str(source), "-o", str(program)]
    subprocess.run(command, check=True)
    launches = random_launches(random.Random(20_26))
    lines = "\n".join(reference_line(cc, launch) for cc, launch in launches)
    run = subprocess.run([program], input=lines, text=True, capture_output=True, check=True)
    answers = [tuple(map(int, line.split())) for line in run.stdout.splitlines()]
    assert len(answers) == len(launches) == RANDOM_LAUNCHES
    wrong = []
    for (cc, launch), (blocks, factors) in zip(launches, answers, strict=True):
        found = occupancy_within(limits_of(cc), launch)
        bits = sum(BITS[name] for name in found.limited_by)
        if bits == BITS["barriers"]:
            # The header looks at barriers last and leaves standing what limited before.
            factors &= bits
        if (found.blocks_per_sm, bits) != (blocks, factors):
            wrong.append((cc, launch, found, blocks, factors))
    assert wrong == []


def random_launches(draw: random.Random) -> list[tuple[str, Launch]]:
    return [
        (
            draw.choice(CAPABILITIES),
            Launch(
                block_threads=draw.choice([draw.randint(1, 1024), 32 * draw.randint(1, 32)]),
                regs_per_thread=draw.randint(0, 256),
                static_smem_bytes=draw.choice([0, draw.randint(0, 49152)]),
                dynamic_smem_bytes=draw.choice([0, draw.randint(0, 49152), draw.randint(0, 240_000)]),
                block_barriers=draw.choice([1, 1, 1, draw.randint(0, 16)]),
                carveout_percent=draw.choice([100, 100, draw.randint(0, 100)]),
                opt_in=draw.choice([True, True, False]),
            ),
        )
        for _ in range(RANDOM_LAUNCHES)
    ]


def reference_line(cc: str, launch: Launch) -> str:
    limits = limits_of(cc)
    major, minor = cc.split(".")
    device = (
        f"{major} {minor} {limits.threads_per_sm} {limits.registers_per_sm} {limits.shared_bytes_per_sm} "
        f"{limits.shared_bytes_per_block_optin} {limits.reserved_shared_bytes_per_block}"
    )
    return (
        f"{device} {launch.block_threads} {launch.regs_per_thread} {launch.static_smem_bytes} "
        f"{launch.dynamic_smem_bytes} {launch.block_barriers} {launch.carveout_percent} {int(launch.opt_in)}"
    )


def test_a_well_known_launch() -> None:
    found = occupancy("8.6", 256, 64, 8192)
    assert (found.blocks_per_sm, found.warps_per_sm, found.max_warps_per_sm) == (4, 32, 48)
    assert found.fraction == pytest.approx(2 / 3)
    assert found.limited_by == ("registers",)


def test_registers_are_checked_as_if_all_sub_partitions_were_filled() -> None:
    """9 warps of 208 registers fit by count (59 904 of 65 536), but not as the hardware checks them."""
    found = occupancy("8.0", 9 * 32, 208)
    assert found.blocks_per_sm == 0
    assert found.limited_by == ("registers",)


def test_a_launch_that_cannot_run_says_what_does_not_fit() -> None:
    found = occupancy("8.6", 1024, 96, 49_152, 60_000)
    assert found.blocks_per_sm == 0
    assert found.fraction == 0
    assert set(found.limited_by) == {"registers", "shared memory"}


def test_without_opt_in_a_block_has_48_kib() -> None:
    limits = limits_of("9.0")
    assert occupancy_within(limits, Launch(128, 32, 0, 50_000, opt_in=False)).blocks_per_sm == 0
    assert occupancy_within(limits, Launch(128, 32, 0, 50_000)).blocks_per_sm == 4


def test_barriers_limit_from_hopper_on() -> None:
    assert occupancy("9.0", 32, 16, block_barriers=16).limited_by == ("barriers",)
    assert occupancy("8.0", 32, 16, block_barriers=16).limited_by == ("blocks",)


@pytest.mark.parametrize("cc", ["9.9", "13.0", "6.1", "6.0", "", "abc", "10.1", "gfx942"])
def test_an_unknown_compute_capability_has_no_neighbour(cc: str) -> None:
    with pytest.raises(UnknownComputeCapability, match="no occupancy limits"):
        occupancy(cc, 128, 32)


@pytest.mark.parametrize(
    ("spelling", "cc"),
    [
        ("8.6", "8.6"),
        ("86", "8.6"),
        ("sm_86", "8.6"),
        ("sm_90a", "9.0"),
        ("120", "12.0"),
        ("compute_100f", "10.0"),
    ],
)
def test_spellings_of_a_compute_capability(spelling: str, cc: str) -> None:
    assert compute_capability(spelling) == cc


@pytest.mark.parametrize(
    ("threads", "registers", "static", "dynamic"),
    [
        (0, 32, 0, 0),
        (-1, 32, 0, 0),
        (1025, 32, 0, 0),
        (32, -1, 0, 0),
        (32, 257, 0, 0),
        (32, 32, -1, 0),
        (32, 32, 0, -1),
    ],
)
def test_what_no_hardware_has_is_refused(threads: int, registers: int, static: int, dynamic: int) -> None:
    with pytest.raises(InvalidLaunch):
        occupancy("8.6", threads, registers, static, dynamic)
    with pytest.raises(ValueError, match=r"\d|negative"):
        occupancy("8.6", threads, registers, static, dynamic)


launches = st.builds(
    Launch,
    block_threads=st.integers(1, 1024),
    regs_per_thread=st.integers(0, 256),
    static_smem_bytes=st.integers(0, 49152),
    dynamic_smem_bytes=st.integers(0, 240_000),
    block_barriers=st.integers(0, 16),
)


@given(cc=st.sampled_from(CAPABILITIES), launch=launches)
def test_what_is_resident_fits(cc: str, launch: Launch) -> None:
    limits = limits_of(cc)
    found = occupancy_within(limits, launch)
    blocks = found.blocks_per_sm
    assert 0 <= blocks <= limits.blocks_per_sm
    assert 0 <= found.fraction <= 1
    assert found.limited_by
    assert blocks * launch.warps * 32 * launch.regs_per_thread <= limits.registers_per_sm
    used = launch.static_smem_bytes + launch.dynamic_smem_bytes + limits.reserved_shared_bytes_per_block
    assert blocks * used <= limits.shared_bytes_per_sm


@given(cc=st.sampled_from(CAPABILITIES), launch=launches, more=st.integers(1, 64))
def test_asking_for_more_never_gives_more_blocks(cc: str, launch: Launch, more: int) -> None:
    limits = limits_of(cc)
    before = occupancy_within(limits, launch).blocks_per_sm
    heavier = [
        Launch(launch.block_threads, min(launch.regs_per_thread + more, 256), launch.static_smem_bytes),
        Launch(min(launch.block_threads + more, 1024), launch.regs_per_thread, launch.static_smem_bytes),
    ]
    lighter = Launch(launch.block_threads, launch.regs_per_thread, launch.static_smem_bytes)
    reference = occupancy_within(limits, lighter).blocks_per_sm
    assert all(occupancy_within(limits, one).blocks_per_sm <= reference for one in heavier)
    assert before <= reference


def test_the_sweep_covers_all_whole_warps() -> None:
    found = sweep(limits_of("8.6"), Launch(256, 64, 8192))
    assert list(found) == list(range(32, 1025, 32))
    assert found[256] == occupancy("8.6", 256, 64, 8192)
