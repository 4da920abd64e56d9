"""Timing a kernel alone while the machine is watched: which samples count, and what power it drew. No torch."""

from typing import TYPE_CHECKING, Any, Literal

from kmrun.core.clocks import SETTING
from kmrun.core.measurement import Finding
from kmrun.core.observed import Observed
from kmrun.core.statistics import median
from kmrun.core.telemetry import POWER_WINDOW_S
from kmrun.device.sampler import clock
from kmrun.measure.roles import KERNEL
from kmrun.measure.room import budget
from kmrun.measure.watch import TRIES

if TYPE_CHECKING:
    from kmrun.measure.trial import Trial

PIECE_NS, MOST_CALLS = 0.25e9, 100_000
"""Power is read over pieces of a quarter second: what a request costs between them is less than a thousandth."""

ClockMode = Literal["sustained", "boost", "locked"]


def take_window(trial: "Trial", call_ns: float) -> dict[str, Any]:
    """Take the window of the kernel alone, and drop the samples that a slowdown of the card touched.

    `call_ns` is about what a call takes.

    Returns what the side says of it, with the samples that count; `seen` is the stretch, `slowdown` says what was
    dropped, `spoiled` that it was too much, and then no sample is dropped.
    """
    watch = trial.run.watch
    for _ in range(TRIES):
        trial.deadline += watch.rest()
        with watch.stretch() as seen:
            facts: dict[str, Any] = trial.kernel("window", key=KERNEL, budget=budget(trial, call_ns))
        survived = watch.survivors(facts.pop("spans_ns"), seen.begin_s)
        watch.learn(survived.dropped > 0)
        if survived.enough:
            break
        trial.progress("letting the card cool")
    facts |= {"seen": seen, "slowdown": survived.sentence, "spoiled": not survived.enough}
    if survived.enough:
        samples = zip(facts["samples_ns"], survived.kept, strict=True)
        facts["samples_ns"] = [sample for sample, kept in samples if kept]
    return facts


def note_slowdown(trial: "Trial", facts: dict[str, Any]) -> None:
    """Say of a case what its window lost to a slowdown; one that lost too much is undecided."""
    if not facts["slowdown"]:
        return
    if facts["spoiled"]:
        sentence = f"the card was slowed down in {TRIES} windows: {facts['slowdown']}"
        trial.know(undecidable=sentence)
        trial.findings.append(Finding("slowed_down", sentence, "undecided", "inconclusive"))
    else:
        trial.label("card slowed down")


def observed(trial: "Trial", facts: dict[str, Any], power: bool = True) -> Observed:
    """Return what the machine was doing around a case, once its window was taken; `power` takes a second more."""
    seen = facts["seen"]
    power_w, energy_mj = _power(trial, median(trial.known["samples_ns"])) if power else (None, None)
    return Observed(
        window=seen.telemetry,
        power_w=power_w,
        energy_mj_per_call=energy_mj,
        load=seen.load,
        readings=trial.run.watch.readings_since(facts["begun_s"]),
    )


def clock_mode(trial: "Trial") -> ClockMode:
    """Return how the clock was during a case, and label one that was to be locked and was not, or did not hold.

    NVML says nowhere at which clock a card is locked, so that only load shows whether it holds: the case's own.
    """
    asked: ClockMode = trial.case.timing.clock
    unlocked: ClockMode = "sustained" if asked == "locked" else asked
    watch = trial.run.watch
    if trial.run.holds_clock and "observed" in trial.known:
        told = watch.verify_clock(trial.known["observed"].window)
        if not watch.clock_lost:
            if not told:
                trial.label("clock not verified")
            return "locked"
    if watch.clock_lost:
        trial.label("clock not held")
        return unlocked
    if trial.run.holds_clock:
        return "locked"
    if "observed" in trial.known and SETTING in (trial.known["observed"].window.throttle or ()):
        trial.label("clock limited")  # steady as if it were held, and not by this run
    if asked == "locked" and not trial.run.on_cpu:
        trial.label("clock not locked")
    return unlocked


def _power(trial: "Trial", call_ns: float) -> tuple[float | None, float | None]:
    """Call the kernel without pause for a second, and return power in W and energy per call in mJ.

    The timing window cannot say: it is often shorter, and flushes and looks at outputs draw power in it, too. None
    where nothing reads power, with `--quick`, and for calls so long that the case has no time for it.
    """
    watch, enough_s = trial.run.watch, 1.05 * POWER_WINDOW_S
    room_s = trial.left_s / 4
    if not watch.reads_power or trial.run.options.quick or max(enough_s, call_ns / 1e9) > room_s:
        return None, None
    trial.progress("reading its power")
    piece, calls = max(1, min(MOST_CALLS, int(PIECE_NS / max(call_ns, 1.0)))), 0
    with watch.stretch() as seen:
        while clock() - seen.begin_s < enough_s:
            trial.kernel("burst", key=KERNEL, calls=piece)
            calls += piece
    return seen.telemetry.power_w, seen.telemetry.energy_mj_per_call(calls)
