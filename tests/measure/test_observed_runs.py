"""Real sides on this machine's CPU, watched: by sensors of our own, by those that it has, and beside a GPU."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from kmrun.core.case import Argument, Case, Implementation, Reference, Timing
from kmrun.core.observed import telemetry_entry
from kmrun.measure.supervisor import RunOptions, Supervisor
from support.fake_drivers import compiled, needs_compiler, run
from support.sensors import drawing

pytest.importorskip("torch")

FOLDER = str(Path(__file__).parent)
ADD = Case(
    id="add",
    kernel="add",
    axes={},
    shown_axes=(),
    device=None,
    folder=FOLDER,
    implementation=Implementation("add", "kernels.py:add"),
    arguments=tuple(Argument(name, "randn", shape=(256, 1024), dtype="fp32") for name in ("x", "y")),
    outputs=None,
    reference=Reference(Implementation("reference", "torch:add")),
    bytes_auto=True,
    timing=Timing(min_time_ms=5, max_time_ms=60, rel_ci=0.5),
)


@pytest.mark.parametrize("isolation", ["paired", "serial"])
def test_a_case_comes_with_what_the_sensors_showed(isolation):
    with Supervisor("cpu", RunOptions(isolation, seed=7, threads=1), sensors=drawing(50.0)) as running:
        running.use_cache_bytes(4 * 2**20)
        seen = running.measure(ADD)
    assert seen.findings == ()
    assert (seen.undecidable, seen.clock) == ("", "sustained")
    found = seen.observed
    assert (found.window.sm_mhz, found.window.temp_c, found.window.source) == (877.0, 66.0, "test")
    assert found.power_w == pytest.approx(50.0, rel=0.05)
    assert found.energy_mj_per_call > 0
    assert found.load is None or found.load.own >= 0
    # From the warm-up to the end of the second in which its power was read.
    assert found.readings[-1].at_s - found.readings[0].at_s > 0.5
    entry = telemetry_entry(found)
    assert len(entry.series.time_s) == len(entry.series.power_w) >= 2
    assert set(entry.series.power_w) == {50.0}


def test_a_kernel_that_ends_its_side_leaves_no_reading_thread():
    broken = replace(ADD, implementation=Implementation("gone", "kernels.py:exits"))
    with Supervisor("cpu", RunOptions(seed=7, threads=1), sensors=drawing(50.0)) as running:
        running.use_cache_bytes(4 * 2**20)
        seen = running.measure(broken)
        assert seen.findings
        assert seen.observed is None
        # The next case is watched again.
        assert running.measure(ADD).observed.window.sm_mhz == 877.0


@needs_compiler
def test_on_the_cpu_of_a_machine_with_a_gpu(tmp_path):
    """torch for CPUs only: the GPU is claimed, since it may be meant, but nothing of it is said of the CPU's run."""
    compiled(tmp_path, "cuda", "nvml")
    log = tmp_path / "log"
    words = "-m kmrun time torch:relu --arg randn[64,64]:fp32 --quick --lock-clocks --json"
    done = run(tmp_path, words.split(), FAKE_NVML_PERMIT="1", FAKE_NVML_LOG=str(log), TMPDIR=str(tmp_path))
    assert (done.returncode, done.stderr) == (0, "")
    document = json.loads(done.stdout)
    assert document["device"]["kind"] == "cpu"
    because = "only a GPU's clock can be held"
    assert document["environment"]["clocks_not_locked_because"] == because
    assert "foreign_load" not in document["environment"]
    (case,) = document["cases"]
    telemetry = case["telemetry"]
    assert (telemetry["source"], telemetry["note"], telemetry["throttle"]) == ("cpu", "", [])
    assert telemetry["samples"] >= 1
    assert case["roof_clk_fraction"] is None
    if Path("/proc/stat").exists():
        assert telemetry["own_cores"] > 0
        assert telemetry["other_cores"] >= 0
        assert telemetry["stolen_cores"] >= 0
    assert log.read_text().splitlines() == ["locked", "given back"]
