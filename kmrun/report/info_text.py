"""What `kmrun info` prints for people."""

from collections.abc import Mapping, Sequence
from typing import Any

from kmrun.core.peaks import BANDWIDTH, FIGURES, peaks
from kmrun.core.units import format_number
from kmrun.device.cpu_facts import CpuFacts
from kmrun.device.facts import Difference, GpuFacts, Gpus
from kmrun.report.fitting import fitted
from kmrun.report.info_record import scaled
from kmrun.report.numbers import count

WIDTH = 100
_LABEL = 26
_ATTRIBUTE = 48
_SENSORS = {"nvml": "nvml", "rocm_smi": "ROCm SMI", "amd_smi": "AMD SMI"}


def lines(gpus: Gpus, cpu: CpuFacts, width: int = WIDTH) -> list[str]:
    """Return the text of a whole machine, `width` columns at most: versions, GPUs with their attributes, the CPU."""
    names = {"cuda": "CUDA", "hip": "HIP", "nvidia_driver": "driver"}
    versions = [f"{names.get(key, key)} {version}" for key, version in gpus.versions.items()]
    text = [" · ".join(versions), ""] if versions else []
    for device in gpus.devices:
        text += [*_device(device), ""]
    return fitted([*text, *_cpu(cpu)], min(width, WIDTH))


def figure_title(figure: str) -> str:
    """Return what people call a figure: `fp16 tensor`, `fp16 tensor, fp32 sum`."""
    if figure == BANDWIDTH:
        return "bandwidth"
    return figure.rpartition("_")[0].replace("_fp32acc", ", fp32 sum").replace("_", " ")


def figure_text(figure: str, value: float | None) -> str:
    """Return a figure with its unit: `320.1 GB/s`, `65.13 TFLOP/s`."""
    if value is None:
        return "-"
    if figure == BANDWIDTH:
        return f"{value:.1f} GB/s"
    return f"{value:.2f} {'TOP/s' if figure.endswith('_tops') else 'TFLOP/s'}"


def _device(device: GpuFacts) -> list[str]:
    kind = "compute capability" if device.vendor == "nvidia" else ""
    architecture = (
        f"{kind} {device.architecture}".strip()
        if device.architecture
        else f"{kind or 'architecture'} unknown"
    )
    parts = [f"{device.memory_bytes / 2**30:.1f} GiB", architecture]
    text = [f"device {device.index}: {device.name} ({', '.join(parts)})"]
    card = device.card
    if device.is_mig:
        text += _entry(
            "card", "a MIG slice: no published roof applies; `kmrun ceiling` measures what it delivers"
        )
    elif card is not None:
        text += _entry("card", f"{card.id} ({card.name})")
    else:
        maybe = f"; it may be {' or '.join(device.candidates)}" if device.candidates else ""
        text += _entry("card", f"none of the database fits{maybe}")
    text += _peaks(device)
    for difference in device.differences:
        text += _entry("differs", _difference(difference))
    for note in device.notes:
        text += _entry("note", note)
    text += _sensors(device)
    if device.uuid:
        text += _entry("uuid", device.uuid)
    if device.pci_address:
        text += _entry("pci address", device.pci_address)
    rows = [f"  {name:<{_ATTRIBUTE}} {value:>14}" for name, value in device.attributes.items()]
    head = f"  {'attribute':<{_ATTRIBUTE}} {'value':>14}"
    total = f"  {count(len(rows), 'attribute')}"
    return [*text, "", head, f"  {'-' * _ATTRIBUTE} {'-' * 14}", *rows, total]


def _peaks(device: GpuFacts) -> list[str]:
    """Return the peaks at the driver's highest clocks, beside those of the matched card at its published ones."""
    ours = scaled(device.peaks)
    theirs = scaled(peaks(device.card)) if device.card else {}
    known = [name for name in FIGURES if name in ours or name in theirs]
    if not known:
        return []
    cells = [
        (figure_title(name), figure_text(name, ours.get(name)), figure_text(name, theirs.get(name)))
        for name in known
    ]
    heads = ("peak (derived)", "driver's clocks", "card's clocks" if theirs else "")
    first, second = (max(len(heads[at]), *(len(cell[at]) for cell in cells)) for at in (1, 2))
    return [
        f"  {title:<{_LABEL - 2}}  {own:>{first}}  {card if theirs else '':>{second}}".rstrip()
        for title, own, card in (heads, *cells)
    ]


def _difference(found: Difference) -> str:
    unit = f" {found.unit}" if found.unit else ""
    ours, theirs = (f"{value:.4g}" if value < 1e4 else f"{value:.0f}" for value in (found.driver, found.card))
    return f"{found.what}: {ours}{unit} by the driver, {theirs}{unit} by the card"


def _sensors(device: GpuFacts) -> list[str]:
    if device.sensors is None:
        # Where the sensors of a vendor have several libraries, the note names them.
        label = "nvml" if device.vendor == "nvidia" else "sensors"
        return _entry(label, f"none: {device.sensors_note}") if device.sensors_note else []
    source = _source(device)
    if "error" in device.sensors:
        return _entry(source, f"none: {device.sensors['error']}")
    rows = sensor_rows(device)
    if not rows:
        return _entry(source, "none: this card and its driver answer no query")
    return [line for label, value in rows for line in _entry(f"{label} ({source})", value)]


def sensor_rows(device: GpuFacts) -> list[tuple[str, str]]:
    """Return what the sensors' library says of a device, as (name, text); empty where it says nothing."""
    block = device.sensors
    if block is None or "error" in block:
        return []
    rows: list[tuple[str, str | None]] = [
        ("architecture", _architecture(block)),
        ("pcie link", _link(block)),
        ("memory in use", _memory(block)),
        ("processes", _text(block, "processes")),
        ("ecc", _switch(block.get("ecc"))),
        ("vbios", _text(block, "vbios")),
        ("power", _power(block)),
        ("clocks", _clocks(block)),
        ("temperature", _text(block, "temp_c", " C", "{:.0f}")),
        ("throttle", _throttle(block.get("throttle"))),
        ("persistence", _switch(block.get("persistence"))),
        ("compute mode", _text(block, "compute_mode")),
        ("mig", "a slice" if block.get("mig_slice") else _switch(block.get("mig"))),
        ("driver", _text(block, "driver_version")),
    ]
    return [(label, value) for label, value in rows if value is not None]


def _source(device: GpuFacts) -> str:
    return _SENSORS.get(device.sensors_source or "", device.sensors_source or "")


def _architecture(block: Mapping[str, Any]) -> str | None:
    cores = block.get("cuda_cores")
    parts = [block.get("architecture"), f"{cores} CUDA cores" if cores is not None else None]
    return ", ".join(part for part in parts if part) or None


def _link(block: Mapping[str, Any]) -> str | None:
    generation, width = block.get("pcie_gen"), block.get("pcie_width")
    if generation is None or width is None:
        return None
    most = f" (at most gen {block.get('pcie_gen_max') or '?'} x{block.get('pcie_width_max') or '?'})"
    return f"gen {generation} x{width} now{most}"


def _memory(block: Mapping[str, Any]) -> str | None:
    used, total = block.get("memory_used_bytes"), block.get("memory_total_bytes")
    if used is None or total is None:
        return None
    return f"{used / 2**20:.0f} of {total / 2**20:.0f} MiB"


def _power(block: Mapping[str, Any]) -> str | None:
    now, limit = block.get("power_w"), block.get("power_limit_w")
    if now is None and limit is None:
        return None
    low, high, default = (block.get(f"power_limit_{name}_w") for name in ("min", "max", "default"))
    span = f", settable {low:.0f} to {high:.0f} W" if low is not None and high is not None else ""
    usual = f", default {default:.0f} W" if default is not None and default != limit else ""
    shown = "-" if now is None else f"{now:.1f}"
    return f"{shown} W" if limit is None else f"{shown} of {limit:.0f} W{usual}{span}"


def _clocks(block: Mapping[str, Any]) -> str | None:
    parts = [
        f"{title} {now:.0f}" + (f" of {most:.0f}" if most is not None else "") + " MHz"
        for title, now, most in (
            ("SM", block.get("sm_mhz"), block.get("sm_mhz_max")),
            ("memory", block.get("mem_mhz"), block.get("mem_mhz_max")),
        )
        if now is not None
    ]
    return ", ".join(parts) or None


def _throttle(reasons: Sequence[str] | None) -> str | None:
    if reasons is None:
        return None
    return ", ".join(reason.replace("_", " ") for reason in reasons) or "none"


def _switch(value: bool | None) -> str | None:
    return None if value is None else "on" if value else "off"


def _text(block: Mapping[str, Any], key: str, unit: str = "", form: str = "{}") -> str | None:
    value = block.get(key)
    return None if value is None else form.format(value) + unit


def _cpu(cpu: CpuFacts) -> list[str]:
    parts = [count(cpu.sockets, "socket")] if cpu.sockets else []
    parts += [count(cpu.cores, "core")] if cpu.cores else []
    parts += [count(cpu.threads, "thread"), f"{cpu.usable} usable here"]
    text = [f"cpu: {cpu.model} ({', '.join(parts)})"]
    machine = cpu.architecture + (", a virtual machine" if cpu.virtual else "")
    caches = " · ".join(f"L{level} {_size(size)}" for level, size in sorted(cpu.caches.items()))
    governor = cpu.governor and cpu.governor + (f" ({cpu.frequency_driver})" if cpu.frequency_driver else "")
    known = ((cpu.clock_hz, "now"), (cpu.highest_clock_hz, "at most"), (cpu.named_clock_hz, "by its name"))
    clocks = [f"{value / 1e9:.2f} GHz {what}" for value, what in known if value is not None]
    clocks += ["the highest is not known"] if cpu.highest_clock_hz is None else []
    rows: list[tuple[str, str | None]] = [
        ("architecture", machine),
        ("simd", ", ".join(cpu.simd) or None),
        ("caches", caches or None),
        ("numa", count(cpu.numa_nodes, "node") if cpu.numa_nodes else None),
        ("governor", governor or None),
        ("clock", ", ".join(clocks) or None),
        ("memory", f"{_size(cpu.memory_bytes)}, {_size(cpu.memory_available_bytes)} available"),
        ("vector peak", _vector_peak(cpu)),
    ]
    return [*text, *(line for label, value in rows if value for line in _entry(label, value))]


def _vector_peak(cpu: CpuFacts) -> str:
    if cpu.vector_peak_fp32 is None or cpu.vector_peak_fp64 is None:
        return cpu.peak_note.removeprefix("no vector peak: ") + ": none derived"
    return (
        f"{cpu.vector_peak_fp32 / 1e12:.2f} TFLOP/s fp32, {cpu.vector_peak_fp64 / 1e12:.2f} TFLOP/s fp64 "
        f"({cpu.peak_note})"
    )


def _size(size: int) -> str:
    for unit, factor in (("GiB", 2**30), ("MiB", 2**20)):
        if size >= factor:
            return f"{format_number(size / factor)} {unit}"
    return f"{size / 2**10:.0f} KiB"


def _entry(label: str, value: str) -> list[str]:
    return [f"  {label:<{_LABEL}}{value}"]
