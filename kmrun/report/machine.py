"""What the machine was doing meanwhile, in words: clocks, power, heat, who else was there, how old a ceiling is."""

from collections.abc import Iterable, Sequence

from kmrun.core.clocks import IDLE
from kmrun.core.result import CaseResult, CeilingEntry, TelemetryEntry
from kmrun.report.numbers import duration, percent

_SAID = {"sw_power_cap": "power cap", "application_clocks": "clock limited by a setting"}
"""Reasons for a lower clock that have a better name than their own."""
_BUSY = 0.1
"""Cores; less is what every system does in passing."""


def machine_line(cases: Sequence[CaseResult]) -> str:
    """Return the line under a table, `1410-1755 of 1980 MHz · 612 W · 66 C · power cap`; empty without readings."""
    seen = [case.telemetry for case in cases if case.telemetry is not None]
    # Whoever else uses the CPUs hardly slows a GPU down.
    on_cpu = [one for one in seen if one.source in (None, "cpu")]
    parts = [
        _clocks(seen),
        _highest([one.power_w for one in seen], "W"),
        _highest([one.temp_c for one in seen], "C"),
        *throttling(reason for one in seen for reason in one.throttle or ()),
        _cores([one.other_cores for one in on_cpu], "used by others"),
        _cores([one.stolen_cores for one in on_cpu], "stolen by the host"),
    ]
    return " · ".join(part for part in parts if part)


def clock_sentence(case: CaseResult) -> str:
    """Return what the clock had to do with a case that broke `min_roof`; empty where that says nothing."""
    seen, broken = case.telemetry, {clause.kind for clause in case.clauses if clause.verdict == "fail"}
    if seen is None or "min_roof" not in broken or case.roof_clk_fraction is None or seen.sm_mhz_held is None:
        return ""
    of = f" of {seen.sm_mhz_max:.0f}" if seen.sm_mhz_max else ""
    reasons = ", ".join(throttling(seen.throttle or ()))
    why = f" ({reasons})" if reasons else ""
    at = percent(case.roof_clk_fraction)
    return f"The card held {seen.sm_mhz_held:.0f}{of} MHz{why}: of the roof at those clocks it is at {at}."


def measured_when(ceilings: CeilingEntry) -> str:
    """Return when the ceilings were measured: `measured now, 0.9 s`, or how old the kept ones are."""
    ages = [rate.age_s for rate in ceilings.matmuls if rate.age_s is not None]
    now = f"measured now, {duration(ceilings.wall_s)}"
    return f"{now}, matmul {age(max(ages))} ago" if ages else now


def age(seconds: float) -> str:
    """Return an age in its largest unit: `12 min`, `5 h`, `3 days`."""
    for size, unit in ((86400, "day"), (3600, "h"), (60, "min")):
        if seconds >= size:
            number = int(seconds // size)
            return f"{number} {unit}{'s' if unit == 'day' and number > 1 else ''}"
    return f"{seconds:.0f} s"


def _clocks(seen: Sequence[TelemetryEntry]) -> str:
    held = [one.sm_mhz_held for one in seen if one.sm_mhz_held is not None]
    if not held:
        return ""
    low, high = f"{min(held):.0f}", f"{max(held):.0f}"
    most = max((one.sm_mhz_max for one in seen if one.sm_mhz_max), default=None)
    return f"{low if low == high else f'{low}-{high}'}{f' of {most:.0f}' if most else ''} MHz"


def _highest(values: Sequence[float | None], unit: str) -> str:
    known = [value for value in values if value is not None]
    return f"{max(known):.0f} {unit}" if known else ""


def throttling(reasons: Iterable[str]) -> list[str]:
    """Return reasons for a lower clock as people read them, each once; being idle is none."""
    reasons = dict.fromkeys(reason for reason in reasons if reason != IDLE)
    return [_SAID.get(reason, reason.removeprefix("sw_").replace("_", " ")) for reason in reasons]


def _cores(values: Sequence[float | None], what: str) -> str:
    most = max((value for value in values if value is not None), default=0.0)
    return f"up to {most:.1f} cores {what}" if most >= _BUSY else ""
