"""Which files the words of a command line mean: a file is taken at its word, a folder is searched."""

import os
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path

from kmrun.source.diagnostics import Diagnostic, InvalidSuite
from kmrun.source.document import Span

_SUFFIXES = (".yaml", ".yml")
_SKIPPED = {"__pycache__", "node_modules", "venv", "site-packages"}
_HEAD_BYTES = 64 * 1024
_START = Span(1, 1, 1, 1)


def find_suites(words: Sequence[str]) -> list[tuple[Path, str]]:
    """Return (path, name to show) of every suite meant.

    Raises:
        InvalidSuite: a word names nothing, or a folder holds no suite; one diagnostic for each such word.
    """
    found, wrong = search(words)
    if wrong:
        raise InvalidSuite(wrong)
    return found


def search(words: Sequence[str]) -> tuple[list[tuple[Path, str]], list[Diagnostic]]:
    """Return (path, name to show) of every suite meant, each once, and what is wrong with other words.

    In a folder a suite is a *.yaml or *.yml file whose top level has the key `kmrun`; they come by name.
    """
    found: dict[Path, tuple[Path, str]] = {}
    wrong: list[Diagnostic] = []
    for word in words:
        path = Path(word)
        if not word:
            # Path("") is the working folder, which nobody meant by a variable that is not set.
            wrong.append(Diagnostic(word, _START, "K001", "an empty name is no file", "this folder is '.'"))
        elif (odd := _oddness(path)) is not None:
            wrong.append(Diagnostic(word, _START, "K001", odd))
        elif path.is_dir():
            inside = list(_inside(path))
            if not inside:
                hint = "a suite is a .yaml file with the key 'kmrun'; `kmrun init file.py:fn` writes one"
                wrong.append(Diagnostic(word, _START, "K002", "no suite in this folder", hint))
            for suite in inside:
                found.setdefault(suite.resolve(), (suite, str(suite)))
        elif path.exists():
            found.setdefault(path.resolve(), (path, word))
        elif path.is_symlink():
            sentence = f"a symbolic link to '{path.readlink()}', which is not there"
            wrong.append(Diagnostic(word, _START, "K001", sentence))
        else:
            wrong.append(Diagnostic(word, _START, "K001", "no such file or folder", _near(path)))
    return list(found.values()), wrong


def _oddness(path: Path) -> str | None:
    """Return why a path cannot even be asked for; None where it can, whether or not it is there."""
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        return (error.strerror or str(error)).lower()
    return None


def _inside(folder: Path) -> Iterator[Path]:
    for root, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if name not in _SKIPPED and not name.startswith("."))
        for name in sorted(files):
            path = Path(root, name)
            if path.suffix in _SUFFIXES and _is_suite(path):
                yield path


def _is_suite(path: Path) -> bool:
    """Say whether a line at the top level starts with the key; a broken file still counts, to be reported.

    What is no regular file holds no suite, and is not opened: a FIFO would wait for its writer for ever.
    """
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            return False
        with path.open("rb") as stream:
            head = stream.read(_HEAD_BYTES)
    except OSError:
        return True
    lines = head.removeprefix(b"\xef\xbb\xbf").replace(b"\r", b"\n").split(b"\n")
    return any(line.startswith((b"kmrun:", b'"kmrun"', b"'kmrun'", b"{kmrun")) for line in lines)


def _near(path: Path) -> str:
    from kmrun.source.suggest import meant

    folder = path.parent
    if not folder.is_dir():
        return f"there is no folder '{folder}'"
    near = meant(path.name, [item.name for item in folder.iterdir()])
    return f"did you mean '{folder / near}'?" if near else ""
