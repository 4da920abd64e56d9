"""Result documents that a command was given as files."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from kmrun.errors import InvalidInput
from kmrun.store.results import read

if TYPE_CHECKING:
    from kmrun.core.result import Result


def read_results(paths: Sequence[Path]) -> "list[Result]":
    """Return the documents of files, at least one.

    Raises:
        InvalidInput: a file is no result document, or there is none in all of them.
    """
    results = [result for path in paths for result in read(path)]
    if not results:
        raise InvalidInput(
            f"{', '.join(map(str, paths))}: no result in it", "a run that was stopped early leaves none"
        )
    return results
