"""Where a side's threads run while they are timed: on a core each, and before others' work. No torch.

The scheduler may leave two threads of a team on one core, for seconds where the other cores have work of others.
The one that waits then spins where the other would work, until it goes to sleep: the same addition of 100,000
numbers took 30 us or 80 us with a short spin, 400 us with ten times the spin, 16 ms with libgomp's own, and which
it was went with the process, so that a function beside itself came out two or three times as fast. On a core each it
takes 30 us, beside two busy loops, too (two cores, measured).

Threads that user code starts meanwhile inherit the one core of the thread that starts them. Whoever does that is
left to the scheduler from then on.
"""

import contextlib
import os
import secrets
import time
from collections.abc import Iterator
from pathlib import Path

_TASKS = Path("/proc/self/task")
_PASSING_NS, _PASSING_SHARE = 10_000_000, 0.05
_NICE, _GROUP = -10, Path("/proc/self/autogroup")


class Placement:
    """Spreads the threads of this process over its cores; of one case, since its code may start threads.

    `threads` is the size of the team that works: a smaller one than there are cores is left to the scheduler, which
    has room to move it away from others.
    """

    def __init__(self, threads: int) -> None:
        self._possible = (
            hasattr(os, "sched_setaffinity") and _TASKS.exists() and threads >= len(os.sched_getaffinity(0))
        )

    @property
    def possible(self) -> bool:
        """Whether threads are spread: not where the system cannot, nor for code that starts threads as it runs."""
        return self._possible

    @contextlib.contextmanager
    def spread(self, look: bool = False) -> Iterator[None]:
        """Keep this process's busiest threads on distinct cores meanwhile; those that user code bound stay there.

        With `look`, the work of threads and processes that came and went is looked for, too.
        """
        if not self._possible:
            yield
            return
        cores = os.sched_getaffinity(0)
        before = _threads()
        placed = [
            thread
            for thread, core in zip(_busiest(before, cores), sorted(cores), strict=False)
            if _bind(thread, {core})
        ]
        begin, work = time.monotonic_ns(), _Work() if look else None
        try:
            yield
        finally:
            took = time.monotonic_ns() - begin
            fresh = _threads() - before
            for thread in (*placed, *fresh):
                _bind(thread, cores)
            passed = work.passed_ns() if work is not None else 0
            if fresh or passed > max(_PASSING_NS, _PASSING_SHARE * took):
                self._possible = False


def cores_for(threads: int) -> list[int]:
    """Choose cores by lot for two processes that take turns; none where their team takes all of them.

    A team that is smaller than the machine wanders, and on a shared machine one core may have more of its
    neighbours than another: two equal processes, each at home on another core, differed by 4 %.
    """
    possible = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
    return secrets.SystemRandom().sample(possible, threads) if threads < len(possible) else []


def settle_on(cores: set[int]) -> None:
    """Keep all threads of this process, and those that they start, on these cores."""
    for thread in _threads():
        _bind(thread, cores)


def take_precedence() -> None:
    """Let other load wait, where the user may ask for that (root, most containers), also for threads that start later.

    Beside three busy processes a core, a pair of versions took a third of the time, and pairs differed less. Who
    started kmrun behind others (`nice kmrun`) wants it there.
    """
    usual = os.getpriority(os.PRIO_PROCESS, 0)
    if usual > 0:
        return
    with contextlib.suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, 0, min(_NICE, usual))
    if _GROUP.exists():  # sessions share the cores by this before processes do by the other
        with contextlib.suppress(OSError):
            _GROUP.write_text(str(_NICE))


def _threads() -> frozenset[int]:
    return frozenset(int(task.name) for task in _TASKS.iterdir())


def _busiest(threads: frozenset[int], cores: set[int]) -> list[int]:
    """Return the threads that may run on all cores, the busiest so far first."""
    found = []
    for thread in threads:
        with contextlib.suppress(OSError):  # it ended meanwhile
            if os.sched_getaffinity(thread) == cores:
                # Which are busy matters only where there are more of them than cores.
                found.append((_ran_ns(thread) if len(threads) > len(cores) else 0, thread))
    return [thread for _, thread in sorted(found, key=lambda each: (-each[0], each[1]))]


def _ran_ns(thread: int) -> int:
    # The kernel's name of a thread's CPU clock. /proc tells its last tick, 10 ms ago or, in a guest, more.
    return time.clock_gettime_ns((~thread << 3) | 6)


class _Work:
    """The CPU time of this process from now on, by who did it."""

    def __init__(self) -> None:
        self._threads, self._whole, self._children = _ran_by_thread(), time.process_time_ns(), _children_ns()

    def passed_ns(self) -> int:
        """Return the CPU time since of threads and children that are gone."""
        alive = sum(ran - self._threads.get(thread, 0) for thread, ran in _ran_by_thread().items())
        return time.process_time_ns() - self._whole - alive + _children_ns() - self._children


def _ran_by_thread() -> dict[int, int]:
    found = {}
    for thread in _threads():
        with contextlib.suppress(OSError):  # it ended meanwhile
            found[thread] = _ran_ns(thread)
    return found


def _children_ns() -> int:
    times = os.times()
    return int((times.children_user + times.children_system) * 1e9)


def _bind(thread: int, cores: set[int]) -> bool:
    try:
        os.sched_setaffinity(thread, cores)
    except OSError:  # it ended meanwhile
        return False
    return True
