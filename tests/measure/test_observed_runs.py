"""Real sides on this machine's CPU, watched: by sensors of our own, by those that it has, and beside a GPU."""

import json
from contextlib import contextmanager
from dataclasses import fields, replace
from pathlib import Path

import pytest

from kmrun.core.case import Argument, Case, Implementation, Reference, Timing
from kmrun.core.measurement import Measurement
from kmrun.core.observed import Observed, telemetry_entry
from kmrun.core.plain import from_plain
from kmrun.core.roofs import roofs_of
from kmrun.core.score import score
from kmrun.core.telemetry import Reading, Telemetry, telemetry
from kmrun.device.claim import Claim
from kmrun.device.occupied import DeviceLock, HeldClock
from kmrun.errors import EnvironmentLacks
from kmrun.measure import supervisor, trial
from kmrun.measure.run_options import RunOptions
from kmrun.measure.supervisor import Supervisor
from kmrun.source.catalogue import load_cards
from support.cases import CEILINGS, GPU, make_case, make_found
from support.fake_drivers import IMPATIENT, compiled, needs_compiler, run
from support.sensors import drawing

pytest.importorskip("torch")

T4 = "GPU-64656667-6869-6a6b-6c6d-6e6f70717273"
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


@pytest.fixture(scope="module")
def drawn():
    """A run whose sensors say 50 W."""
    with Supervisor("cpu", RunOptions(seed=7, threads=1), sensors=drawing(50.0)) as running:
        running.use_cache_bytes(4 * 2**20)
        yield running


def test_a_case_comes_with_what_the_sensors_showed(drawn):
    seen = drawn.measure(ADD)
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


def test_others_on_the_card_are_noted_of_every_case(monkeypatch):
    monkeypatch.setattr(Supervisor, "foreign", "another process had the card before the run")
    with Supervisor("cpu", RunOptions(seed=7, threads=1, quick=True)) as running:
        running.use_cache_bytes(4 * 2**20)
        seen = running.measure(ADD)
    assert seen.undecidable == "another process had the card before the run"
    assert (seen.findings, seen.correct) == ((), True)
    # By the sensors that this machine's CPU has, whichever those are.
    assert seen.observed.window.source == "cpu"


def test_a_kernel_that_ends_its_side_leaves_no_reading_thread(drawn):
    broken = replace(ADD, implementation=Implementation("gone", "kernels.py:exits"))
    seen = drawn.measure(broken)
    assert seen.findings
    assert seen.observed is None
    # The next case is watched again.
    assert drawn.measure(ADD).observed.window.sm_mhz == 877.0


WATCHED = (
    IMPATIENT
    + """
import json, time
from kmrun.core.measurement import RunDevice
from kmrun.core.plain import to_plain
from kmrun.measure.watch import Watch
sampler.STALLED_S = 0.5
t4 = RunDevice("cuda", 0, "Tesla T4", 15655829504, "7.5", uuid="64656667-6869-6a6b-6c6d-6e6f70717273")
with Watch(t4, lambda: []) as watch:
    with watch.stretch() as seen:
        spans = []
        for _ in range(20):
            begin = time.perf_counter_ns()
            time.sleep(0.06)
            spans.append((begin, time.perf_counter_ns()))
    survived = watch.survivors(spans, seen.begin_s)
    power = watch.reads_power
telemetry = to_plain(seen.telemetry)
print(json.dumps({**telemetry, "kept": survived.kept, "sentence": survived.sentence, "power": power}))
"""
)


@pytest.fixture(scope="module")
def nvidia(tmp_path_factory):
    return compiled(tmp_path_factory.mktemp("nvidia"), "nvml")


def watched(folder, **variables):
    done = run(folder, ["-c", WATCHED], **variables)
    assert (done.returncode, done.stderr) == (0, "")
    return json.loads(done.stdout)


@needs_compiler
def test_the_clock_that_nvml_told_is_the_one_that_is_scored(nvidia):
    """The T4 of the README: at 877 of 1590 MHz, 52.7 % of its fp32 roof are 95.5 % of what it could do."""
    seen = watched(nvidia, FAKE_NVML_SM="877", FAKE_NVML_REASONS="4")
    assert (seen["sm_mhz"], seen["sm_mhz_max"], seen["throttle"]) == (877, 1590, ["sw_power_cap"])
    assert (all(seen["kept"]), seen["sentence"], seen["power"]) == (True, "", True)
    assert seen["power_w"] == pytest.approx(50, rel=0.1)  # by its energy counter
    case = make_case(flops=8.1408e12, bytes=1000)
    names = {field.name for field in fields(Telemetry)}
    observed = Observed(from_plain(Telemetry, {name: seen[name] for name in names}))
    assert (observed.window.sm_hz, observed.window.mem_mhz, observed.window.mem_mhz_max) == (
        877e6,
        5000,
        5001,
    )
    roofs = roofs_of(case, load_cards().find("t4"), 1.59e9, observed.window.sm_hz)
    found = make_found(samples_ns=(1e9 / 0.527,) * 20, rivals=(), bytes=None, observed=observed)
    scored = score(case, found, GPU, CEILINGS, roofs)
    assert (scored.roof_fraction, scored.roof_clk_fraction) == pytest.approx((0.527, 0.955), abs=1e-3)


@needs_compiler
def test_a_slowdown_that_nvml_tells_of_drops_samples(nvidia):
    # The reasons are asked for once a reading: the newer name for them is not known to this library.
    seen = watched(nvidia, FAKE_NVML_HOT="6", FAKE_NVML_REASONS="0")
    assert seen["kept"][0] is True
    assert seen["kept"][-1] is False
    assert seen["sentence"].endswith("of 20 samples dropped: sw_thermal_slowdown")


@needs_compiler
@pytest.mark.parametrize(
    ("variables", "note"),
    [
        ({"FAKE_NVML_MODE": "lost", "FAKE_NVML_AFTER": "3"}, "GPU is lost"),
        ({"FAKE_NVML_MODE": "hang", "FAKE_NVML_AFTER": "3"}, "nvml hangs: no reading for"),
        ({"FAKE_NVML_MODE": "hang_init"}, "nvml did not answer within 0.5 s"),
        ({"FAKE_NVML_MODE": "stranger"}, "NVML does not know this device"),
    ],
)
def test_nvml_that_fails_on_the_way_drops_no_sample(nvidia, variables, note):
    seen = watched(nvidia, **variables)
    assert all(seen["kept"])
    assert seen["note"].startswith(note)
    assert (seen["sm_mhz"], seen["power_w"], seen["energy_j"]) == (None, None, None)


@needs_compiler
def test_a_mask_of_reasons_that_is_full_is_none(nvidia):
    seen = watched(nvidia, FAKE_NVML_REASONS="-1")
    assert (seen["throttle"], all(seen["kept"])) == (None, True)


def test_sensors_that_crashed_are_not_read(monkeypatch):
    @contextmanager
    def crashed(*_, **__):
        yield Claim(unreadable="NVML crashed when it was asked (SIGSEGV)")

    monkeypatch.setattr(supervisor, "claimed", crashed)
    with Supervisor("cpu", RunOptions(seed=7, threads=1)) as running:
        with running.watch.stretch() as seen:
            pass
        assert (seen.telemetry.note, seen.telemetry.readings) == (
            "NVML crashed when it was asked (SIGSEGV)",
            (),
        )


@needs_compiler
def test_on_the_cpu_of_a_machine_with_a_gpu(tmp_path):
    """torch for CPUs only, which runs on none of the driver's GPUs: none is waited for, locked or spoken of."""
    compiled(tmp_path, "cuda", "nvml")
    log = tmp_path / "log"
    words = "-m kmrun time torch:relu --arg randn[64,64]:fp32 --quick --lock-clocks --json"
    variables = {"FAKE_NVML_PERMIT": "1", "FAKE_NVML_LOG": str(log)}
    with DeviceLock(T4) as holder:  # another run has that GPU for as long as it likes
        assert holder is None
        done = run(tmp_path, words.split(), limit_s=200, **variables)
    told = "warning: clocks are not locked: only a GPU's clock can be held\n"
    assert (done.returncode, done.stderr) == (0, told)
    document = json.loads(done.stdout)
    assert document["device"]["kind"] == "cpu"
    because = "only a GPU's clock can be held"
    assert document["environment"]["clocks_not_locked_because"] == because
    assert "foreign_load" not in document["environment"]
    (case,) = document["cases"]
    telemetry = case["telemetry"]
    assert (telemetry["source"], telemetry["note"], telemetry["throttle"]) == ("cpu", "", None)
    assert telemetry["samples"] >= 1
    assert case["roof_clk_fraction"] is None
    if Path("/proc/stat").exists():
        assert telemetry["own_cores"] > 0
        assert telemetry["other_cores"] >= 0
        assert telemetry["stolen_cores"] >= 0
    assert not log.exists()


@pytest.mark.parametrize(
    ("late", "error"),
    [("_free_bytes", KeyboardInterrupt), ("_free_bytes", EnvironmentLacks), ("key", OSError)],
)
def test_whatever_fails_while_it_opens_gives_the_gpu_back(monkeypatch, late, error):
    left = []

    @contextmanager
    def watched_claim(*_, **__):
        try:
            yield Claim()
        except BaseException as leaving:
            left.append(type(leaving))
            raise

    def fails(*_):
        raise error("late")

    monkeypatch.setattr(supervisor, "claimed", watched_claim)
    if late == "key":
        monkeypatch.setattr(supervisor, "ceiling_cache", fails)
    else:
        monkeypatch.setattr(Supervisor, late, fails)
    opening = Supervisor("cpu", RunOptions(seed=7, threads=1))
    with pytest.raises(error), opening:
        pass
    assert left == [error]
    assert (opening._judge, opening._launcher, opening._arenas) == (None, None, None)


def test_a_clock_that_a_run_shows_not_to_hold_is_no_locked_one(monkeypatch):
    monkeypatch.setattr(Supervisor, "on_cpu", False)
    monkeypatch.setattr(supervisor, "why_skipped", lambda *_: None)
    told = []
    with Supervisor("cpu", RunOptions(seed=7, threads=1), tell=told.append) as running:
        running._claim = Claim(clock=HeldClock(None))
        running.environment["clocks_locked"] = True
        assert running.holds_clock

        class Trial:
            def __init__(self, run, case, *_):
                self.run, self.case = run, case

            def measure(self, begin):
                self.run.watch.verify_clock(telemetry([Reading(0.0, 1590.0)], 0.0, 0.1, sm_mhz_max=1590.0))
                return Measurement(self.case.id)

        monkeypatch.setattr(trial, "Trial", Trial)
        for _ in range(2):
            running.measure(ADD)
        assert not running.holds_clock
        because = "the card did not hold it: it was the card's highest, 1590 MHz, under load"
        assert running.environment["clocks_locked"] is False
        assert running.environment["clocks_not_locked_because"] == because
        assert told == [f"warning: the clock was locked, but {because}\n"]


def test_what_ends_a_run_is_known_to_the_claim(monkeypatch):
    left = []

    @contextmanager
    def watched_claim(device, kind, **_):
        assert (device, kind) == ("auto", "cpu")
        try:
            yield Claim()
        except BaseException as leaving:
            left.append((type(leaving), opened._launcher))
            raise

    monkeypatch.setattr(supervisor, "claimed", watched_claim)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    with pytest.raises(KeyboardInterrupt), Supervisor("auto", RunOptions(seed=7, threads=1)) as opened:
        raise KeyboardInterrupt
    # The sides are gone by then: a run that waits for the GPU finds it free.
    assert left == [(KeyboardInterrupt, None)]
