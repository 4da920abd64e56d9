"""Which GPU a run will use, known before a process of the run touches it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from kmrun.device.apart import Tell
from kmrun.device.drivers import cuda_device, hip_device
from kmrun.device.torch_build import Kind
from kmrun.errors import EnvironmentLacks


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


def chosen_gpu(
    device: str, kind: Kind | None = None, tell: Tell | None = None, seconds: float | None = None
) -> ChosenGpu | None:
    """Return the GPU that torch will take for `auto`, `cuda` or `cuda:N`; None for a CPU, or where none answers.

    The driver is asked under the environment that the sides inherit, so its order is torch's. No context is made.

    Args:
        device: as on the command line.
        kind: what torch was built for and runs on; None where torch was not asked: then any driver's first counts.
        tell: is told what is waited for, should that take long.
        seconds: how long a driver may take, by default as long as one that has to load its kernel module.
    """
    if "cpu" in (device, kind):
        return None
    every: dict[str, tuple[_Ask, ...]] = {"cuda": (_nvidia,), "rocm": (_amd,)}
    index = int(device.partition(":")[2] or 0)
    for ask in every.get(kind or "", (_nvidia, _amd)):
        try:
            return ask(index, tell, seconds)
        except EnvironmentLacks:
            continue
    return None


_Ask = Callable[[int, Tell | None, float | None], ChosenGpu]


def _nvidia(index: int, tell: Tell | None, seconds: float | None) -> ChosenGpu:
    device = cuda_device(index, tell, seconds)
    return ChosenGpu("nvidia", index, device.uuid, device.pci_address, device.is_mig)


def _amd(index: int, tell: Tell | None, seconds: float | None) -> ChosenGpu:
    return ChosenGpu("amd", index, None, hip_device(index, tell, seconds).pci_address)
