"""Who used the CPUs of a machine over a stretch of time: we, others, or the host that the machine is a guest of."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class CpuTimes:
    """CPU seconds since some start, at one moment: of the whole machine (`busy_s`), stolen, and of our processes."""

    at_s: float
    busy_s: float
    steal_s: float
    own_s: float


@dataclass(frozen=True, slots=True)
class CpuLoad:
    """Means over a window, in cores: 0.5 is half of one core, all the time.

    `others` counts every process but ours, and the kernel's own work, ours included: interrupts are nobody's.
    `steal` is what the guest wanted to use while its host gave the cores to someone else.
    """

    window_s: float
    own: float
    others: float
    steal: float


def cpu_load(before: CpuTimes, after: CpuTimes) -> CpuLoad | None:
    """Return the load between two moments; None when the window is empty.

    The counters tick a hundred times a second, so a window of less than a second says little.
    """
    window = after.at_s - before.at_s
    if window <= 0:
        return None
    own = max(after.own_s - before.own_s, 0.0)
    busy = max(after.busy_s - before.busy_s, 0.0)
    steal = max(after.steal_s - before.steal_s, 0.0)
    return CpuLoad(window, own / window, max(busy - own, 0.0) / window, steal / window)
