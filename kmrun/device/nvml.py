"""NVML, the library behind nvidia-smi: facts that the driver's attributes lack, and the sensors.

The only importer of `pynvml`. Every query is optional: a card, a driver or a permission may lack any of them,
and then its value is None. Calls may block for ever when a GPU is lost, so callers bound them.
"""

import contextlib
from collections.abc import Callable
from types import TracebackType
from typing import Any, Self

from kmrun.core.clocks import reasons_of
from kmrun.core.telemetry import Reading
from kmrun.device import plausible
from kmrun.device.driver_library import load

_ARCHITECTURES = {
    2: "Kepler",
    3: "Maxwell",
    4: "Pascal",
    5: "Volta",
    6: "Turing",
    7: "Ampere",
    8: "Ada",
    9: "Hopper",
    10: "Blackwell",
    13: "Rubin",
}
_LIBRARIES = {"linux": ("libnvidia-ml.so.1",)}
"""As pynvml names it, which does not say why one that is there is not loaded."""
_COMPUTE_MODES = {0: "default", 1: "exclusive thread", 2: "prohibited", 3: "exclusive process"}
_FULL = 2**32 - 1
"""A mask of reasons that fills its field is none."""
_LOST = ("GPU_IS_LOST", "RESET_REQUIRED", "UNINITIALIZED")


class NvmlLost(Exception):
    """NVML is not there, or a device stopped answering: no figure of it can be had."""


class Nvml:
    """The library, initialised. A context manager.

    Raises:
        NvmlLost: on entry, when it is not installed or does not start.
    """

    def __enter__(self) -> Self:
        """Load and start the library."""
        try:
            import pynvml
        except ImportError as missing:
            raise NvmlLost("the module pynvml is not installed") from missing
        self._nvml: Any = pynvml
        try:
            pynvml.nvmlInit()
        except pynvml.NVMLError as error:
            absent = error.value == pynvml.NVML_ERROR_LIBRARY_NOT_FOUND
            why_not = load(_LIBRARIES)[1] if absent else ""
            raise NvmlLost(f"NVML cannot be loaded: {why_not}" if why_not else str(error)) from error
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Let the library go."""
        with contextlib.suppress(self._nvml.NVMLError):
            self._nvml.nvmlShutdown()

    def driver_version(self) -> str | None:
        """Return the driver's own version, `580.95.05`."""
        version: str | None = optional(self._nvml, self._nvml.nvmlSystemGetDriverVersion)
        return version

    def device(
        self, uuid: str | None, pci_address: str | None = None, is_mig: bool = False
    ) -> "NvmlDevice | None":
        """Return the device of a UUID (`GPU-...`, `MIG-...`), else of a PCI address; None when NVML knows neither.

        Indices are never compared: NVML's order is not CUDA's, and containers hide devices from one of them.

        Raises:
            NvmlLost: a slice was meant (`is_mig`), but its names are those of the whole GPU, as of a driver before 450:
                figures of all slices together would be taken for those of one.
        """
        found = self._named(uuid, pci_address)
        if found is not None and is_mig and not found.is_mig:
            raise NvmlLost("this driver does not tell a MIG slice from the GPU that it is cut from")
        return found

    def _named(self, uuid: str | None, pci_address: str | None) -> "NvmlDevice | None":
        names: list[str] = []
        if uuid:
            bare = uuid.removeprefix("GPU-").removeprefix("MIG-")
            # torch leaves the prefix out, and CUDA may call a slice by its parent's.
            names = [uuid, f"GPU-{bare}", f"MIG-{bare}"]
        for name in dict.fromkeys(names):
            handle = optional(self._nvml, self._nvml.nvmlDeviceGetHandleByUUID, name)
            if handle is not None:
                return self._found(handle)
        if pci_address is not None:
            handle = optional(self._nvml, self._nvml.nvmlDeviceGetHandleByPciBusId, pci_address)
            if handle is not None:
                return self._found(handle)
        return None

    def _found(self, handle: Any) -> "NvmlDevice":
        nvml = self._nvml
        if optional(nvml, nvml.nvmlDeviceIsMigDeviceHandle, handle):
            whole = optional(nvml, nvml.nvmlDeviceGetDeviceHandleFromMigDeviceHandle, handle)
            if whole is not None:
                return NvmlDevice(nvml, whole, handle)
        return NvmlDevice(nvml, handle, None)


class NvmlDevice:
    """One GPU, or one MIG slice: clocks, temperature and power are then those of the GPU that it is cut from."""

    def __init__(self, nvml: Any, handle: Any, mig_handle: Any | None) -> None:
        self._nvml, self._handle, self._mig = nvml, handle, mig_handle

    @property
    def is_mig(self) -> bool:
        """Whether this is a slice."""
        return self._mig is not None

    def facts(self) -> dict[str, Any]:
        """Return everything that people ask nvidia-smi for; None where this card or driver does not say.

        Units stand in the keys; memory is the slice's on MIG.
        """
        n, h = self._nvml, self._handle
        ask = self._ask
        ecc, mig = ask(n.nvmlDeviceGetEccMode, h), ask(n.nvmlDeviceGetMigMode, h)
        limits = ask(n.nvmlDeviceGetPowerManagementLimitConstraints, h)
        architecture = ask(n.nvmlDeviceGetArchitecture, h)
        mode, persistence = ask(n.nvmlDeviceGetComputeMode, h), ask(n.nvmlDeviceGetPersistenceMode, h)
        memory = ask(n.nvmlDeviceGetMemoryInfo, self._mig or h)
        used, total = (None, None) if memory is None else (int(memory.used), int(memory.total))
        used, total = plausible.used_bytes(used, total)
        *_, processes = self.load()
        reasons = self._reasons()
        return {
            "uuid": ask(n.nvmlDeviceGetUUID, self._mig or h),
            "architecture": _ARCHITECTURES.get(architecture) if architecture is not None else None,
            "cuda_cores": ask(n.nvmlDeviceGetNumGpuCores, h),
            "pcie_gen": ask(n.nvmlDeviceGetCurrPcieLinkGeneration, h),
            "pcie_gen_max": ask(n.nvmlDeviceGetMaxPcieLinkGeneration, h),
            "pcie_width": ask(n.nvmlDeviceGetCurrPcieLinkWidth, h),
            "pcie_width_max": ask(n.nvmlDeviceGetMaxPcieLinkWidth, h),
            "memory_used_bytes": used,
            "memory_total_bytes": total,
            "processes": None if processes is None else len(processes),
            "ecc": None if ecc is None else bool(ecc[0]),
            "ecc_pending": None if ecc is None else bool(ecc[1]),
            "vbios": ask(n.nvmlDeviceGetVbiosVersion, h),
            "power_limit_w": _watts(ask(n.nvmlDeviceGetEnforcedPowerLimit, h)),
            "power_limit_default_w": _watts(ask(n.nvmlDeviceGetPowerManagementDefaultLimit, h)),
            "power_limit_min_w": None if limits is None else _watts(limits[0]),
            "power_limit_max_w": None if limits is None else _watts(limits[1]),
            "power_w": _watts(ask(n.nvmlDeviceGetPowerUsage, h)),
            "temp_c": self._temperature(),
            "sm_mhz": self._mhz(n.nvmlDeviceGetClockInfo, n.NVML_CLOCK_SM),
            "sm_mhz_max": self.sm_mhz_max(),
            "mem_mhz": self._mhz(n.nvmlDeviceGetClockInfo, n.NVML_CLOCK_MEM),
            "mem_mhz_max": self.mem_mhz_max(),
            "throttle": None if reasons is None else list(reasons),
            "persistence": None if persistence is None else bool(persistence),
            "compute_mode": _COMPUTE_MODES.get(mode) if mode is not None else None,
            "mig": None if mig is None else bool(mig[0]),
            "mig_slice": self.is_mig,
        }

    def sm_mhz_max(self) -> float | None:
        """Return the highest SM clock in MHz."""
        return self._mhz(self._nvml.nvmlDeviceGetMaxClockInfo, self._nvml.NVML_CLOCK_SM)

    def mem_mhz_max(self) -> float | None:
        """Return the highest memory clock in MHz."""
        return self._mhz(self._nvml.nvmlDeviceGetMaxClockInfo, self._nvml.NVML_CLOCK_MEM)

    def read(self, at_s: float) -> Reading:
        """Return the sensors now, as of `at_s`.

        A slice has no power and no energy of its own: they are None.

        Raises:
            NvmlLost: the device does not answer any more.
        """
        n, h = self._nvml, self._handle
        usage = None if self.is_mig else self._ask(n.nvmlDeviceGetUtilizationRates, h)
        energy = None if self.is_mig else self._ask(n.nvmlDeviceGetTotalEnergyConsumption, h)
        return Reading(
            at_s=at_s,
            sm_mhz=self._mhz(n.nvmlDeviceGetClockInfo, n.NVML_CLOCK_SM),
            mem_mhz=self._mhz(n.nvmlDeviceGetClockInfo, n.NVML_CLOCK_MEM),
            temp_c=self._temperature(),
            power_w=None if self.is_mig else _watts(self._ask(n.nvmlDeviceGetPowerUsage, h)),
            energy_j=None if energy is None else plausible.joules(energy / 1e3),
            utilisation=None if usage is None else plausible.fraction(usage.gpu),
            throttle=self._reasons(),
        )

    def load(self) -> tuple[int | None, int | None, tuple[int, ...] | None]:
        """Return the memory in use and in all, in bytes, and the ids of the processes computing here.

        Inside a container the ids are those of the host, or hidden: an empty tuple proves nothing.
        """
        n = self._nvml
        # The second version leaves out what the driver keeps for itself; drivers before 510 have the first only.
        memory = self._ask(n.nvmlDeviceGetMemoryInfo, self._mig or self._handle, n.nvmlMemory_v2)
        if memory is None:
            memory = self._ask(n.nvmlDeviceGetMemoryInfo, self._mig or self._handle)
        pids = None
        # By their versions: pynvml's unversioned name fails on drivers that know the older one only.
        for function in (
            n.nvmlDeviceGetComputeRunningProcesses_v3,
            n.nvmlDeviceGetComputeRunningProcesses_v2,
        ):
            found = self._ask(function, self._mig or self._handle)
            if found is not None:
                pids = tuple(int(process.pid) for process in found)
                break
        if memory is None:
            return None, None, pids
        return (*plausible.used_bytes(int(memory.used), int(memory.total)), pids)

    def lock_sm_clock(self, mhz: int | None) -> str | None:
        """Hold the SM clock at `mhz`, or for None at what the card holds within its power limit under any load.

        Returns None, or why it cannot be done.
        """
        clock = self._nvml.NVML_CLOCK_LIMIT_ID_TDP if mhz is None else mhz
        return self._set(self._nvml.nvmlDeviceSetGpuLockedClocks, self._handle, clock, clock)

    def unlock_sm_clock(self) -> str | None:
        """Give the SM clock back to the card; return None, or why it cannot be done."""
        return self._set(self._nvml.nvmlDeviceResetGpuLockedClocks, self._handle)

    def _set(self, function: Callable[..., Any], *arguments: Any) -> str | None:
        try:
            function(*arguments)
        except self._nvml.NVMLError as error:
            return str(error)
        return None

    def _reasons(self) -> tuple[str, ...] | None:
        n = self._nvml
        # The first is the name since driver 535; older ones know the second only.
        for function in (
            n.nvmlDeviceGetCurrentClocksEventReasons,
            n.nvmlDeviceGetCurrentClocksThrottleReasons,
        ):
            bits = self._ask(function, self._handle)
            if bits is not None:
                return reasons_of(int(bits)) if int(bits) < _FULL else None
        return None

    def _temperature(self) -> float | None:
        n = self._nvml
        for name in ("nvmlDeviceGetTemperature", "nvmlDeviceGetTemperatureV"):
            function = getattr(n, name, None)
            found = None if function is None else self._ask(function, self._handle, n.NVML_TEMPERATURE_GPU)
            if found is not None:
                return plausible.celsius(found)
        return None

    def _mhz(self, function: Callable[..., Any], kind: int) -> float | None:
        return plausible.mhz(self._ask(function, self._handle, kind))

    def _ask(self, function: Callable[..., Any], *arguments: Any) -> Any:
        return optional(self._nvml, function, *arguments)


def optional(nvml: Any, function: Callable[..., Any], *arguments: Any) -> Any:
    """Return what a query answers, None where it is not supported, not permitted or not known to this driver.

    Raises:
        NvmlLost: the device or the driver is in no state to answer anything.
    """
    try:
        return function(*arguments)
    except UnicodeDecodeError as error:
        # A VBIOS may hold anything, and pynvml decodes strictly.
        return error.object.decode("utf-8", errors="replace")
    except nvml.NVMLError as error:
        if error.value in {getattr(nvml, f"NVML_ERROR_{name}") for name in _LOST}:
            raise NvmlLost(str(error)) from error
        return None


def _watts(milliwatts: int | None) -> float | None:
    return None if milliwatts is None else plausible.watts(milliwatts / 1e3)
