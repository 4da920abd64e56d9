"""The scorecard as text that fits 100 columns; in a pipe the same, without colour."""

from collections.abc import Callable, Sequence

from kmrun.report.fitting import wrapped
from kmrun.report.view import Column, Paragraph, Row, View

WIDTH = 100
_GAP = "  "
_SHORT, _SHORTEST, _CONTRACT = 16, 8, 12
"""Names are cut to the first while a column can go, never under the second; verdicts to the third."""
_BEFORE_NAMES = 2
"""Columns as expendable as this go before a name is cut."""
_PARAGRAPHS = 20
"""More broken cases than this are counted, not told: nobody reads the fortieth."""

Paint = Callable[[str, str], str]
"""Returns a text as its role (`pass`, `FAIL`, `head`, `dim`, ...) is shown."""

_ANSI = {
    "pass": "32",
    "FAIL": "1;31",
    "WRONG": "1;31",
    "ERROR": "1;31",
    "INCONCLUSIVE": "33",
    "skipped": "2",
    "head": "1",
    "dim": "2",
}


def plain(text: str, role: str) -> str:
    """Show every role alike: for pipes and files."""
    return text


def coloured(text: str, role: str) -> str:
    """Show a role in colour, which repeats what a word already says."""
    code = _ANSI.get(role)
    return f"\x1b[{code}m{text}\x1b[0m" if code and text else text


def render(view: View, exit_code: int | None = None, paint: Paint = plain, width: int = WIDTH) -> str:
    """Return the scorecard: what ran, the table, what it came to, and a paragraph for each broken case."""
    lines = [
        *_listed(view.suite, view.device, width, paint),
        *_listed("ceilings", view.ceilings, width, plain),
    ]
    if view.rows:
        lines += ["", *_table(view.columns, view.rows, paint, width)]
        lines += [paint(view.machine.rjust(width), "dim")] if view.machine else []
    for note in view.notes:
        lines += [paint(line, "dim") for line in wrapped(note, width, rest="  ")]
    ending = "" if exit_code is None else f"exit {exit_code}"
    gap = max(2, width - len(view.summary) - len(ending))
    lines += ["", paint(view.summary, "head") + (" " * gap + ending if ending else "")]
    for paragraph in view.paragraphs[:_PARAGRAPHS]:
        lines += ["", *_paragraph(paragraph, paint, width)]
    if len(view.paragraphs) > _PARAGRAPHS:
        more = len(view.paragraphs) - _PARAGRAPHS
        lines += ["", f"and {more} more: --json has every one of them"]
    return "\n".join(line.rstrip() for line in lines) + "\n"


def encodable(text: str, encoding: str | None) -> str:
    """Return the text with the few signs that a terminal of that encoding lacks spelled in ASCII."""
    try:
        text.encode(encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        for sign, spelled in (("±", "+-"), ("·", "|"), ("…", "~")):
            text = text.replace(sign, spelled)
        return text.encode("ascii", "backslashreplace").decode("ascii")
    return text


def _listed(name: str, parts: Sequence[str], width: int, paint: Paint) -> list[str]:
    """Lay out `name  part · part · part`, broken between parts."""
    if not parts:
        return []
    head = f"{name}{_GAP}" if len(name) > 10 else f"{name:<12}"
    lines, line = [], head
    for part in parts:
        joined = f"{line} · {part}" if line.strip() and line != head else f"{line}{part}"
        if len(joined) > width and line != head:
            lines.append(line)
            joined = " " * len(head) + part
        line = joined
    lines.append(line)
    first = paint(name, "head") + lines[0][len(name) :]
    return [first, *lines[1:]]


def _table(columns: Sequence[Column], rows: Sequence[Row], paint: Paint, width: int) -> list[str]:
    columns, cells = _fitted(columns, [list(row.cells) for row in rows], width)
    widths = [
        max(len(column.name), *(len(row[index]) for row in cells)) for index, column in enumerate(columns)
    ]
    head = _line([column.name for column in columns], columns, widths)
    lines, before = [paint(head, "head")], ""
    for row, line in zip(rows, cells, strict=True):
        shown = list(line)
        if columns[0].name == "kernel":
            shown[0] = "" if line[0] == before else line[0]
            before = line[0]
        text = _line(shown, columns, widths)
        last = shown[-1]
        lines.append(text[: len(text) - len(last)] + paint(last, row.word) if last else text)
    return lines


def _line(cells: Sequence[str], columns: Sequence[Column], widths: Sequence[int]) -> str:
    placed = [
        cell.ljust(width) if column.left else cell.rjust(width)
        for cell, column, width in zip(cells, columns, widths, strict=True)
    ]
    return _GAP.join(placed).rstrip()


def _fitted(
    columns: Sequence[Column], cells: list[list[str]], width: int
) -> tuple[list[Column], list[list[str]]]:
    """Make the table fit: the least column goes, the contract is cut, then by turns columns and names.

    What tells cases apart goes last: a row that cannot be told from its neighbour says nothing.
    """
    kept = list(columns)
    expendable = sorted((c for c in columns if c.expendable), key=lambda c: c.expendable)

    def drop_while_over(leave: int) -> None:
        while _over(kept, cells, width) > 0 and len(expendable) > leave:
            index = kept.index(expendable.pop(0))
            kept.pop(index)
            for row in cells:
                row.pop(index)

    drop_while_over(leave=len(expendable) - 1)
    if _over(kept, cells, width) > 0 and kept[-1].name == "contract":
        room = max(_CONTRACT, max(len(row[-1]) for row in cells) - _over(kept, cells, width))
        for row in cells:
            row[-1] = _cut(row[-1], room, at_word=True)
    drop_while_over(leave=sum(column.expendable > _BEFORE_NAMES for column in kept))
    names = [row[:2] for row in cells]
    _shorten_names(kept, cells, width, (_SHORT, max(_SHORT, _telling(names))))
    drop_while_over(leave=0)
    # What the last columns leave free goes to the names.
    for row, whole in zip(cells, names, strict=True):
        row[:2] = whole
    for shortest in ((_SHORT, max(_SHORT, _telling(names))), (_SHORTEST, _SHORTEST)):
        _shorten_names(kept, cells, width, shortest)
    return kept, cells


def _telling(names: Sequence[Sequence[str]]) -> int:
    """Return the room in which the cases of each kernel, where they are not alike, are still told apart."""
    different = set(map(tuple, names))
    for room in range(max(len(case) for _, case in different), 0, -1):
        shown = {(kernel, _cut(case, room, at_word=False).rstrip("…")) for kernel, case in different}
        if len(shown) < len(different):
            return room + 1
    return 1


def _shorten_names(
    columns: Sequence[Column], cells: list[list[str]], width: int, shortest: tuple[int, int]
) -> None:
    """Cut the kernel's and the case's column, the wider one first, neither below its `shortest`."""
    if [column.name for column in columns[:2]] != ["kernel", "case"]:
        return
    over = _over(columns, cells, width)
    rooms = [max(len(row[at]) for row in cells) for at in (0, 1)]
    while over > 0 and any(room > least for room, least in zip(rooms, shortest, strict=True)):
        at = max((0, 1), key=lambda at: (rooms[at] > shortest[at], rooms[at]))
        rooms[at] -= 1
        over -= 1
    for row in cells:
        row[:2] = [_cut(cell, room, at_word=False) for cell, room in zip(row[:2], rooms, strict=True)]


def _over(columns: Sequence[Column], cells: Sequence[Sequence[str]], width: int) -> int:
    return _total(columns, cells) - width


def _total(columns: Sequence[Column], cells: Sequence[Sequence[str]]) -> int:
    widths = [
        max(len(column.name), *(len(row[index]) for row in cells)) for index, column in enumerate(columns)
    ]
    return sum(widths) + len(_GAP) * (len(widths) - 1)


def _cut(text: str, room: int, *, at_word: bool) -> str:
    if len(text) <= room:
        return text
    if at_word:
        words = text.split(" ")
        while len(words) > 1 and len(" ".join(words)) > room:
            words.pop()
        return " ".join(words)
    return text[: room - 1].rstrip() + "…"


def _paragraph(paragraph: Paragraph, paint: Paint, width: int) -> list[str]:
    word, indent = f"{paragraph.word:<7}", " " * 7
    if len(paragraph.word) >= 7:
        word = f"{paragraph.word}{_GAP}"
    head = f"{word}{paragraph.case_id}"
    place = paragraph.place
    together = bool(place) and len(head) + 2 + len(place) <= width
    first = head + (" " * (width - len(head) - len(place)) + place if together else "")
    lines = [paint(paragraph.word, paragraph.word) + first[len(paragraph.word) :]]
    if place and not together:
        lines.append(indent + place)
    for sentence in paragraph.sentences:
        lines += wrapped(sentence, width, indent, indent)
    lines += [f"{indent}| {line}"[:width] for line in paragraph.detail]
    # A command is copied, so it is never wrapped.
    return [*lines, indent + paragraph.repro] if paragraph.repro else lines
