"""A call into a library that may never return, and what becomes of it then."""

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class NoAnswer(Exception):
    """The call did not return in time."""

    def __init__(self, what: str, seconds: float) -> None:
        super().__init__(f"{what} did not answer within {seconds:g} s")


class _Outcome(Generic[T]):
    value: T
    error: BaseException | None = None


def bounded(what: str, seconds: float, call: Callable[[], T]) -> T:
    """Return what the call returns, or raise what it raises, if it ends in time.

    The call runs in a thread of its own: a GPU that fell off its bus blocks its driver's library for ever, and
    nothing can end such a call. The thread is left behind, and the interpreter does not wait for it at exit.

    Raises:
        NoAnswer: it did not end in time.
    """
    outcome: _Outcome[T] = _Outcome()

    def work() -> None:
        try:
            outcome.value = call()
        except BaseException as error:  # handed over to the caller's thread
            outcome.error = error

    thread = threading.Thread(target=work, name=f"kmrun {what}", daemon=True)
    thread.start()
    thread.join(seconds)
    if thread.is_alive():
        raise NoAnswer(what, seconds)
    if outcome.error is not None:
        raise outcome.error
    return outcome.value
