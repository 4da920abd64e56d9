"""How series differ: a colour and a shape each, so that neither has to be seen to tell them apart.

Colours are those of Okabe & Ito ("Color Universal Design", 2008), made darker for a white background until they
stand out from it; they are CSS classes, `s0` to `s7`, since only the reader's device knows light from dark.
"""

from kmrun.report.plots.element import element, number

COLOURS = 8
_SHAPES = 7
_DASHES = (None, "7 4", "2 3", "9 3 2 3", "14 4", "4 2", "1 4", "14 3 3 3")


def colour(index: int) -> str:
    """Return the class that colours a series; 56 series differ in colour or shape."""
    return f"s{index % COLOURS}"


def dash(index: int) -> str | None:
    """Return the dashes of a series' line."""
    return _DASHES[index % len(_DASHES)]


def mark(index: int, x: float, y: float, radius: float, *children: str, css: str = "") -> str:
    """Return the mark of a series at a point; children are markup, such as a hover title."""
    return element(
        "path",
        *children,
        d=_path(index % _SHAPES, x, y, radius),
        class_=f"mark {colour(index)} {css}".rstrip(),
    )


def _path(shape: int, x: float, y: float, r: float) -> str:
    start = f"M{number(x)} {number(y)}"
    n = number
    if shape == 0:
        return f"{start}m{n(-r)} 0a{n(r)} {n(r)} 0 1 0 {n(2 * r)} 0a{n(r)} {n(r)} 0 1 0 {n(-2 * r)} 0z"
    if shape == 1:
        s = 0.88 * r
        return f"{start}m{n(-s)} {n(-s)}h{n(2 * s)}v{n(2 * s)}h{n(-2 * s)}z"
    if shape == 2:
        return f"{start}m0 {n(-1.2 * r)}l{n(1.15 * r)} {n(2.1 * r)}h{n(-2.3 * r)}z"
    if shape == 3:
        d = 1.25 * r
        return f"{start}m0 {n(-d)}l{n(d)} {n(d)}l{n(-d)} {n(d)}l{n(-d)} {n(-d)}z"
    if shape == 4:
        return f"{start}m0 {n(1.2 * r)}l{n(1.15 * r)} {n(-2.1 * r)}h{n(-2.3 * r)}z"
    if shape == 5:
        a, b = 0.4 * r, 0.75 * r
        arm = f"v{n(-b)}h{n(2 * a)}v{n(b)}h{n(b)}v{n(2 * a)}h{n(-b)}v{n(b)}h{n(-2 * a)}v{n(-b)}h{n(-b)}v{n(-2 * a)}z"
        return f"{start}m{n(-a)} {n(-a)}{arm}"
    h, w = 0.55 * r, 1.1 * r
    return f"{start}m{n(-w)} 0l{n(h)} {n(-w)}h{n(w)}l{n(h)} {n(w)}l{n(-h)} {n(w)}h{n(-w)}z"
