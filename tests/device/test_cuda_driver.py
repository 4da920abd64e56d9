"""The driver's library by ctypes, against a small library of our own that stands in for it."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from kmrun.core.occupancy import limits_of
from kmrun.device.cuda_attributes import ATTRIBUTES
from kmrun.device.cuda_driver import CudaDevice
from kmrun.device.local_card import card_of, limits_of_device, local_card

pytestmark = pytest.mark.skipif(
    shutil.which("gcc") is None or not sys.platform.startswith("linux"), reason="needs gcc on Linux"
)


@pytest.fixture(scope="module")
def fake_driver(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("driver")
    source = Path(__file__).with_name("fake_cuda.c")
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", folder / "libcuda.so.1", source], check=True)
    return folder


def run(folder: Path | None, words: list[str], **variables: str) -> subprocess.CompletedProcess[str]:
    environ = {key: value for key, value in os.environ.items() if key != "KMRUN_CARDS"}
    environ["LD_LIBRARY_PATH"] = str(folder) if folder else ""
    return subprocess.run(
        [sys.executable, *words], env=environ | variables, text=True, capture_output=True, check=False
    )


def kmrun(folder: Path, command: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return run(folder, ["-m", "kmrun", *command.split()], **variables)


def answer(folder: Path, command: str, **variables: str) -> dict[str, Any]:
    done = kmrun(folder, f"{command} --json", **variables)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_reads_devices_and_their_attributes(fake_driver: Path) -> None:
    code = (
        "from kmrun.device.cuda_driver import CudaDriver; d = CudaDriver(); x = d.device(0);"
        "print(d.version(), d.count(), x.name, x.compute_capability, x.sm_count, x.memory_bytes, x.uuid);"
        "print(x.max_clock_hz, x.bandwidth, len(x.attributes), d.device(1).name)"
    )
    done = run(fake_driver, ["-c", code])
    assert done.stdout.splitlines() == [
        "13.0 2 Tesla T4 7.5 40 15655829504 GPU-64656667-6869-6a6b-6c6d-6e6f70717273",
        "1590000000.0 320064000000.0 20 NVIDIA Unheard Of",
    ]


def test_roofline_of_the_local_device_is_the_matched_card_s(fake_driver: Path) -> None:
    found = answer(fake_driver, "roofline --ai 0.33")
    assert found["title"] == "device 0: Tesla T4 (t4)"
    assert found["mem_gb_per_s"] == 320
    assert found["peak_tflops"] == pytest.approx(8.14, rel=0.001)
    assert found["kernels"][0]["attainable_tflop_per_s"] == pytest.approx(0.1056)


def test_a_device_of_no_database_has_the_roofs_that_its_driver_implies(fake_driver: Path) -> None:
    found = answer(fake_driver, "roofline --device 1")
    assert found["title"] == "device 1: NVIDIA Unheard Of"
    assert found["mem_gb_per_s"] == 224
    assert found["peak_tflops"] == pytest.approx(256 * 10 * 2e9 / 1e12)
    assert found["note"].startswith("Not in the database")


def test_a_mig_slice_has_no_bandwidth_of_the_whole_gpu(fake_driver: Path) -> None:
    done = kmrun(fake_driver, "roofline", FAKE_CUDA_MACHINE="mig")
    assert done.returncode == 2
    assert done.stderr.startswith("error: no memory bandwidth is known of device-0\n")


def test_an_unknown_architecture_has_a_bandwidth_and_no_neighbour_s_rates(fake_driver: Path) -> None:
    done = kmrun(fake_driver, "roofline", FAKE_CUDA_NAME="NVIDIA Z", FAKE_CUDA_CC="13.0")
    assert done.returncode == 2
    assert done.stderr.startswith("error: no fp32 peak is known of device-0\n")
    done = kmrun(fake_driver, "occupancy --block 128", FAKE_CUDA_CC="13.0")
    assert done.returncode == 2
    assert "no occupancy limits for compute capability '13.0'" in done.stderr


def test_occupancy_of_the_local_device(fake_driver: Path) -> None:
    found = answer(fake_driver, "occupancy --block 256 --regs 64")
    assert found["target"] == "device 0: Tesla T4, compute capability 7.5"
    assert (found["blocks_per_sm"], found["max_warps_per_sm"]) == (4, 32)
    assert answer(fake_driver, "occupancy --block 256 --regs 64 --device 1")["max_warps_per_sm"] == 48


@pytest.mark.parametrize("command", ["roofline", "occupancy --block 128", "roofline --device 0"])
@pytest.mark.parametrize(
    ("variables", "words"),
    [
        ({"FAKE_CUDA_INIT": "100"}, "the NVIDIA driver shows no device"),
        ({"FAKE_CUDA_INIT": "803"}, "driver and library are of different versions"),
        ({"FAKE_CUDA_INIT": "777"}, "CUresult 777"),
        ({"FAKE_CUDA_COUNT": "0"}, "no CUDA device 0"),
    ],
)
def test_a_driver_that_does_not_serve_is_a_clear_error(
    fake_driver: Path, command: str, variables: dict[str, str], words: str
) -> None:
    done = kmrun(fake_driver, command, **variables)
    assert (done.returncode, done.stdout) == (3, "")
    assert words in done.stderr
    assert "Traceback" not in done.stderr


def test_a_device_that_is_not_there(fake_driver: Path) -> None:
    done = kmrun(fake_driver, "roofline --device 7")
    assert done.returncode == 3
    assert done.stderr == "error: no CUDA device 7\nhint: devices here: 0 to 1\n"


def test_without_a_driver_the_hint_says_what_needs_none(tmp_path: Path) -> None:
    (tmp_path / "libcuda.so.1").write_bytes(b"not a library")
    done = kmrun(tmp_path, "roofline")
    if done.returncode == 0:
        pytest.skip("a real driver answers under its other name")
    assert done.returncode == 3
    assert "--gpu CARD" in done.stderr


def test_attribute_names_are_unique() -> None:
    assert len(set(ATTRIBUTES.values())) == len(ATTRIBUTES) == 161


DEVICE = CudaDevice(
    index=0,
    name="NVIDIA Unheard Of",
    memory_bytes=2**33,
    uuid=None,
    attributes={
        "compute_capability_major": 8,
        "compute_capability_minor": 9,
        "multiprocessor_count": 10,
        "clock_rate": 2_000_000,
    },
)


def test_rates_on_which_segments_differ_are_left_out() -> None:
    """Whether fp32 accumulation is halved depends on the board, which the attributes do not name."""
    card = card_of(DEVICE)
    assert card.matmul_rates["fp16"] == 1024
    assert "fp16_fp32acc" not in card.matmul_rates
    assert "tf32" not in card.matmul_rates
    assert card.pin_bits_per_s is None


def test_an_ambiguous_device_keeps_the_cards_that_it_may_be() -> None:
    local = local_card(DEVICE, lambda device: (None, ("a", "b")))
    assert (local.matched, local.candidates, local.card.id) == (False, ("a", "b"), "device-0")


def test_limits_without_attributes_are_the_architecture_s() -> None:
    assert limits_of_device(DEVICE) == limits_of("8.9")
