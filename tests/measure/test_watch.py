"""The machine is watched while a case is timed: what counts, what is dropped, what is known of power."""

import itertools
import time
from dataclasses import replace
from typing import Any

import pytest

from kmrun.core.case import Timing
from kmrun.core.clocks import PAUSE_S
from kmrun.core.measurement import RunDevice
from kmrun.core.telemetry import Reading, telemetry
from kmrun.device.sampler import NoSensors, Source, clock
from kmrun.measure import observing, watch
from kmrun.measure.asking import Over
from kmrun.measure.watch import Watch, source_of
from support.cases import CPU, GPU, make_case
from support.sensors import drawing, scripted

ALL = [float(number) for number in range(1, 11)]
HOT = ("sw_power_cap", "hw_thermal_slowdown")


@pytest.fixture(autouse=True)
def quick_pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Pauses are noted, and cost nothing."""
    slept: list[float] = []
    monkeypatch.setattr(watch, "time", type("Clock", (), {"sleep": slept.append}))
    return slept


class Run:
    """As much of a supervisor as timing a kernel alone asks for."""

    def __init__(self, seen: Watch, device: RunDevice = GPU, quick: bool = False) -> None:
        self.watch, self.device, self.on_cpu, self.holds_clock = seen, device, device.kind == "cpu", False
        self.options = type("Options", (), {"quick": quick})


class Trial:
    """As much of a trial; its kernel takes a window of ten samples, each of them 30 ms long."""

    def __init__(self, run: Run, **case: Any) -> None:
        self.run, self.case, self.deadline = run, make_case(**case), 0.0
        self.left_s = self.case.case_timeout_s
        self.known: dict[str, Any] = {"samples_ns": (40e6,) * 5}
        self.labels: list[str] = []
        self.findings: list[Any] = []
        self.asked: list[str] = []
        self.calls, self.hurried = 0, False

    def kernel(self, op: str, **arguments: Any) -> Any:
        self.asked.append(op)
        if op == "burst":
            self.calls += arguments["calls"]
            time.sleep(0.2)
            return 0.2e9
        spans = []
        for _ in range(10):
            begin = time.perf_counter_ns()
            time.sleep(0.03)
            spans.append((begin, time.perf_counter_ns()))
        return {"samples_ns": ALL, "spans_ns": spans, "kept": 2}

    def progress(self, text: str) -> None: ...

    def label(self, remark: str) -> None:
        self.labels.append(remark)

    def know(self, **facts: Any) -> None:
        self.known |= facts


def taken(
    source: Source, device: RunDevice = GPU, quick: bool = True, **case: Any
) -> tuple[Trial, dict[str, Any]]:
    with Watch(device, lambda: [], source) as seen:
        trial = Trial(Run(seen, device, quick), **case)
        begun = clock()
        facts = observing.take_window(trial, 1e6) | {"begun_s": begun}  # type: ignore[arg-type]
        observing.note_slowdown(trial, facts)  # type: ignore[arg-type]
        trial.known["observed"] = observing.observed(trial, facts)  # type: ignore[arg-type]
    return trial, facts


def test_a_power_cap_is_how_a_card_works() -> None:
    trial, facts = taken(drawing(50.0), quick=False)
    assert facts["samples_ns"] == ALL
    assert (trial.labels, trial.findings, trial.run.watch.pause_s) == ([], [], 0.0)
    found = trial.known["observed"]
    assert (found.window.sm_mhz, found.window.throttle) == (877.0, ("sw_power_cap",))
    assert found.window.power_w is None  # of a window under a second it would be of something else
    assert found.power_w == pytest.approx(50.0, rel=0.01)
    # By the energy counter, over nothing but the calls.
    seconds = trial.calls * found.energy_mj_per_call / 1e3 / 50.0
    assert 1.05 <= seconds < 3
    assert trial.asked[0] == "window"
    assert set(trial.asked[1:]) == {"burst"}
    assert len(found.readings) >= 10


def test_no_power_is_read_where_there_is_none_or_no_time_for_it() -> None:
    blind = scripted(lambda at_s: Reading(at_s, 877.0))
    assert taken(blind, quick=False)[0].asked == ["window"]
    assert taken(drawing(50.0), quick=False, case_timeout_s=4.0)[0].asked == ["window"]
    assert taken(drawing(50.0), quick=True)[0].asked == ["window"]
    with Watch(GPU, lambda: [], drawing(50.0)) as seen:
        trial = Trial(Run(seen))
        facts = observing.take_window(trial, 1e6) | {"begun_s": 0.0}  # type: ignore[arg-type]
        assert observing.observed(trial, facts, power=False).power_w is None  # type: ignore[arg-type]


def test_samples_that_a_slowdown_touched_are_dropped() -> None:
    # The one before the window, which speaks until the next.
    hot = itertools.chain([HOT], itertools.repeat(()))
    trial, facts = taken(scripted(lambda at_s: Reading(at_s, 900.0, throttle=next(hot))))
    assert 5 <= len(facts["samples_ns"]) < 10
    assert facts["samples_ns"][-1] == 10.0
    assert facts["slowdown"].endswith("samples dropped: hw_thermal_slowdown")
    assert (trial.labels, trial.findings) == (["card slowed down"], [])
    assert "undecidable" not in trial.known
    assert trial.run.watch.pause_s == PAUSE_S


def test_a_card_that_names_no_reasons_is_held_against_the_run_s_own_clock() -> None:
    clocks = {"now": 2000.0}
    with Watch(GPU, lambda: [], scripted(lambda at_s: Reading(at_s, clocks["now"]))) as seen:
        trial = Trial(Run(seen))
        for _ in range(2):
            assert observing.take_window(trial, 1e6)["slowdown"] == ""  # type: ignore[arg-type]
        clocks["now"] = 1200.0
        facts = observing.take_window(trial, 1e6)  # type: ignore[arg-type]
    assert facts["spoiled"]
    assert "clock far below the run's own" in facts["slowdown"]


def test_a_card_that_stays_hot_decides_nothing(quick_pauses: list[float]) -> None:
    trial, facts = taken(scripted(lambda at_s: Reading(at_s, 900.0, throttle=HOT)))
    assert trial.asked == ["window"] * watch.TRIES
    assert quick_pauses == [PAUSE_S, 2 * PAUSE_S]  # it grows
    assert len(facts["samples_ns"]) == 10
    (finding,) = trial.findings
    assert (finding.code, finding.outcome, finding.fault) == ("slowed_down", "inconclusive", "undecided")
    said = "the card was slowed down in 3 windows: 10 of 10 samples dropped: hw_thermal_slowdown"
    assert finding.sentence == trial.known["undecidable"] == said


def test_a_card_that_cools_down_counts_again(quick_pauses: list[float]) -> None:
    windows = itertools.count()
    hot = {"now": True}

    class Cooling(Trial):
        def kernel(self, op: str, **arguments: Any) -> Any:
            hot["now"] = next(windows) == 0
            return super().kernel(op, **arguments)

    source = scripted(lambda at_s: Reading(at_s, 900.0, throttle=HOT if hot["now"] else ()))
    with Watch(GPU, lambda: [], source) as seen:
        trial = Cooling(Run(seen))
        facts = observing.take_window(trial, 1e6)  # type: ignore[arg-type]
    assert trial.asked[0] == "window"
    assert 2 <= len(trial.asked) <= 3
    assert len(facts["samples_ns"]) >= 5
    assert facts["spoiled"] is False
    assert quick_pauses[0] == PAUSE_S


def test_a_cpu_s_clock_drops_nothing() -> None:
    clocks = itertools.cycle([800.0, 3500.0])
    trial, facts = taken(scripted(lambda at_s: Reading(at_s, next(clocks))), CPU)
    assert len(facts["samples_ns"]) == 10
    assert trial.labels == []


@pytest.mark.parametrize("error", ["NVML hangs", "GPU is lost"])
def test_sensors_that_fail_on_the_way_cost_the_readings_and_nothing_else(error: str) -> None:
    number = itertools.count()

    def read(at_s: float) -> Reading:
        if next(number) >= 2:
            raise NoSensors(error)
        return Reading(at_s, 877.0)

    trial, facts = taken(scripted(read))
    assert len(facts["samples_ns"]) == 10
    assert trial.known["observed"].window.note == error
    assert trial.known["observed"].window.sm_mhz == 877.0


def test_sensors_that_cannot_be_opened_say_why() -> None:
    trial, _ = taken(source_of(GPU))  # there is none here, or it knows no GPU-1
    window = trial.known["observed"].window
    assert (window.sm_mhz, window.source) == (None, None)
    assert window.note


@pytest.mark.parametrize(
    ("device", "name"),
    [(CPU, "cpu"), (GPU, "nvml"), (RunDevice("rocm", 0, "MI300X", 1, pci_address="0000:c1:00.0"), "smi")],
)
def test_which_sensors_a_device_has(device: RunDevice, name: str) -> None:
    assert source_of(device).name == name


def test_a_clock_that_was_asked_to_be_locked_and_is_not_is_told() -> None:
    trial, _ = taken(drawing(50.0), timing=Timing(clock="locked"))
    assert observing.clock_mode(trial) == "sustained"  # type: ignore[arg-type]
    assert trial.labels == ["clock not locked"]
    trial.labels.clear()
    trial.run.holds_clock = True
    assert observing.clock_mode(trial) == "locked"  # type: ignore[arg-type]
    assert trial.labels == []


def test_a_clock_that_somebody_else_set_is_told() -> None:
    """It is as steady as a locked one, and below the card's highest: by the reason only it is known."""

    def at(at_s: float) -> Reading:
        return Reading(at_s, 585.0, throttle=("application_clocks",))

    trial, _ = taken(scripted(at))
    assert observing.clock_mode(trial) == "sustained"  # type: ignore[arg-type]
    assert trial.labels == ["clock limited"]
    trial.labels.clear()
    trial.run.holds_clock = True  # by this run
    assert observing.clock_mode(trial) == "locked"  # type: ignore[arg-type]
    assert trial.labels == []


@pytest.mark.parametrize(
    ("clocks", "why"),
    [
        ([1005.0, 900.0], "it moved between 9"),  # against the median, which may lie between both
        ([1590.0, 1590.0], "it was the card's highest, 1590 MHz, under load"),
    ],
)
def test_a_locked_clock_that_load_shows_not_to_hold_is_told(clocks: list[float], why: str) -> None:
    cycle = itertools.cycle(clocks)
    trial, _ = taken(scripted(lambda at_s: Reading(at_s, next(cycle))), timing=Timing(clock="locked"))
    trial.run.holds_clock = True
    assert observing.clock_mode(trial) == "sustained"  # type: ignore[arg-type]
    assert trial.labels == ["clock not held"]
    assert trial.run.watch.clock_lost.startswith(why)


def test_a_locked_clock_holds_from_window_to_window() -> None:
    trial, _ = taken(scripted(lambda at_s: Reading(at_s, 1005.0)))
    trial.run.holds_clock = True
    seen = trial.run.watch
    assert (observing.clock_mode(trial), seen.clock_lost) == ("locked", "")  # type: ignore[arg-type]
    other = replace(trial.known["observed"], window=telemetry([Reading(0.1, 1200.0)], 0.0, 0.2))
    trial.known["observed"] = other
    assert observing.clock_mode(trial) == "sustained"  # type: ignore[arg-type]
    assert seen.clock_lost == "it moved between 1005 and 1200 MHz"


@pytest.mark.parametrize(
    "reading", [Reading(0.0), Reading(0.0, 300.0, throttle=("idle",)), Reading(0.0, 900.0, throttle=HOT)]
)
def test_a_locked_clock_that_no_reading_under_load_tells_of_is_unverified(reading: Reading) -> None:
    trial, _ = taken(scripted(lambda at_s: replace(reading, at_s=at_s)))
    trial.run.holds_clock = True
    trial.labels.clear()
    assert observing.clock_mode(trial) == "locked"  # type: ignore[arg-type]
    assert (trial.labels, trial.run.watch.clock_lost) == (["clock not verified"], "")


@pytest.mark.parametrize(("device", "blocks"), [(GPU, watch.TRIES), (CPU, 1)])
def test_a_hot_block_is_taken_again_but_not_for_ever(device: RunDevice, blocks: int) -> None:
    taken_blocks = []

    def block() -> int:
        time.sleep(0.15)
        taken_blocks.append(len(taken_blocks))
        return taken_blocks[-1]

    source = scripted(lambda at_s: Reading(at_s, 900.0, throttle=HOT))
    with Watch(device, lambda: [], source) as seen:
        assert seen.steady(block) == blocks - 1


def test_a_block_of_a_cool_card_is_taken_once(quick_pauses: list[float]) -> None:
    with Watch(GPU, lambda: [], drawing(50.0)) as seen:
        assert seen.steady(lambda: time.sleep(0.15) or 7) == 7
    assert quick_pauses == []


def test_what_a_dead_sensor_said_last_slows_nothing_down(quick_pauses: list[float]) -> None:
    number = itertools.count()

    def read(at_s: float) -> Reading:
        if next(number) >= 1:
            raise NoSensors("GPU is lost")
        return Reading(at_s, 900.0, power_w=50.0, throttle=HOT)

    with Watch(GPU, lambda: [], scripted(read)) as seen:
        begin = clock()
        assert seen.slowed_since(begin)  # just now: the card is hot
        later = begin + watch.FRESH_S + 0.1
        assert not seen.slowed_since(later)
        span = [(int((begin + 2) * 1e9), int((begin + 2.1) * 1e9))]
        assert seen.survivors(span, begin).kept == (True,)
        time.sleep(watch.REACH_S + 0.05)
        assert not seen.reads_power
        assert seen.steady(lambda: 7) == 7
    assert quick_pauses == []


def test_an_end_inside_the_window_ends_the_watching_too() -> None:
    class Broken(Trial):
        def kernel(self, op: str, **arguments: Any) -> Any:
            raise Over

    with Watch(GPU, lambda: [], drawing(50.0)) as seen, pytest.raises(Over):
        observing.take_window(Broken(Run(seen)), 1e6)  # type: ignore[arg-type]
    assert seen.rest() == 0.0
