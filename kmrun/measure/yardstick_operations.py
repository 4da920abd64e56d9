"""The operation that measures a kernel against yardsticks, in the kernel's own process."""

from typing import Any, Protocol

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
        self: Benched,
        call_ns: float,
        calls: int,
        discard: int,
        repeats: list[int] | None,
        blocks: int,
        most_ns: float,
    ) -> dict[str, Any]:
        """Take blocks of the kernel and both yardsticks; see `Yardsticks.blocks`. The kernel must be warm.

        Without `repeats` they are chosen for a kernel that takes `call_ns`; they come back with the rows.
        """
        if self._yardsticks is None:
            self._yardsticks = Yardsticks(self._device, self._stopwatch(), self._cache_bytes)
        memory, compute = repeats or self._yardsticks.repeats(call_ns)
        kernel = self._benched().timed[KERNEL]
        rows = self._yardsticks.blocks(kernel, calls, discard, (memory, compute), blocks, most_ns)
        self._check_flags()
        return {"rows": rows, "repeats": [memory, compute]}
