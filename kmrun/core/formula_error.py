"""What a bad formula raises, and the hunt for the name that was meant."""

import difflib
from collections.abc import Collection, Iterable

from kmrun.errors import InvalidInput

UNKNOWN_NAME = "K201"
SYNTAX = "K202"
FORBIDDEN = "K203"
TOO_LARGE = "K204"
WRONG_TYPE = "K205"
NO_VALUE = "K206"
BAD_CALL = "K207"


class FormulaError(InvalidInput):
    """A formula is wrong at `offset`, for `length` characters (both count from the formula's own start).

    Attributes:
        code: stable diagnostic code, K201 to K207.
        names: the names in scope, sorted; empty when the error is not about a name.
    """

    def __init__(
        self,
        code: str,
        sentence: str,
        offset: int,
        length: int,
        hint: str = "",
        names: Collection[str] = (),
    ) -> None:
        super().__init__(sentence, hint)
        self.code = code
        self.offset = offset
        self.length = length
        self.names = tuple(sorted(names))


def nearest(word: str, candidates: Iterable[str]) -> str | None:
    """Return the candidate most like `word`, ignoring case, or None when none is near."""
    by_folded = {candidate.casefold(): candidate for candidate in candidates}
    found = difflib.get_close_matches(word.casefold(), by_folded, n=1, cutoff=0.6)
    return by_folded[found[0]] if found else None


def did_you_mean(word: str, candidates: Iterable[str]) -> str:
    """Return `did you mean 'x'?`, or an empty string."""
    near = nearest(word, candidates)
    return f"did you mean '{near}'?" if near is not None else ""
