"""One line that says what is going on and how long it will take; on a terminal only."""

import shutil
import time
from collections.abc import Callable
from typing import TextIO

from kmrun.core.printable import printable
from kmrun.report.numbers import duration

_EVERY_S = 0.1


class Progress:
    """What a run tells while it runs. This one tells nothing: for pipes."""

    def start(self, label: str) -> None:
        """Begin a case."""

    def phase(self, text: str) -> None:
        """Say what the case has come to."""

    def finish(self) -> None:
        """End a case."""

    def close(self) -> None:
        """End the run."""


class Line(Progress):
    """Rewrites one terminal line: `7/12  sdpa s=4096 bf16 · timing 340 samples · about 9 s left`.

    With a `total` of 0 it only says what is going on.
    """

    def __init__(self, stream: TextIO, total: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._stream = stream
        self._total = total
        self._clock = clock
        self._done = 0
        self._spent_s = 0.0
        self._label = ""
        self._started = clock()
        self._written: float | None = None

    def start(self, label: str) -> None:
        """Show the case that begins."""
        self._label, self._started = label, self._clock()
        self._show("", force=True)

    def phase(self, text: str) -> None:
        """Show what the case has come to; at most ten times a second, so that showing costs nothing."""
        self._show(text)

    def finish(self) -> None:
        """Count the case, for the estimate."""
        self._done += 1
        self._spent_s += self._clock() - self._started

    def close(self) -> None:
        """Take the line away."""
        if self._written is not None:
            self._stream.write("\r\x1b[K")
            self._stream.flush()

    def left_s(self) -> float | None:
        """Return the estimated seconds to the end, None before a case has been measured."""
        if not self._done:
            return None
        mean = self._spent_s / self._done
        current = max(0.0, mean - (self._clock() - self._started))
        return mean * max(0, self._total - self._done - 1) + current

    def _show(self, text: str, *, force: bool = False) -> None:
        now = self._clock()
        if not force and self._written is not None and now - self._written < _EVERY_S:
            return
        self._written = now
        counter = f"{min(self._done + 1, self._total)}/{self._total}  " if self._total else ""
        parts = [f"{counter}{self._label}"]
        if text:
            parts.append(text)
        left = self.left_s()
        if left is not None:
            parts.append(f"about {duration(left) if left < 9.95 else duration(round(left))} left")
        line = " · ".join(parts)
        room = shutil.get_terminal_size((80, 24)).columns - 1
        self._stream.write(f"\r\x1b[K{printable(line)[:room]}")
        self._stream.flush()
