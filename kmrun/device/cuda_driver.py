"""What the NVIDIA driver says of the GPUs in this machine, by ctypes: no toolkit, no torch, no context.

Only the driver's own library is used (libcuda.so.1, nvcuda.dll): it comes with the driver, and the entry
points here have kept their C interface through all its versions.
"""

import ctypes
import sys
import uuid
from collections.abc import Mapping
from dataclasses import dataclass

from kmrun.core.printable import printable
from kmrun.device.cuda_attributes import ATTRIBUTES
from kmrun.device.driver_library import SUCCESS, DriverLibrary, Naming, NoDevice, NoDriver, load, told
from kmrun.errors import EnvironmentLacks

_LIBRARIES = {"linux": ("libcuda.so.1", "libcuda.so"), "win32": ("nvcuda.dll",)}
_STUB, _NO_DEVICE = 34, 100
_FATAL = frozenset({3, 4, 100, 101, 999})
"""Not initialized, shutting down, no device, an invalid one, unknown: nothing that is asked after these is answered."""
_PROBED = range(1, max(ATTRIBUTES) + 100)
"""Newer drivers know more attributes than the table: their numbers follow on."""
_FAILURES = {
    2: "out of memory",
    3: "not initialized",
    34: "the library is a stub, no driver",
    100: "no CUDA device",
    101: "invalid device",
    802: "the driver is still starting (fabric manager)",
    803: "driver and library are of different versions",
    804: "this GPU is not supported for forward compatibility",
    999: "unknown error",
}
_NAMING = Naming("the NVIDIA driver", "update the driver", "`nvidia-smi`", "CUresult", _FAILURES)


@dataclass(frozen=True, slots=True)
class CudaDevice:
    """One device as the driver shows it.

    `attributes` holds those that the driver knows, by the names of `cuda_attributes`, newer ones as
    `attribute_<number>`. `uuid` is a MIG slice's own where the device is one. `notes` say what the driver failed
    to give.
    """

    index: int
    name: str
    memory_bytes: int
    uuid: str | None
    attributes: Mapping[str, int]
    notes: tuple[str, ...] = ()

    @property
    def compute_capability(self) -> str | None:
        """Major and minor, `8.6`; None where the driver does not say."""
        major, minor = (self.attributes.get(f"compute_capability_{part}") for part in ("major", "minor"))
        return None if major is None or minor is None else f"{major}.{minor}"

    @property
    def sm_count(self) -> int | None:
        """Streaming multiprocessors; None where the driver does not say."""
        count = self.attributes.get("multiprocessor_count")
        return count if count and count > 0 else None

    @property
    def max_clock_hz(self) -> float | None:
        """The highest SM clock in Hz, None where the driver no longer says."""
        return _kilohertz(self.attributes.get("clock_rate"))

    @property
    def bandwidth(self) -> float | None:
        """Peak memory bandwidth in bytes per second: two transfers per memory clock over the bus."""
        clock = _kilohertz(self.attributes.get("memory_clock_rate"))
        bits = self.attributes.get("global_memory_bus_width")
        return 2 * clock * bits / 8 if clock and bits and bits > 0 else None

    @property
    def is_mig(self) -> bool:
        """Whether this is a slice of a GPU: the driver says so in the name, `... MIG 1g.10gb`."""
        return " MIG " in self.name

    @property
    def pci_address(self) -> str | None:
        """`0000:3b:00.0`, None where the driver does not say."""
        parts = [self.attributes.get(f"pci_{part}_id") for part in ("domain", "bus", "device")]
        domain, bus, slot = parts
        if domain is None or bus is None or slot is None:
            return None
        return f"{domain:04x}:{bus:02x}:{slot:02x}.0"


class CudaDriver:
    """The driver's library, loaded and initialised."""

    def __init__(self) -> None:
        """Load the library.

        Raises:
            EnvironmentLacks: there is no NVIDIA driver here, or it refuses to start.
            NoDevice: there is one, and nothing for it to drive.
        """
        self._library = _library()
        status = self._library.function("cuInit")(0)
        if status == _NO_DEVICE:
            raise NoDevice("the NVIDIA driver shows no device", "`nvidia-smi` shows what it sees")
        if status == _STUB:
            raise NoDevice(
                "the NVIDIA driver's library is a stub, with no driver behind it", "install the driver"
            )
        if status != SUCCESS:
            raise self._library.failure("cuInit", status)

    def version(self) -> str | None:
        """Return the CUDA version that the driver serves, `13.0`; None where it does not say."""
        number = ctypes.c_int()
        if not self._library.succeeds("cuDriverGetVersion", ctypes.byref(number)):
            return None
        return f"{number.value // 1000}.{number.value % 1000 // 10}"

    def count(self) -> int:
        """Return the number of devices.

        Raises:
            EnvironmentLacks: the driver does not say, or it is no number of devices.
        """
        number = ctypes.c_int()
        self._library.call("cuDeviceGetCount", ctypes.byref(number))
        return self._library.counted(number.value)

    def device(self, index: int) -> CudaDevice:
        """Return a device with all its attributes.

        Raises:
            EnvironmentLacks: there is no such device.
        """
        count = self.count()
        if not 0 <= index < count:
            if count == 0:
                raise NoDevice(f"no CUDA device {index}", "there is no device")
            raise EnvironmentLacks(f"no CUDA device {index}", f"devices here: 0 to {count - 1}")
        handle = ctypes.c_int()
        self._library.call("cuDeviceGet", ctypes.byref(handle), index)
        name = ctypes.create_string_buffer(256)
        self._library.call("cuDeviceGetName", name, len(name), handle)
        memory = ctypes.c_size_t()
        self._library.call("cuDeviceTotalMem_v2", ctypes.byref(memory), handle)
        attributes: dict[str, int] = {}
        failed: dict[str, str] = {}
        for number in _PROBED:
            known = ATTRIBUTES.get(number, f"attribute_{number}")
            value, why_not = self._library.attribute("cuDeviceGetAttribute", number, handle, _FATAL)
            if value is not None:
                attributes[known] = value
            elif why_not is not None:
                failed[known] = why_not
        text = printable(name.value.decode("utf-8", errors="replace"))
        own = self._uuid(handle, " MIG " in text)
        return CudaDevice(index, text, memory.value, own, attributes, told(failed))

    def _uuid(self, handle: ctypes.c_int, is_mig: bool) -> str | None:
        # The second version gives a MIG slice's own; the first that of the GPU that it is cut from.
        for function in ("cuDeviceGetUuid_v2", "cuDeviceGetUuid"):
            raw = (ctypes.c_ubyte * 16)()
            # A virtual GPU may have zeros for a name: those of two would be one.
            if self._library.succeeds(function, ctypes.byref(raw), handle) and any(raw):
                own = is_mig and function.endswith("_v2")
                return f"{'MIG' if own else 'GPU'}-{uuid.UUID(bytes=bytes(raw))}"
        return None


def _library() -> DriverLibrary:
    library, why_not = load(_LIBRARIES)
    if library is not None:
        return DriverLibrary(library, _NAMING)
    if why_not:
        raise NoDevice(f"the NVIDIA driver's library cannot be loaded: {why_not}", "install the driver anew")
    names = _LIBRARIES.get(sys.platform, ())
    tried = f"not found: {', '.join(names)}" if names else f"NVIDIA has none for {sys.platform}"
    raise NoDriver("no NVIDIA driver in this machine", tried)


def _kilohertz(value: int | None) -> float | None:
    return value * 1e3 if value and value > 0 else None
