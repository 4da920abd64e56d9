"""Claiming a GPU for a run, against drivers of our own in a process that loads them."""

import errno
import json
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

from kmrun.core.measurement import RunDevice
from kmrun.device import claim as claim_module
from kmrun.device import occupied
from kmrun.device.chosen import ChosenGpu
from kmrun.device.claim import Claim, about, claimed, known_by
from kmrun.device.occupied import DeviceLock, HeldClock, Load, _is_service, foreign_load, lock_folder
from kmrun.errors import EnvironmentLacks
from support.fake_drivers import IMPATIENT, compiled, needs_compiler, run

T4 = "GPU-64656667-6869-6a6b-6c6d-6e6f70717273"
MIG = "MIG-c8c9cacb-cccd-cecf-d0d1-d2d3d4d5d6d7"
CLAIM = """
import json, sys
from kmrun.core.plain import to_plain
from kmrun.device.claim import claimed
told = []
with claimed({device!r}, {kind!r}, lock_clocks={lock}, tell=told.append, wait_s={wait_s}, folder={folder}) as claim:
    inside = to_plain(claim)
    clock = None
    if claim.driver and claim.gpu.vendor == "nvidia" and {clock}:
        from kmrun.device.nvml import Nvml
        with Nvml() as nvml:
            clock = nvml.device(claim.gpu.uuid).read(0.0).sm_mhz
print(json.dumps(dict(inside, told=told, clock=clock)))
"""


@pytest.fixture(scope="module")
def nvidia(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled(tmp_path_factory.mktemp("nvidia"), "cuda", "nvml")


def claim(
    drivers: Path | None,
    folder: Path,
    device: str = "auto",
    lock: bool = False,
    first: str = "",
    kind: str = "cuda",
    read_clock: bool = True,
    wait_s: float = 0.0,
    **variables: str,
) -> dict[str, Any]:
    where = f"__import__('pathlib').Path({str(folder)!r})"
    done = run(
        drivers,
        [
            "-c",
            first
            + CLAIM.format(
                device=device, kind=kind, clock=read_clock, lock=lock, folder=where, wait_s=wait_s
            ),
        ],
        **variables,
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@needs_compiler
def test_a_gpu_is_known_before_anything_runs_on_it(nvidia: Path, tmp_path: Path) -> None:
    found = claim(nvidia, tmp_path, FAKE_NVML_ALONE="1")
    assert found["gpu"] == {
        **{"vendor": "nvidia", "index": 0, "uuid": T4, "pci_address": "0000:3b:00.0", "is_mig": False}
    }
    assert (found["driver"], found["foreign"], found["clock"]) == ("580.95.05", "", 585)
    assert (found["facts"]["power_limit_w"], found["facts"]["ecc"]) == (70, True)
    assert (found["told"], found["unknown"]) == ([], "")
    assert claim(nvidia, tmp_path, "cuda:1", FAKE_NVML_ALONE="1")["gpu"]["index"] == 1


@needs_compiler
@pytest.mark.parametrize(
    ("variables", "sentence"),
    [
        ({}, "another process (pid 4242) had the card before the run, 472 MB of memory in use"),
        ({"FAKE_NVML_ALONE": "1", "FAKE_NVML_USED": "450"}, ""),
        (
            {"FAKE_NVML_ALONE": "1", "FAKE_NVML_USED": "2048"},
            "the card had 2.15 GB of memory in use before the run, by processes that cannot be seen from here",
        ),
    ],
)
def test_others_on_the_card(nvidia: Path, tmp_path: Path, variables: dict[str, str], sentence: str) -> None:
    assert claim(nvidia, tmp_path, **variables)["foreign"] == sentence


@needs_compiler
@pytest.mark.parametrize(
    ("variables", "why"),
    [
        (
            {"FAKE_NVML_MODE": "unsupported"},
            "its driver tells neither the memory in use nor the processes",
        ),
        ({"FAKE_NVML_INIT": "9"}, "Driver Not Loaded"),
        ({"FAKE_NVML_MODE": "stranger"}, "NVML does not know this device"),
    ],
)
def test_what_cannot_be_read_of_others_is_unknown(
    nvidia: Path, tmp_path: Path, variables: dict[str, str], why: str
) -> None:
    found = claim(nvidia, tmp_path, read_clock=False, **variables)
    assert (found["foreign"], found["unknown"]) == ("", why)
    assert found["told"] == [f"warning: whether others use this GPU is not known: {why}\n"]


@needs_compiler
def test_a_driver_that_names_no_slice_gives_it_nothing_of_the_whole_gpu(tmp_path: Path) -> None:
    compiled(tmp_path, "cuda", "nvml", define=["OLD"])
    found = claim(
        tmp_path,
        tmp_path,
        lock=True,
        read_clock=False,
        **{"FAKE_CUDA_MACHINE": "mig", "FAKE_NVML_PERMIT": "1"},
    )
    why = "this driver does not tell a MIG slice from the GPU that it is cut from"
    assert (found["gpu"]["uuid"], found["gpu"]["is_mig"]) == (None, True)
    assert (found["facts"], found["foreign"], found["unknown"]) == ({}, "", why)
    told = ("clocks are not locked", "whether others use this GPU is not known")
    assert found["told"] == [f"warning: {what}: {why}\n" for what in told]
    script = (
        "from kmrun.core.measurement import RunDevice\n"
        "from kmrun.measure.watch import Watch\n"
        "slice = RunDevice('cuda', 0, 'NVIDIA A100-SXM4-40GB MIG 1g.5gb', 1, uuid=%r, pci_address='0000:3b:00.0')\n"
        "with Watch(slice, list) as watch, watch.stretch() as seen: pass\n"
        "print(seen.telemetry.sm_mhz, seen.telemetry.power_w, seen.telemetry.note, sep='|')"
    )
    done = run(tmp_path, ["-c", script % T4])
    assert done.stdout.strip() == f"None|None|{why}", done.stderr


@needs_compiler
def test_nvml_that_hangs_costs_what_it_would_have_told(nvidia: Path, tmp_path: Path) -> None:
    found = claim(nvidia, tmp_path, lock=True, first=IMPATIENT, FAKE_NVML_MODE="hang_init")
    assert (found["gpu"]["uuid"], found["facts"], found["driver"], found["foreign"]) == (T4, {}, None, "")
    assert found["told"] == [
        "warning: clocks are not locked: NVML did not answer within 0.5 s\n",
        "warning: whether others use this GPU is not known: NVML did not answer within 0.5 s\n",
    ]


@needs_compiler
@pytest.mark.parametrize("variables", [{"FAKE_CUDA_INIT": "crash"}, {"FAKE_CUDA_INIT": "803"}])
def test_a_gpu_that_torch_uses_and_kmrun_cannot_name_is_told(
    nvidia: Path, tmp_path: Path, variables: dict[str, str]
) -> None:
    found = claim(nvidia, tmp_path, **variables)
    why = "its driver does not answer to kmrun"
    assert (found["gpu"], found["unknown"]) == (None, why)
    start = "warning: whether others use this GPU, another run of kmrun included, is not known: "
    assert found["told"] == [f"{start}{why}\n"]


@needs_compiler
def test_nvml_that_crashes_is_not_asked_by_the_run_itself(nvidia: Path, tmp_path: Path) -> None:
    found = claim(nvidia, tmp_path, lock=True, FAKE_NVML_MODE="crash")
    why = "NVML crashed when it was asked (SIGSEGV)"
    assert (found["gpu"]["uuid"], found["facts"], found["unreadable"]) == (T4, {}, why)
    told = ("clocks are not locked", "whether others use this GPU is not known")
    assert found["told"] == [f"warning: {what}: {why}\n" for what in told]


@needs_compiler
@pytest.mark.parametrize(
    ("variables", "clock", "told"),
    [
        ({"FAKE_NVML_PERMIT": "1"}, 1005, []),
        ({}, 585, ["warning: clocks are not locked: Insufficient Permissions\n"]),
    ],
)
def test_clocks_are_locked_where_the_user_may(
    nvidia: Path, tmp_path: Path, variables: dict[str, str], clock: int, told: list[str]
) -> None:
    found = claim(nvidia, tmp_path, lock=True, **variables)
    assert (found["clock"], found["told"]) == (clock, told)


@needs_compiler
def test_a_killed_run_leaves_no_clock_locked(nvidia: Path, tmp_path: Path) -> None:
    """The next run waits until the clock is given back: the lock is held by who does that, too."""
    log = tmp_path / "log"
    script = HELD.format(uuid=T4, folder=str(tmp_path), end="os.kill(os.getpid(), signal.SIGKILL)")
    variables = {"FAKE_NVML_PERMIT": "1", "FAKE_NVML_LOG": str(log)}
    done = run(nvidia, ["-c", script], **variables)
    assert done.returncode == -signal.SIGKILL
    after = claim(nvidia, tmp_path, wait_s=60.0, FAKE_NVML_ALONE="1", FAKE_NVML_LOG=str(log))
    assert after["clock"] == 585
    assert log.read_text().splitlines() == ["locked", "given back"]


@needs_compiler
def test_a_killed_run_whose_clock_stays_locked_is_told(nvidia: Path, tmp_path: Path) -> None:
    script = HELD.format(uuid=T4, folder=str(tmp_path), end="os.kill(os.getpid(), signal.SIGKILL)")
    done = run(nvidia, ["-c", script], FAKE_NVML_PERMIT="1", FAKE_NVML_KEEP="1")
    assert done.stderr == (
        "error: a run was killed, and the card's SM clock could not be given back: Insufficient Permissions\n"
        "hint: `nvidia-smi --reset-gpu-clocks` does it\n"
    )


@needs_compiler
def test_an_ordered_end_is_not_taken_for_a_kill(nvidia: Path, tmp_path: Path) -> None:
    log = tmp_path / "log"
    claim(nvidia, tmp_path, lock=True, FAKE_NVML_PERMIT="1", FAKE_NVML_LOG=str(log))
    assert log.read_text().splitlines() == ["locked", "given back"]


@needs_compiler
def test_a_slice_s_clock_is_not_its_own_to_lock(nvidia: Path, tmp_path: Path) -> None:
    variables = {"FAKE_CUDA_MACHINE": "mig", "FAKE_NVML_PERMIT": "1", "FAKE_NVML_ALONE": "1"}
    found = claim(nvidia, tmp_path, lock=True, **variables)
    why = "a MIG slice has no clock of its own: it is the whole GPU's"
    assert (found["clock"], found["told"]) == (585, [f"warning: clocks are not locked: {why}\n"])


def test_a_slice_goes_by_the_name_that_is_its_own() -> None:
    claimed_slice = Claim(ChosenGpu("nvidia", 0, MIG, "0000:3b:00.0", is_mig=True))
    device = RunDevice("cuda", 0, "NVIDIA A100-SXM4-40GB MIG 1g.5gb", 5 << 30, uuid=T4.removeprefix("GPU-"))
    assert known_by(device, claimed_slice).uuid == MIG
    whole = Claim(ChosenGpu("nvidia", 0, T4, "0000:3b:00.0"))
    assert known_by(device, whole).uuid == T4.removeprefix("GPU-")


@needs_compiler
def test_a_slice_is_claimed_by_its_own_name(nvidia: Path, tmp_path: Path) -> None:
    found = claim(nvidia, tmp_path, FAKE_CUDA_MACHINE="mig", FAKE_NVML_ALONE="1")
    assert (found["gpu"]["uuid"], found["gpu"]["is_mig"], found["foreign"]) == (MIG, True, "")


@needs_compiler
def test_an_amd_card(tmp_path: Path) -> None:
    compiled(tmp_path, "hip", "rsmi")
    found = claim(tmp_path, tmp_path, lock=True, kind="rocm")
    assert (found["gpu"]["vendor"], found["gpu"]["pci_address"]) == ("amd", "0000:c1:00.0")
    assert found["facts"]["sm_mhz"] == 1500
    assert found["told"] == ["warning: clocks are not locked: kmrun locks the clocks of NVIDIA's GPUs only\n"]


@pytest.mark.parametrize("device", ["cpu", "auto"])
def test_a_cpu_is_never_claimed(tmp_path: Path, device: str) -> None:
    told: list[str] = []
    with claimed(device, "cpu", lock_clocks=True, tell=told.append, folder=tmp_path) as claim:
        assert claim == Claim(clock=HeldClock(None, "only a GPU's clock can be held"))
    assert told == ["warning: clocks are not locked: only a GPU's clock can be held\n"]
    assert list(tmp_path.iterdir()) == []


WAITING = """
import pathlib, sys
from kmrun.device.claim import claimed
def tell(text):
    print(text, end="", flush=True)
with claimed("auto", "cuda", tell=tell, wait_s={wait}, folder=pathlib.Path({folder!r})):
    print("mine", flush=True)
"""


@needs_compiler
def test_a_second_run_waits_and_says_for_whom(nvidia: Path, tmp_path: Path) -> None:
    words = [sys.executable, "-c", WAITING.format(wait=60.0, folder=str(tmp_path))]
    environment = {**os.environ, "LD_LIBRARY_PATH": str(nvidia)}
    with DeviceLock(T4, tmp_path) as holder:
        assert holder is None
        second = subprocess.Popen(words, env=environment, text=True, stdout=subprocess.PIPE)
        assert second.stdout is not None
        pid = os.getpid()
        told = f"waiting for process {pid}, which runs kmrun on this GPU, for at most 60 s\n"
        assert second.stdout.readline() == told
    assert second.stdout.readline() == "mine\n"
    assert second.wait(30) == 0
    second.stdout.close()


@needs_compiler
def test_a_run_that_does_not_end_is_waited_for_no_longer_than_said(nvidia: Path, tmp_path: Path) -> None:
    with DeviceLock(T4, tmp_path):
        done = run(nvidia, ["-c", WAITING.format(wait=0.0, folder=str(tmp_path))])
    assert done.returncode == 1
    assert "EnvironmentLacks: process " in done.stderr
    assert "runs kmrun on this GPU and has not ended within 0 s" in done.stderr


HELD = """
import os, pathlib, signal, sys, time
from kmrun.cli.interrupts import interrupt_once
from kmrun.device.claim import claimed
from kmrun.device.nvml import Nvml
def clock():
    with Nvml() as nvml:
        return nvml.device({uuid!r}).read(0.0).sm_mhz
interrupt_once()
try:
    with claimed("auto", "cuda", lock_clocks=True, folder=pathlib.Path({folder!r})):
        print(clock())
        {end}
except BaseException as error:
    print(type(error).__name__, clock())
"""


@needs_compiler
@pytest.mark.parametrize(
    ("end", "error"),
    [
        (f"os.kill(os.getpid(), {int(signal.SIGINT)}); time.sleep(9)", "KeyboardInterrupt"),
        (f"os.kill(os.getpid(), {int(signal.SIGTERM)}); time.sleep(9)", "KeyboardInterrupt"),
        ("raise RuntimeError", "RuntimeError"),
        ("sys.exit(3)", "SystemExit"),
    ],
)
def test_however_a_run_ends_the_clock_is_given_back(
    nvidia: Path, tmp_path: Path, end: str, error: str
) -> None:
    script = HELD.format(uuid=T4, folder=str(tmp_path), end=end)
    done = run(nvidia, ["-c", script], FAKE_NVML_PERMIT="1")
    assert done.stdout.splitlines() == ["1005.0", f"{error} 585.0"], done.stderr


@needs_compiler
@pytest.mark.parametrize(
    ("end", "error"),
    [
        (f"os.kill(os.getpid(), {int(signal.SIGINT)}); time.sleep(9)", "KeyboardInterrupt"),
        ("raise RuntimeError", "RuntimeError"),
    ],
)
def test_a_clock_that_stays_locked_hides_nothing_that_ended_the_run(
    nvidia: Path, tmp_path: Path, end: str, error: str
) -> None:
    script = HELD.format(uuid=T4, folder=str(tmp_path), end=end)
    script = script.replace("lock_clocks=True", "lock_clocks=True, tell=lambda text: print(text, end='')")
    done = run(nvidia, ["-c", script], FAKE_NVML_PERMIT="1", FAKE_NVML_KEEP="1")
    assert done.stdout.splitlines() == [
        "1005.0",
        "error: the card's SM clock could not be given back: Insufficient Permissions",
        "hint: `nvidia-smi --reset-gpu-clocks` does it",
        f"{error} 1005.0",
    ], done.stderr


@needs_compiler
def test_the_gpu_of_torch_s_own_build_is_claimed(tmp_path: Path) -> None:
    compiled(tmp_path, "cuda", "nvml", "hip", "rsmi")
    assert claim(tmp_path, tmp_path, kind="rocm")["gpu"]["vendor"] == "amd"
    assert claim(tmp_path, tmp_path, kind="cuda")["gpu"]["vendor"] == "nvidia"
    assert claim(tmp_path, tmp_path, kind="cpu")["gpu"] is None


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs flock")
def test_locks_lie_where_every_user_looks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, mode in (("private", 0o700), ("loose", 0o777), ("shared", 0o1777), ("later", 0o1777)):
        (tmp_path / name).mkdir()
        (tmp_path / name).chmod(mode)
    names = [str(tmp_path / name) for name in ("missing", "private", "loose", "shared", "later")]
    assert lock_folder(names) == tmp_path / "shared"
    usual = lock_folder()
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    assert lock_folder() == usual
    assert lock_folder(["missing"]) == tmp_path


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs flock")
def test_everybody_may_open_a_lock(tmp_path: Path) -> None:
    before = os.umask(0o077)
    try:
        with DeviceLock("GPU-1", tmp_path) as holder:
            assert holder is None
    finally:
        os.umask(before)
    (made,) = tmp_path.iterdir()
    assert (made.name, made.stat().st_mode & 0o777) == ("kmrun-GPU-1.lock", 0o666)
    made.unlink()
    for make in (os.mkfifo, Path.mkdir):  # a neighbour's jokes: opening a pipe waits for nobody
        make(made)
        with DeviceLock("GPU-1", tmp_path) as holder, DeviceLock("GPU-1", tmp_path) as another:
            assert (holder, another) == (None, 0)
        made.unlink() if not made.is_dir() else made.rmdir()


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs flock")
def test_where_no_lock_can_be_made_the_run_goes_on_and_says_so(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    import fcntl

    gone = DeviceLock("GPU-1", tmp_path / "missing")
    with gone as holder:
        assert (holder, gone.descriptor) == (None, None)
        assert gone.why_not == f"{tmp_path / 'missing'}: No such file or directory"

    def refuse(*_: object) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", refuse)
    without = DeviceLock("GPU-1", tmp_path)
    with without as holder:
        assert (holder, without.why_not) == (None, f"{tmp_path / 'kmrun-GPU-1.lock'}: No locks available")

    def nowhere() -> str:
        raise FileNotFoundError(2, "No usable temporary directory found")

    monkeypatch.setattr(tempfile, "gettempdir", nowhere)
    assert lock_folder(["missing"]) is None
    monkeypatch.setattr(claim_module, "chosen_gpu", lambda *_: ChosenGpu("amd", 0, None, "0000:c1:00.0"))
    monkeypatch.setattr(occupied, "lock_folder", lambda: None)
    told: list[str] = []
    with claimed("cuda", "rocm", tell=told.append) as got:
        assert got.gpu is not None
    start = "warning: another run of kmrun on this GPU would not be seen: no lock: there is no folder"
    assert told[0].startswith(start)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs links")
def test_a_lock_is_never_taken_through_a_link(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("precious")
    (tmp_path / "kmrun-GPU-1.lock").symlink_to(victim)
    with pytest.raises(EnvironmentLacks, match="cannot be opened"), DeviceLock("GPU-1", tmp_path):
        pass
    assert victim.read_text() == "precious"


def test_the_server_of_mps_is_nobody(tmp_path: Path) -> None:
    for pid, name in ((7, "nvidia-cuda-mps-s"), (8, "python")):
        (tmp_path / f"proc/{pid}").mkdir(parents=True)
        (tmp_path / f"proc/{pid}/comm").write_text(name + "\n")
    assert [_is_service(pid, tmp_path) for pid in (7, 8, 9)] == [True, False, False]


def test_many_processes_are_counted() -> None:
    load = Load(10 << 30, 80 << 30, (1, 2, 3, 4))
    assert foreign_load(load).startswith("4 other processes (pids 1, 2, 3) had the card before the run, ")


def test_what_the_environment_says_of_a_claim() -> None:
    gpu = RunDevice("cuda", 0, "Test GPU", 80 << 30)
    cpu = RunDevice("cpu", 0, "Test CPU", 80 << 30)
    locked = Claim(None, "", {"power_limit_w": 700.0, "ecc": True}, "580.1", HeldClock(None))
    assert about(locked, gpu) == {
        **{"driver": "580.1", "power_limit_w": 700.0, "ecc": True, "foreign_load": ""},
        "foreign_load_unknown_because": None,
        **{"clocks_locked": True, "clocks_not_locked_because": None},
    }
    unknown = about(Claim(unknown="NVML hangs"), gpu)
    assert (unknown["foreign_load"], unknown["foreign_load_unknown_because"]) == (None, "NVML hangs")
    assert about(Claim(), cpu) == {}
    because = "only a GPU's clock can be held"
    assert about(locked, cpu) == {"clocks_locked": False, "clocks_not_locked_because": because}
    assert known_by(cpu, locked) == cpu
