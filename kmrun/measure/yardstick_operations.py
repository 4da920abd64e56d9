"""The operation that measures a kernel against yardsticks, in the kernel's own process."""

from typing import Protocol

import torch

from kmrun.measure.bench import Bench
from kmrun.measure.roles import KERNEL
from kmrun.measure.timer import Stopwatch
from kmrun.measure.yardsticks import Yardsticks


class Benched(Protocol):
    """What the operation needs of its side."""

    _device: torch.device
    _cache_bytes: int
    _yardsticks: Yardsticks | None

    def _benched(self) -> Bench: ...

    def _stopwatch(self) -> Stopwatch: ...

    def _check_flags(self) -> None: ...


class YardstickOperations:
    """A side's yardsticks. Public methods are operations."""

    _yardsticks: Yardsticks | None = None

    def take_yardsticks(
        self: Benched, calls: int, discard: int, blocks: int, most_ns: float
    ) -> list[list[float]]:
        """Take blocks of the kernel and both yardsticks; see `Yardsticks.blocks`. The kernel must be warm."""
        if self._yardsticks is None:
            self._yardsticks = Yardsticks(self._device, self._stopwatch(), self._cache_bytes)
        taken = self._yardsticks.blocks(self._benched().timed[KERNEL], calls, discard, blocks, most_ns)
        self._check_flags()
        return taken
