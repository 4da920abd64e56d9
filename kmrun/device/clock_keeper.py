"""A process that gives a GPU's clock back when the run that locked it was killed: a dead run cannot.

It holds the device's lock as the run does, so that the next run waits until the card is as it was.
"""

import contextlib
import signal
import subprocess
import sys
from collections.abc import Callable
from types import TracebackType
from typing import Self

_CODE = "import sys; sys.path[:] = {path!a}; from kmrun.device.{module} import {name} as give_back; "
_KEEP = _CODE + "from kmrun.device.clock_keeper import keep; keep(lambda: give_back({uuid!a}, {address!a}))"
_DONE = b"d"
_END_S = 5.0


class ClockKeeper:
    """The process, from entry to exit. It does nothing where the block ends in whatever way but a kill.

    Args:
        give_back: a function of a module of kmrun.device, which takes the names of a GPU, gives its clock back, and
            returns why that failed, empty when it did not.
        uuid: of the GPU.
        pci_address: of the GPU.
        lock: the descriptor of the device's lock, held by the keeper as well.
    """

    def __init__(
        self,
        give_back: Callable[[str | None, str | None], str],
        uuid: str | None,
        pci_address: str | None,
        lock: int | None,
    ) -> None:
        module = give_back.__module__.rpartition(".")[2]
        self._code = _KEEP.format(
            path=sys.path, module=module, name=give_back.__name__, uuid=uuid, address=pci_address
        )
        self._lock = () if lock is None else (lock,)

    def __enter__(self) -> Self:
        """Start the process; it is in a session of its own, where Ctrl-C of the run does not reach it."""
        words = [sys.executable, "-P", "-c", self._code]
        self._process = subprocess.Popen(
            words,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            start_new_session=True,
            pass_fds=self._lock,
        )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Dismiss it: the run has done what there was to do."""
        with contextlib.suppress(OSError, subprocess.TimeoutExpired):  # somebody ended it, or stopped it
            self._process.communicate(_DONE, timeout=_END_S)
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()


def keep(give_back: Callable[[], str]) -> None:
    """Be that process: wait for the end of standard input, and give the clock back unless the run said it was done."""
    for number in (signal.SIGINT, signal.SIGTERM, getattr(signal, "SIGHUP", signal.SIGTERM)):
        signal.signal(number, signal.SIG_IGN)
    if sys.stdin.buffer.read() == _DONE:
        return
    refused = give_back()
    if refused:
        sys.stderr.write(
            f"error: a run was killed, and {refused}\nhint: `nvidia-smi --reset-gpu-clocks` does it\n"
        )
