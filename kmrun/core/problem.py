"""One mistake found in a document, placed by document path: plan and reader speak it, source turns it into lines."""

from dataclasses import dataclass

from kmrun.core.case import Path


@dataclass(frozen=True, slots=True)
class Problem:
    """Something wrong at `path`.

    `on_key` points at the key instead of its value. `offset` and `length` (characters) narrow the place to a
    part of a string value, such as a name inside a formula. `severity` is `error` or `warning`.
    """

    code: str
    path: Path
    message: str
    hint: str = ""
    notes: tuple[str, ...] = ()
    on_key: bool = False
    offset: int | None = None
    length: int | None = None
    severity: str = "error"
