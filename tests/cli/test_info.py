"""`kmrun info` through the real path: drivers' libraries of our own, loaded by ctypes in a process of its own."""

import contextlib
import ctypes
import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

import kmrun as kmrun_package
from kmrun.device.cuda_attributes import ATTRIBUTES
from support.fake_drivers import compiled, document, kmrun, needs_compiler, run

pytestmark = needs_compiler


@pytest.fixture(scope="module")
def nvidia(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled(tmp_path_factory.mktemp("nvidia"), "cuda", "nvml")


@pytest.fixture(scope="module")
def amd(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled(tmp_path_factory.mktemp("amd"), "hip", "rsmi")


@pytest.fixture(scope="module")
def nothing(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where no library of any driver loads."""
    folder = tmp_path_factory.mktemp("nothing")
    for name in ("libcuda.so.1", "libcuda.so", "libamdhip64.so"):
        (folder / name).write_bytes(b"not a library")
    return folder


def test_a_t4(nvidia: Path) -> None:
    found = document(nvidia, "info")
    assert found["versions"] == {"cuda": "13.0", "nvidia_driver": "580.95.05"}
    t4 = found["devices"][0]
    assert (t4["name"], t4["compute_capability"], t4["memory_bytes"]) == ("Tesla T4", "7.5", 15655829504)
    assert t4["peaks"]["mem_gb_per_s"] == pytest.approx(320.1, abs=0.05)
    assert t4["peaks"]["fp32_tflops"] == pytest.approx(8.14, abs=0.005)
    assert t4["peaks"]["fp16_tensor_tflops"] == pytest.approx(65.13, abs=0.005)
    assert t4["card"]["id"] == "t4"
    assert [one["what"] for one in t4["card"]["differences"]] == ["memory, on the label"]
    assert t4["attributes"]["max_threads_per_block"] == 1024
    assert set(t4["attributes"]) <= set(ATTRIBUTES.values())
    assert t4["nvml"]["architecture"] == "Turing"
    assert (t4["nvml"]["cuda_cores"], t4["nvml"]["vbios"]) == (2560, "90.04.96.00.02")
    assert (t4["nvml"]["memory_used_bytes"], t4["nvml"]["ecc"]) == (450 << 20, True)
    assert (t4["nvml"]["power_limit_w"], t4["nvml"]["throttle"]) == (70.0, ["idle"])
    assert found["cpu"]["usable"] >= 1
    assert found["failures"] == []


def test_a_t4_for_people(nvidia: Path) -> None:
    done = kmrun(nvidia, "info --device 0")
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert lines[:7] == [
        "CUDA 13.0 · driver 580.95.05",
        "",
        "device 0: Tesla T4 (14.6 GiB, compute capability 7.5)",
        "  card                      t4 (Tesla T4)",
        "  peak (derived)            driver's clocks  card's clocks",
        "  bandwidth                      320.1 GB/s     320.0 GB/s",
        "  fp32                         8.14 TFLOP/s   8.14 TFLOP/s",
    ]
    assert "  fp16 tensor                 65.13 TFLOP/s  65.13 TFLOP/s" in lines
    assert "  architecture (nvml)       Turing, 2560 CUDA cores" in lines
    assert "  pcie link (nvml)          gen 1 x8 now (at most gen 3 x16)" in lines
    assert "  memory in use (nvml)      450 of 15360 MiB" in lines
    assert "  power (nvml)              9.8 of 70 W, settable 60 to 70 W" in lines
    assert "  20 attributes" in lines
    assert any(line.startswith("cpu: ") for line in lines)
    assert max(map(len, lines)) <= 100


def test_a_power_limit_under_the_sheet_s_is_shown(nvidia: Path) -> None:
    done = kmrun(nvidia, "info --device 0", FAKE_NVML_LIMIT="60")
    assert "  differs                   power limit, TDP: 60 W by the driver, 70 W by the card" in done.stdout
    assert "  power (nvml)              9.8 of 60 W, default 70 W, settable 60 to 70 W" in done.stdout


def test_an_h100_boosts_over_its_sheet(nvidia: Path) -> None:
    h100 = document(nvidia, "info", FAKE_CUDA_MACHINE="h100")["devices"][1]
    assert h100["card"]["id"] == "h100-sxm"
    # The driver lets it run at 1980 MHz; tensor peaks are published at 1830.
    assert h100["peaks"]["fp16_tensor_fp32acc_tflops"] == pytest.approx(1070.5, rel=1e-3)
    assert h100["card"]["peaks"]["fp16_tensor_fp32acc_tflops"] == pytest.approx(989.4, rel=1e-3)
    assert h100["peaks"]["mem_gb_per_s"] == pytest.approx(3352.3, rel=1e-3)


def test_several_gpus_and_one_that_no_database_knows(nvidia: Path) -> None:
    found = document(nvidia, "info")
    assert [device["index"] for device in found["devices"]] == [0, 1]
    other = found["devices"][1]
    assert (other["card"], other["candidates"]) == (None, [])
    assert other["peaks"]["mem_gb_per_s"] == pytest.approx(224)
    only = document(nvidia, "info --device cuda:1")
    assert [device["name"] for device in only["devices"]] == ["NVIDIA Unheard Of"]


def test_a_mig_slice_has_no_published_roof(nvidia: Path) -> None:
    found = document(nvidia, "info", FAKE_CUDA_MACHINE="mig")["devices"][0]
    assert found["uuid"] == "MIG-c8c9cacb-cccd-cecf-d0d1-d2d3d4d5d6d7"
    assert (found["mig"], found["peaks"], found["card"]) == (True, {}, None)
    assert found["nvml"]["mig_slice"] is True
    assert found["nvml"]["memory_total_bytes"] == 4864 << 20
    assert found["attributes"]["multiprocessor_count"] == 14


def test_attributes_newer_than_the_table(nvidia: Path) -> None:
    found = document(nvidia, "info --device 0", FAKE_CUDA_NEWER="1")
    assert found["devices"][0]["attributes"]["attribute_170"] == 42


def test_every_optional_query_of_nvml_may_be_unsupported(nvidia: Path) -> None:
    found = document(nvidia, "info", FAKE_NVML_MODE="unsupported")["devices"][0]
    assert {value for key, value in found["nvml"].items() if key != "mig_slice"} == {None}
    done = kmrun(nvidia, "info", FAKE_NVML_MODE="unsupported")
    assert done.returncode == 0
    assert "(nvml)" not in done.stdout
    assert "  nvml                      none: this card and its driver answer no query" in done.stdout


def test_a_driver_without_nvml(tmp_path: Path) -> None:
    compiled(tmp_path, "cuda")
    (tmp_path / "libnvidia-ml.so.1").write_bytes(b"not a library")
    device = document(tmp_path, "info")["devices"][0]
    assert device["nvml"] is None
    assert device["sensors_note"].startswith("NVML cannot be loaded: ")
    (tmp_path / "libnvidia-ml.so.1").unlink()
    note = document(tmp_path, "info")["devices"][0]["sensors_note"]
    assert note in ("NVML Shared Library Not Found", "NVML does not know this device")  # where a real one is
    assert "  nvml                      none: NVML Shared Library Not Found" in kmrun(tmp_path, "info").stdout


@pytest.mark.parametrize(
    ("variables", "note"),
    [
        ({"FAKE_NVML_INIT": "9"}, "Driver Not Loaded"),
        ({"FAKE_NVML_MODE": "stranger"}, "NVML does not know this device"),
    ],
)
def test_nvml_that_does_not_serve(nvidia: Path, variables: dict[str, str], note: str) -> None:
    device = document(nvidia, "info", **variables)["devices"][0]
    assert (device["nvml"], device["sensors_note"]) == (None, note)


def test_a_gpu_that_is_lost(nvidia: Path) -> None:
    found = document(nvidia, "info", FAKE_NVML_MODE="lost", FAKE_NVML_AFTER="-1")
    assert found["devices"][0]["nvml"] == {"error": "GPU is lost"}
    done = kmrun(nvidia, "info", FAKE_NVML_MODE="lost", FAKE_NVML_AFTER="-1")
    assert "  nvml                      none: GPU is lost" in done.stdout.splitlines()


@pytest.mark.parametrize("mode", ["hang_init", "hang"])
def test_nvml_that_hangs_is_left_behind(nvidia: Path, mode: str) -> None:
    begin = time.monotonic()
    found = document(nvidia, "info", impatient=True, FAKE_NVML_MODE=mode)
    assert time.monotonic() - begin < 40  # it would be for ever
    assert [device["nvml"] for device in found["devices"]] == [None, None]
    assert found["devices"][0]["sensors_note"] == "NVML did not answer within 0.5 s"


def test_an_old_driver(tmp_path: Path) -> None:
    compiled(tmp_path, "cuda", "nvml", define=["OLD"])
    device = document(tmp_path, "info")["devices"][0]
    assert device["uuid"] is None
    # NVML is found by the PCI address then, and lacks what it lacks.
    assert device["nvml"]["vbios"] == "90.04.96.00.02"
    assert (device["nvml"]["architecture"], device["nvml"]["cuda_cores"], device["nvml"]["mig"]) == (
        None,
    ) * 3
    assert (device["nvml"]["processes"], device["nvml"]["throttle"]) == (1, ["idle"])


def test_attributes_that_are_not_supported_leave_out_what_follows_from_them(nvidia: Path) -> None:
    found = document(nvidia, "info --device 0", FAKE_CUDA_REFUSE="75,16", FAKE_CUDA_STATUS="801")["devices"][
        0
    ]
    assert found["compute_capability"] is None
    assert list(found["peaks"]) == ["mem_gb_per_s"]
    assert found["notes"] == [
        "no compute peak is derived: the driver does not say the compute capability and the number of SMs"
    ]
    done = kmrun(nvidia, "info --device 0", FAKE_CUDA_REFUSE="75,16", FAKE_CUDA_STATUS="801")
    assert "Tesla T4 (14.6 GiB, compute capability unknown)" in done.stdout
    assert "  note                      no compute peak is derived: the driver" in done.stdout


def test_one_attribute_that_fails_is_left_out_and_told(nvidia: Path) -> None:
    found = document(nvidia, "info --device 0", FAKE_CUDA_REFUSE="8", FAKE_CUDA_STATUS="46")
    device = found["devices"][0]
    assert "max_shared_memory_per_block" not in device["attributes"]
    assert len(device["attributes"]) == 19
    assert device["notes"] == ["the driver failed to give max_shared_memory_per_block (CUresult 46)"]
    assert found["failures"] == []


@pytest.mark.parametrize(
    ("refused", "uuid"),
    [("_v2", "GPU-64656667-6869-6a6b-6c6d-6e6f70717273"), ("both", None), ("zero", None)],
)
def test_a_uuid_that_is_not_supported_loses_no_device(nvidia: Path, refused: str, uuid: str | None) -> None:
    found = document(nvidia, "info --device 0", FAKE_CUDA_NO_UUID=refused)["devices"][0]
    assert (found["name"], found["uuid"]) == ("Tesla T4", uuid)


def test_one_device_that_hangs_hides_no_other(nvidia: Path) -> None:
    found = document(nvidia, "info", code=3, impatient=True, FAKE_CUDA_HANG="1")
    assert [device["name"] for device in found["devices"]] == ["Tesla T4"]
    assert found["failures"] == ["cuda device 1: the NVIDIA driver did not answer within 0.5 s"]
    only = document(nvidia, "info --device 0", FAKE_CUDA_HANG="1")
    assert (len(only["devices"]), only["failures"]) == (1, [])


def test_one_device_whose_nvml_hangs_hides_no_other(nvidia: Path) -> None:
    first, second = document(nvidia, "info", impatient=True, FAKE_NVML_MODE="hang_second")["devices"]
    assert (first["nvml"]["cuda_cores"], first["sensors_note"]) == (2560, None)
    assert (second["nvml"], second["sensors_note"]) == (None, "NVML did not answer within 0.5 s")


def test_text_that_is_not_utf_8(nvidia: Path) -> None:
    found = document(nvidia, "info --device 0", FAKE_NVML_LATIN="1")
    assert found["devices"][0]["nvml"]["vbios"] == "90.04.\N{REPLACEMENT CHARACTER}"
    assert found["versions"]["nvidia_driver"] == "580.\N{REPLACEMENT CHARACTER}"


def test_a_narrow_terminal(nvidia: Path) -> None:
    script = "from kmrun.cli import terminal\nterminal.terminal_width = lambda: 40\nfrom kmrun.cli import main\nmain()"
    done = run(nvidia, ["-c", script, "info"])
    assert done.returncode == 0
    lines = done.stdout.splitlines()
    assert max(map(len, lines)) <= 40
    assert "  fp32  8.14 TFLOP/s  8.14 TFLOP/s" in lines
    assert "  max_threads_per_block  1024" in lines


def test_a_driver_too_old_to_serve(tmp_path: Path) -> None:
    compiled(tmp_path, "cuda", define=["OLD", "ANCIENT"])
    done = kmrun(tmp_path, "info")
    assert done.returncode == 3
    assert done.stderr.splitlines()[:2] == [
        "error: cuda device 0: the NVIDIA driver has no cuDeviceTotalMem_v2: it is too old",
        "hint: update the driver",
    ]
    assert done.stdout.splitlines()[2].startswith("cpu: ")


def test_a_driver_that_fails_half_way_hides_no_other_device(nvidia: Path) -> None:
    found = document(nvidia, "info", code=3, FAKE_CUDA_FAIL_FROM="1")
    assert [device["name"] for device in found["devices"]] == ["Tesla T4"]
    assert found["failures"] == [
        "cuda device 1: the NVIDIA driver failed in cuDeviceGetAttribute: unknown error"
    ]
    assert document(nvidia, "info --device 0", FAKE_CUDA_FAIL_FROM="1")["failures"] == []
    document(nvidia, "info --device 1", code=3, FAKE_CUDA_FAIL_FROM="1")


def test_no_driver_is_a_sentence_and_the_cpu() -> None:
    for name in ("libcuda.so.1", "libamdhip64.so"):
        with contextlib.suppress(OSError):
            ctypes.CDLL(name)
            pytest.skip("this machine has a driver")
    done = kmrun(None, "info")
    assert done.returncode == 3
    assert done.stderr.startswith("error: there is no GPU driver in this machine")
    assert "Traceback" not in done.stderr
    assert done.stdout.startswith("cpu: ")
    found = document(None, "info", code=3)
    assert found["devices"] == []
    assert found["failures"][0].startswith("there is no GPU driver")
    assert found["cpu"]["vector_peak"]["derived"] is True


def test_libraries_that_cannot_be_loaded_are_not_said_to_be_absent(nothing: Path) -> None:
    done = kmrun(nothing, "info")
    assert done.returncode == 3
    start = "error: there is no GPU here: the NVIDIA driver's library cannot be loaded: "
    assert done.stderr.startswith(start)
    assert "; the HIP runtime cannot be loaded: " in done.stderr
    assert done.stdout.startswith("cpu: ")


def test_a_library_that_lacks_another_says_which(tmp_path: Path) -> None:
    (tmp_path / "needed.c").write_text("int needed(void) { return 0; }")
    (tmp_path / "cuda.c").write_text("int needed(void); int cuInit(unsigned f) { return needed() + (int)f; }")
    for words in (
        ["-o", "libneeded-by-cuda.so", "needed.c"],
        ["-o", "libcuda.so.1", "cuda.c", "-L.", "-lneeded-by-cuda"],
    ):
        subprocess.run(["gcc", "-shared", "-fPIC", *words], cwd=tmp_path, check=True)
    (tmp_path / "libneeded-by-cuda.so").unlink()
    done = kmrun(tmp_path, "roofline")
    assert done.returncode == 3
    assert done.stderr.startswith(
        "error: the NVIDIA driver's library cannot be loaded: libneeded-by-cuda.so: "
    )


@pytest.mark.parametrize("command", ["info", "roofline", "occupancy --block 128", "llm 8b"])
def test_a_driver_that_crashes_takes_nobody_with_it(nvidia: Path, command: str) -> None:
    done = kmrun(nvidia, command, FAKE_CUDA_INIT="crash")
    told = "the NVIDIA driver crashed when it was asked (SIGSEGV)"
    if command == "llm 8b":  # which has an answer without a device of this machine
        assert (done.returncode, done.stderr) == (0, f"warning: {told}: these are cards of the database\n")
    else:
        assert done.returncode == 3
        assert f"error: {told}\n" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("command", ["info", "roofline", "occupancy --block 128", "llm 8b --device 0"])
def test_a_driver_that_never_starts_is_given_up(nvidia: Path, command: str) -> None:
    start = (
        "from kmrun.device import apart, drivers\n"
        "apart.PATIENCE_S, drivers.DRIVER_S, drivers.DEVICE_S, drivers._START_S = 0.1, 1.0, 0.1, 2.0\n"
        "from kmrun.cli import main\nmain()"
    )
    done = run(nvidia, ["-c", start, *command.split()], FAKE_CUDA_INIT="hang")
    assert done.returncode == 3
    assert "waiting for the NVIDIA driver, for at most " in done.stderr
    assert "error: the NVIDIA driver did not answer within 1 s\n" in done.stderr
    assert "Traceback" not in done.stderr


def test_an_interrupt_waits_for_no_driver(nvidia: Path) -> None:
    script = (
        "import os, signal, sys\n"
        "from kmrun.device import apart\n"
        "apart.PATIENCE_S = 0.1\n"
        "from kmrun.cli import streams\n"
        "streams.say = lambda text: os.kill(os.getpid(), signal.SIGINT)\n"  # told what it waits for, a person ends it
        "from kmrun.cli import main\nmain()"
    )
    begin = time.monotonic()
    done = run(nvidia, ["-c", script, "info"], limit_s=30, FAKE_CUDA_INIT="hang")
    assert time.monotonic() - begin < 30  # the driver has 40
    assert done.returncode == 130


def test_nvml_that_crashes_costs_its_block(nvidia: Path) -> None:
    found = document(nvidia, "info", FAKE_NVML_MODE="crash")
    assert [device["nvml"] for device in found["devices"]] == [None, None]
    assert found["devices"][0]["sensors_note"] == "NVML crashed when it was asked (SIGSEGV)"
    assert "nvidia_driver" not in found["versions"]


def test_what_a_driver_prints_is_no_part_of_the_document(nvidia: Path) -> None:
    assert document(nvidia, "info", FAKE_CUDA_INIT="chat")["devices"][0]["name"] == "Tesla T4"


@pytest.mark.parametrize("count", ["-1", "1000000000"])
def test_a_number_of_devices_that_cannot_be(nvidia: Path, count: str) -> None:
    found = document(nvidia, "info", code=3, FAKE_CUDA_COUNT=count)
    assert (found["devices"], found["failures"]) == ([], [f"the NVIDIA driver shows {count} devices"])


@pytest.mark.parametrize("figures", ["13=0,16=0,36=0,37=0", "13=-5,16=-1,36=-7,37=-256,39=-1"])
def test_figures_that_cannot_be_imply_nothing(nvidia: Path, figures: str) -> None:
    (device,) = document(nvidia, "info --device 0", FAKE_CUDA_SET=figures)["devices"]
    assert device["peaks"] == {}
    assert device["notes"][-1].startswith(
        "no compute peak is derived: the driver does not say the number of SMs"
    )
    for command in ("roofline", "occupancy --block 128", "llm 8b"):
        done = kmrun(nvidia, command, FAKE_CUDA_SET=figures)
        assert "Traceback" not in done.stderr


def test_sensors_that_fill_their_fields_say_nothing(nvidia: Path) -> None:
    (device,) = document(nvidia, "info --device 0", FAKE_NVML_MODE="full")["devices"]
    block = device["nvml"]
    for key in ("sm_mhz", "sm_mhz_max", "mem_mhz", "mem_mhz_max", "temp_c", "power_w", "memory_used_bytes"):
        assert block[key] is None
    assert block["power_limit_w"] == 70.0


def test_the_cpu_alone_asks_no_driver(nothing: Path) -> None:
    done = kmrun(nothing, "info --device cpu")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("cpu: ")


@pytest.mark.parametrize(
    ("variables", "words"),
    [
        ({"FAKE_CUDA_INIT": "100"}, "the NVIDIA driver shows no device"),
        ({"FAKE_CUDA_INIT": "803"}, "driver and library are of different versions"),
        ({"FAKE_CUDA_INIT": "34"}, "the NVIDIA driver's library is a stub"),
        ({"FAKE_CUDA_COUNT": "0"}, "there is no GPU here: the NVIDIA driver shows no device"),
    ],
)
def test_a_driver_that_does_not_start(nvidia: Path, variables: dict[str, str], words: str) -> None:
    done = kmrun(nvidia, "info", **variables)
    assert done.returncode == 3
    assert words in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("words", "code", "sentence"),
    [
        ("info --device 7", 3, "error: no GPU 7 in this machine\nhint: GPUs here: 0 to 1\n"),
        ("info --device tpu", 2, "error: --device tpu: no such device\n"),
    ],
)
def test_a_device_that_is_not_there(nvidia: Path, words: str, code: int, sentence: str) -> None:
    done = kmrun(nvidia, words)
    assert (done.returncode, done.stdout) == (code, "")
    assert done.stderr.startswith(sentence)


def test_two_mi300x(amd: Path) -> None:
    found = document(amd, "info")
    assert found["versions"] == {"hip": "7.0"}
    first, second = found["devices"]
    assert (first["gfx"], first["compute_capability"], first["card"]["id"]) == ("gfx942", None, "mi300x")
    assert first["peaks"]["bf16_tensor_tflops"] == pytest.approx(1307.4, rel=1e-3)
    assert "mem_gb_per_s" not in first["peaks"]
    assert first["card"]["peaks"]["mem_gb_per_s"] == pytest.approx(5325, rel=1e-3)
    assert first["attributes"]["warp_size"] == 64
    # ROCm SMI orders them otherwise: the PCI address tells which is which.
    assert (first["smi"]["source"], first["smi"]["unique_id"]) == ("rocm_smi", "0x000000000000abc1")
    assert second["smi"]["unique_id"] == "0x000000000000abc0"
    assert (first["smi"]["sm_mhz"], first["smi"]["sm_mhz_max"], first["smi"]["mem_mhz"]) == (1500, 2100, 1100)
    assert (first["smi"]["temp_c"], first["smi"]["power_w"], first["smi"]["power_limit_w"]) == (47, 140, 750)
    assert "temperature (ROCm SMI)    47 C" in kmrun(amd, "info").stdout


@pytest.mark.parametrize(
    "variables", [{"FAKE_CUDA_INIT": "100"}, {"FAKE_CUDA_INIT": "34"}, {"FAKE_CUDA_COUNT": "0"}]
)
def test_an_idle_library_of_nvidia_s_is_no_fault_of_an_amd_machine(
    nvidia: Path, amd: Path, variables: dict[str, str]
) -> None:
    done = run(None, ["-m", "kmrun", "info", "--json"], LD_LIBRARY_PATH=f"{nvidia}:{amd}", **variables)
    assert (done.returncode, done.stderr) == (0, "")
    assert [device["vendor"] for device in json.loads(done.stdout)["devices"]] == ["amd", "amd"]


def test_rocm_5_in_its_older_layouts(tmp_path: Path) -> None:
    compiled(tmp_path, "hip", "rsmi", define=["ROCM5"])
    device = document(tmp_path, "info")["devices"][0]
    assert (device["gfx"], device["card"]["id"]) == ("gfx90a", "mi250x")
    assert (device["smi"]["sm_mhz"], device["smi"]["sm_mhz_max"], device["smi"]["power_w"]) == (
        1500,
        2100,
        140,
    )


@pytest.mark.parametrize(
    ("mode", "note"), [("unsupported", None), ("hang", "rocm_smi did not answer within 0.5 s")]
)
def test_rocm_smi_that_does_not_serve(amd: Path, mode: str, note: str | None) -> None:
    found = document(amd, "info", impatient=note is not None, FAKE_RSMI_MODE=mode)
    device = found["devices"][0]
    assert device["card"]["id"] == "mi300x"
    if note is None:
        assert set(device["smi"].values()) == {"rocm_smi", None}
    else:
        assert device["smi"] is None
        assert note in device["sensors_note"]


def test_rocm_without_a_card_has_no_device(amd: Path) -> None:
    done = kmrun(amd, "info", FAKE_HIP_INIT="100")
    assert done.returncode == 3
    assert done.stderr.startswith("error: there is no GPU here: the HIP runtime shows no device\n")


AMDSMI = """\
class AmdSmiException(Exception): pass
class AmdSmiClkType: GFX, MEM = "gfx", "mem"
class AmdSmiTemperatureType: EDGE, HOTSPOT = "edge", "hotspot"
class AmdSmiTemperatureMetric: CURRENT = "now"
def amdsmi_init(): pass
def amdsmi_shut_down(): pass
def amdsmi_get_processor_handles(): return [1, 0]
def amdsmi_get_gpu_device_bdf(handle): return f"0000:{0xc1 + handle:02X}:00.0"
def amdsmi_get_power_info(handle): return {"current_socket_power": "N/A", "average_socket_power": 133}
def amdsmi_get_clock_info(handle, kind): return {"clk": 1700 + handle, "max_clk": 2100}
def amdsmi_get_temp_metric(handle, kind, metric):
    if kind == "edge": raise AmdSmiException
    return 51
def amdsmi_get_gpu_activity(handle): return {"gfx_activity": 75}
def amdsmi_get_energy_count(handle): return {"energy_accumulator": 1000, "counter_resolution": 15.3}
def amdsmi_get_gpu_vram_usage(handle): return {"vram_total": 196592, "vram_used": 283}
def amdsmi_get_power_cap_info(handle): return {"power_cap": 750000000}
def amdsmi_get_gpu_driver_info(handle): raise AmdSmiException
"""


def test_amdsmi_where_it_is_installed(amd: Path, tmp_path: Path) -> None:
    (tmp_path / "amdsmi.py").write_text(AMDSMI)
    smi = document(amd, "info", PYTHONPATH=str(tmp_path))["devices"][1]["smi"]
    assert (smi["source"], smi["sm_mhz"], smi["temp_c"], smi["power_w"]) == ("amd_smi", 1701, 51, 133)
    assert (smi["power_limit_w"], smi["memory_used_bytes"]) == (750, 283 << 20)
    assert (smi["driver_version"], smi["utilisation_percent"]) == (None, 75)


def test_amdsmi_without_its_library_says_so_and_not_into_the_document(amd: Path, tmp_path: Path) -> None:
    (tmp_path / "amdsmi").mkdir()
    (tmp_path / "amdsmi/__init__.py").write_text(
        "print('libamd_smi.so: cannot open shared object file')\nprint('try installing it')\n{}['libamd_smi.so']\n"
    )
    path = f"{tmp_path}:{Path(kmrun_package.__file__).parents[1]}"
    script = (
        "import contextlib\nfrom kmrun.device.sampler import NoSensors, amd_source\n"
        "with contextlib.suppress(NoSensors):\n    amd_source('0000:c1:00.0').open().__enter__()"
    )
    done = run(amd, ["-c", script], PYTHONPATH=path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    document_there = run(amd, ["-m", "kmrun", "info", "--json"], PYTHONPATH=path, FAKE_RSMI_MODE="none")
    assert json.loads(document_there.stdout)["devices"][0]["smi"]["source"] == "rocm_smi"
    assert document_there.stderr == ""
    (tmp_path / "librocm_smi64.so").write_text("not a library")
    done = run(None, ["-m", "kmrun", "info", "--json"], PYTHONPATH=path, LD_LIBRARY_PATH=f"{tmp_path}:{amd}")
    note = json.loads(done.stdout)["devices"][0]["sensors_note"]
    assert note.startswith(
        "amdsmi cannot be loaded: libamd_smi.so: cannot open shared object file; ROCm SMI "
    )


def test_both_vendors_are_counted_on(nvidia: Path, amd: Path) -> None:
    done = run(None, ["-m", "kmrun", "info", "--json"], LD_LIBRARY_PATH=f"{nvidia}:{amd}")
    devices = json.loads(done.stdout)["devices"]
    assert [(device["index"], device["vendor"]) for device in devices] == [
        (0, "nvidia"),
        (1, "nvidia"),
        (2, "amd"),
        (3, "amd"),
    ]


def test_imports_nothing_heavy(nvidia: Path) -> None:
    script = (
        "import sys; sys.argv = ['kmrun', 'info']\n"
        "from kmrun.cli import main\n"
        "try: main()\n"
        "except SystemExit: sys.stderr.write(' '.join(sys.modules))\n"
    )
    done = run(nvidia, ["-c", script])
    loaded = {name.partition(".")[0] for name in done.stderr.split()}
    assert "kmrun" in loaded
    assert not loaded & {"torch", "numpy", "pydantic", "yaml", "rich", "jinja2"}


def test_help_names_it() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "kmrun", "--help"], text=True, capture_output=True, check=True
    )
    assert "show what this machine has" in done.stdout
