"""What fits into the time of a case: of a slow kernel fewer samples are taken, rather than time it out. No torch."""

from typing import TYPE_CHECKING, Any

from kmrun.core.statistics import median
from kmrun.measure import findings

if TYPE_CHECKING:
    from kmrun.measure.trial import Trial

LEAST_CALLS, CALLS_KEPT_BACK = 12, 2
"""Eight samples bound a median; four calls go before and after them."""

WARM_MOST_NS = 1e9


def need_room(trial: "Trial", call_ns: float) -> None:
    """End a case whose time has no room for samples, rather than run into its time-out.

    Raises:
        Over: it has none.
    """
    if LEAST_CALLS * call_ns / 1e9 > trial.left_s:
        trial.over(findings.too_slow(call_ns / 1e9, trial.case.case_timeout_s, LEAST_CALLS))


def has_room(trial: "Trial", seconds: float) -> bool:
    """Whether so much of the kernel's time can be spent, with what the checks at the end take kept back."""
    call_s = median(trial.known["samples_ns"]) / 1e9
    return seconds + CALLS_KEPT_BACK * call_s <= trial.left_s


def warm_most_ns(trial: "Trial") -> float:
    """Return the most time for a warm-up."""
    return min(WARM_MOST_NS, trial.case.timing.max_time_ms * 1e6 * _share(trial))


def warm_up_limits(most_ns: float, call_ns: float) -> dict[str, float]:
    """Return the most time for a warm-up with calls of this length, and its least number of calls."""
    return {"most_ns": most_ns, "at_least": 10 if call_ns * 10 < most_ns else 3 if call_ns < most_ns else 1}


def budget(trial: "Trial", call_ns: float = 0.0) -> dict[str, Any]:
    """Return the stopping rule of a window of calls of about this length (`timer.Budget`)."""
    timing = trial.case.timing
    return {
        "min_ns": timing.min_time_ms * 1e6 * _share(trial),
        "max_ns": timing.max_time_ms * 1e6 * _share(trial),
        "rel_ci": timing.rel_ci,
        "at_least": 10,
        "hard_ns": window_s(trial, call_ns) * 1e9,
    }


def _share(trial: "Trial") -> float:
    """Return what of the suite's time for timing is taken: a quarter with `--quick`.

    Where versions are only compared, their own processes are timed at length; the window shows that calls which are
    timed come out right, and their samples are added to its own.
    """
    return 0.02 if trial.hurried else 0.25 if trial.run.options.quick else 1.0


def window_s(trial: "Trial", call_ns: float) -> float:
    """Return the most that a window may take: half of what is left, or what the samples take that bound a median."""
    return min(max(trial.left_s / 2, 8.5 * call_ns / 1e9), 1e6)
