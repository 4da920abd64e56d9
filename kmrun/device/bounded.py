"""A call into a library that may never return, and what becomes of it then."""

import threading
import time
from collections.abc import Callable, Hashable, Mapping
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
T = TypeVar("T")


class NoAnswer(Exception):
    """The call did not return in time."""

    def __init__(self, what: str, seconds: float) -> None:
        super().__init__(what, seconds)  # as they came: an exception is pickled by its arguments

    def __str__(self) -> str:
        what, seconds = self.args
        return f"{what} did not answer within {seconds:g} s"


class _Call(Generic[T]):
    """A call on its way, in a thread of its own."""

    def __init__(self, what: str, call: Callable[[], T]) -> None:
        self._what, self._call = what, call
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._work, name=f"kmrun {what}", daemon=True)
        self._thread.start()

    def _work(self) -> None:
        try:
            self._value = self._call()
        except BaseException as error:  # handed over to the caller's thread
            self._error = error

    def outcome(self, until_s: float, seconds: float) -> T:
        self._thread.join(max(until_s - time.monotonic(), 0.0))
        if self._thread.is_alive():
            raise NoAnswer(self._what, seconds)
        if self._error is not None:
            raise self._error
        return self._value


def bounded(what: str, seconds: float, call: Callable[[], T]) -> T:
    """Return what the call returns, or raise what it raises, if it ends in time.

    The call runs in a thread of its own: a GPU that fell off its bus blocks its driver's library for ever, and
    nothing can end such a call. The thread is left behind, and the interpreter does not wait for it at exit.

    Raises:
        NoAnswer: it did not end in time.
    """
    return _Call(what, call).outcome(time.monotonic() + seconds, seconds)


def bounded_each(
    what: str, seconds: float, calls: Mapping[K, Callable[[], T]], *expected: type[Exception]
) -> dict[K, T | Exception]:
    """Return what each call returns, or in its place the error that it raised, when that is an expected one.

    They run side by side, so that one that hangs holds up no other, and all of them share the time limit; one
    that did not end in time has a `NoAnswer`.
    """
    until = time.monotonic() + seconds
    begun = {key: _Call(what, call) for key, call in calls.items()}
    found: dict[K, T | Exception] = {}
    for key, call in begun.items():
        try:
            found[key] = call.outcome(until, seconds)
        except Exception as error:
            if not isinstance(error, (NoAnswer, *expected)):
                raise
            found[key] = error
    return found
