"""Standard output and error as a command finds them: closed, full, or in an encoding that lacks signs."""

import contextlib
import io
import json
import os
import sys
from collections.abc import Iterator
from typing import BinaryIO, TextIO

from kmrun.errors import OutputLost


def open_missing() -> None:
    """Put /dev/null where a standard stream is closed (`>&-`): then nobody wants what is written there.

    Also the number must not stay free, or the next file that is opened takes the place of standard output.
    """
    for number, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        try:
            os.fstat(number)
        except OSError:
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)
        if getattr(sys, name) is None:
            stream = open(number, mode, encoding="utf-8", closefd=False)  # noqa: SIM115
            setattr(sys, name, stream)
            setattr(sys, f"__{name}__", stream)  # what is dropped is closed
    sys.stdout, sys.stderr = _told(sys.stdout, "standard output"), _told(sys.stderr, "standard error")


def _told(stream: TextIO, name: str) -> TextIO:
    """Return a stream that tells when it is lost; one that is not Python's own (a test's) as it is."""
    if type(stream) is not io.TextIOWrapper:
        return stream
    # The old one keeps its buffer: a debugger that started us writes to it.
    return _Told(name, stream.buffer, stream.encoding, stream.line_buffering)


class _Told(io.TextIOWrapper):
    """A standard stream whose loss (a full disk) is an error for people; what it cannot show is spelled out."""

    def __init__(self, name: str, buffer: BinaryIO, encoding: str, line_buffering: bool) -> None:
        super().__init__(buffer, encoding, errors="backslashreplace", line_buffering=line_buffering)
        self._name = name
        self._number = buffer.fileno()

    def write(self, text: str) -> int:
        with self._telling():
            return super().write(text)

    def flush(self) -> None:
        with self._telling():
            super().flush()

    @contextlib.contextmanager
    def _telling(self) -> Iterator[None]:
        try:
            yield
        except BrokenPipeError:
            raise
        except OSError as error:
            discard(self._number)
            raise OutputLost(
                f"{self._name} cannot be written: {(error.strerror or str(error)).lower()}"
            ) from error


def discard(number: int) -> None:
    """Send what is still to be written to a stream nowhere, so that Python does not complain at its exit."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, number)
    os.close(nowhere)


def in_json(text: str, encoding: str | None) -> str:
    """Return a JSON text with the signs that an encoding lacks spelled as JSON spells them."""
    try:
        text.encode(encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return "".join(char if char.isascii() else json.dumps(char)[1:-1] for char in text)
    return text


def say(text: str) -> None:
    """Write to standard error; if that is lost, nobody can be told."""
    with contextlib.suppress(OSError, OutputLost):
        sys.stderr.write(text)
        sys.stderr.flush()
