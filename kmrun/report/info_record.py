"""The document of `kmrun info --json`: what a machine has, with the unit in every key."""

from typing import Any

from kmrun.core.peaks import FIGURES, SCALE, Peaks, peaks
from kmrun.device.cpu_facts import CpuFacts
from kmrun.device.facts import GpuFacts, Gpus

VERSION = 1


def record(gpus: Gpus, cpu: CpuFacts) -> dict[str, Any]:
    """Return the document."""
    return {
        "kmrun_info": VERSION,
        "versions": dict(gpus.versions),
        "devices": [_device(device) for device in gpus.devices],
        "cpu": _cpu(cpu),
        "failures": [failure.sentence for failure in gpus.failures],
    }


def scaled(found: Peaks) -> dict[str, float]:
    """Return the known figures in the units that their names carry."""
    return {name: found.values[name] / SCALE[name] for name in FIGURES if name in found.values}


def _device(device: GpuFacts) -> dict[str, Any]:
    nvidia = device.vendor == "nvidia"
    card = device.card
    return {
        "index": device.index,
        "vendor": device.vendor,
        "name": device.name,
        "memory_bytes": device.memory_bytes,
        "compute_capability": device.architecture if nvidia else None,
        "gfx": None if nvidia else device.architecture,
        "uuid": device.uuid,
        "pci_address": device.pci_address,
        "mig": device.is_mig,
        "peaks": scaled(device.peaks),
        "card": None
        if card is None
        else {
            "id": card.id,
            "name": card.name,
            "peaks": scaled(peaks(card)),
            "differences": [
                {"what": one.what, "driver": one.driver, "card": one.card, "unit": one.unit or None}
                for one in device.differences
            ],
        },
        "candidates": list(device.candidates),
        "nvml": dict(device.sensors) if device.sensors and device.sensors_source == "nvml" else None,
        "smi": {"source": device.sensors_source, **device.sensors}
        if device.sensors and device.sensors_source != "nvml"
        else None,
        "sensors_note": device.sensors_note or None,
        "notes": list(device.notes),
        "attributes": dict(device.attributes),
    }


def _cpu(cpu: CpuFacts) -> dict[str, Any]:
    return {
        "model": cpu.model,
        "architecture": cpu.architecture,
        "vendor": cpu.vendor,
        "family": cpu.family,
        "model_number": cpu.model_number,
        "sockets": cpu.sockets,
        "cores": cpu.cores,
        "threads": cpu.threads,
        "usable": cpu.usable,
        "virtual": cpu.virtual,
        "simd": list(cpu.simd),
        "cache_bytes": {f"l{level}": size for level, size in sorted(cpu.caches.items())},
        "numa_nodes": cpu.numa_nodes,
        "governor": cpu.governor,
        "frequency_driver": cpu.frequency_driver,
        "clock_hz": cpu.clock_hz,
        "max_clock_hz": cpu.highest_clock_hz,
        "memory_bytes": cpu.memory_bytes,
        "memory_available_bytes": cpu.memory_available_bytes,
        "vector_peak": {
            "derived": True,
            "fp32_tflops": None if cpu.vector_peak_fp32 is None else cpu.vector_peak_fp32 / 1e12,
            "fp64_tflops": None if cpu.vector_peak_fp64 is None else cpu.vector_peak_fp64 / 1e12,
            "note": cpu.peak_note,
        },
    }
