"""ROCm SMI, the library behind rocm-smi, by ctypes: AMD's sensors, and facts that HIP lacks.

Every query is optional, as in `nvml`. Temperatures come in millidegrees, power in microwatts, clocks in Hz.
"""

import contextlib
import ctypes
from types import TracebackType
from typing import Any, Self

from kmrun.core.telemetry import Reading
from kmrun.device import plausible
from kmrun.device.driver_library import load

_LIBRARIES = {
    "linux": (
        *(f"librocm_smi64.so{version}" for version in ("", ".1", ".8", ".7", ".6", ".5")),
        "/opt/rocm/lib/librocm_smi64.so",
    )
}
_SUCCESS = 0
_SYSTEM_CLOCK, _MEMORY_CLOCK = 0, 4
_JUNCTION, _EDGE = 1, 0
_VRAM = 0
_PLAUSIBLE_HZ = (1e6, 1e11)


class SmiLost(Exception):
    """The library is not there, or does not start."""


class RocmSmi:
    """The library, initialised. A context manager.

    Raises:
        SmiLost: on entry, when it is not there.
    """

    def __enter__(self) -> Self:
        """Load and start the library."""
        self._library = _load()
        status = self._library.rsmi_init(ctypes.c_uint64(0))
        if status != _SUCCESS:
            raise SmiLost(f"rsmi_init: status {status}")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Let the library go."""
        with contextlib.suppress(AttributeError):
            self._library.rsmi_shut_down()

    def device(self, pci_address: str | None) -> "RocmSmiDevice | None":
        """Return the device at a PCI address (`0000:c1:00.0`); None when the library does not know it."""
        count = ctypes.c_uint32()
        if not answered(self._library, "rsmi_num_monitor_devices", ctypes.byref(count)):
            return None
        for index in range(count.value):
            found = RocmSmiDevice(self._library, index)
            if found.pci_address() == pci_address and pci_address is not None:
                return found
        return None


class RocmSmiDevice:
    """One GPU."""

    def __init__(self, library: ctypes.CDLL, index: int) -> None:
        self._library, self._index = library, index

    def pci_address(self) -> str | None:
        """Return domain, bus, device and function as HIP writes them."""
        number = self._integer("rsmi_dev_pci_id_get")
        if number is None:
            return None
        # BDFID: domain in the upper half, then 8 bits of bus, 5 of device, 3 of function.
        domain, bus, slot, function = number >> 32, number >> 8 & 0xFF, number >> 3 & 0x1F, number & 7
        return f"{domain:04x}:{bus:02x}:{slot:02x}.{function:x}"

    def facts(self) -> dict[str, Any]:
        """Return what people ask rocm-smi for; None where this card or driver does not say."""
        unique = self._integer("rsmi_dev_unique_id_get")
        sm, mem = self._clock(_SYSTEM_CLOCK), self._clock(_MEMORY_CLOCK)
        used, total = plausible.used_bytes(
            *(self._integer(f"rsmi_dev_memory_{what}_get", _VRAM) for what in ("usage", "total"))
        )
        return {
            "unique_id": None if unique is None else f"0x{unique:016x}",
            "memory_used_bytes": used,
            "memory_total_bytes": total,
            "vbios": self._text("rsmi_dev_vbios_version_get"),
            "power_limit_w": _watts(self._integer("rsmi_dev_power_cap_get", 0)),
            "power_w": self._power(),
            "temp_c": self._temperature(),
            "sm_mhz": sm[0],
            "sm_mhz_max": sm[1],
            "mem_mhz": mem[0],
            "mem_mhz_max": mem[1],
            "utilisation_percent": self._busy(),
            "driver_version": self._driver_version(),
        }

    def sm_mhz_max(self) -> float | None:
        """Return the highest compute clock in MHz."""
        return self._clock(_SYSTEM_CLOCK)[1]

    def mem_mhz_max(self) -> float | None:
        """Return the highest memory clock in MHz."""
        return self._clock(_MEMORY_CLOCK)[1]

    def read(self, at_s: float) -> Reading:
        """Return the sensors now. ROCm SMI names no reasons for lower clocks that all its cards know."""
        busy = self._busy()
        return Reading(
            at_s=at_s,
            sm_mhz=self._clock(_SYSTEM_CLOCK)[0],
            mem_mhz=self._clock(_MEMORY_CLOCK)[0],
            temp_c=self._temperature(),
            power_w=self._power(),
            energy_j=self._energy(),
            utilisation=plausible.fraction(busy),
        )

    def _busy(self) -> int | None:
        value = ctypes.c_uint32()
        return value.value if self._ask("rsmi_dev_busy_percent_get", ctypes.byref(value)) else None

    def _power(self) -> float | None:
        # MI300 has the first only, older cards the second only.
        now = self._integer("rsmi_dev_current_socket_power_get")
        return _watts(now if now is not None else self._integer("rsmi_dev_power_ave_get", 0))

    def _energy(self) -> float | None:
        """Return the energy counter in joules: counts times microjoules per count."""
        counts, resolution, stamp = ctypes.c_uint64(), ctypes.c_float(), ctypes.c_uint64()
        pointers = (ctypes.byref(counts), ctypes.byref(resolution), ctypes.byref(stamp))
        if not self._ask("rsmi_dev_energy_count_get", *pointers) or not resolution.value:
            return None
        return plausible.joules(counts.value * resolution.value / 1e6)

    def _temperature(self) -> float | None:
        """Return the temperature of the hottest spot in degrees Celsius, of the edge where that has no sensor."""
        for sensor in (_JUNCTION, _EDGE):
            value = ctypes.c_int64()
            if self._ask("rsmi_dev_temp_metric_get", sensor, 0, ctypes.byref(value)):
                return plausible.celsius(value.value / 1e3)
        return None

    def _clock(self, kind: int) -> tuple[float | None, float | None]:
        """Return the clock now and at most, in MHz."""
        room = (ctypes.c_uint32 * 128)()
        if not self._ask("rsmi_dev_gpu_clk_freq_get", kind, ctypes.byref(room)):
            return None, None
        frequencies, current = _frequencies(bytes(room))
        if not frequencies:
            return None, None
        return plausible.mhz(frequencies[current] / 1e6), plausible.mhz(max(frequencies) / 1e6)

    def _driver_version(self) -> str | None:
        text = ctypes.create_string_buffer(256)
        known = answered(self._library, "rsmi_version_str_get", 0, text, ctypes.c_uint32(len(text)))
        return text.value.decode("utf-8", errors="replace") if known else None

    def _text(self, function: str) -> str | None:
        text = ctypes.create_string_buffer(256)
        if not self._ask(function, text, ctypes.c_uint32(len(text))):
            return None
        return text.value.decode("utf-8", errors="replace") or None

    def _integer(self, function: str, *arguments: int) -> int | None:
        value = ctypes.c_uint64()
        return value.value if self._ask(function, *arguments, ctypes.byref(value)) else None

    def _ask(self, function: str, *arguments: Any) -> bool:
        return answered(self._library, function, self._index, *arguments)


def answered(library: ctypes.CDLL, function: str, *arguments: Any) -> bool:
    """Return whether the library knows the function and it succeeded."""
    found = getattr(library, function, None)
    return found is not None and found(*arguments) == _SUCCESS


def _frequencies(room: bytes) -> tuple[list[int], int]:
    """Return the frequencies in Hz and the index of the current one, from either layout of `rsmi_frequencies_t`.

    ROCm 6 put a flag in front and moved all that follows. Read in the wrong layout, the count or the index is out
    of range, so only one of them can be right.
    """
    for start, first in ((4, 16), (0, 8)):
        count = int.from_bytes(room[start : start + 4], "little")
        current = int.from_bytes(room[start + 4 : start + 8], "little")
        if not (1 <= count <= 33 and current < count):
            continue
        found = [int.from_bytes(room[first + 8 * at : first + 8 * at + 8], "little") for at in range(count)]
        if _PLAUSIBLE_HZ[0] <= found[current] <= _PLAUSIBLE_HZ[1]:
            return found, current
    return [], 0


def _load() -> ctypes.CDLL:
    library, why_not = load(_LIBRARIES)
    if library is None:
        raise SmiLost(f"ROCm SMI cannot be loaded: {why_not}" if why_not else "ROCm SMI is not installed")
    return library


def _watts(microwatts: int | None) -> float | None:
    return None if microwatts is None else plausible.watts(microwatts / 1e6)
