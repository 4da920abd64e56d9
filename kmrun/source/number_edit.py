"""Replacing single scalars of a YAML file, with every other byte left as it is."""

from collections.abc import Mapping
from decimal import Decimal
from itertools import pairwise

from kmrun.source.document import LINE_END, Span


def replaced(text: str, edits: Mapping[Span, str]) -> str:
    """Return the text with what stands at each span replaced; lines and columns are those of the loader.

    Raises:
        ValueError: two spans overlap, or one spans lines.
    """
    if any(span.line != span.end_line for span in edits):
        raise ValueError("a number stands on one line")
    starts = [0, *(end.end() for end in LINE_END.finditer(text))]
    places = sorted(
        (starts[span.line - 1] + span.col - 1, starts[span.line - 1] + span.end_col - 1, new)
        for span, new in edits.items()
    )
    if any(one[1] > other[0] for one, other in pairwise(places)):
        raise ValueError("two edits overlap")
    parts, at = [], 0
    for begin, end, new in places:
        parts += [text[at:begin], new]
        at = end
    return "".join([*parts, text[at:]])


def number_text(value: float) -> str:
    """Return how a number is written in a suite: without exponent, and a whole one of a fraction as `1.0`."""
    text = format(Decimal(repr(value)), "f")  # the fewest digits that are read back as this value
    return text if "." in text else f"{text}.0"
