"""The operations that settle by which memory tensors cross, and the sharing itself."""

from typing import Any

import torch

from kmrun.measure.device_memory import DeviceMemory, IpcError
from kmrun.measure.exchange import Arena, DeviceStorage

PROBE_BYTES = 2**20


class ArenaOperations:
    """A side's end of the arena. Public methods are operations."""

    def __init__(self, arena: Arena) -> None:
        self._arena = arena
        self._device = torch.device("cpu")

    def offer_arena(self, count: int) -> dict[str, Any]:
        """As the judge: allocate the arena on the device, write a pattern into it, and export it.

        Returns the handle, or `{"why_not": ...}`.
        """
        self._arena.use_device(None)
        torch.zeros(1, device=self._device)  # the driver allocates in torch's context, which this brings up
        try:
            memory = DeviceMemory.allocate(count)
        except IpcError as reason:
            return {"why_not": str(reason)}
        storage = DeviceStorage(memory, self._device)
        storage.bytes(0, PROBE_BYTES).copy_(_pattern(self._device))
        self._synchronize()
        try:
            handle = memory.export()
        except IpcError as reason:
            storage.close()
            return {"why_not": str(reason)}
        self._arena.use_device(storage)
        return {"handle": handle.hex(), "bytes": memory.count}

    def take_arena(self, handle: str, count: int) -> dict[str, Any]:
        """As the kernel's side: map the arena, read the pattern, and answer by writing its complement."""
        self._arena.use_device(None)
        torch.zeros(1, device=self._device)
        try:
            storage = DeviceStorage(DeviceMemory.open(bytes.fromhex(handle), count), self._device)
        except IpcError as reason:
            return {"why_not": str(reason)}
        seen = storage.bytes(0, PROBE_BYTES)
        if not torch.equal(seen, _pattern(self._device)):
            storage.close()
            return {"why_not": "what was shared did not read back"}
        seen.bitwise_not_()
        self._synchronize()
        self._arena.use_device(storage)
        return {}

    def confirm_arena(self) -> dict[str, Any]:
        """As the judge: look whether the complement is there."""
        if not torch.equal(self._arena.peek(PROBE_BYTES), _pattern(self._device).bitwise_not_()):
            return {"why_not": "what was written back did not arrive"}
        return {}

    def drop_arena(self) -> None:
        """Go back to the arena in host memory."""
        self._arena.use_device(None)

    def _share(self, tree: Any, at: int) -> tuple[Any, int]:
        shared = self._arena.write(tree, at)
        self._synchronize()  # the other side reads on a stream of its own
        return shared

    def _synchronize(self) -> None:
        if self._device.type == "cuda":
            torch.cuda.synchronize(self._device)


def _pattern(device: torch.device) -> torch.Tensor:
    return torch.arange(PROBE_BYTES, dtype=torch.int64, device=device).mul_(2654435761).to(torch.uint8)
