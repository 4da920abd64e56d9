"""Plain tables for figures: one unit and one number of decimals a column, 100 columns wide."""

from collections.abc import Sequence

WIDTH = 100
MISSING = "-"


class Column:
    """A column: its head in one or two lines (`unit`), and its cells as text."""

    def __init__(self, head: str, cells: Sequence[str], unit: str = "", *, left: bool = False) -> None:
        """Take the texts; figures stand right, names left."""
        self.head = head
        self.cells = cells
        self.unit = unit
        self.left = left
        self.width = max(len(text) for text in (head, unit, *cells))


def render(columns: Sequence[Column], width: int = WIDTH) -> list[str]:
    """Return the table's lines; gaps shrink from three blanks to one, and then the first column is cut."""
    second = any(column.unit for column in columns)
    widths = [column.width for column in columns]
    for gap in (3, 2, 1):
        if sum(widths) + gap * (len(columns) - 1) <= width:
            break
    widths[0] -= max(0, sum(widths) + gap * (len(columns) - 1) - width)
    rows = [[column.head for column in columns]]
    rows += [[column.unit for column in columns]] if second else []
    rows += [list(cells) for cells in zip(*(column.cells for column in columns), strict=True)]
    return [_line(row, columns, widths, " " * gap) for row in rows]


def figures(values: Sequence[float | None], suffix: str = "") -> list[str]:
    """Return the numbers with equal decimals: three digits of the largest, at least two of the smallest."""
    known = [abs(value) for value in values if value]
    if not known:
        return [MISSING if value is None else f"0{suffix}" for value in values]
    low, high = min(known), max(known)
    decimals = max(0, 3 - len(str(int(high))))
    wanted = 3 if 100 <= high < 1000 and low >= 10 else 2
    while decimals < 6 and low * 10**decimals < 10 ** (wanted - 1) - 0.5:
        decimals += 1
    return [MISSING if value is None else f"{value:.{decimals}f}{suffix}" for value in values]


def _line(cells: Sequence[str], columns: Sequence[Column], widths: Sequence[int], gap: str) -> str:
    parts = []
    for cell, column, width in zip(cells, columns, widths, strict=True):
        text = cell if len(cell) <= width else cell[: max(1, width - 2)] + ".."
        parts.append(text.ljust(width) if column.left else text.rjust(width))
    return gap.join(parts).rstrip()
