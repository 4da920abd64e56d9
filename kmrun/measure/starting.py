"""The first questions to a side, which has done nothing yet: no answer is no fault of any code. No torch."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from kmrun.errors import EnvironmentLacks
from kmrun.measure.side import Died, Side, Stopped, TimedOut

OPEN_TIMEOUT_S = 120.0


class NotStarted(EnvironmentLacks):
    """A side was lost while it was being started, or the process that hosts it: another may do better."""


def answered(side: Side, op: str, **arguments: Any) -> Any:
    """Return what a side that starts answers.

    Raises:
        EnvironmentLacks: it cannot work here.
        NotStarted: it ended, or did not answer.
    """
    told(side, op, **arguments)
    return answer_of(side)


def told(side: Side, op: str, **arguments: Any) -> None:
    """Hand an operation to a side that starts; see `answered`."""
    with _starting():
        side.tell(op, **arguments)


def answer_of(side: Side) -> Any:
    """Return what it answers to the oldest operation that it was told of; see `answered`."""
    with _starting():
        return side.answer(OPEN_TIMEOUT_S)


@contextmanager
def _starting() -> Iterator[None]:
    try:
        yield
    except Stopped as stopped:
        raise EnvironmentLacks(stopped.finding.sentence) from stopped
    except (Died, TimedOut) as lost:
        raise NotStarted(f"a worker could not start: {lost}", lost.tail) from lost
