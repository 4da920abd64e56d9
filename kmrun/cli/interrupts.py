"""Ctrl-C and SIGTERM: the first one ends the run in order, those that follow do not disturb it."""

import contextlib
import signal
from types import FrameType

_ORDINARY = {signal.SIGINT: signal.default_int_handler, signal.SIGTERM: signal.SIG_DFL}


def interrupt_once() -> None:
    """Let either signal raise KeyboardInterrupt, once in this process: cleaning up takes a moment.

    A handler that is not Python's own stays: a debugger's, or `nohup`'s, which ignores.
    """
    with contextlib.suppress(ValueError):  # not the main thread: signals are somebody else's business
        for number, ordinary in _ORDINARY.items():
            if signal.getsignal(number) == ordinary:
                signal.signal(number, _interrupt)


def ignore_from_now_on() -> None:
    """Let neither signal do anything any more: the exit code is settled."""
    with contextlib.suppress(ValueError):
        for number in _ORDINARY:
            if signal.getsignal(number) == _interrupt:
                signal.signal(number, signal.SIG_IGN)


def _interrupt(number: int, frame: FrameType | None) -> None:
    ignore_from_now_on()
    raise KeyboardInterrupt
