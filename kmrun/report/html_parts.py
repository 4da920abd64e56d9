"""What a page is made of: finished texts and pictures for templates that compute nothing."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from markupsafe import Markup

from kmrun.report.words import WORDS

CHIPS = {
    WORDS["pass"]: "pass",
    WORDS["fail"]: "fail",
    WORDS["wrong"]: "fail",
    WORDS["error"]: "fail",
    WORDS["inconclusive"]: "warn",
    WORDS["skipped"]: "skip",
    "not judged": "skip",
}
"""Verdict word to the class that colours it."""
SIGNS = {"pass": "\N{CHECK MARK}", "fail": "\N{MULTIPLICATION X}", "warn": "?", "skip": "\N{EN DASH}"}
"""Class to the sign that says the same without colour."""

_MANY = 4
_PHRASE, _SENTENCE = 16, 48
"""Characters, above which a cell holds more than a word, and more than a few."""
FOLD = 40
"""Tables that are longer begin folded, where nothing in them is broken."""


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell: text, or a picture with its own text alternative. `css` aligns or colours it."""

    text: str
    css: str = ""
    svg: Markup | None = None
    chip: str = ""
    sign: str = ""
    hover: str = ""
    link: str = ""
    after: str = ""
    """Stands behind a chip, in quieter type."""

    @property
    def plain(self) -> bool:
        """Whether there is nothing but text; a page has tens of thousands of such cells."""
        return not (self.svg or self.chip or self.link or self.css == "code")

    @property
    def look(self) -> str:
        """The class of the cell: a text of several words gets room, so that it is not set one word a line."""
        if self.css or len(self.text) <= _PHRASE:
            return self.css
        return "text" if len(self.text) <= _SENTENCE else "text long"


@dataclass(frozen=True, slots=True)
class Head:
    """The head of a column. `hint` explains it under the pointer."""

    text: str
    css: str = ""
    hint: str = ""


@dataclass(frozen=True, slots=True)
class Line:
    """A row of a table: the first cell is its head. `anchor` is its id in the page."""

    cells: tuple[Cell, ...]
    anchor: str = ""


@dataclass(frozen=True, slots=True)
class Table:
    """A table with its caption."""

    caption: str
    heads: tuple[Head, ...]
    lines: tuple[Line, ...]
    note: str = ""
    folded: bool = False
    """Shown only when the reader opens it."""
    css: str = ""
    row_head: int = 0
    """Column whose cells are heads of their rows."""
    groups: tuple[tuple[str, int], ...] = ()
    """Heads over several columns: text and how many, from the second column on."""


@dataclass(frozen=True, slots=True)
class Key:
    """An entry of a legend: a sample of the line or mark, and its name."""

    sample: Markup
    text: str


@dataclass(frozen=True, slots=True)
class Figure:
    """A picture, a second one for narrow screens where text would become too small, legend and caption."""

    svg: Markup
    narrow: Markup | None = None
    caption: str = ""
    keys: tuple[Key, ...] = ()


@dataclass(frozen=True, slots=True)
class Tile:
    """One number that matters, in large type."""

    name: str
    value: str
    unit: str = ""
    note: str = ""


@dataclass(frozen=True, slots=True)
class Banner:
    """The verdict of a run: word, class, sentence, and how many cases came to what."""

    word: str
    css: str
    sign: str
    sentence: str
    counts: tuple[Cell, ...]


@dataclass(frozen=True, slots=True)
class Finding:
    """What one case, or several for one cause, needs said."""

    chip: str
    sign: str
    word: str
    case_id: str
    place: str
    sentences: tuple[str, ...]
    detail: tuple[str, ...]
    repro: str


@dataclass(frozen=True, slots=True)
class Section:
    """A heading with what stands under it; empty ones are not made."""

    anchor: str
    heading: str
    intro: str = ""
    figures: tuple[Figure, ...] = ()
    tables: tuple[Table, ...] = ()
    panels: bool = False
    """Figures stand side by side where there is room."""


@dataclass(frozen=True, slots=True)
class Run:
    """One result document."""

    anchor: str
    heading: str
    device: tuple[str, ...]
    ceilings: tuple[str, ...]
    banner: Banner
    tiles: tuple[Tile, ...]
    findings: tuple[Finding, ...]
    more_findings: tuple[Finding, ...]
    more: str
    """What opens the findings that are folded."""
    sections: tuple[Section, ...]
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Page:
    """A whole report."""

    title: str
    subtitle: str
    overview: Section | None
    runs: tuple[Run, ...]
    contents: tuple[tuple[str, str], ...]
    """(anchor, heading) of every section, for the navigation."""
    long: bool
    """So long that a browser had better lay out only what is seen."""


def number(text: str, hover: str = "") -> Cell:
    """Return a cell that stands right."""
    return Cell(text, "num", hover=hover)


def verdict(word: str, text: str = "", after: str = "") -> Cell:
    """Return a cell with a verdict: coloured, with its sign, and more words behind it where there are some."""
    css = CHIPS.get(word, "skip")
    return Cell(text or word, "verdict", chip=css, sign=SIGNS[css], after=after)


def without_empty_columns(table: Table, always: Sequence[str] = ()) -> Table:
    """Return the table without columns that say nothing in any row."""
    kept = [
        index
        for index, head in enumerate(table.heads)
        if head.text in always or any(_says(line.cells[index]) for line in table.lines)
    ]
    lines = tuple(Line(tuple(line.cells[at] for at in kept), line.anchor) for line in table.lines)
    return replace(table, heads=tuple(table.heads[at] for at in kept), lines=lines)


def hoisted(table: Table, keep: Sequence[str]) -> Table:
    """Return the table with columns that say the same in every row taken out, and said once below it."""
    if len(table.lines) < _MANY:
        return table
    same = {
        index: table.lines[0].cells[index].text
        for index, head in enumerate(table.heads)
        if head.text not in keep
        and len({(line.cells[index].text, line.cells[index].svg) for line in table.lines}) == 1
    }
    said = ", ".join(f"{table.heads[index].text} {text}" for index, text in same.items())
    kept = [index for index in range(len(table.heads)) if index not in same]
    lines = tuple(Line(tuple(line.cells[at] for at in kept), line.anchor) for line in table.lines)
    note = " ".join(filter(None, (table.note, f"In every row: {said}." if said else "")))
    return replace(table, heads=tuple(table.heads[at] for at in kept), lines=lines, note=note)


def _says(found: Cell) -> bool:
    return bool(found.svg) or found.text not in ("", "-")
