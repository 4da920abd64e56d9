"""What AMD's HIP runtime says of the GPUs in this machine, by ctypes: no toolkit, no torch, no kernel.

AMD's GPUs are told apart by their gfx name (`gfx942`), which the runtime gives only inside a structure whose
layout changed with ROCm 6; the newer entry point carries the change in its name.
"""

import ctypes
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from kmrun.device.cuda_driver import NoDriver
from kmrun.device.hip_attributes import ATTRIBUTES
from kmrun.errors import EnvironmentLacks

_LIBRARIES = {
    "linux": (
        *(f"libamdhip64.so{version}" for version in ("", ".7", ".6", ".5")),
        "/opt/rocm/lib/libamdhip64.so",
    ),
    "win32": ("amdhip64_7.dll", "amdhip64_6.dll", "amdhip64.dll"),
}
_SUCCESS, _NO_DEVICE = 0, 100
_UNKNOWN_HERE = (1, 801)
_FAILURES = {
    2: "out of memory",
    3: "not initialized",
    35: "the driver is older than the runtime",
    101: "invalid device",
    999: "unknown error",
}
_PROPERTIES = (("hipGetDevicePropertiesR0600", 1160), ("hipGetDeviceProperties", 396))
"""Entry point, and where `gcnArchName` lies in what it fills in: ROCm 6 and later, ROCm 5."""
_ROOM = 4096
"""More than any version of that structure takes."""


@dataclass(frozen=True, slots=True)
class HipDevice:
    """One device as HIP shows it. `gfx` is the architecture without its feature flags, `gfx942`."""

    index: int
    name: str
    memory_bytes: int
    gfx: str | None
    pci_address: str | None
    attributes: Mapping[str, int]

    @property
    def compute_units(self) -> int | None:
        """Compute units; RDNA's are counted in pairs."""
        return self.attributes.get("multiprocessor_count")

    @property
    def max_clock_hz(self) -> float | None:
        """The highest clock in Hz."""
        value = self.attributes.get("clock_rate")
        return value * 1e3 if value else None


class HipRuntime:
    """The runtime's library, loaded and initialised."""

    def __init__(self) -> None:
        """Load the library.

        Raises:
            EnvironmentLacks: there is no ROCm here, or it refuses to start.
        """
        self._library = _load()
        status = self._function("hipInit")(0)
        self._empty = status == _NO_DEVICE
        if status != _SUCCESS and not self._empty:
            raise _failure("hipInit", status)

    def version(self) -> str | None:
        """Return the version of HIP, `7.0`; None where the runtime does not say."""
        number = ctypes.c_int()
        if not self._optional("hipRuntimeGetVersion", ctypes.byref(number)):
            return None
        return f"{number.value // 10_000_000}.{number.value // 100_000 % 100}"

    def count(self) -> int:
        """Return the number of devices."""
        number = ctypes.c_int()
        status = _NO_DEVICE if self._empty else self._function("hipGetDeviceCount")(ctypes.byref(number))
        if status == _NO_DEVICE:
            return 0  # ROCm may well be installed where there is no AMD card
        if status != _SUCCESS:
            raise _failure("hipGetDeviceCount", status)
        return number.value

    def device(self, index: int) -> HipDevice:
        """Return a device with all its attributes.

        Raises:
            EnvironmentLacks: the runtime fails on it.
        """
        name = ctypes.create_string_buffer(256)
        self._call("hipDeviceGetName", name, len(name), index)
        memory = ctypes.c_size_t()
        self._call("hipDeviceTotalMem", ctypes.byref(memory), index)
        address = ctypes.create_string_buffer(64)
        has_address = self._optional("hipDeviceGetPCIBusId", address, len(address), index)
        attributes = {
            known: value
            for number, known in ATTRIBUTES.items()
            if (value := self._attribute(number, index)) is not None
        }
        return HipDevice(
            index,
            name.value.decode("utf-8", errors="replace"),
            memory.value,
            self._gfx(index),
            address.value.decode("ascii", errors="replace").lower() if has_address else None,
            attributes,
        )

    def _attribute(self, number: int, index: int) -> int | None:
        value = ctypes.c_int()
        status = self._function("hipDeviceGetAttribute")(ctypes.byref(value), number, index)
        if status == _SUCCESS:
            return value.value
        if status in _UNKNOWN_HERE:
            return None
        raise _failure("hipDeviceGetAttribute", status)

    def _gfx(self, index: int) -> str | None:
        for function, offset in _PROPERTIES:
            if not hasattr(self._library, function):
                continue
            room = ctypes.create_string_buffer(_ROOM)
            if not self._optional(function, room, index):
                return None
            text = room.raw[offset : offset + 256].partition(b"\0")[0].decode("ascii", errors="replace")
            gfx = text.partition(":")[0]
            return gfx if gfx.startswith("gfx") else None
        return None

    def _optional(self, function: str, *arguments: object) -> bool:
        found = getattr(self._library, function, None)
        return found is not None and found(*arguments) == _SUCCESS

    def _call(self, function: str, *arguments: object) -> None:
        status = self._function(function)(*arguments)
        if status != _SUCCESS:
            raise _failure(function, status)

    def _function(self, name: str) -> Callable[..., int]:
        found: Callable[..., int] | None = getattr(self._library, name, None)
        if found is None:
            raise EnvironmentLacks(f"the HIP runtime has no {name}: it is too old", "update ROCm")
        return found


def _load() -> ctypes.CDLL:
    for name in _LIBRARIES.get(sys.platform, ()):
        try:
            return ctypes.CDLL(name)
        except OSError:
            continue
    raise NoDriver("no HIP runtime in this machine", "it comes with ROCm")


def _failure(function: str, status: int) -> EnvironmentLacks:
    reason = _FAILURES.get(status, f"hipError {status}")
    return EnvironmentLacks(f"the HIP runtime failed in {function}: {reason}", "`rocminfo` may say more")
