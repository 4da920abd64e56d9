"""One fresh process in which a kernel took turns with yardsticks: what baselines are made of."""

from dataclasses import dataclass

YARDSTICKS = ("memory", "compute")
"""What a kernel is measured against in the same moments, one for each bound."""

LEAST, MOST = 1e-9, 1e15
"""Of ms, GB/s and Tflop/s: no machine's figures lie beyond, and what does may not fit a float once it is divided."""


@dataclass(frozen=True, slots=True)
class Session:
    """One fresh process: times in ms per call, and log ratios of the kernel's time over each yardstick's.

    The ratios are medians over interleaved blocks, and so not quite those of the times. `memory_calls` and
    `compute_calls` are how many calls of a yardstick made a sample, so that it took about as long as the kernel's:
    what takes longer is interrupted more often.
    """

    kernel_ms: float
    memory_ms: float
    compute_ms: float
    over_memory: float
    over_compute: float
    memory_calls: int = 1
    compute_calls: int = 1

    @property
    def repeats(self) -> tuple[int, int]:
        """How often each yardstick ran in a sample; sessions of other repeats are not comparable."""
        return self.memory_calls, self.compute_calls

    def over(self, yardstick: str) -> float:
        """Return the log ratio over a yardstick."""
        return self.over_memory if yardstick == "memory" else self.over_compute

    def yardstick_ms(self, yardstick: str) -> float:
        """Return the time of a yardstick."""
        return self.memory_ms if yardstick == "memory" else self.compute_ms
