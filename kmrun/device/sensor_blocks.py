"""What NVML, AMD SMI and ROCm SMI say of devices that their drivers have listed, asked within a time limit."""

import importlib
from collections.abc import Callable, Sequence
from typing import Any

from kmrun.device.bounded import NoAnswer, bounded
from kmrun.device.cuda_driver import CudaDevice
from kmrun.device.rocm import HipDevice

SENSORS_S = 5.0


def nvml_blocks(devices: Sequence[CudaDevice]) -> tuple[dict[int, dict[str, Any]], str | None, str]:
    """Return NVML's block by device index, the driver's own version, and why there is none."""
    if not devices:
        return {}, None, ""
    from kmrun.device import nvml

    wanted = {device.index: (device.uuid, device.pci_address) for device in devices}
    try:
        found = bounded("NVML", SENSORS_S, lambda: nvml.facts_of(wanted))
    except (NoAnswer, nvml.NvmlLost) as lost:
        return {}, None, str(lost)
    return found["devices"], found["driver_version"], "NVML does not know this device"


def smi_blocks(devices: Sequence[HipDevice]) -> tuple[dict[int, dict[str, Any]], str | None, str]:
    """Return AMD SMI's block by device index, else ROCm SMI's, which of them it was, and why there is none."""
    if not devices:
        return {}, None, ""
    from kmrun.device.rocm_smi import SmiLost

    notes = []
    for name, module, library in (("amd_smi", "amd_smi", "AmdSmi"), ("rocm_smi", "rocm_smi", "RocmSmi")):
        opened = getattr(importlib.import_module(f"kmrun.device.{module}"), library)

        def ask(opened: Callable[[], Any] = opened) -> dict[int, dict[str, Any]]:
            with opened() as smi:
                known = {device.index: smi.device(device.pci_address) for device in devices}
                return {index: device.facts() for index, device in known.items() if device is not None}

        try:
            blocks = bounded(name, SENSORS_S, ask)
        except (NoAnswer, SmiLost) as lost:
            notes.append(str(lost))
            continue
        if blocks:
            return blocks, name, "the library does not know this device"
        notes.append(f"{name} knows none of the devices")
    return {}, None, "; ".join(notes)
