"""The device that a run is going to use, as far as that is known before its sides have said what it is."""

from typing import Literal

from kmrun.core.measurement import RunDevice
from kmrun.device import cpu
from kmrun.device.chosen import chosen_gpu

UNTOLD = "not known yet"


def expected_device(device: str) -> RunDevice:
    """Return what `auto`, `cpu`, `cuda` or `cuda:N` will come to: a GPU where a driver shows one, else the CPU."""
    gpu = chosen_gpu(device)
    if gpu is None:
        return RunDevice(
            "cpu",
            0,
            cpu.model_name(),
            cpu.memory_total_bytes(),
            cache_bytes=cpu.llc_bytes(),
            cores=cpu.usable_cores(),
        )
    kind: Literal["cuda", "rocm"] = "cuda" if gpu.vendor == "nvidia" else "rocm"
    return RunDevice(kind, gpu.index, UNTOLD, 0, uuid=gpu.uuid, pci_address=gpu.pci_address)
