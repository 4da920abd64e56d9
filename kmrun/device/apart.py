"""A call in a process of its own: a library that crashes or never returns there ends nothing here.

Only a process can be left behind whole: a driver that dies of a signal takes everybody's process with it, and the
exit of a process waits for the destructors of its libraries, which may wait for the very call that hangs.
"""

import contextlib
import os
import pickle
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from kmrun.device.bounded import NoAnswer
from kmrun.errors import EnvironmentLacks

PATIENCE_S = 5.0
"""After that a person is told what is waited for."""
_LEFT_S = 1.0
_CHILD = "import sys; sys.path[:] = {path!r}; from kmrun.device.apart import answer; answer()"

Tell = Callable[[str], object]
P = ParamSpec("P")
T = TypeVar("T")


class Crashed(EnvironmentLacks):
    """The process of a call died of a signal."""


def apart(
    what: str, seconds: float, tell: Tell | None, call: Callable[P, T], *args: P.args, **kwargs: P.kwargs
) -> T:
    """Return what a module's function returns in a process of its own, or raise what it raises.

    Args:
        what: is asked, for a person: the subject of a sentence.
        seconds: how long that may take; what still runs then is killed.
        tell: is told after a while what is waited for.
        call: a function of a module of kmrun's; it, its arguments and what it returns are pickled.
        args: its arguments.
        kwargs: its arguments by name.

    Raises:
        NoAnswer: it did not end in time.
        Crashed: the process died of a signal.
    """
    # The same path as here, whatever stands in the folder that a person is in.
    words = [sys.executable, "-P", "-c", _CHILD.format(path=sys.path)]
    child = subprocess.Popen(
        words,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        start_new_session=True,  # Ctrl-C is ours to hear of
    )
    asked = pickle.dumps((call, args, kwargs))
    try:
        found = _heard(child, asked, what, seconds, tell)
    finally:
        if child.poll() is None:
            child.kill()
            with contextlib.suppress(subprocess.TimeoutExpired):  # a call in the kernel may outlive even that
                child.wait(_LEFT_S)
        for stream in (child.stdin, child.stdout):
            with contextlib.suppress(OSError):  # what was not sent yet has nobody to go to
                if stream is not None:
                    stream.close()
    status = child.returncode
    if found:
        returned, outcome = pickle.loads(found)
        if returned:
            answered: T = outcome
            return answered
        raise outcome
    if status < 0:
        name = signal.Signals(-status).name if -status in list(signal.Signals) else f"signal {-status}"
        raise Crashed(
            f"{what} crashed when it was asked ({name})", "its library is broken, or not of this driver"
        )
    raise RuntimeError(f"asking {what} ended with status {status}, and no answer")


def _heard(
    child: subprocess.Popen[bytes], asked: bytes, what: str, seconds: float, tell: Tell | None
) -> bytes:
    until = time.monotonic() + seconds
    patience = min(PATIENCE_S, seconds)
    try:
        return child.communicate(asked, timeout=patience)[0]
    except subprocess.TimeoutExpired:
        if tell is not None and patience < seconds:
            tell(f"waiting for {what}, for at most {seconds:g} s\n")
    try:
        return child.communicate(timeout=max(until - time.monotonic(), 0.0))[0]
    except subprocess.TimeoutExpired:
        raise NoAnswer(what, seconds) from None


def answer() -> None:
    """Be the process of a call: take it from standard input, and leave what it comes to on standard output."""
    # What a library prints must not stand between.
    out = os.dup(1)
    os.dup2(2, 1)
    call, args, kwargs = pickle.loads(sys.stdin.buffer.read())
    try:
        outcome = (True, call(*args, **kwargs))
    except (EnvironmentLacks, NoAnswer) as error:
        outcome = (False, error)
    with os.fdopen(out, "wb") as stream:
        stream.write(pickle.dumps(outcome))
    # Not by way of the libraries' destructors, nor waiting for a thread that hangs.
    os._exit(0)
