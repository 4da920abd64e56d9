"""The device that a run is going to use, as far as that is known before its sides have said what it is."""

from typing import Literal

from kmrun.core.measurement import RunDevice
from kmrun.device import cpu
from kmrun.device.chosen import chosen_gpu
from kmrun.device.torch_build import torch_kind

UNTOLD = "not known yet"
_WAIT_S = 5.0
"""The run is over: a driver that does not answer by then is not worth the wait."""


def expected_device(device: str) -> RunDevice:
    """Return what `auto`, `cpu`, `cuda` or `cuda:N` will come to: the GPU that torch was built for, else the CPU."""
    gpu = chosen_gpu(device, torch_kind(), seconds=_WAIT_S)
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
