import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Self

import pytest

from kmrun.cli import ceiling
from kmrun.core.cpu_load import CpuLoad
from kmrun.core.measurement import Bandwidth, Ceilings, MatmulRate, RunDevice
from kmrun.core.telemetry import Telemetry
from kmrun.measure.delivering import timeout_s
from kmrun.measure.watch import Stretch

H100 = RunDevice(
    kind="cuda",
    index=0,
    name="NVIDIA H100 80GB HBM3",
    memory_bytes=84929347584,
    compute_capability="9.0",
    max_clock_hz=1.98e9,
    sm_count=132,
    cache_bytes=50 << 20,
)
SLICE = RunDevice(
    kind="cuda",
    index=0,
    name="NVIDIA A100-SXM4-40GB MIG 1g.5gb",
    memory_bytes=5100273664,
    compute_capability="8.0",
    sm_count=14,
)
FOUND = Ceilings(
    bandwidths=(Bandwidth("copy", 10**9, 2.93e12), Bandwidth("read", 10**9, 3.05e12)),
    matmuls=(
        MatmulRate("bf16", 8192, 742e12),
        MatmulRate("fp32", 4096, 51.9e12),
        MatmulRate("tf32", 8192, 380e12),
    ),
    cache_bandwidths=(Bandwidth("read", 1 << 20, 5e12),),
    wall_ns=2.9e9,
)

MEANWHILE = Telemetry(
    "nvml", 2.9, sm_mhz=1410, sm_mhz_max=1980, power_w=612, temp_c=66, throttle=("sw_power_cap",)
)


class Measuring:
    """Hands back prepared ceilings, and notes what it was asked."""

    def __init__(self, device: RunDevice, found: Ceilings = FOUND) -> None:
        self.device, self.found = device, found
        self.on_cpu = device.kind == "cpu"
        self.environment = {"torch": "2.13.0", "cuda": "13.0", "hip": None, "isolation": "paired"}
        self.asked: list[Any] = []
        self.load: CpuLoad | None = None
        self.watch = self

    @contextmanager
    def stretch(self) -> Iterator[Stretch]:
        yield Stretch(0.0, MEANWHILE, self.load)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None: ...

    def use_cache_bytes(self, cache_bytes: int) -> None:
        self.asked.append(cache_bytes)

    def delivered(self, *wanted: object) -> Ceilings:
        self.asked.append(wanted)
        return self.found


@pytest.fixture
def measuring(monkeypatch):
    def use(device: RunDevice, found: Ceilings = FOUND) -> Measuring:
        fake = Measuring(device, found)
        monkeypatch.setattr(ceiling, "make_supervisor", lambda name: fake)
        return fake

    return use


def test_a_card_against_its_sheet(kmrun, measuring) -> None:
    measuring(H100)
    ran = kmrun("ceiling", "--dtype", "bf16", "--dtype", "fp32", "--dtype", "tf32", "--dtype", "fp8")
    assert (ran.code, ran.err) == (2, "error: --dtype fp8: no such dtype\n" + ran.err.partition("\n")[2])
    ran = kmrun("ceiling", "--dtype", "bf16", "--dtype", "fp32", "--dtype", "tf32", "--dtype", "fp8_e4m3")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.splitlines() == [
        "ceiling     NVIDIA H100 80GB HBM3 (h100-sxm) · torch 2.13.0",
        "",
        "  copy             1.00 GB     2.93 TB/s   87 % of 3.35 TB/s",
        "  read             1.00 GB     3.05 TB/s   91 % of 3.35 TB/s",
        "  bf16 matmul       n 8192   742 TFLOP/s   75 % of 989 TFLOP/s",
        "  fp32 matmul       n 4096  51.9 TFLOP/s   78 % of 66.9 TFLOP/s",
        "  tf32 matmul       n 8192   380 TFLOP/s   77 % of 495 TFLOP/s",
        "",
        "  in cache  1 MiB 5.00 TB/s",
        "",
        "  no matmul here in fp8_e4m3",
        "",
        "  held meanwhile: 1410 of 1980 MHz · 612 W · 66 C · power cap",
        "  Use this as the honest 100 %: the best of repeated runs, measured now in 2.9 s.",
    ]


def test_the_document(kmrun, measuring) -> None:
    fake = measuring(H100)
    ran = kmrun("ceiling", "--json", "--mb", "512", "--matmul-n", "4096")
    found = json.loads(ran.out)
    assert found["device"]["card"] == "h100-sxm"
    assert found["bandwidths"][1] == {
        "kind": "read",
        "bytes": 10**9,
        "gb_per_s": pytest.approx(3050),
        "theoretical_gb_per_s": pytest.approx(3352, rel=1e-3),
        "fraction": pytest.approx(0.91, abs=0.005),
    }
    assert [entry["dtype"] for entry in found["matmuls"]] == ["bf16", "fp32", "tf32"]
    assert found["missing_dtypes"] == ["fp16", "fp8_e4m3", "int8"]
    assert (found["telemetry"]["sm_mhz"], found["telemetry"]["throttle"]) == (1410, ["sw_power_cap"])
    cache, wanted = fake.asked
    assert cache == 50 << 20
    assert wanted == (ceiling.ON_GPU, ("copy", "scale", "add", "triad", "read"), 3e9, 512_000_000, (4096,))


def test_a_slice_has_no_published_roof(kmrun, measuring) -> None:
    measuring(SLICE)
    ran = kmrun("ceiling")
    assert ran.code == 0
    assert " % of " not in ran.out
    assert "A MIG slice has no published roof: no share of a theoretical figure is shown." in ran.out


def test_the_user_may_say_which_card(kmrun, measuring) -> None:
    measuring(RunDevice("cuda", 0, "NVIDIA Unheard Of", 8 << 30, "9.0"))
    assert "No card of the database fits" in kmrun("ceiling").out
    assert "(h100-sxm)" in kmrun("ceiling", "--card", "h100-sxm").out


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--device", "tpu"), "error: --device tpu: no such device"),
        (("--dtype", "floaty"), "error: --dtype floaty: no such dtype"),
        (("--mb", "-1"), "error: --mb must be a positive number of MB, not -1"),
        (("--mb", "1e-9"), "error: --mb 1e-09: too small to be measured\nhint: at least 0.1, in MB"),
        (("--card", "no-such-card"), "error: unknown card 'no-such-card'"),
    ],
)
def test_options_that_cannot_be_meant(kmrun, measuring, words: tuple[str, ...], sentence: str) -> None:
    fake = measuring(H100)
    ran = kmrun("ceiling", *words)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith(sentence)
    assert fake.asked == []


def run(*words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "kmrun", "ceiling", "--device", "cpu", *words]
    return subprocess.run(command, text=True, capture_output=True, check=False)


def test_this_machine_is_really_measured() -> None:
    done = run("--mb", "16", "--matmul-n", "128", "--dtype", "fp32", "--dtype", "tf32", "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert [entry["kind"] for entry in found["bandwidths"]] == ["copy", "scale", "add", "triad", "read"]
    assert all(entry["gb_per_s"] > 0 and entry["bytes"] == 16_000_000 for entry in found["bandwidths"])
    assert [(entry["dtype"], entry["n"]) for entry in found["matmuls"]] == [("fp32", 128)]
    assert found["matmuls"][0]["tflop_per_s"] > 0
    # No CPU multiplies in TF32: no figure, never fp32's under another name.
    assert found["missing_dtypes"] == ["tf32"]
    assert found["device"]["kind"] == "cpu"


def test_a_dtype_that_torch_cannot_multiply_has_no_figure() -> None:
    unknown = ("int4", "uint4", "fp6_e3m2", "bool")
    done = run(
        "--mb", "1", "--matmul-n", "64", "--json", *(word for name in unknown for word in ("--dtype", name))
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert (found["matmuls"], found["missing_dtypes"]) == ([], list(unknown))


def test_what_does_not_fit_is_a_sentence() -> None:
    done = run("--mb", "1e9")
    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr.startswith("error: the ceilings need 1000 TB of ")
    assert done.stderr.endswith("hint: a smaller --mb or --matmul-n\n")


def test_memory_that_is_refused_is_a_sentence() -> None:
    command = "ceiling --device cpu --mb 8000 --matmul-n 32 --dtype fp32"
    words = f"ulimit -v 7400000; exec {sys.executable} -m kmrun {command}"
    done = subprocess.run(["sh", "-c", words], text=True, capture_output=True, check=False)
    if "that are free" in done.stderr:
        pytest.skip("this machine has less memory than is asked for")
    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr.startswith("error: the ceilings cannot be measured: the system refuses the memory")
    assert "Traceback" not in done.stderr


CPU = RunDevice("cpu", None, "A CPU", 16 << 30, threads=8, cache_bytes=32 << 20)
ON_CPU = Ceilings((Bandwidth("copy", 10**9, 30e9), Bandwidth("read", 10**9, 40e9)), wall_ns=2e9)


def test_a_set_in_the_cache_is_not_the_memory_s_bandwidth(kmrun, measuring) -> None:
    measuring(H100, replace(FOUND, bandwidths=(Bandwidth("copy", 99 << 20, 9e12),)))
    ran = kmrun("ceiling")
    assert "honest 100 %" not in ran.out
    assert "  copy              104 MB     9.00 TB/s" in ran.out.splitlines()
    assert (
        "These bandwidths are the cache's, and no 100 % of the memory: 104 MB is less than twice" in ran.out
    )
    found = json.loads(kmrun("ceiling", "--json").out)
    assert (found["in_cache"], found["bandwidths"][0]["fraction"]) == (True, None)
    measuring(H100, replace(FOUND, bandwidths=(Bandwidth("copy", 100 << 20, 3e12),)))
    assert "Use this as the honest 100 %" in kmrun("ceiling").out


def test_what_others_used_of_a_cpu_stands_beside_its_figures(kmrun, measuring) -> None:
    fake = measuring(CPU, ON_CPU)
    fake.load = CpuLoad(2.0, own=7.5, others=0.05, steal=0.0)
    ran = kmrun("ceiling")
    assert "  load by others meanwhile: 0.05 cores" in ran.out.splitlines()
    assert "Use this as the honest 100 %" in ran.out
    fake.load = CpuLoad(2.0, own=6.0, others=1.5, steal=0.25)
    ran = kmrun("ceiling")
    assert "  load by others meanwhile: 1.50 cores, 0.25 stolen by the host" in ran.out.splitlines()
    assert "The figures are low, and not the honest 100 %" in ran.out
    found = json.loads(kmrun("ceiling", "--json").out)
    assert found["load"] == {"own_cores": 6.0, "other_cores": 1.5, "stolen_cores": 0.25}
    assert found["disturbed"] is True
    fake.load = CpuLoad(2.0, own=7.5, others=0.0, steal=0.5)
    assert json.loads(kmrun("ceiling", "--json").out)["disturbed"] is True


def test_a_narrow_terminal(kmrun, measuring, monkeypatch) -> None:
    monkeypatch.setattr("kmrun.cli.terminal.terminal_width", lambda: 40)
    measuring(H100)
    lines = kmrun("ceiling").out.splitlines()
    assert max(map(len, lines)) <= 40
    assert "  Use this as the honest 100 %: the best" in lines


def test_the_time_out_follows_what_is_asked_for() -> None:
    usual = timeout_s(0, 5, (), 5, on_cpu=True)
    assert usual == 120
    # 17 GB took 112 s on a machine of two cores that others used.
    assert timeout_s(17 * 10**9, 5, (), 5, on_cpu=True) > 5 * 112
    assert timeout_s(17 * 10**9, 5, (), 5, on_cpu=False) < 240
    assert timeout_s(0, 5, (8192,), 2, on_cpu=True) > timeout_s(0, 5, (8192,), 1, on_cpu=True) > usual


def test_others_on_the_card_are_told(kmrun, measuring) -> None:
    fake = measuring(H100)
    fake.environment["foreign_load"] = "another process (pid 4242) had the card before the run"
    ran = kmrun("ceiling")
    assert "  Too low, perhaps: another process (pid 4242) had the card before the run." in ran.out
