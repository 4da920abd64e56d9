"""The sampler and the clock lock against libraries of our own, each in a process that loads them."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from kmrun.core.telemetry import Reading
from kmrun.device.occupied import DeviceLock
from kmrun.device.sampler import NoSensors, Sampler, Source
from support.fake_drivers import IMPATIENT, compiled, needs_compiler, run

T4 = "GPU-64656667-6869-6a6b-6c6d-6e6f70717273"
MIG = "MIG-c8c9cacb-cccd-cecf-d0d1-d2d3d4d5d6d7"

PRINT = """
import json
from kmrun.core.plain import to_plain
def tell(**found):
    print(json.dumps(to_plain(found)))
"""
SAMPLE = (
    PRINT
    + """
import time
from kmrun.device.sampler import Sampler, nvml_source, amd_source
with Sampler({source}) as sampler:
    with sampler.window() as short:
        time.sleep(0.25)
    with sampler.window() as long:
        time.sleep({seconds})
tell(short=short.telemetry, long=long.telemetry, whole=sampler.telemetry)
"""
)


@pytest.fixture(scope="module")
def nvidia(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled(tmp_path_factory.mktemp("nvidia"), "nvml")


def sampled(
    folder: Path, source: str, seconds: float = 1.2, first: str = "", **variables: str
) -> dict[str, Any]:
    done = run(folder, ["-c", first + SAMPLE.format(source=source, seconds=seconds)], **variables)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@needs_compiler
def test_a_card_under_its_power_cap(nvidia: Path) -> None:
    found = sampled(nvidia, f"nvml_source('{T4}')", FAKE_NVML_SM="877", FAKE_NVML_REASONS="4")
    long = found["long"]
    assert (long["sm_mhz"], long["sm_mhz_max"], long["mem_mhz"]) == (877, 1590, 5000)
    assert (long["temp_c"], long["utilisation"], long["note"]) == (42, 0.97, "")
    assert (long["throttle"], long["throttle_fraction"]) == (["sw_power_cap"], {"sw_power_cap": 1.0})
    # By the energy counter, which says 50 W; the power reading says 9.85.
    assert long["power_w"] == pytest.approx(50, rel=0.02)
    assert long["energy_j"] == pytest.approx(50 * long["window_s"], rel=0.02)
    assert 6 <= len(long["readings"]) <= 14
    assert (found["short"]["power_w"], found["short"]["energy_j"]) == (None, None)
    assert found["short"]["sm_mhz"] == 877
    assert len(found["whole"]["readings"]) >= len(long["readings"])
    assert found["whole"]["source"] == "nvml"


@needs_compiler
def test_a_slice_has_no_power_of_its_own(nvidia: Path) -> None:
    long = sampled(nvidia, f"nvml_source('{MIG}')")["long"]
    assert (long["sm_mhz"], long["power_w"], long["energy_j"], long["utilisation"]) == (585, None, None, None)
    # torch names a slice by its parent's prefix.
    again = sampled(nvidia, f"nvml_source('{MIG.replace('MIG', 'GPU')}')", seconds=0.1)["short"]
    assert again["sm_mhz"] == 585


@needs_compiler
def test_a_slowdown_that_sets_in_is_seen(nvidia: Path) -> None:
    # Two reads of the reasons a reading: the newer name is not known to this library.
    long = sampled(nvidia, f"nvml_source('{T4}')", FAKE_NVML_HOT="8", FAKE_NVML_REASONS="0")["long"]
    assert long["throttle"] == ["sw_thermal_slowdown"]
    assert 0 < long["throttle_fraction"]["sw_thermal_slowdown"] <= 1


@needs_compiler
def test_every_sensor_may_be_unsupported(nvidia: Path) -> None:
    long = sampled(nvidia, f"nvml_source('{T4}')", FAKE_NVML_MODE="unsupported")["long"]
    for name in ("sm_mhz", "sm_mhz_max", "mem_mhz", "temp_c", "power_w", "energy_j", "utilisation"):
        assert long[name] is None
    assert (long["throttle"], long["note"]) == (None, "")


@needs_compiler
@pytest.mark.parametrize(
    ("source", "variables", "note"),
    [
        ("nvml_source('GPU-0')", {}, "NVML does not know this device"),
        (f"nvml_source('{T4}')", {"FAKE_NVML_INIT": "9"}, "Driver Not Loaded"),
        ("amd_source('0000:c1:00.0')", {}, "ROCm SMI is not installed"),
        ("None", {}, "no sensors are read for this device"),
    ],
)
def test_without_sensors_the_telemetry_says_why(
    nvidia: Path, source: str, variables: dict[str, str], note: str
) -> None:
    whole = sampled(nvidia, source, seconds=0.1, **variables)["whole"]
    assert note in whole["note"]
    assert (whole["source"], whole["sm_mhz"], whole["readings"]) == (None, None, [])


@needs_compiler
def test_a_gpu_that_is_lost_on_the_way_keeps_its_readings(nvidia: Path) -> None:
    found = sampled(nvidia, f"nvml_source('{T4}')", FAKE_NVML_MODE="lost", FAKE_NVML_AFTER="3")
    assert found["whole"]["note"] == "GPU is lost"
    assert found["short"]["sm_mhz"] == 585
    assert len(found["whole"]["readings"]) >= 3
    # A second later it is lost for good: nothing of what it said speaks for that time.
    long = found["long"]
    assert (long["sm_mhz"], long["power_w"], long["energy_j"], long["note"]) == (
        None,
        None,
        None,
        "GPU is lost",
    )


@needs_compiler
@pytest.mark.parametrize(
    ("variables", "note"),
    [
        ({"FAKE_NVML_MODE": "hang", "FAKE_NVML_AFTER": "3"}, "nvml hangs: it did not answer within 2 s"),
        ({"FAKE_NVML_MODE": "hang_init"}, "nvml did not answer within 0.5 s"),
    ],
)
def test_nvml_that_hangs_costs_the_readings_and_nothing_else(
    nvidia: Path, variables: dict[str, str], note: str
) -> None:
    begin = time.monotonic()
    found = sampled(nvidia, f"nvml_source('{T4}')", seconds=0.1, first=IMPATIENT, **variables)
    assert time.monotonic() - begin < 30  # it would be for ever
    assert found["whole"]["note"] == note
    # What was read before stays, but speaks for no window that went on without it.
    assert bool(found["whole"]["readings"]) == ("FAKE_NVML_AFTER" in variables)
    assert (found["whole"]["sm_mhz"], found["whole"]["power_w"]) == (None, None)


@needs_compiler
def test_an_mi300x(tmp_path: Path) -> None:
    compiled(tmp_path, "rsmi")
    long = sampled(tmp_path, "amd_source('0000:c1:00.0')")["long"]
    assert (long["sm_mhz"], long["sm_mhz_max"], long["mem_mhz"], long["temp_c"]) == (1500, 2100, 1100, 47)
    assert long["power_w"] == pytest.approx(140, rel=0.02)
    assert (long["utilisation"], long["throttle"], long["source"]) == (0.88, None, "smi")


@needs_compiler
def test_foreign_load(nvidia: Path) -> None:
    script = PRINT + f"from kmrun.device.occupied import load_of\ntell(load=load_of('{T4}'))"
    load = json.loads(run(nvidia, ["-c", script]).stdout)["load"]
    assert load == {
        **{"memory_bytes": 450 << 20, "total_bytes": 15360 << 20},
        **{"processes": [4242], "note": ""},
    }
    hidden = json.loads(run(nvidia, ["-c", script], FAKE_NVML_MODE="unsupported").stdout)["load"]
    assert (hidden["memory_bytes"], hidden["processes"]) == (None, None)
    hung = json.loads(run(nvidia, ["-c", IMPATIENT + script], FAKE_NVML_MODE="hang_init").stdout)["load"]
    assert hung["note"] == "NVML did not answer within 0.5 s"


HOLD = (
    PRINT
    + """
from kmrun.device.nvml import Nvml
from kmrun.device.occupied import held_clock
def now():
    with Nvml() as nvml:
        return nvml.device(%r).read(0.0).sm_mhz
with held_clock(%r, %s) as held:
    inside = now()
tell(held=held.held, why=held.why_not, inside=inside, after=now())
"""
)


@needs_compiler
@pytest.mark.parametrize(
    ("mhz", "variables", "expected"),
    [
        (1200, {"FAKE_NVML_PERMIT": "1"}, {"held": True, "why": "", "inside": 1200, "after": 585}),
        (None, {"FAKE_NVML_PERMIT": "1"}, {"held": True, "why": "", "inside": 1005, "after": 585}),
        (1200, {}, {"held": False, "why": "Insufficient Permissions", "inside": 585, "after": 585}),
    ],
)
def test_a_held_clock_is_given_back(
    nvidia: Path, mhz: int | None, variables: dict[str, str], expected: dict[str, Any]
) -> None:
    done = run(nvidia, ["-c", HOLD % (T4, T4, mhz)], **variables)
    assert json.loads(done.stdout) == expected


@needs_compiler
def test_a_clock_that_cannot_be_given_back_is_an_error(nvidia: Path) -> None:
    done = run(nvidia, ["-c", HOLD % (T4, T4, 1200)], FAKE_NVML_PERMIT="1", FAKE_NVML_KEEP="1")
    assert "EnvironmentLacks: the card's SM clock could not be given back: Insufficient Perm" in done.stderr


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs flock")
def test_one_run_at_a_time_on_a_device(tmp_path: Path) -> None:
    script = (
        "import sys, pathlib; from kmrun.device.occupied import DeviceLock\n"
        "with DeviceLock('GPU-1', pathlib.Path(sys.argv[1])) as holder: print(holder)"
    )

    def other() -> str:
        words = [sys.executable, "-c", script, str(tmp_path)]
        return subprocess.run(words, text=True, capture_output=True, check=True).stdout.strip()

    with DeviceLock("GPU-1", tmp_path) as holder:
        assert holder is None
        assert other() == str(os.getpid())
        with DeviceLock("GPU-2", tmp_path) as another:
            assert another is None
    assert other() == "None"


class Broken:
    """A source that cannot be opened, for the sampler's own errors."""

    def __enter__(self) -> "Broken":
        raise NoSensors("out of order")

    def __exit__(self, *_: object) -> None: ...

    def read(self, at_s: float) -> Reading:
        raise AssertionError

    def sm_mhz_max(self) -> float | None:
        return None

    def mem_mhz_max(self) -> float | None:
        return None


def test_a_source_that_does_not_open() -> None:
    with Sampler(Source("broken", Broken)) as sampler, sampler.window() as window:
        pass
    assert (window.telemetry.note, sampler.telemetry.note) == ("out of order", "out of order")
