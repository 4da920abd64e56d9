"""What AMD's HIP runtime says of the GPUs in this machine, by ctypes: no toolkit, no torch, no kernel.

AMD's GPUs are told apart by their gfx name (`gfx942`), which the runtime gives only inside a structure whose
layout changed with ROCm 6; the newer entry point carries the change in its name.
"""

import ctypes
from collections.abc import Mapping
from dataclasses import dataclass

from kmrun.core.printable import printable
from kmrun.device.driver_library import SUCCESS, DriverLibrary, Naming, NoDevice, NoDriver, load, told
from kmrun.device.hip_attributes import ATTRIBUTES
from kmrun.errors import EnvironmentLacks

_LIBRARIES = {
    "linux": (
        *(f"libamdhip64.so{version}" for version in ("", ".7", ".6", ".5")),
        "/opt/rocm/lib/libamdhip64.so",
    ),
    "win32": ("amdhip64_7.dll", "amdhip64_6.dll", "amdhip64.dll"),
}
_NO_DEVICE = 100
_FATAL = frozenset({3, 4, 100, 101, 999})
"""As of the NVIDIA driver."""
_FAILURES = {
    2: "out of memory",
    3: "not initialized",
    35: "the driver is older than the runtime",
    101: "invalid device",
    999: "unknown error",
}
_NAMING = Naming("the HIP runtime", "update ROCm", "`rocminfo`", "hipError", _FAILURES)
_PROPERTIES = (("hipGetDevicePropertiesR0600", 1160), ("hipGetDeviceProperties", 396))
"""Entry point, and where `gcnArchName` lies in what it fills in: ROCm 6 and later, ROCm 5."""
_ROOM = 4096
"""More than any version of that structure takes."""


@dataclass(frozen=True, slots=True)
class HipDevice:
    """One device as HIP shows it. `gfx` is the architecture without its feature flags, `gfx942`.

    `notes` say what the runtime failed to give.
    """

    index: int
    name: str
    memory_bytes: int
    gfx: str | None
    pci_address: str | None
    attributes: Mapping[str, int]
    notes: tuple[str, ...] = ()

    @property
    def compute_units(self) -> int | None:
        """Compute units; RDNA's are counted in pairs."""
        count = self.attributes.get("multiprocessor_count")
        return count if count and count > 0 else None

    @property
    def max_clock_hz(self) -> float | None:
        """The highest clock in Hz."""
        value = self.attributes.get("clock_rate")
        return value * 1e3 if value and value > 0 else None


class HipRuntime:
    """The runtime's library, loaded and initialised."""

    def __init__(self) -> None:
        """Load the library.

        Raises:
            EnvironmentLacks: there is no ROCm here, or it refuses to start.
        """
        library, why_not = load(_LIBRARIES)
        if library is None and why_not:
            raise NoDevice(f"the HIP runtime cannot be loaded: {why_not}", "install ROCm anew")
        if library is None:
            raise NoDriver("no HIP runtime in this machine", "it comes with ROCm")
        self._library = DriverLibrary(library, _NAMING)
        status = self._library.function("hipInit")(0)
        self._empty = status == _NO_DEVICE
        if status != SUCCESS and not self._empty:
            raise self._library.failure("hipInit", status)

    def version(self) -> str | None:
        """Return the version of HIP, `7.0`; None where the runtime does not say."""
        number = ctypes.c_int()
        if not self._library.succeeds("hipRuntimeGetVersion", ctypes.byref(number)):
            return None
        return f"{number.value // 10_000_000}.{number.value // 100_000 % 100}"

    def count(self) -> int:
        """Return the number of devices."""
        if self._empty:
            return 0
        number = ctypes.c_int()
        status = self._library.function("hipGetDeviceCount")(ctypes.byref(number))
        if status == _NO_DEVICE:
            return 0  # ROCm may well be installed where there is no AMD card
        if status != SUCCESS:
            raise self._library.failure("hipGetDeviceCount", status)
        return self._library.counted(number.value)

    def device(self, index: int) -> HipDevice:
        """Return a device with all its attributes.

        Raises:
            EnvironmentLacks: there is no such device, or the runtime fails on it.
        """
        count = self.count()
        if not 0 <= index < count:
            if count == 0:
                raise NoDevice(f"no HIP device {index}", "there is no device")
            raise EnvironmentLacks(f"no HIP device {index}", f"devices here: 0 to {count - 1}")
        name = ctypes.create_string_buffer(256)
        self._library.call("hipDeviceGetName", name, len(name), index)
        memory = ctypes.c_size_t()
        self._library.call("hipDeviceTotalMem", ctypes.byref(memory), index)
        address = ctypes.create_string_buffer(64)
        has_address = self._library.succeeds("hipDeviceGetPCIBusId", address, len(address), index)
        attributes: dict[str, int] = {}
        failed: dict[str, str] = {}
        for number, known in ATTRIBUTES.items():
            value, why_not = self._library.attribute("hipDeviceGetAttribute", number, index, _FATAL)
            if value is not None:
                attributes[known] = value
            elif why_not is not None:
                failed[known] = why_not
        return HipDevice(
            index,
            printable(name.value.decode("utf-8", errors="replace")),
            memory.value,
            self._gfx(index),
            address.value.decode("ascii", errors="replace").lower() if has_address else None,
            attributes,
            told(failed),
        )

    def _gfx(self, index: int) -> str | None:
        for function, offset in _PROPERTIES:
            if not self._library.has(function):
                continue
            room = ctypes.create_string_buffer(_ROOM)
            if not self._library.succeeds(function, room, index):
                return None
            text = room.raw[offset : offset + 256].partition(b"\0")[0].decode("ascii", errors="replace")
            gfx = text.partition(":")[0]
            return gfx if gfx.startswith("gfx") else None
        return None
