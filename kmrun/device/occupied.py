"""Having a GPU to oneself: who else uses it, a lock that runs of kmrun share, and a clock that is held."""

import contextlib
import os
import re
import stat
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, TypeVar

from kmrun.core.clocks import STEADY
from kmrun.core.units import BYTES, format_quantity
from kmrun.device.bounded import NoAnswer, bounded
from kmrun.device.clock_keeper import ClockKeeper
from kmrun.errors import EnvironmentLacks

if TYPE_CHECKING:
    from kmrun.device.nvml import NvmlDevice

ANSWER_S = 5.0
FOREIGN_BYTES, FOREIGN_SHARE = 512 << 20, 0.02
_COMMON = ("/run/lock", "/var/lock", "/dev/shm", "/tmp")
"""Where locks may lie: the same for every user and whatever TMPDIR says, or two runs would not see each other."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Load:
    """What a GPU was busy with. `processes` may be hidden from a container; None: not readable, `note` says why."""

    memory_bytes: int | None = None
    total_bytes: int | None = None
    processes: tuple[int, ...] | None = None
    note: str = ""


@dataclass(frozen=True, slots=True)
class HeldClock:
    """The SM clock that was asked for, None for the card's base clock; and why it is not held, empty when it is."""

    mhz: int | None
    why_not: str = ""

    @property
    def held(self) -> bool:
        """Whether the card holds the clock."""
        return not self.why_not


def load_of(
    uuid: str | None, pci_address: str | None = None, is_mig: bool = False, seconds: float | None = None
) -> Load:
    """Return the load on an NVIDIA GPU. To find foreign load, ask before anything of one's own runs there."""
    found, why = _with_device(uuid, pci_address, lambda device: device.load(), is_mig, seconds)
    if found is None:
        return Load(note=why)
    used, total, pids = found
    return Load(used, total, None if pids is None else tuple(pid for pid in pids if not _is_service(pid)))


def _is_service(pid: int, root: Path = Path("/")) -> bool:
    """Return whether a process is NVIDIA's own server, which is on the card for our sake (MPS) and idle by itself."""
    try:
        return (root / f"proc/{pid}/comm").read_text().startswith("nvidia-cuda-mps")
    except OSError:
        return False


def foreign_load(load: Load) -> str:
    """Return who else uses a GPU that nothing of ours runs on, in a sentence's part; empty when nobody seems to.

    Processes are told where they can be seen. Where they are hidden, memory speaks: a process with a context takes
    some 300 MB at least and a model far more, an idle card's own driver, or a desktop, less than is allowed here.
    """
    who = len(load.processes or ())
    used = load.memory_bytes or 0
    amount = f"{format_quantity(used, BYTES)} of memory in use" if used else ""
    if who:
        pids = ", ".join(str(pid) for pid in (load.processes or ())[:3])
        others = f"another process (pid {pids})" if who == 1 else f"{who} other processes (pids {pids})"
        return f"{others} had the card before the run" + (f", {amount}" if amount else "")
    if used > max(FOREIGN_BYTES, FOREIGN_SHARE * (load.total_bytes or 0)):
        return f"the card had {amount} before the run, by processes that cannot be seen from here"
    return ""


def unknown_load(load: Load) -> str:
    """Return why nobody can say whether others use a GPU, empty where that can be said.

    Processes that are seen are known; an empty list proves nothing, but then memory speaks.
    """
    if load.processes or load.memory_bytes is not None:
        return ""
    return load.note or "its driver tells neither the memory in use nor the processes"


@contextmanager
def held_clock(
    uuid: str | None,
    mhz: int | None = None,
    pci_address: str | None = None,
    tell: Callable[[str], object] = lambda _: None,
    lock: int | None = None,
) -> Iterator[HeldClock]:
    """Set an NVIDIA GPU's SM clock while the block runs, and give it back, also when this process is killed.

    `mhz` None is the card's base clock, which it holds under any load. Needs the right to (root, as a rule):
    otherwise nothing is changed and `why_not` says so. NVML tells nobody at which clock a card is locked, and an idle
    one rests below it: here only a clock above `mhz` shows that the card did not take it. Whether it holds is seen
    under load (`core.clocks.unheld`). `lock` is the descriptor of the device's lock, for who gives it back then.

    Raises:
        EnvironmentLacks: at the end, when the card does not take its clock back; it would stay slow unnoticed. Where
            something else ends the block, that is raised, and this is told.
    """
    from kmrun.device.sampler import clock

    def set_clock(device: "NvmlDevice") -> tuple[bool, str]:
        refused = device.lock_sm_clock(mhz)
        if refused is not None:
            return False, refused
        seen = device.read(clock()).sm_mhz
        wrong = seen is not None and mhz is not None and seen > mhz * (1 + STEADY)
        return True, f"the card runs at {seen:.0f} MHz all the same" if wrong else ""

    def given_back() -> str:
        """Return what the card says to that, empty when it is well."""
        refused = "" if locked is False else give_back(uuid, pci_address)
        return refused if locked else ""

    hint = "`nvidia-smi --reset-gpu-clocks` does it"
    locked: bool | None = None  # not known: an interrupt, or a library that hangs, may come between
    with ClockKeeper(give_back, uuid, pci_address, lock):
        try:
            found, why = _with_device(uuid, pci_address, set_clock)
            if found is not None:
                locked, why = found
            yield HeldClock(mhz, why)
        except BaseException:
            sentence = given_back()
            if sentence:
                tell(f"error: {sentence}\nhint: {hint}\n")
            raise
        sentence = given_back()
    if sentence:
        raise EnvironmentLacks(sentence, hint)


def give_back(uuid: str | None, pci_address: str | None) -> str:
    """Give an NVIDIA GPU its SM clock back; return why that cannot be done, empty when it was."""
    answer, lost = _with_device(uuid, pci_address, lambda device: (device.unlock_sm_clock(),))
    refused = answer[0] if answer else lost
    return f"the card's SM clock could not be given back: {refused}" if refused else ""


class DeviceLock:
    """The lock of a device for one run of kmrun: entering it returns None, or the process that has it (0: unknown).

    Advisory, by `flock`: it is gone with the processes that hold it, however they end. Where there is no flock
    (Windows, some network file systems) it is always free. `why_not` says why no lock could be made at all.
    """

    def __init__(self, uuid: str, folder: Path | None = None) -> None:
        """Name the device; `folder` is where locks lie, by default the machine's."""
        self._name = f"kmrun-{re.sub(r'[^A-Za-z0-9-]', '_', uuid)}.lock"
        self._folder = folder
        self.descriptor: int | None = None
        self.why_not = ""

    def __enter__(self) -> int | None:
        """Try to take it.

        Raises:
            EnvironmentLacks: what lies in its place cannot be opened.
        """
        try:
            import fcntl
        except ImportError:
            return None
        folder = self._folder or lock_folder()
        if folder is None:
            self.why_not = "there is no folder that files can be made in"
            return None
        path = folder / self._name
        self.why_not = _make(path)
        if self.why_not:
            return None
        self.descriptor = _opened(path)
        try:
            fcntl.flock(self.descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return _written_in(self.descriptor)
        except OSError as error:
            self.why_not = f"{path}: {error.strerror}"
            return None
        with contextlib.suppress(OSError):  # another user's file, which can be locked but not written
            os.ftruncate(self.descriptor, 0)
            os.pwrite(self.descriptor, str(os.getpid()).encode(), 0)
        return None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Let it go."""
        if self.descriptor is not None:
            os.close(self.descriptor)
            self.descriptor = None


def _written_in(descriptor: int) -> int:
    """Return the process that the file names; 0 where it names none, or is no file: a folder, a pipe."""
    try:
        text = os.pread(descriptor, 20, 0).decode(errors="replace")
        pid = int(text) if text.isascii() and text.isdecimal() else 0
    except OSError:
        return 0
    return pid


def lock_folder(common: Sequence[str] = _COMMON) -> Path | None:
    """Return the machine's folder of locks: the first where everybody may make files and nobody takes another's away.

    What is asked of a folder does not depend on who asks, so that root and others come to the same. Without any it is
    the user's own for temporary files; None where there is none either.
    """
    for name in common:
        with contextlib.suppress(OSError):
            mode = Path(name).stat().st_mode
            shared = (
                stat.S_ISDIR(mode) and mode & stat.S_ISVTX and mode & stat.S_IWOTH and mode & stat.S_IXOTH
            )
            if shared and not os.statvfs(name).f_flag & os.ST_RDONLY:
                return Path(name)
    try:
        return Path(tempfile.gettempdir())
    except OSError:
        return None


def _make(path: Path) -> str:
    """Make a lock file that everybody may open, unless there is one; return why that failed, empty when it did not.

    It appears with its rights, never without.
    """
    if os.path.lexists(path):
        return ""
    try:
        descriptor, made = tempfile.mkstemp(prefix=f".{path.name}-", dir=path.parent)
    except OSError as error:
        return f"{path.parent}: {error.strerror}"
    try:
        os.fchmod(descriptor, 0o666)
        os.link(made, path)
    except FileExistsError:
        pass  # another run was faster
    except OSError as error:
        return f"{path}: {error.strerror}"
    finally:
        os.close(descriptor)
        with contextlib.suppress(OSError):
            Path(made).unlink()
    return ""


def _opened(path: Path) -> int:
    """Open a lock file, never through a link: the folder is everybody's. Waits for nobody where it is a pipe."""
    for access in (os.O_RDWR, os.O_RDONLY):
        with contextlib.suppress(OSError):
            return os.open(path, access | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
    raise EnvironmentLacks(
        f"the lock of this GPU, {path}, cannot be opened", "is it a link, or another user's?"
    )


def _with_device(
    uuid: str | None,
    pci_address: str | None,
    ask: "Callable[[NvmlDevice], T]",
    is_mig: bool = False,
    seconds: float | None = None,
) -> tuple[T | None, str]:
    """Return what NVML says of a device, or None and why there is nothing."""
    from kmrun.device.nvml import Nvml, NvmlLost

    def call() -> tuple[T | None, str]:
        with Nvml() as nvml:
            device = nvml.device(uuid, pci_address, is_mig)
            return (None, "NVML does not know this device") if device is None else (ask(device), "")

    try:
        return bounded("NVML", seconds or ANSWER_S, call)
    except (NoAnswer, NvmlLost) as lost:
        return None, str(lost)
