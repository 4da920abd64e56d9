"""A call in a process of its own: a library that crashes or never returns there ends nothing here.

Only a process can be left behind whole: a driver that dies of a signal takes everybody's process with it, and the
exit of a process waits for the destructors of its libraries, which may wait for the very call that hangs.
"""

import contextlib
import math
import os
import pickle
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from types import TracebackType
from typing import Generic, Self, TypeVar

from kmrun.device.bounded import NoAnswer
from kmrun.errors import EnvironmentLacks

PATIENCE_S = 5.0
"""After that a person is told what is waited for."""
_LEFT_S, _OUTLIVES_S = 1.0, 5
_CHILD = "import sys; sys.path[:] = {path!a}; from kmrun.device.apart import answer; answer()"

Tell = Callable[[str], object]
T = TypeVar("T")


class Crashed(EnvironmentLacks):
    """The process of a call died of a signal."""


class Apart(Generic[T]):
    """A call of a module's function on its way in a process of its own. A context manager: leaving it ends that.

    Args:
        what: is asked, for a person: the subject of a sentence.
        seconds: how long that may take.
        tell: is told after a while what is waited for.
        call: a function of a module of kmrun's, with all its arguments bound; it and what it returns are pickled.
    """

    def __init__(self, what: str, seconds: float, tell: Tell | None, call: Callable[[], T]) -> None:
        """Start the process."""
        self._what, self._seconds, self._tell = what, seconds, tell
        self._until = time.monotonic() + seconds
        asked = pickle.dumps((call, math.ceil(seconds) + _OUTLIVES_S))
        # The same path as here, whatever stands in the folder that a person is in.
        self._child = subprocess.Popen(
            [sys.executable, "-P", "-c", _CHILD.format(path=sys.path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,  # Ctrl-C is ours to hear of
        )
        if self._child.stdin is not None:
            with contextlib.suppress(OSError), self._child.stdin:  # it may have ended already
                self._child.stdin.write(asked)
            self._child.stdin = None

    def __enter__(self) -> Self:
        """Return itself: the call is on its way already."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End the process, if it has not ended."""
        if self._child.poll() is None:
            self._child.kill()
            with contextlib.suppress(subprocess.TimeoutExpired):  # a call in the kernel may outlive even that
                self._child.wait(_LEFT_S)
        if self._child.stdout is not None:
            self._child.stdout.close()

    def outcome(self) -> T:
        """Return what the function returns, or raise what it raises.

        Raises:
            NoAnswer: it did not end in time.
            Crashed: the process died of a signal.
        """
        found, status = self._heard(), self._child.returncode
        if found:
            returned, outcome = pickle.loads(found)
            if returned:
                answered: T = outcome
                return answered
            raise outcome
        if status < 0:
            name = signal.Signals(-status).name if -status in list(signal.Signals) else f"signal {-status}"
            hint = "its library is broken, or not of this driver"
            raise Crashed(f"{self._what} crashed when it was asked ({name})", hint)
        raise RuntimeError(f"asking {self._what} ended with status {status}, and no answer")

    def _heard(self) -> bytes:
        patience = min(PATIENCE_S, self._seconds)
        try:
            return self._child.communicate(timeout=patience)[0]
        except subprocess.TimeoutExpired:
            if self._tell is not None and patience < self._seconds:
                self._tell(f"waiting for {self._what}, for at most {self._seconds:g} s\n")
        try:
            return self._child.communicate(timeout=max(self._until - time.monotonic(), 0.0))[0]
        except subprocess.TimeoutExpired:
            raise NoAnswer(self._what, self._seconds) from None


def apart(what: str, seconds: float, tell: Tell | None, call: Callable[[], T]) -> T:
    """Return what a function returns in a process of its own, or raise what it raises; see `Apart`."""
    with Apart(what, seconds, tell, call) as asked:
        return asked.outcome()


def answer() -> None:
    """Be the process of a call: take it from standard input, and leave what it comes to on standard output."""
    # What a library prints must not stand between.
    out = os.dup(1)
    os.dup2(2, 1)
    call, alarm_s = pickle.loads(sys.stdin.buffer.read())
    if hasattr(signal, "alarm"):  # who asked may be gone by then
        signal.alarm(alarm_s)
    try:
        outcome = (True, call())
    except (EnvironmentLacks, NoAnswer) as error:
        outcome = (False, error)
    with os.fdopen(out, "wb") as stream:
        stream.write(pickle.dumps(outcome))
    # Not by way of the libraries' destructors, nor waiting for a thread that hangs.
    os._exit(0)
