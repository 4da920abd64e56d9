"""What NVML, AMD SMI and ROCm SMI say of devices that their drivers have listed, asked within a time limit."""

import importlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from kmrun.device.bounded import NoAnswer, bounded
from kmrun.device.cuda_driver import CudaDevice
from kmrun.device.rocm import HipDevice

SENSORS_S = 5.0


def nvml_facts(uuid: str | None, pci_address: str | None) -> tuple[dict[str, Any], str | None, str]:
    """Return NVML's block of one device, empty where there is none, the driver's own version, and why not."""
    blocks, driver, note = _nvml_blocks({0: (uuid, pci_address)})
    return blocks.get(0, {}), driver, note


def smi_facts(pci_address: str | None) -> dict[str, Any]:
    """Return AMD SMI's block of one device, else ROCm SMI's, empty where there is none."""
    return _smi_blocks({0: pci_address})[0].get(0, {})


def nvml_blocks(devices: Sequence[CudaDevice]) -> tuple[dict[int, dict[str, Any]], str | None, str]:
    """Return NVML's block by device index, the driver's own version, and why there is none."""
    return _nvml_blocks({device.index: (device.uuid, device.pci_address) for device in devices})


def _nvml_blocks(
    wanted: Mapping[int, tuple[str | None, str | None]],
) -> tuple[dict[int, dict[str, Any]], str | None, str]:
    if not wanted:
        return {}, None, ""
    from kmrun.device import nvml

    try:
        found = bounded("NVML", SENSORS_S, lambda: nvml.facts_of(wanted))
    except (NoAnswer, nvml.NvmlLost) as lost:
        return {}, None, str(lost)
    return found["devices"], found["driver_version"], "NVML does not know this device"


def smi_blocks(devices: Sequence[HipDevice]) -> tuple[dict[int, dict[str, Any]], str | None, str]:
    """Return AMD SMI's block by device index, else ROCm SMI's, which of them it was, and why there is none."""
    return _smi_blocks({device.index: device.pci_address for device in devices})


def _smi_blocks(wanted: Mapping[int, str | None]) -> tuple[dict[int, dict[str, Any]], str | None, str]:
    if not wanted:
        return {}, None, ""
    from kmrun.device.rocm_smi import SmiLost

    notes = []
    for name, module, library in (("amd_smi", "amd_smi", "AmdSmi"), ("rocm_smi", "rocm_smi", "RocmSmi")):
        opened = getattr(importlib.import_module(f"kmrun.device.{module}"), library)

        def ask(opened: Callable[[], Any] = opened) -> dict[int, dict[str, Any]]:
            with opened() as smi:
                known = {index: smi.device(address) for index, address in wanted.items()}
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
