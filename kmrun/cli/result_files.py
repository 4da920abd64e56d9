"""Result documents that a command was given as files."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from kmrun.errors import InvalidInput, UsageError
from kmrun.store.results import read, read_content

if TYPE_CHECKING:
    from kmrun.core.result import Result

STREAM = Path("-")
"""Standard input."""


def _of_stream() -> "list[Result]":
    return read_content(sys.stdin.buffer.read(), "standard input")


def read_results(paths: Sequence[Path]) -> "list[Result]":
    """Return the documents of files, at least one; `-` is standard input.

    Raises:
        InvalidInput: a file is no result document, or there is none in all of them.
        UsageError: standard input is named twice.
    """
    if paths.count(STREAM) > 1:
        raise UsageError("- twice: standard input can be read once")
    results = [result for path in paths for result in (_of_stream() if path == STREAM else read(path))]
    if not results:
        raise InvalidInput(
            f"{', '.join('standard input' if path == STREAM else str(path) for path in paths)}: no result in it",
            "a run that was stopped early leaves none",
        )
    return results
