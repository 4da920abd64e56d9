"""The terminal that a command prints to, the files it writes, the numbers it takes."""

import math
import os
import shutil
import sys
from pathlib import Path

from kmrun.errors import UsageError

_LARGEST_SEED = 2**63 - 1
"""As in a suite."""
_FARTHEST = 1e9
"""How far from 1 a number of the command line may lie; rates and ratios of them stay finite."""


def colour_wanted() -> bool:
    """Return whether standard output is a terminal that wants colour (https://no-color.org)."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def terminal_width() -> int:
    """Return the columns of the terminal, 100 in a pipe."""
    return shutil.get_terminal_size((100, 24)).columns if sys.stdout.isatty() else 100


def file_named(name: str, option: str) -> Path:
    """Return the path of a file to write.

    Raises:
        UsageError: the name is empty, as a variable that is not set leaves it.
    """
    if not name:
        raise UsageError(f"{option}: an empty name is no file")
    return Path(name)


def write_svg(path: Path, text: str) -> None:
    """Write a picture that the user asked for; it replaces only an earlier one.

    Raises:
        UsageError: it cannot be written there, or something else is there.
    """
    try:
        if path.is_file() and path.stat().st_size and b"<svg" not in path.read_bytes()[:1000]:
            raise UsageError(f"--svg {path}: is there already, and is no picture", "name another file")
        path.write_text(text, encoding="utf-8", newline="\n")
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror or error}") from None


def seed_given(seed: int | None) -> int | None:
    """Return the value of `--seed`.

    Raises:
        UsageError: no run could have printed it.
    """
    if seed is not None and not 0 <= seed <= _LARGEST_SEED:
        raise UsageError(f"--seed {seed}: a seed lies between 0 and 2**63 - 1")
    return seed


def positive(value: float, option: str, unit: str) -> float:
    """Return the value of an option that must be a positive number, and one that hardware could have.

    Raises:
        UsageError: it is not.
    """
    if not (value > 0 and math.isfinite(value)):
        raise UsageError(f"{option} must be a positive number of {unit}, not {value:g}")
    if not 1 / _FARTHEST <= value <= _FARTHEST:
        raise UsageError(f"{option} {value:g}: no machine has or needs so {_size(value)} a number of {unit}")
    return value


def _size(value: float) -> str:
    return "large" if value > 1 else "small"
