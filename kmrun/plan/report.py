"""The mistakes found while planning: what went wrong at a point, and where it is told."""

import dataclasses
from collections.abc import Sequence

from kmrun.core.case import Path
from kmrun.core.formula import FormulaError
from kmrun.core.problem import Problem

SAME_KERNEL = "K401"
NAME_TAKEN = "K402"
RESERVED_NAME = "K403"
UNEVEN_ROW = "K404"
BAD_RANGE = "K405"
TOO_MANY_CASES = "K406"
SAME_CASE = "K407"
UNKNOWN_DEVICE = "K408"
UNKNOWN_CARD = "K409"
UNKNOWN_DTYPE = "K410"
UNKNOWN_ARGUMENT = "K411"
CIRCLE = "K412"
BAD_SHAPE = "K413"
BAD_OPTION = "K414"
BYTES_AUTO = "K415"
BAD_GRADIENT = "K416"
NO_RIVAL = "K417"
BAD_OUTPUT = "K418"
BAD_FIGURE = "K419"
UNUSED_AXIS = "K420"
UNUSED_LET = "K421"
UNUSED_EXCLUDE = "K422"
UNUSED_CLAUSE = "K423"
UNUSED_TOLERANCE = "K424"
NOTHING_LEFT = "K425"
SAID_TWICE = "K426"
FLOPS_WITHOUT_PEAK = "K430"
NO_EFFECT = "K431"
WORD_NONE = "K432"


class Failure(Exception):
    """A value of one point makes no sense at `path`; `span` is (offset, length) inside the text there."""

    def __init__(
        self, code: str, path: Path, sentence: str, hint: str = "", span: tuple[int, int] | None = None
    ) -> None:
        super().__init__(sentence)
        self.code = code
        self.path = path
        self.sentence = sentence
        self.hint = hint
        self.span = span


class Report:
    """Collects problems in document order of discovery; at most one a place."""

    def __init__(self) -> None:
        self._problems: list[Problem] = []
        self._places: set[tuple[Path, int | None]] = set()
        self._unknown: dict[str, list[Problem]] = {}
        self._errors = 0

    @property
    def problems(self) -> tuple[Problem, ...]:
        """All problems so far."""
        return tuple(self._problems)

    @property
    def error_count(self) -> int:
        """How many errors were found, those included that another one at the same place hides."""
        return self._errors

    def error(
        self,
        code: str,
        path: Path,
        message: str,
        hint: str = "",
        *,
        on_key: bool = False,
        span: tuple[int, int] | None = None,
        notes: Sequence[str] = (),
    ) -> None:
        """Add an error, unless one stands at that very place already."""
        offset, length = span if span is not None else (None, None)
        self._add(Problem(code, path, message, hint, tuple(notes), on_key, offset, length))

    def warning(self, code: str, path: Path, message: str, hint: str = "", *, on_key: bool = False) -> None:
        """Add a warning."""
        self._add(Problem(code, path, message, hint, on_key=on_key, severity="warning"))

    def unknown(
        self,
        word: str,
        code: str,
        path: Path,
        message: str,
        hint: str = "",
        *,
        span: tuple[int, int] | None = None,
        notes: Sequence[str] = (),
    ) -> None:
        """Hold back an error about a word that names nothing: one mistake a kernel, wherever it stands."""
        offset, length = span if span is not None else (None, None)
        found = Problem(code, path, message, hint, tuple(notes), offset=offset, length=length)
        self._unknown.setdefault(word, []).append(found)

    def tell_unknown(self, but: int = 0) -> None:
        """Add the errors held back: each word at its first place, the others in a note.

        Up to `but` words are not told: so many names were told as unusable, and may be what these words mean.
        """
        told = self._unknown.values() if len(self._unknown) > but else ()
        for found in told:
            first, *others = found
            if others:
                places = ", ".join(dict.fromkeys(place_in_kernel(problem.path) for problem in others))
                first = dataclasses.replace(first, notes=(*first.notes, f"also in {places}"))
            self._add(first)
        self._unknown.clear()

    def formula(self, path: Path, error: FormulaError) -> None:
        """Add what is wrong with the formula that stands at `path`."""
        self.error(error.code, path, error.sentence, error.hint, span=(error.offset, error.length))

    def _add(self, problem: Problem) -> None:
        self._errors += problem.severity == "error"
        place = (problem.path, problem.offset)
        if place not in self._places:
            self._places.add(place)
            self._problems.append(problem)


def place_in_kernel(path: Path) -> str:
    """Return a place inside a kernel as people say it: `args.x.shape`."""
    return ".".join(part for part in path[2:] if isinstance(part, str))
