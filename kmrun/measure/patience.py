"""Telling a person what is waited for, once it takes long: a driver that hangs looks like a tool that does."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

AFTER_S = 30.0
"""More than importing torch takes on a busy machine."""


@contextmanager
def patience(what: str, seconds: float, tell: Callable[[str], object]) -> Iterator[None]:
    """Tell what the block waits for, and for how long at most, unless it is over before."""
    timer = threading.Timer(AFTER_S, tell, (f"waiting for {what}, for at most {seconds:g} s\n",))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
