"""Facts of a CPU, read from a /proc and /sys of our own."""

from pathlib import Path

import pytest

from kmrun.device.cpu_facts import cpu_facts

EPYC = """\
processor\t: {number}
vendor_id\t: AuthenticAMD
cpu family\t: 23
model\t\t: 49
model name\t: AMD EPYC 7742 64-Core Processor
cpu MHz\t\t: 1500.000
physical id\t: {socket}
core id\t\t: {core}
flags\t\t: fpu sse2 avx avx2 fma f16c

"""


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("kmrun.device.cpu.allowed_cpus", lambda: frozenset(range(8)))
    (tmp_path / "proc").mkdir()
    # Two sockets of two cores of two threads each.
    text = "".join(
        EPYC.format(number=number, socket=number // 4, core=number // 2 % 2) for number in range(8)
    )
    (tmp_path / "proc/cpuinfo").write_text(text)
    frequency = tmp_path / "sys/devices/system/cpu/cpu0/cpufreq"
    frequency.mkdir(parents=True)
    for name, value in (
        ("cpuinfo_max_freq", "3400000"),
        ("scaling_cur_freq", "2250000"),
        ("scaling_governor", "performance"),
        ("scaling_driver", "acpi-cpufreq"),
    ):
        (frequency / name).write_text(f"{value}\n")
    for node in range(2):
        (tmp_path / f"sys/devices/system/node/node{node}").mkdir(parents=True)
    return tmp_path


def test_reads_what_the_system_says(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kmrun.device.cpu.usable_cores", lambda: 3)
    found = cpu_facts(root)
    assert (found.vendor, found.family, found.model_number) == ("AuthenticAMD", 23, 49)
    assert (found.sockets, found.cores, found.usable, found.numa_nodes) == (2, 4, 3, 2)
    assert found.simd == ("AVX2", "FMA", "F16C", "AVX")
    assert (found.governor, found.frequency_driver) == ("performance", "acpi-cpufreq")
    assert (found.clock_hz, found.highest_clock_hz, found.named_clock_hz) == (2.25e9, 3.4e9, None)
    assert found.vector_peak_fp32 == pytest.approx(3 * 32 * 3.4e9)
    assert found.vector_peak_fp64 == pytest.approx(3 * 16 * 3.4e9)
    assert found.peak_note == "derived: 3 x 32 flop a clock (Zen 2) x 3.40 GHz (highest of one core)"
    assert not found.virtual


def test_hardware_threads_add_no_units(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kmrun.device.cpu.usable_cores", lambda: 8)
    assert cpu_facts(root).vector_peak_fp32 == pytest.approx(4 * 32 * 3.4e9)


def test_a_machine_that_says_nothing(tmp_path: Path) -> None:
    found = cpu_facts(tmp_path)
    assert (found.vendor, found.cores, found.governor, found.highest_clock_hz) == (None, None, None, None)
    assert found.vector_peak_fp32 is None
    assert found.peak_note.startswith("no vector peak")
    assert found.usable >= 1


def test_threads_of_one_core_are_one_core_however_few_may_be_used(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kmrun.device.cpu.allowed_cpus", lambda: frozenset({2, 3, 5}))
    monkeypatch.setattr("kmrun.device.cpu.usable_cores", lambda: 3)
    found = cpu_facts(root)
    assert found.vector_peak_fp32 == pytest.approx(2 * 32 * 3.4e9)
    assert (found.sockets, found.cores) == (2, 4)


def test_cores_of_different_clocks_are_added_up(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kmrun.device.cpu.usable_cores", lambda: 8)
    for number in range(8):
        folder = root / f"sys/devices/system/cpu/cpu{number}/cpufreq"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "cpuinfo_max_freq").write_text("3400000\n" if number < 4 else "2400000\n")
    found = cpu_facts(root)
    assert found.vector_peak_fp32 == pytest.approx(2 * 32 * 3.4e9 + 2 * 32 * 2.4e9)
    note = "derived: 4 x 32 flop a clock (Zen 2) x 2.40 to 3.40 GHz (highest of each core)"
    assert found.peak_note == note


ARM = (
    "processor\t: {number}\nFeatures\t: fp asimd\nCPU implementer\t: 0x41\nCPU architecture: 8\n"
    "CPU variant\t: 0x1\nCPU part\t: {part}\n\n"
)


def test_cores_of_several_kinds_have_no_peak_of_one_kind(tmp_path: Path) -> None:
    (tmp_path / "proc").mkdir()
    text = "".join(ARM.format(number=number, part="0xd08" if number else "0xd03") for number in range(4))
    (tmp_path / "proc/cpuinfo").write_text(text)
    (tmp_path / "sys/devices/system/cpu/cpu0/cpufreq").mkdir(parents=True)
    (tmp_path / "sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq").write_text("1400000\n")
    found = cpu_facts(tmp_path)
    assert found.model == "Arm Cortex-A53 + Arm Cortex-A72"
    assert (found.vector_peak_fp32, found.peak_note) == (
        None,
        "no vector peak: its cores are of several kinds",
    )


def test_many_cores(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kmrun.device.cpu.allowed_cpus", lambda: frozenset(range(512)))
    monkeypatch.setattr("kmrun.device.cpu.usable_cores", lambda: 512)
    (tmp_path / "proc").mkdir()
    text = "".join(
        EPYC.format(number=number, socket=number // 256, core=number % 256) for number in range(512)
    )
    (tmp_path / "proc/cpuinfo").write_text(text)
    found = cpu_facts(tmp_path)
    assert (found.sockets, found.cores) == (2, 512)
    # No /sys, as in some containers: the clock of the moment, said as such.
    assert (
        found.peak_note == "derived: 512 x 32 flop a clock (Zen 2) x 1.50 GHz (as the system reports it now)"
    )


@pytest.mark.parametrize(
    ("text", "name"),
    [
        (
            b"model name\t: Virtual \xe9 CPU\x1b[31m\n",
            "Virtual \N{REPLACEMENT CHARACTER} CPU\N{REPLACEMENT CHARACTER}[31m",
        ),
        (b"processor\t: 0\ncpu\t\t: POWER9, altivec supported\n", "POWER9, altivec supported"),
        (b"model name\t: \n", None),
        (b"\x00\xff\n\n\n:::\n", None),
    ],
)
def test_odd_texts_of_the_system(tmp_path: Path, text: bytes, name: str | None) -> None:
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/cpuinfo").write_bytes(text)
    found = cpu_facts(tmp_path)
    assert found.model
    assert name is None or found.model == name


def test_arm_spells_it_otherwise(tmp_path: Path) -> None:
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/cpuinfo").write_text(
        "processor\t: 0\nFeatures\t: fp asimd sve sve2\nCPU implementer\t: 0x41\n"
        "CPU architecture: 8\nCPU part\t: 0xd4f\n\n"
    )
    found = cpu_facts(tmp_path)
    assert found.model == "Arm Neoverse V2"
    assert (found.units, found.simd) == ("Neoverse V2", ("SVE2", "SVE", "NEON"))
    assert found.vector_peak_fp32 is None
    assert found.peak_note == "no vector peak: the system does not say the clock"
