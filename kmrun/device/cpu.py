"""What the operating system says of this machine's CPU and memory. Sizes in bytes; None where it does not say."""

import os
import platform
import re
from pathlib import Path

from kmrun.core.cpu_peak import arm_core
from kmrun.core.printable import printable

_ROOT = Path("/")
_CACHE_ROOT = Path("/sys/devices/system/cpu/cpu0/cache")
_UNITS = {"K": 2**10, "M": 2**20, "G": 2**30}


def allowed_cpus() -> frozenset[int]:
    """Return the numbers of the logical CPUs that this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return frozenset(os.sched_getaffinity(0))
    return frozenset(range(os.cpu_count() or 1))


def usable_cores() -> int:
    """Return how many cores this process may run on: its affinity, cut to the cgroup's CPU quota."""
    affinity, quota = len(allowed_cpus()), _cgroup_cpu_quota()
    return affinity if quota is None else max(1, min(affinity, int(quota)))


def model_name(root: Path = _ROOT) -> str:
    """Return the processor's name as the OS prints it; Arm's cores by their numbers, since Linux names none."""
    text = _read(root / "proc/cpuinfo") or ""
    found = re.search(r"^(?:model name|Model|cpu model|cpu)[ \t]*:[ \t]*(\S.*)$", text, re.MULTILINE)
    if found:
        return printable(found[1].strip())
    parts = re.findall(
        r"^CPU implementer\s*: (0x\w+)$.*?^CPU part\s*: (0x\w+)$", text, re.MULTILINE | re.DOTALL
    )
    names = dict.fromkeys(arm_core(maker, part) for maker, part in parts)
    known = " + ".join(name for name in names if name)
    return known or platform.processor() or platform.machine() or "unknown CPU"


def caches() -> dict[int, int]:
    """Return the size in bytes of the largest data or unified cache per level, e.g. ``{1: 49152, 3: 33554432}``."""
    sizes: dict[int, int] = {}
    if not _CACHE_ROOT.is_dir():
        return sizes
    for index in sorted(_CACHE_ROOT.glob("index*")):
        kind, level, size = (_read(index / name) for name in ("type", "level", "size"))
        if kind is None or level is None or size is None or kind.strip() == "Instruction":
            continue
        found = re.fullmatch(r"(\d+)([KMG]?)\s*", size)
        if found:
            value = int(found[1]) * _UNITS.get(found[2], 1)
            sizes[int(level)] = max(sizes.get(int(level), 0), value)
    return sizes


def llc_bytes() -> int:
    """Return the size of the last-level cache, 32 MiB where the OS does not say (a common desktop figure)."""
    sizes = caches()
    return sizes[max(sizes)] if sizes else 32 * 2**20


def memory_total_bytes() -> int:
    """Return the memory this process may use at all: the machine's, cut to the cgroup's limit."""
    total = _meminfo("MemTotal")
    if total is None:
        total = (
            os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") if hasattr(os, "sysconf") else 8 * 2**30
        )
    limit = _cgroup_number("memory.max")
    return total if limit is None else min(total, limit)


def memory_available_bytes() -> int:
    """Return the memory that can still be taken without swapping, cut to what the cgroup leaves."""
    available = _meminfo("MemAvailable")
    if available is None:
        available = memory_total_bytes() // 2
    limit, used = _cgroup_number("memory.max"), _cgroup_number("memory.current")
    return available if limit is None or used is None else max(0, min(available, limit - used))


def _meminfo(key: str) -> int | None:
    found = re.search(rf"^{key}:\s+(\d+) kB$", _read("/proc/meminfo") or "", re.MULTILINE)
    return int(found[1]) * 1024 if found else None


def _cgroup_number(name: str) -> int | None:
    text = _read(f"/sys/fs/cgroup/{name}")
    return int(text) if text and text.strip().isdigit() else None


def _cgroup_cpu_quota() -> float | None:
    parts = (_read("/sys/fs/cgroup/cpu.max") or "").split()
    known = len(parts) == 2 and all(part.isdecimal() for part in parts) and int(parts[1])
    return int(parts[0]) / int(parts[1]) if known else None


def _read(path: str | Path) -> str | None:
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
