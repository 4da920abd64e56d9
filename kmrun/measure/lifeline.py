"""Keeping a side from outliving its supervisor, and from taking the machine down with it. No torch."""

import ctypes
import os
import resource
import signal
import sys
from pathlib import Path

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3


def die_with(parent: int) -> None:
    """Ask the kernel to kill this process when `parent` ends, also while it is stopped.

    Must run before anything else: a parent that died in between is noticed by its changed pid.
    """
    if sys.platform != "linux":
        return
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(1)


def adopt_orphans() -> None:
    """Make processes that user code detached from a side end up here, where they can be found and killed."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def limit_memory(available_bytes: int) -> None:
    """Turn a runaway host allocation into an error of the side instead of an out-of-memory machine.

    Only for CPU sides: GPU drivers reserve address space far beyond what they use.
    """
    if sys.platform != "linux":
        return
    used = int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    limit = used + available_bytes
    if hard != resource.RLIM_INFINITY:
        limit = min(limit, hard)
    resource.setrlimit(resource.RLIMIT_AS, (limit, hard))


def volunteer_for_oom_kill() -> None:
    """Let the kernel's out-of-memory killer take this side before the supervisor or anybody else."""
    score = Path("/proc/self/oom_score_adj")
    if score.exists():
        score.write_text("1000")


def children_of(pid: int) -> list[int]:
    """Return the live children of a process, from /proc."""
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            continue  # it ended between the listing and the read
        if int(fields[1]) == pid and fields[0] != "Z":
            found.append(int(entry.name))
    return found


def keep_freed() -> None:
    """Let the C library keep what calls free, so that the next calls find their pages there; `give_back` still works.

    By default it gives the top of its heap back now and then, which depends on what else happens to lie there:
    in one process a call had to have the pages of its output made anew each time, in another never. 32 MiB is the
    size up to which it comes to keep blocks by itself.
    """
    if sys.platform == "linux" and (set_option := getattr(ctypes.CDLL(None), "mallopt", None)) is not None:
        set_option(_M_MMAP_THRESHOLD, 32 * 2**20)
        set_option(_M_TRIM_THRESHOLD, 2**31 - 1)


def give_back() -> None:
    """Give memory that was freed back to the system, where the C library keeps it for itself."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None) if sys.platform == "linux" else None
    if trim is not None:  # glibc
        trim(0)


def resident_bytes(reset: bool = False, peak: bool = False) -> int:
    """Return this process's resident memory, or with `peak` the most since the last call with `reset`."""
    status = Path("/proc/self/status")
    if not status.exists():
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    if reset:
        with Path("/proc/self/clear_refs").open("w") as file:
            file.write("5")
    key = "VmHWM:" if peak else "VmRSS:"
    line = next(line for line in status.read_text().splitlines() if line.startswith(key))
    return int(line.split()[1]) * 1024
