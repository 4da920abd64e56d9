"""AMD SMI, ROCm SMI's successor, by its Python package `amdsmi`, where that is installed."""

import contextlib
import importlib
import io
import math
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any, Self

from kmrun.core.telemetry import Reading
from kmrun.device import plausible
from kmrun.device.rocm_smi import SmiLost


class AmdSmi:
    """The library, initialised. A context manager.

    Raises:
        SmiLost: on entry, when the package or the library under it is not there.
    """

    def __enter__(self) -> Self:
        """Load and start the library."""
        said = io.StringIO()
        try:
            # It prints what it misses to standard output, where a document may be meant to stand.
            with contextlib.redirect_stdout(said):
                amdsmi: Any = importlib.import_module("amdsmi")
        except ModuleNotFoundError as missing:
            raise SmiLost("the package amdsmi is not installed") from missing
        except (
            ImportError,
            KeyError,
            OSError,
            AttributeError,
        ) as broken:  # the package itself raises them all
            why = said.getvalue().strip().partition("\n")[0] or f"{type(broken).__name__}: {broken}"
            raise SmiLost(f"amdsmi cannot be loaded: {why}") from broken
        self._smi = amdsmi
        try:
            amdsmi.amdsmi_init()
        except amdsmi.AmdSmiException as error:
            raise SmiLost(f"amdsmi does not start: {error}") from error
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Let the library go."""
        _ask(self._smi, "amdsmi_shut_down")

    def device(self, pci_address: str | None) -> "AmdSmiDevice | None":
        """Return the device at a PCI address; None when the library does not know it."""
        for handle in _ask(self._smi, "amdsmi_get_processor_handles") or []:
            found = _ask(self._smi, "amdsmi_get_gpu_device_bdf", handle)
            if pci_address is not None and found is not None and found.lower() == pci_address:
                return AmdSmiDevice(self._smi, handle)
        return None


class AmdSmiDevice:
    """One GPU."""

    def __init__(self, smi: Any, handle: Any) -> None:
        self._smi, self._handle = smi, handle

    def facts(self) -> dict[str, Any]:
        """Return what people ask amd-smi for; None where this card or driver does not say."""
        memory = self._mapping("amdsmi_get_gpu_vram_usage")
        used, total = _number(memory, "vram_used"), _number(memory, "vram_total")
        limit = _number(self._mapping("amdsmi_get_power_cap_info"), "power_cap")
        asic, board = self._mapping("amdsmi_get_gpu_asic_info"), self._mapping("amdsmi_get_gpu_vbios_info")
        reading = self.read(0.0)
        used_bytes, total_bytes = plausible.used_bytes(
            *(None if amount is None else int(amount * 2**20) for amount in (used, total))
        )
        return {
            "unique_id": _text(asic, "asic_serial"),
            "memory_used_bytes": used_bytes,
            "memory_total_bytes": total_bytes,
            "vbios": _text(board, "version") or _text(board, "part_number"),
            "power_limit_w": None
            if limit is None
            else plausible.watts(limit / 1e6 if limit > 1e5 else limit),
            "power_w": reading.power_w,
            "temp_c": reading.temp_c,
            "sm_mhz": reading.sm_mhz,
            "sm_mhz_max": self.sm_mhz_max(),
            "mem_mhz": reading.mem_mhz,
            "mem_mhz_max": self.mem_mhz_max(),
            "utilisation_percent": None if reading.utilisation is None else reading.utilisation * 100,
            "driver_version": _text(self._mapping("amdsmi_get_gpu_driver_info"), "driver_version"),
        }

    def sm_mhz_max(self) -> float | None:
        """Return the highest compute clock in MHz."""
        return plausible.mhz(_number(self._clock("GFX"), "max_clk"))

    def mem_mhz_max(self) -> float | None:
        """Return the highest memory clock in MHz."""
        return plausible.mhz(_number(self._clock("MEM"), "max_clk"))

    def read(self, at_s: float) -> Reading:
        """Return the sensors now."""
        power, energy = self._mapping("amdsmi_get_power_info"), self._mapping("amdsmi_get_energy_count")
        busy = _number(self._mapping("amdsmi_get_gpu_activity"), "gfx_activity")
        counts, resolution = (
            _number(energy, "energy_accumulator", "power"),
            _number(energy, "counter_resolution"),
        )
        return Reading(
            at_s=at_s,
            sm_mhz=plausible.mhz(_number(self._clock("GFX"), "clk", "cur_clk")),
            mem_mhz=plausible.mhz(_number(self._clock("MEM"), "clk", "cur_clk")),
            temp_c=self._temperature(),
            power_w=plausible.watts(_number(power, "current_socket_power", "average_socket_power")),
            energy_j=plausible.joules(counts * resolution / 1e6)
            if counts is not None and resolution
            else None,
            utilisation=plausible.fraction(busy),
        )

    def _clock(self, kind: str) -> Mapping[str, Any]:
        return self._mapping("amdsmi_get_clock_info", getattr(self._smi.AmdSmiClkType, kind))

    def _temperature(self) -> float | None:
        kinds, now = self._smi.AmdSmiTemperatureType, self._smi.AmdSmiTemperatureMetric.CURRENT
        for name in ("HOTSPOT", "JUNCTION", "EDGE"):
            kind = getattr(kinds, name, None)
            found = (
                None if kind is None else _ask(self._smi, "amdsmi_get_temp_metric", self._handle, kind, now)
            )
            if isinstance(found, int | float):
                return plausible.celsius(found)
        return None

    def _mapping(self, function: str, *arguments: Any) -> Mapping[str, Any]:
        found = _ask(self._smi, function, self._handle, *arguments)
        return found if isinstance(found, Mapping) else {}


def _ask(smi: Any, function: str, *arguments: Any) -> Any:
    """Return what a query answers, None where this version, card or permission has no answer."""
    found: Callable[..., Any] | None = getattr(smi, function, None)
    if found is None:
        return None
    try:
        return found(*arguments)
    except smi.AmdSmiException:
        return None


def _number(found: Mapping[str, Any], *keys: str) -> float | None:
    """Return the first of the keys that holds a number; what a card lacks reads `N/A`."""
    for key in keys:
        value = found.get(key)
        if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value):
            return float(value)
    return None


def _text(found: Mapping[str, Any], key: str) -> str | None:
    value = found.get(key)
    return value if isinstance(value, str) and value not in ("", "N/A") else None
