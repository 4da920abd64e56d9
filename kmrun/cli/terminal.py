"""The terminal that a command prints to, the files it writes, the numbers it takes."""

import math
import os
import shutil
import sys
from pathlib import Path

from kmrun.errors import UsageError


def colour_wanted() -> bool:
    """Return whether standard output is a terminal that wants colour (https://no-color.org)."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def terminal_width() -> int:
    """Return the columns of the terminal, 100 in a pipe."""
    return shutil.get_terminal_size((100, 24)).columns if sys.stdout.isatty() else 100


def write_file(path: Path, text: str) -> None:
    """Write a file that the user asked for.

    Raises:
        UsageError: it cannot be written there.
    """
    try:
        path.write_text(text, encoding="utf-8", newline="\n")
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror or error}") from None


def positive(value: float, option: str, unit: str) -> float:
    """Return the value of an option that must be a positive, finite number.

    Raises:
        UsageError: it is not.
    """
    if not (value > 0 and math.isfinite(value)):
        raise UsageError(f"{option} must be a positive number of {unit}, not {value:g}")
    return value
