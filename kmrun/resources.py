"""The one place that finds cards/, schemas/, suites/ and templates/, in a wheel or in a checkout."""

from pathlib import Path
from typing import Literal

Folder = Literal["cards", "schemas", "suites", "templates"]

_PACKAGE = Path(__file__).resolve().parent


def folder(name: Folder) -> Path:
    """Return the directory that holds the shipped data of that name.

    A wheel carries the folders under ``kmrun/_data``; a checkout (also an editable install) has them beside
    the package.

    Raises:
        FileNotFoundError: the installation is damaged (a bug or a broken copy, never the user's input).
    """
    for candidate in (_PACKAGE / "_data" / name, _PACKAGE.parent / name):
        if candidate.is_dir():
            return candidate
    raise FileNotFoundError(f"kmrun's own data folder {name!r} is missing beside {_PACKAGE}")
