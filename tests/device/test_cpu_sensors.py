"""The CPU's sensors, read from a /proc and /sys of our own, and the load of this very machine."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from kmrun.core.cpu_load import CpuTimes, cpu_load
from kmrun.device.cpu_sensors import CpuSensors, cpu_source, cpu_times
from kmrun.device.sampler import Sampler


def put(path: Path, value: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"{value}\n")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    cpus = tmp_path / "sys/devices/system/cpu"
    for number, khz in enumerate((3_000_000, 3_200_000)):
        put(cpus / f"cpu{number}/cpufreq/scaling_cur_freq", khz)
    put(cpus / "cpu0/cpufreq/cpuinfo_max_freq", 3_700_000)
    hwmon = tmp_path / "sys/class/hwmon"
    put(hwmon / "hwmon0/name", "nvme")
    put(hwmon / "hwmon0/temp1_input", 90_000)
    put(hwmon / "hwmon1/name", "coretemp")
    put(hwmon / "hwmon1/temp1_input", 61_000)
    put(hwmon / "hwmon1/temp2_input", 62_000)
    put(hwmon / "hwmon2/name", "coretemp")  # of the second socket
    put(hwmon / "hwmon2/temp1_input", 64_000)
    put(hwmon / "hwmon2/temp2_input", 2_147_483_647)  # of a core that is off
    rapl = tmp_path / "sys/class/powercap"
    for name, kind, value in (
        ("intel-rapl:0", "package-0", 5_000_000),
        ("intel-rapl:0:0", "core", 1_000_000),
        ("intel-rapl:1", "package-1", 2_000_000),
        ("intel-rapl:2", "psys", 9_000_000),
    ):
        put(rapl / name / "name", kind)
        put(rapl / name / "energy_uj", value)
        put(rapl / name / "max_energy_range_uj", 10_000_000)
    return tmp_path


def test_reads_clock_temperature_and_energy_of_all_sockets(root: Path) -> None:
    sensors = CpuSensors(root)
    found = sensors.read(1.0)
    assert (found.sm_mhz, found.temp_c, found.energy_j) == (3100, 64, 7.0)
    assert (sensors.sm_mhz_max(), sensors.mem_mhz_max()) == (3700, None)
    assert found.throttle is None


def test_an_energy_counter_that_wraps_goes_on(root: Path) -> None:
    sensors = CpuSensors(root)
    before = sensors.read(0.0).energy_j
    put(root / "sys/class/powercap/intel-rapl:0/energy_uj", 1_000_000)
    after = sensors.read(1.0).energy_j
    assert before is not None and after is not None
    assert after - before == pytest.approx(6.0)


def test_what_is_not_for_us_to_read_is_none(root: Path) -> None:
    (root / "sys/class/powercap/intel-rapl:1/energy_uj").unlink()
    assert CpuSensors(root).read(0.0).energy_j is None


@pytest.mark.parametrize("text", ["cpu x y z 1 2 3 4 5", "cpu 1 2", "", "intr 1 2 3 4 5 6 7 8 9", "\xff\xfe"])
def test_times_that_cannot_be_understood_are_none(tmp_path: Path, text: str) -> None:
    put(tmp_path / "proc/stat", text)
    assert cpu_times([], tmp_path) is None


def test_a_process_that_ends_while_it_is_read_counts_nothing(tmp_path: Path) -> None:
    put(tmp_path / "proc/stat", "cpu 100 0 100 0 0 0 0 7 0 0")
    put(tmp_path / "proc/7/stat", "7 (half")
    put(tmp_path / "proc/8/stat", "8 (na) me) S 1 2 3")
    found = cpu_times([7, 8, 9], tmp_path)
    assert found is not None
    assert (found.own_s, found.steal_s > 0) == (0.0, True)


def test_thermal_zones_where_there_is_no_hwmon(tmp_path: Path) -> None:
    put(tmp_path / "sys/class/thermal/thermal_zone0/type", "acpitz")
    put(tmp_path / "sys/class/thermal/thermal_zone0/temp", 99_000)
    put(tmp_path / "sys/class/thermal/thermal_zone1/type", "x86_pkg_temp")
    put(tmp_path / "sys/class/thermal/thermal_zone1/temp", 47_000)
    assert CpuSensors(tmp_path).read(0.0).temp_c == 47


def test_a_machine_without_sensors_samples_nothing_and_says_nothing(tmp_path: Path) -> None:
    with Sampler(cpu_source(tmp_path), period_s=0.02) as sampler, sampler.window() as window:
        time.sleep(0.05)
    assert window.telemetry.sm_mhz is None
    assert window.telemetry.note == ""
    assert len(sampler.readings) >= 2


def test_load_is_ours_or_others_or_stolen() -> None:
    load = cpu_load(CpuTimes(10, 100, 5, 20), CpuTimes(12, 105, 6, 23))
    assert load is not None
    assert (load.window_s, load.own, load.others, load.steal) == (2, 1.5, 1.0, 0.5)
    assert cpu_load(CpuTimes(1, 0, 0, 0), CpuTimes(1, 0, 0, 0)) is None
    # Ours may tick just before the machine's: nothing is negative.
    hasty = cpu_load(CpuTimes(0, 0, 0, 0), CpuTimes(1, 0.5, 0, 0.51))
    assert hasty is not None
    assert hasty.others == 0


def test_reads_the_times_of_processes(tmp_path: Path) -> None:
    ticks = os.sysconf("SC_CLK_TCK")
    put(tmp_path / "proc/stat", f"cpu {ticks} 0 {2 * ticks} 999 888 0 {ticks} {3 * ticks} 7 7\ncpu0 1 2 3")
    put(tmp_path / "proc/7/stat", f"7 (a (b) c) S {' '.join(['0'] * 10)} {4 * ticks} {ticks} 0 0")
    found = cpu_times([7, 8], tmp_path)
    assert found is not None
    assert (found.busy_s, found.steal_s, found.own_s) == (4, 3, 5)
    assert cpu_times([7], tmp_path / "nowhere") is None


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_a_busy_process_of_ours_is_ours() -> None:
    script = "import time\nwhile time.process_time() < 0.3: pass\nprint('done', flush=True); time.sleep(60)"
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE) as busy:
        before = cpu_times([busy.pid])
        assert busy.stdout is not None
        busy.stdout.readline()
        after = cpu_times([busy.pid])
        busy.kill()
    assert before is not None and after is not None
    assert after.own_s - before.own_s >= 0.2
    load = cpu_load(before, after)
    assert load is not None
    assert load.own > 0
