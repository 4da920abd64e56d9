"""Facts of this machine's CPU for people: model, cores, SIMD, caches, NUMA, governor, memory, derived peak."""

import os
import platform
import re
from dataclasses import dataclass, field
from pathlib import Path

from kmrun.core.cpu_peak import VectorUnits, vector_peak, vector_units
from kmrun.device import cpu

_ROOT = Path("/")
_HIGHEST, _NAMED, _NOW = "highest of one core", "base clock of its name", "as the system reports it now"
_NO_PEAK = "no vector peak: "
_SIMD = (
    ("amx_tile", "AMX"),
    ("avx512_fp16", "AVX-512 FP16"),
    ("avx512_bf16", "AVX-512 BF16"),
    ("avx512_vnni", "AVX-512 VNNI"),
    ("avx512f", "AVX-512"),
    ("avx_vnni", "AVX-VNNI"),
    ("avx2", "AVX2"),
    ("fma", "FMA"),
    ("f16c", "F16C"),
    ("avx", "AVX"),
    ("sve2", "SVE2"),
    ("sve", "SVE"),
    ("asimd", "NEON"),
)
"""Flag to the name that people know, the strongest first."""


@dataclass(frozen=True, slots=True)
class CpuFacts:
    """What the operating system says of the CPU; None where it does not.

    `cores` are physical, `threads` logical, `usable` what this process may run on (affinity and cgroup).
    `peak_clock_hz` is the clock that `vector_peak_*` of the usable cores are derived at: the highest of one core
    where the system says that, else what is known; `clock_source` says which it is.
    """

    model: str
    architecture: str
    vendor: str | None
    family: int | None
    model_number: int | None
    sockets: int | None
    cores: int | None
    threads: int
    usable: int
    simd: tuple[str, ...]
    caches: dict[int, int]
    numa_nodes: int | None
    governor: str | None
    frequency_driver: str | None
    clock_hz: float | None
    peak_clock_hz: float | None
    clock_source: str | None
    memory_bytes: int
    memory_available_bytes: int
    virtual: bool
    units: str | None = None
    vector_peak_fp32: float | None = None
    vector_peak_fp64: float | None = None
    peak_note: str = ""
    flags: frozenset[str] = field(default_factory=frozenset, repr=False)

    @property
    def highest_clock_hz(self) -> float | None:
        """The highest clock of one core; None where the system does not say it."""
        return self.peak_clock_hz if self.clock_source == _HIGHEST else None

    @property
    def named_clock_hz(self) -> float | None:
        """The base clock that the model's name gives, where the system does not say the highest."""
        return self.peak_clock_hz if self.clock_source == _NAMED else None


def cpu_facts(root: Path = _ROOT) -> CpuFacts:
    """Return the facts; `root` is where /proc and /sys lie."""
    blocks = _blocks(_text(root / "proc/cpuinfo"))
    first = blocks[0] if blocks else {}
    vendor = first.get("vendor_id") or first.get("CPU implementer")
    family = _integer(first.get("cpu family") or first.get("CPU architecture"))
    model = _integer(first.get("model") or first.get("CPU part"))
    flags = frozenset((first.get("flags") or first.get("Features") or "").split())
    name = cpu.model_name(root)
    places = _topology(root, blocks)
    frequency = root / "sys/devices/system/cpu/cpu0/cpufreq"
    maximum, source = _maximum(frequency, first)
    usable = cpu.usable_cores()
    known = vendor is not None and family is not None and model is not None
    units = vector_units(vendor or "", family or 0, model or 0, flags, name) if known else None
    mixed = len({block[key] for block in blocks for key in ("CPU part",) if key in block}) > 1
    clocks = _core_clocks(root, places, usable, maximum) if maximum and units and not mixed else []
    return CpuFacts(
        model=name,
        architecture=platform.machine(),
        vendor=vendor,
        family=family,
        model_number=model,
        sockets=len({package for package, _ in places.values()}) or None,
        cores=len(set(places.values())) or None,
        threads=os.cpu_count() or 1,
        usable=usable,
        simd=tuple(name for flag, name in _SIMD if flag in flags),
        caches=cpu.caches(),
        numa_nodes=_numa_nodes(root),
        governor=_line(frequency / "scaling_governor"),
        frequency_driver=_line(frequency / "scaling_driver"),
        clock_hz=_kilohertz(_line(frequency / "scaling_cur_freq")) or _megahertz(first.get("cpu MHz")),
        peak_clock_hz=maximum,
        clock_source=source,
        memory_bytes=cpu.memory_total_bytes(),
        memory_available_bytes=cpu.memory_available_bytes(),
        virtual="hypervisor" in flags,
        units=units.name if units else None,
        vector_peak_fp32=vector_peak(units, clocks, 32) if units and clocks else None,
        vector_peak_fp64=vector_peak(units, clocks, 64) if units and clocks else None,
        peak_note=_NO_PEAK + "its cores are of several kinds" if mixed else _peak_note(units, clocks, source),
        flags=flags,
    )


def _peak_note(units: VectorUnits | None, clocks: list[float], source: str | None) -> str:
    if units is None:
        return _NO_PEAK + "what this model's cores do in a clock is not known"
    if not clocks:
        return _NO_PEAK + "the system does not say the clock"
    low, high = f"{min(clocks) / 1e9:.2f}", f"{max(clocks) / 1e9:.2f}"
    span = f"{high} GHz ({source})" if low == high else f"{low} to {high} GHz (highest of each core)"
    return f"derived: {len(clocks)} x {units.flop_per_clock(32)} flop a clock ({units.name}) x {span}"


def _core_clocks(
    root: Path, places: dict[int, tuple[str, str]], usable: int, otherwise: float
) -> list[float]:
    """Return the highest clock in Hz of each core that this process may use: two threads of one share its units.

    Cores of one CPU may differ in it; where one does not say its own, it is `otherwise`.
    """
    allowed = cpu.allowed_cpus()
    found: dict[tuple[str, str] | int, float] = {}
    for number in sorted(allowed):
        folder = root / f"sys/devices/system/cpu/cpu{number}/cpufreq"
        found[places.get(number, number)] = _kilohertz(_line(folder / "cpuinfo_max_freq")) or otherwise
    return sorted(found.values(), reverse=True)[:usable]


def _topology(root: Path, blocks: list[dict[str, str]]) -> dict[int, tuple[str, str]]:
    """Return the socket and the physical core of each logical CPU."""
    places = {
        int(block["processor"]): (block["physical id"], block["core id"])
        for block in blocks
        if {"physical id", "core id"} <= set(block) and block.get("processor", "").isdecimal()
    }
    if not places:
        for path in sorted((root / "sys/devices/system/cpu").glob("cpu[0-9]*/topology")):
            package, core = _line(path / "physical_package_id"), _line(path / "core_id")
            if package is not None and core is not None:
                places[int(path.parent.name.removeprefix("cpu"))] = (package, core)
    return places


def _maximum(frequency: Path, first: dict[str, str]) -> tuple[float | None, str | None]:
    highest = _kilohertz(_line(frequency / "cpuinfo_max_freq"))
    if highest is not None:
        return highest, _HIGHEST
    named = re.search(r"@ ([0-9.]+)GHz", first.get("model name", ""))
    if named:
        return float(named[1]) * 1e9, _NAMED
    now = _megahertz(first.get("cpu MHz"))
    return now, None if now is None else _NOW


def _numa_nodes(root: Path) -> int | None:
    nodes = list((root / "sys/devices/system/node").glob("node[0-9]*"))
    return len(nodes) or None


def _blocks(text: str | None) -> list[dict[str, str]]:
    blocks = []
    for block in (text or "").split("\n\n"):
        pairs = (line.partition(":") for line in block.splitlines() if ":" in line)
        found = {key.strip(): value.strip() for key, _, value in pairs}
        if found:
            blocks.append(found)
    return blocks


def _integer(text: str | None) -> int | None:
    try:
        return int(text, 0) if text else None
    except ValueError:
        return None


def _kilohertz(text: str | None) -> float | None:
    return int(text) * 1e3 if text and text.isdigit() and int(text) else None


def _megahertz(text: str | None) -> float | None:
    try:
        return float(text) * 1e6 if text and float(text) else None
    except ValueError:
        return None


def _line(path: Path) -> str | None:
    text = _text(path)
    return text.strip() or None if text is not None else None


def _text(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
