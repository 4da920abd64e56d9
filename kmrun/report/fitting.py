"""Lines of a report, cut to a terminal that is narrower than they are laid out for."""

import re
import textwrap
from collections.abc import Sequence

LEAST = 20
"""What no terminal is narrower than, whatever it says."""
_DOT, _NO_BREAK = " \N{MIDDLE DOT} ", "\N{NO-BREAK SPACE}"
_GAP = re.compile(r"(?<=\S) {2,}(?=\S)")
_UNIT = re.compile(r"(?<=\d) (?=(?:%|[mun]?s|[KMGT]i?B(?:/s)?|[GT]FLOP/s)(?!\w))")


def fitted(lines: Sequence[str], width: int) -> list[str]:
    """Return the lines, each longer one broken at a blank; what follows stands under its second column.

    Where that would leave less than half of the width, the blanks between columns are given up first.
    """
    width = max(width, LEAST)
    return [part for line in lines for part in _fitted(line, width)]


def _fitted(line: str, width: int) -> list[str]:
    if len(line) <= width:
        return [line]
    if not line.strip(" -"):
        return [line[:width].rstrip()]  # the rule under a table's head
    margin = len(line) - len(line.lstrip())
    gap = _GAP.search(line)
    if gap is None or gap.end() > width // 2:
        # The closest that columns may stand and still be told apart.
        line = _GAP.sub("  ", line)
        indent = min(margin + 2, width // 2)
    else:
        indent = gap.end()
    indent = max(0, min(indent, width - max(len(word) for word in line.split())))  # no word is broken for it
    return textwrap.wrap(line, width, subsequent_indent=" " * indent, break_on_hyphens=False)


def wrapped(sentence: str, width: int, first: str = "", rest: str = "") -> list[str]:
    """Return a sentence as lines of at most `width`, begun with `first` and `rest`; no number is cut off its unit."""
    parts = textwrap.wrap(_UNIT.sub(_NO_BREAK, sentence), width, initial_indent=first, subsequent_indent=rest)
    return [part.replace(_NO_BREAK, " ") for part in parts]


def facts_wrapped(line: str, width: int) -> list[str]:
    """Return facts that dots part as lines of at most `width`, broken behind a dot where the facts are that short."""
    facts = [fact if len(fact) > width // 2 else fact.replace(" ", _NO_BREAK) for fact in line.split(_DOT)]
    joined = _DOT.replace(" ", _NO_BREAK, 1).join(facts)
    return [part.replace(_NO_BREAK, " ") for part in textwrap.wrap(joined, width, subsequent_indent="  ")]
