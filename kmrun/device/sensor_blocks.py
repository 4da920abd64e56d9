"""What NVML, AMD SMI and ROCm SMI say of devices that their drivers have listed, asked within a time limit.

A device that hangs keeps no other from answering: each is asked in a thread of its own.
"""

import contextlib
import importlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from kmrun.device.bounded import NoAnswer, bounded, bounded_each
from kmrun.device.cuda_driver import CudaDevice
from kmrun.device.rocm import HipDevice

SENSORS_S = 5.0


@dataclass(frozen=True, slots=True)
class Blocks:
    """What one library says: the block of each device by index, of the others why there is none."""

    source: str | None = None
    found: Mapping[int, dict[str, Any]] = field(default_factory=dict)
    notes: Mapping[int, str] = field(default_factory=dict)
    driver: str | None = None


def nvml_facts(
    uuid: str | None, pci_address: str | None, is_mig: bool = False, seconds: float | None = None
) -> tuple[dict[str, Any], str | None, str]:
    """Return NVML's block of one device, empty where there is none, the driver's own version, and why not."""
    blocks = _nvml_blocks({0: (uuid, pci_address, is_mig)}, seconds or SENSORS_S)
    block = blocks.found.get(0, {})
    return (
        ({}, blocks.driver, block["error"])
        if "error" in block
        else (block, blocks.driver, blocks.notes.get(0, ""))
    )


def smi_facts(pci_address: str | None, seconds: float | None = None) -> dict[str, Any]:
    """Return AMD SMI's block of one device, else ROCm SMI's, empty where there is none."""
    return _smi_blocks({0: pci_address}, seconds or SENSORS_S).found.get(0, {})


def nvml_blocks(devices: Sequence[CudaDevice], seconds: float | None = None) -> Blocks:
    """Return what NVML says, and the driver's own version; each of its answers may take so many seconds."""
    names = {device.index: (device.uuid, device.pci_address, device.is_mig) for device in devices}
    return _nvml_blocks(names, seconds or SENSORS_S)


def _nvml_blocks(wanted: Mapping[int, tuple[str | None, str | None, bool]], seconds: float) -> Blocks:
    if not wanted:
        return Blocks()
    from kmrun.device import nvml

    def ask(
        library: nvml.Nvml, uuid: str | None, pci_address: str | None, is_mig: bool
    ) -> dict[str, Any] | None:
        device = library.device(uuid, pci_address, is_mig)
        return None if device is None else device.facts()

    try:
        library = bounded("NVML", seconds, nvml.Nvml().__enter__)
    except (NoAnswer, nvml.NvmlLost) as lost:
        return Blocks("nvml", notes=dict.fromkeys(wanted, str(lost)))
    calls = {index: partial(ask, library, *names) for index, names in wanted.items()}
    answers = bounded_each("NVML", seconds, calls, nvml.NvmlLost)
    driver: str | None = None
    with contextlib.suppress(NoAnswer, nvml.NvmlLost):
        driver = bounded("NVML", seconds, library.driver_version)
    _close("NVML", library, answers, seconds)
    return _sorted("nvml", answers, "NVML does not know this device", driver)


def smi_blocks(devices: Sequence[HipDevice], seconds: float | None = None) -> Blocks:
    """Return what AMD SMI says, else ROCm SMI; each of their answers may take so many seconds."""
    return _smi_blocks({device.index: device.pci_address for device in devices}, seconds or SENSORS_S)


def _smi_blocks(wanted: Mapping[int, str | None], seconds: float) -> Blocks:
    if not wanted:
        return Blocks()
    from kmrun.device.rocm_smi import SmiLost

    notes = []
    for name, module, kind in (("amd_smi", "amd_smi", "AmdSmi"), ("rocm_smi", "rocm_smi", "RocmSmi")):
        opened: Callable[[], Any] = getattr(importlib.import_module(f"kmrun.device.{module}"), kind)
        try:
            library = bounded(name, seconds, opened().__enter__)
        except (NoAnswer, SmiLost) as lost:
            notes.append(str(lost))
            continue
        calls = {index: partial(_smi_block, library, address) for index, address in wanted.items()}
        answers = bounded_each(name, seconds, calls, SmiLost)
        _close(name, library, answers, seconds)
        blocks = _sorted(name, answers, "the library does not know this device")
        if blocks.found:
            return blocks
        silent = [answer for answer in answers.values() if isinstance(answer, Exception)]
        notes.append(str(silent[0]) if silent else f"{name} knows none of the devices")
    return Blocks(notes=dict.fromkeys(wanted, "; ".join(notes)))


def _smi_block(library: Any, pci_address: str | None) -> dict[str, Any] | None:
    device = library.device(pci_address)
    return None if device is None else device.facts()


def _close(name: str, library: Any, answers: Mapping[int, Any], seconds: float) -> None:
    """Let a library go, unless a call is still in it."""
    if not any(isinstance(answer, NoAnswer) for answer in answers.values()):
        with contextlib.suppress(NoAnswer):
            bounded(name, seconds, lambda: library.__exit__(None, None, None))


def _sorted(
    name: str,
    answers: Mapping[int, dict[str, Any] | Exception | None],
    unknown: str,
    driver: str | None = None,
) -> Blocks:
    found: dict[int, dict[str, Any]] = {}
    notes: dict[int, str] = {}
    for index, answer in answers.items():
        if answer is None:
            notes[index] = unknown
        elif isinstance(answer, NoAnswer):
            notes[index] = str(answer)
        elif isinstance(answer, Exception):
            found[index] = {"error": str(answer)}
        else:
            found[index] = answer
    return Blocks(name, found, notes, driver)
