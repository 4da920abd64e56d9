"""Which GPU a run will use, known before a process of the run touches it."""

from dataclasses import dataclass
from functools import partial
from typing import Literal

from kmrun.device.bounded import NoAnswer, bounded
from kmrun.device.cuda_driver import CudaDriver
from kmrun.device.rocm import HipRuntime
from kmrun.errors import EnvironmentLacks

Kind = Literal["cpu", "cuda", "rocm"]
"""Of a device, as torch's build tells it."""
DRIVER_S = 20.0
"""How long a driver may take to start: it may have to load its kernel module."""


@dataclass(frozen=True, slots=True)
class ChosenGpu:
    """A GPU by the names that its driver and its sensors know it by."""

    vendor: Literal["nvidia", "amd"]
    index: int
    uuid: str | None
    pci_address: str | None
    is_mig: bool = False

    @property
    def key(self) -> str:
        """What tells it apart from every other GPU of the machine."""
        return self.uuid or self.pci_address or f"{self.vendor}-{self.index}"


def chosen_gpu(device: str, kind: Kind | None = None) -> ChosenGpu | None:
    """Return the GPU that torch will take for `auto`, `cuda` or `cuda:N`; None for a CPU, or where none answers.

    `kind` is what torch was built for and runs on; None where torch was not asked: then any driver's first counts.
    The driver is asked under the environment that the sides inherit, so its order is torch's. No context is made.
    """
    if "cpu" in (device, kind):
        return None
    vendors = {"cuda": (_nvidia,), "rocm": (_amd,)}.get(kind or "", (_nvidia, _amd))
    index = int(device.partition(":")[2] or 0)
    for ask in vendors:
        try:
            return bounded("the GPU's driver", DRIVER_S, partial(ask, index))
        except (EnvironmentLacks, NoAnswer):
            continue
    return None


def _nvidia(index: int) -> ChosenGpu:
    device = CudaDriver().device(index)
    return ChosenGpu("nvidia", index, device.uuid, device.pci_address, device.is_mig)


def _amd(index: int) -> ChosenGpu:
    runtime = HipRuntime()
    if index >= runtime.count():
        raise EnvironmentLacks(f"no HIP device {index}")
    return ChosenGpu("amd", index, None, runtime.device(index).pci_address)
