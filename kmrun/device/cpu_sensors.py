"""The CPU's sensors, as far as the system lets us read them: clock, temperature, RAPL energy; and who uses it."""

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from kmrun.core.cpu_load import CpuTimes
from kmrun.core.telemetry import Reading
from kmrun.device import plausible
from kmrun.device.sampler import Sensors, Source, clock

CPU_PERIOD_S = 0.5
"""Reading a core's clock may interrupt that core, which is also what is being measured."""
_CLOCKS_READ = 8
_HWMON = ("coretemp", "k10temp", "zenpower", "cpu_thermal")
_ZONES = ("x86_pkg_temp", "cpu-thermal", "cpu_thermal")
_ROOT = Path("/")


class CpuSensors:
    """The sensors of this machine's CPU; each is None where there is none, or it is not for us to read."""

    def __init__(self, root: Path = _ROOT) -> None:
        """Find the files; `root` is where /proc and /sys lie."""
        self._clocks = _spread(
            sorted((root / "sys/devices/system/cpu").glob("cpu[0-9]*/cpufreq/scaling_cur_freq"))
        )
        self._most = root / "sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq"
        self._temperatures = _temperatures(root)
        self._packages = [
            _Package(path)
            for path in sorted((root / "sys/class/powercap").glob("*-rapl:[0-9]*"))
            if _whole(path)
        ]

    def sm_mhz_max(self) -> float | None:
        """Return the highest clock of a core in MHz."""
        value = _number(self._most)
        return None if value is None else plausible.mhz(value / 1e3)

    def mem_mhz_max(self) -> float | None:
        """Return None: systems do not say the clock of their memory."""
        return None

    def read(self, at_s: float) -> Reading:
        """Return the mean clock of the cores, the hottest spot, and the energy of all sockets."""
        clocks = _known(plausible.mhz, (_number(path) for path in self._clocks))
        spots = _known(plausible.celsius, (_number(path) for path in self._temperatures))
        energies = [package.joules() for package in self._packages]
        known = [energy for energy in energies if energy is not None]
        return Reading(
            at_s=at_s,
            sm_mhz=sum(clocks) / len(clocks) if clocks else None,
            temp_c=max(spots, default=None),
            energy_j=sum(known) if known and len(known) == len(energies) else None,
        )


class _Package:
    """The energy counter of one socket, which wraps around every few minutes of load."""

    def __init__(self, path: Path) -> None:
        self._counter = path / "energy_uj"
        self._range = _number(path / "max_energy_range_uj")
        self._last: int | None = None
        self._wrapped = 0

    def joules(self) -> float | None:
        """Return the energy in J, None where only root may read it."""
        now = _number(self._counter)
        if now is None:
            return None
        if self._last is not None and now < self._last and self._range:
            self._wrapped += self._range
        self._last = now
        return (now + self._wrapped) / 1e6


def cpu_source(root: Path = _ROOT) -> Source:
    """Return the source of this machine's CPU for a `Sampler`, to be polled every `CPU_PERIOD_S`."""

    @contextmanager
    def opened() -> Iterator[Sensors]:
        yield CpuSensors(root)

    return Source("cpu", opened)


def cpu_times(pids: Iterable[int], root: Path = _ROOT) -> CpuTimes | None:
    """Return the CPU times of the machine and of our processes now; None where the system does not count them.

    Args:
        pids: of our processes, all of which count with their threads; one that has ended counts nothing.
        root: where /proc lies.
    """
    try:
        ticks = os.sysconf("SC_CLK_TCK")
        fields = (root / "proc/stat").read_text().partition("\n")[0].split()
        # cpu user nice system idle iowait irq softirq steal guest guest_nice; the last two are in the first two.
        numbers = [int(field) for field in fields[1:]]
    except (OSError, ValueError, AttributeError):
        return None
    if fields[:1] != ["cpu"] or len(numbers) < 8:
        return None
    user, nice, system, _, _, interrupts, soft, steal = numbers[:8]
    own = sum(_process_ticks(root / f"proc/{pid}/stat") for pid in pids)
    busy = user + nice + system + interrupts + soft
    return CpuTimes(clock(), busy / ticks, steal / ticks, own / ticks)


def _process_ticks(path: Path) -> int:
    try:
        # The command's name stands in brackets, and may hold anything.
        fields = path.read_text(errors="replace").rpartition(")")[2].split()
        return int(fields[11]) + int(fields[12])
    except (OSError, ValueError, IndexError):  # it has ended meanwhile
        return 0


def _temperatures(root: Path) -> list[Path]:
    # One for each socket.
    folders = [
        path for path in sorted((root / "sys/class/hwmon").glob("hwmon*")) if _text(path / "name") in _HWMON
    ]
    if folders:
        return [path for folder in folders for path in sorted(folder.glob("temp*_input"))]
    zones = sorted((root / "sys/class/thermal").glob("thermal_zone*"))
    return [zone / "temp" for zone in zones if _text(zone / "type") in _ZONES]


def _whole(path: Path) -> bool:
    """Return whether a RAPL domain is a socket: `intel-rapl:0`, not its parts, nor the platform around it."""
    return path.name.count(":") == 1 and (_text(path / "name") or "").startswith("package")


def _spread(paths: list[Path]) -> list[Path]:
    step = max(1, len(paths) // _CLOCKS_READ)
    return paths[::step][:_CLOCKS_READ]


def _known(figure: Callable[[float], float | None], values: Iterable[int | None]) -> list[float]:
    """Return the figures of sensors that answer in thousandths."""
    found = (figure(value / 1e3) for value in values if value is not None)
    return [value for value in found if value is not None]


def _number(path: Path) -> int | None:
    text = _text(path)
    return int(text) if text is not None and text.lstrip("-").isdecimal() else None


def _text(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return None
