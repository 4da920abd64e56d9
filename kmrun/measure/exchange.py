"""Tensors across processes: packed into one shared arena, described by plain JSON.

The arena is an anonymous memory file that the supervisor makes and every side maps; no name in a file system
ever exists, so nothing can be left behind. On a GPU whose driver can share memory between processes, it is one
allocation of the judge's instead (`device_memory`), and the file serves what does not fit. It holds only what the
kernel may see. A tensor travels as its raw storage span with shape and strides: a layout arrives as it was.
"""

import enum
import mmap
import os
from typing import Any

import torch

from kmrun.measure.copies import flat_storage, is_plain, storage_span
from kmrun.measure.device_memory import DeviceMemory

_ALIGN = 4096
_STEP = 256 * 2**20


class CannotCross(Exception):
    """A value that has no plain description: the case must run inline."""


class HostStorage:
    """A growing anonymous memory file."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._map: mmap.mmap | None = None

    def holds(self, total: int) -> bool:
        """Make room for `total` bytes; always possible."""
        if os.fstat(self._descriptor).st_size < total:
            # In large steps: what grew has to be mapped anew, and a page is real only once it is written.
            os.ftruncate(self._descriptor, -(-total // _STEP) * _STEP)
        return True

    def bytes(self, offset: int, count: int) -> torch.Tensor:
        """Return a range as a flat uint8 tensor.

        Raises:
            ValueError: it lies outside.
        """
        return torch.frombuffer(self.view(offset, count), dtype=torch.uint8, count=count)

    def view(self, offset: int, count: int) -> memoryview:
        """Return a range of the one mapping of all of it: what was written to once, takes no page fault again.

        Raises:
            ValueError: it lies outside.
        """
        size = os.fstat(self._descriptor).st_size
        if offset + count > size:
            raise ValueError(f"bytes {offset} to {offset + count} lie outside an arena of {size}")
        if self._map is None or len(self._map) < offset + count:
            # The old mapping is dropped, not closed: tensors made from it may still be alive.
            self._map = mmap.mmap(self._descriptor, size)
        return memoryview(self._map)[offset : offset + count]

    def region(self, offset: int, count: int) -> memoryview:
        """Map a range by itself, from a multiple of 4096 on, and nothing of what lies before it."""
        self.holds(offset + count)
        return memoryview(mmap.mmap(self._descriptor, count, offset=offset))

    def end_at(self, total: int) -> None:
        """Give back all memory behind `total` bytes; nobody may look at it any more."""
        if os.fstat(self._descriptor).st_size > total:
            self._map = None
            os.ftruncate(self._descriptor, total)


class DeviceStorage:
    """A shared allocation of a GPU; does not grow."""

    def __init__(self, memory: DeviceMemory, device: torch.device) -> None:
        self.memory = memory
        self._all = memory.tensor(device)

    def holds(self, total: int) -> bool:
        """Whether `total` bytes fit."""
        return total <= self.memory.count

    def bytes(self, offset: int, count: int) -> torch.Tensor:
        """Return a range as a flat uint8 tensor."""
        return self._all[offset : offset + count]

    def close(self) -> None:
        """Give the allocation back."""
        del self._all
        self.memory.close()


class Arena:
    """Packs trees of tensors into shared storage, from the start, by whoever writes."""

    def __init__(self, host: HostStorage) -> None:
        self._host = host
        self._storages: dict[str, HostStorage | DeviceStorage] = {"host": host}
        self._storage: HostStorage | DeviceStorage = host

    def use_device(self, storage: DeviceStorage | None) -> None:
        """Prefer a GPU's shared memory from now on; None goes back to the host's."""
        held = self._storages.pop("device", None)
        if isinstance(held, DeviceStorage):
            held.close()
        if storage is not None:
            self._storages["device"] = storage

    def peek(self, count: int) -> torch.Tensor:
        """Return the first bytes of the GPU's shared memory."""
        return self._storages["device"].bytes(0, count)

    @property
    def host(self) -> HostStorage:
        """The file in host memory."""
        return self._host

    def write(self, tree: Any, start: int = 0) -> tuple[Any, int]:
        """Copy a tree of tensors, containers and scalars into the arena from byte `start` on.

        Returns:
            the plain description that `read` takes, and the first byte after it.

        Raises:
            CannotCross: the tree holds something else.
        """
        total = start + _room(tree)
        via = next(
            via for via in ("device", "host") if via in self._storages and self._storages[via].holds(total)
        )
        self._storage = self._storages[via]
        packed, after = self._pack(tree, start)
        return {"via": via, "tree": packed}, after

    def read(self, description: Any, device: torch.device) -> Any:
        """Return the described tree as fresh tensors on `device`, or on the CPU where they were there."""
        self._storage = self._storages[description["via"]]
        return self._unpack(description["tree"], device)

    def _pack(self, value: Any, offset: int) -> tuple[Any, int]:
        if isinstance(value, torch.Tensor):
            span = storage_span(value)
            nbytes = span * value.element_size()
            if nbytes:
                flat = flat_storage(value).contiguous()
                self._storage.bytes(offset, nbytes).copy_(flat.view(torch.uint8))
            description = {
                "tensor": str(value.dtype).removeprefix("torch."),
                "shape": list(value.shape),
                "stride": list(value.stride()),
                "span": span,
                "at": offset,
                "grad": value.requires_grad,
                "cpu": value.device.type == "cpu",
            }
            return description, offset + aligned(nbytes)
        if type(value) is dict and all(type(key) is str for key in value):
            packed: dict[str, Any] = {}
            for key, item in value.items():
                packed[key], offset = self._pack(item, offset)
            return {"dict": packed}, offset
        if type(value) in (list, tuple, torch.Size):
            items = []
            for item in value:
                entry, offset = self._pack(item, offset)
                items.append(entry)
            return {"tuple" if isinstance(value, tuple) else "list": items}, offset
        if is_plain(value) and not isinstance(value, enum.Enum):
            return {"value": value}, offset
        if isinstance(value, torch.dtype):
            return {"dtype": str(value).removeprefix("torch.")}, offset
        name = f"a {type(value).__module__}.{type(value).__qualname__}".replace("builtins.", "")
        keys = " whose keys are not text" if type(value) is dict else ""
        raise CannotCross(f"{name}{keys} cannot cross between processes")

    def _unpack(self, description: Any, device: torch.device) -> Any:
        if "tensor" in description:
            dtype = getattr(torch, description["tensor"])
            where = torch.device("cpu") if description["cpu"] else device
            flat = torch.empty(description["span"], dtype=dtype, device=where)
            nbytes = flat.numel() * flat.element_size()
            if nbytes:
                flat.view(torch.uint8).copy_(self._storage.bytes(description["at"], nbytes))
            tensor = torch.as_strided(flat, description["shape"], description["stride"])
            return tensor.requires_grad_(True) if description["grad"] else tensor
        if "dict" in description:
            return {key: self._unpack(item, device) for key, item in description["dict"].items()}
        if "list" in description:
            return [self._unpack(item, device) for item in description["list"]]
        if "tuple" in description:
            return tuple(self._unpack(item, device) for item in description["tuple"])
        if "dtype" in description:
            return getattr(torch, description["dtype"])
        return description["value"]


def aligned(nbytes: int) -> int:
    """Return the next multiple of a page."""
    return -(-nbytes // _ALIGN) * _ALIGN


def _room(value: Any) -> int:
    if isinstance(value, torch.Tensor):
        return aligned(storage_span(value) * value.element_size())
    if isinstance(value, dict):
        return sum(_room(item) for item in value.values())
    if isinstance(value, list | tuple):
        return sum(_room(item) for item in value)
    return 0
