"""Memory that two processes of one GPU share: the driver's own allocation, handed over by CUDA or HIP IPC.

Not torch's allocator: it cuts several tensors out of one allocation, and IPC would map all of them, the judge's
secrets too. An allocation here holds the arena and nothing else, and is a multiple of 2 MiB.
"""

import ctypes
from collections.abc import Mapping
from dataclasses import dataclass

import torch

GRAIN = 2 * 2**20
_HANDLE_BYTES = 64
_LAZY_PEER_ACCESS = 1


class IpcError(Exception):
    """The driver cannot share memory here (containers without pidfd_getfd, Tegra, other allocators)."""


@dataclass(frozen=True, slots=True)
class _Names:
    libraries: tuple[str, ...]
    allocate: str
    free: str
    export: str
    open: str
    close: str


_CUDA = _Names(
    ("libcuda.so.1", "nvcuda.dll"),
    "cuMemAlloc_v2",
    "cuMemFree_v2",
    "cuIpcGetMemHandle",
    "cuIpcOpenMemHandle_v2",
    "cuIpcCloseMemHandle",
)
_HIP = _Names(
    ("libamdhip64.so",),
    "hipMalloc",
    "hipFree",
    "hipIpcGetMemHandle",
    "hipIpcOpenMemHandle",
    "hipIpcCloseMemHandle",
)


class _Handle(ctypes.Structure):
    # A structure, not an array: the drivers take it by value.
    _fields_ = (("reserved", ctypes.c_char * _HANDLE_BYTES),)


class _Foreign:
    """Bytes at a device address, as torch reads them without a copy."""

    def __init__(self, address: int, count: int) -> None:
        self.__cuda_array_interface__: Mapping[str, object] = {
            "shape": (count,),
            "typestr": "|u1",
            "data": (address, False),
            "version": 3,
        }


class DeviceMemory:
    """One shared allocation, made here or opened from another process. `bytes` is a flat uint8 tensor."""

    def __init__(self, driver: ctypes.CDLL, names: _Names, address: int, count: int, own: bool) -> None:
        self._driver, self._names = driver, names
        self._address, self._own = address, own
        self.count = count

    @classmethod
    def allocate(cls, count: int) -> "DeviceMemory":
        """Allocate on the current device's context, rounded up to 2 MiB.

        Raises:
            IpcError: the driver refuses.
        """
        count = -(-count // GRAIN) * GRAIN
        driver, names = _load()
        address = ctypes.c_void_p()
        _call(driver, names.allocate, ctypes.byref(address), ctypes.c_size_t(count))
        return cls(driver, names, address.value or 0, count, own=True)

    @classmethod
    def open(cls, handle: bytes, count: int) -> "DeviceMemory":
        """Map what another process exported.

        Raises:
            IpcError: the driver refuses.
        """
        driver, names = _load()
        address, described = ctypes.c_void_p(), _Handle()
        ctypes.memmove(ctypes.byref(described), handle, _HANDLE_BYTES)
        _call(driver, names.open, ctypes.byref(address), described, ctypes.c_uint(_LAZY_PEER_ACCESS))
        return cls(driver, names, address.value or 0, count, own=False)

    def export(self) -> bytes:
        """Return the handle that another process of this user opens.

        Raises:
            IpcError: the driver refuses.
        """
        handle = _Handle()
        _call(self._driver, self._names.export, ctypes.byref(handle), ctypes.c_void_p(self._address))
        return ctypes.string_at(ctypes.byref(handle), _HANDLE_BYTES)

    def tensor(self, device: torch.device) -> torch.Tensor:
        """Return all of it as a flat uint8 tensor; it must not outlive `close`."""
        if device.type == "cpu":  # a driver whose device memory is the host's: what the tests have
            raw = (ctypes.c_uint8 * self.count).from_address(self._address)
            return torch.frombuffer(raw, dtype=torch.uint8)
        return torch.as_tensor(_Foreign(self._address, self.count), device=device)

    def close(self) -> None:
        """Free it, or unmap it where it is another process's.

        Raises:
            IpcError: the driver refuses.
        """
        name = self._names.free if self._own else self._names.close
        _call(self._driver, name, ctypes.c_void_p(self._address))


def _load() -> tuple[ctypes.CDLL, _Names]:
    names = _HIP if torch.version.hip else _CUDA
    for library in names.libraries:
        try:
            return ctypes.CDLL(library), names
        except OSError:
            continue
    raise IpcError(f"{names.libraries[0]} cannot be loaded")


def _call(driver: ctypes.CDLL, name: str, *arguments: object) -> None:
    try:
        function = getattr(driver, name)
    except AttributeError as error:
        raise IpcError(f"this driver has no {name}") from error
    status = function(*arguments)
    if status != 0:
        raise IpcError(f"{name} failed with status {status}")
