"""What `info`, `ceiling` and the sampler say of a real card, held against torch and Triton."""

import json
import subprocess
import sys
import time
from typing import Any

import pytest

from kmrun.device.cuda_driver import CudaDriver
from kmrun.device.sampler import Sampler, nvml_source
from kmrun.errors import EnvironmentLacks


def cards() -> int:
    try:
        return CudaDriver().count()
    except EnvironmentLacks:
        return 0


pytestmark = [pytest.mark.gpu, pytest.mark.skipif(cards() == 0, reason="needs an NVIDIA card")]


def document(*words: str) -> dict[str, Any]:
    command = [sys.executable, "-m", "kmrun", *words, "--json"]
    done = subprocess.run(command, text=True, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_attributes_equal_torch_s() -> None:
    import torch

    device = document("info", "--device", "0")["devices"][0]
    known = torch.cuda.get_device_properties(0)
    own = device["attributes"]
    assert device["name"] == known.name
    assert device["memory_bytes"] == known.total_memory
    assert device["compute_capability"] == f"{known.major}.{known.minor}"
    assert device["uuid"].partition("-")[2] == str(known.uuid)
    if hasattr(known, "pci_bus_id"):
        assert device["pci_address"].endswith(f":{known.pci_bus_id:02x}:{known.pci_device_id:02x}.0")
    for ours, theirs in {
        "multiprocessor_count": "multi_processor_count",
        "max_threads_per_multiprocessor": "max_threads_per_multi_processor",
        "max_registers_per_multiprocessor": "regs_per_multiprocessor",
        "max_shared_memory_per_block_optin": "shared_memory_per_block_optin",
        "max_shared_memory_per_multiprocessor": "shared_memory_per_multiprocessor",
        "l2_cache_size": "L2_cache_size",
        "warp_size": "warp_size",
    }.items():
        if hasattr(known, theirs):
            assert own[ours] == getattr(known, theirs), ours
    assert len(own) > 100


def test_nvml_speaks_of_the_same_device() -> None:
    device = document("info", "--device", "0")["devices"][0]
    assert device["nvml"]["uuid"] == device["uuid"]
    assert device["nvml"]["memory_total_bytes"] >= device["memory_bytes"]


def test_a_copy_is_within_3_percent_of_triton_s() -> None:
    import torch

    testing = pytest.importorskip("triton.testing")
    found = document("ceiling", "--device", "cuda:0", "--dtype", "fp32")
    copied = next(entry["gb_per_s"] for entry in found["bandwidths"] if entry["kind"] == "copy")
    source = torch.ones(2**29 // 4, device="cuda")
    target = torch.empty_like(source)
    milliseconds = testing.do_bench(lambda: target.copy_(source), return_mode="min")
    theirs = 2 * source.numel() * 4 / milliseconds / 1e6
    assert copied == pytest.approx(theirs, rel=0.03)


def test_the_sensors_move_under_load() -> None:
    import torch

    left = torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16)
    uuid = str(torch.cuda.get_device_properties(0).uuid)
    torch.cuda.synchronize()
    with Sampler(nvml_source(uuid)) as sampler:
        time.sleep(2)
        with sampler.window() as idle:
            time.sleep(1.5)
        end = time.monotonic() + 4
        while time.monotonic() < end - 2:
            torch.mm(left, left)
            torch.cuda.synchronize()
        with sampler.window() as loaded:
            while time.monotonic() < end:
                torch.mm(left, left)
                torch.cuda.synchronize()
    assert loaded.telemetry.note == ""
    assert loaded.telemetry.sm_mhz is not None
    assert loaded.telemetry.utilisation is not None
    assert loaded.telemetry.utilisation > 0.5
    if idle.telemetry.sm_mhz is not None and "idle" in (idle.telemetry.throttle or ()):
        assert loaded.telemetry.sm_mhz > idle.telemetry.sm_mhz
    assert loaded.telemetry.throttle_fraction.get("idle", 0.0) < 0.5
    if idle.telemetry.power_w is not None and loaded.telemetry.power_w is not None:
        assert loaded.telemetry.power_w > 1.2 * idle.telemetry.power_w
    assert loaded.telemetry.sm_mhz_max is not None
    assert loaded.telemetry.sm_mhz <= 1.05 * loaded.telemetry.sm_mhz_max


def test_a_run_comes_with_the_sensors_of_its_card() -> None:
    words = ["time", "torch:mm", "--arg", "randn[4096,4096]:bf16", "--arg", "randn[4096,4096]:bf16"]
    found = document(*words, "--device", "cuda:0")
    (case,) = found["cases"]
    telemetry = case["telemetry"]
    assert (telemetry["source"], telemetry["note"]) == ("nvml", "")
    assert 0 < telemetry["sm_mhz_held"] <= 1.05 * telemetry["sm_mhz_max"]
    assert telemetry["temp_c"] is not None
    if telemetry["energy_mj_per_call"] is not None:
        # Power times the time of a call, to within what a hot and a cold call differ by.
        by_power = telemetry["power_w"] * case["median_ms"]
        assert telemetry["energy_mj_per_call"] == pytest.approx(by_power, rel=0.5)
    assert found["environment"]["driver"]


def test_the_matmul_ceiling_of_a_second_run_is_the_first_one_s(monkeypatch, tmp_path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    words = ["time", "torch:relu", "--arg", "randn[1024,1024]:fp32", "--device", "cuda:0", "--quick"]
    first, second = document(*words), document(*words)
    assert [rate["age_s"] for rate in first["ceilings"]["matmuls"]] == [None]
    (again,) = second["ceilings"]["matmuls"]
    assert again["age_s"] is not None
    assert again["tflop_per_s"] == first["ceilings"]["matmuls"][0]["tflop_per_s"]
