"""The findings that only the supervisor can make: a side that died or hung, wrong results, clocks that disagree."""

import signal

from kmrun.core.measurement import FaultKind, Finding
from kmrun.errors import EnvironmentLacks

Who = tuple[str, FaultKind]

KERNEL: Who = ("the kernel", "kernel")
JUDGE: Who = ("the judge", "suite")

_DOING = {
    "load": "while it was imported",
    "call": "in a call",
    "expect": "while it was evaluated",
    "rival_agrees": "while it was evaluated",
    "draw": "while inputs were drawn",
    "compare": "while outputs were compared",
    "self_test": "while the tolerance was tested",
}


def died(who: Who, status: int, tail: str) -> Finding:
    """Return the finding for a side whose process ended. `status` is a waitpid code, negative for a signal."""
    name, fault = who
    if status >= 0:
        sentence = f"{name} ended its process with exit status {status}"
        return Finding("exited", sentence, fault, "error", tail)
    number = -status
    try:
        signal_name = signal.Signals(number).name
    except ValueError:
        signal_name = f"signal {number}"
    if number == signal.SIGKILL:
        sentence = (
            f"{name} was killed ({signal_name}): by itself, from outside, or by the system for lack of memory"
        )
        return Finding("killed", sentence, _who_kills(fault), "error", tail)
    return Finding("signal", f"{name} crashed with {signal_name}", fault, "error", tail)


def timed_out(who: Who, op: str, seconds: float, tail: str) -> Finding:
    """Return the finding for a side that did not answer."""
    name, fault = who
    doing = _DOING.get(op, "while it was timed")
    sentence = f"{name} did not come back within {seconds:g} s {doing}, and was killed"
    return Finding("timeout", sentence, fault, "error", tail)


def wrong_result(sentences: list[str]) -> Finding:
    """Return the finding for outputs that differ from the reference; one sentence an output."""
    return Finding("wrong_result", sentences[0], "kernel", "fail", "\n".join(sentences[1:]))


def tolerance_invalid(sentences: list[str]) -> Finding:
    """Return the finding for a tolerance that lets wrong outputs pass; one sentence an output."""
    return Finding("tolerance_invalid", sentences[0], "suite", "error", "\n".join(sentences[1:]))


def time_disagrees(ours_ns: float, theirs_ns: float) -> Finding:
    """Return the finding for a side whose own timer claims less than the supervisor's clock saw."""
    sentence = (
        f"the kernel's process measured {theirs_ns / 1e3:.4g} us a call where {ours_ns / 1e3:.4g} us went by: "
        "work is left running after the call returns, or its clock was tampered with"
    )
    return Finding("time_disagrees", sentence, "kernel", "error")


def too_slow(call_s: float, timeout_s: float, calls: int) -> Finding:
    """Return the finding for a kernel whose time-out has no room for samples."""
    sentence = (
        f"a call takes {call_s:.3g} s, and {timeout_s:g} s have no room for the {calls} that a measurement takes: "
        f"give `timeout_s: {{case: ...}}` more"
    )
    return Finding("too_slow", sentence, "undecided", "inconclusive")


def cannot_cross(why: str) -> Finding:
    """Return the finding for arguments that only one process can have, where two were asked for."""
    sentence = f"{why}, so this case needs --isolation inline"
    return Finding("cannot_cross", sentence, "undecided", "inconclusive")


def lost_host(who: Who, tail: str) -> Finding:
    """Return the finding for the end of the process that starts and buries the sides, while somebody was at work."""
    name, fault = who
    sentence = f"the process that hosts the sides was killed while {name} was at work: by it, or from outside"
    return Finding("killed_host", sentence, _who_kills(fault), "error", tail)


def no_process(lacks: EnvironmentLacks) -> Finding:
    """Return the finding for a case in which a process could not be started; the next one may have what it lacked."""
    return Finding("no_process", lacks.sentence, "environment", "error", lacks.hint)


def _who_kills(fault: FaultKind) -> FaultKind:
    """Return whose fault it is that a process was killed: a kernel may do that, a suite's own code does not."""
    return "environment" if fault == "suite" else fault


def broken_side(trace: str) -> Finding:
    """Return the finding for a kernel's process in which kmrun's own code failed; `trace` is its traceback."""
    sentence = (
        "the kernel's process broke: it tampered with torch or the process, or this is a bug of kmrun's"
    )
    return Finding("side_broken", sentence, "kernel", "error", trace)


def broken_judge(changed: str, trace: str) -> Finding:
    """Return the finding for a judge that failed after the suite's own code changed what it works with."""
    sentence = f"the judge broke: the reference, a versus entry or a check of the suite changed {changed}"
    return Finding("side_broken", sentence, "suite", "error", trace)
