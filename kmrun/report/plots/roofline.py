"""A roofline as SVG: every roof, every case where it landed, labels only where there is room."""

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from kmrun.report.numbers import percent, readable
from kmrun.report.plots import frame as frames
from kmrun.report.plots.along import Laid, lay
from kmrun.report.plots.element import element, label, number, picture, title
from kmrun.report.plots.labels import FAR, Box, Placed, Room, Wish, place
from kmrun.report.plots.marks import colour, dash, mark
from kmrun.report.plots.scales import Scale, log_ticks, si
from kmrun.report.roof_words import description, memory_text, peak_text, roofs_title
from kmrun.report.roofs import Kind, Picture, Point, Roofs
from kmrun.report.terminal_plot import rate_text

MOST_NAMED = 14
"""Above this points carry their number in the table, not their name."""
_MOST_LABELS = 60
_MOST_HOVERING = 500
"""On a telephone nothing hovers: above this the texts would only make the file larger."""
_TEXT = 11.0
_RING = 9.5
_NEAR = 24.0
_AROUND = tuple((x, y) for x in (-1, 0, 1) for y in (-1, 0, 1) if x or y)
BROKEN = ("FAIL", "WRONG", "ERROR")
"""Verdict words whose points are ringed."""


@dataclass(frozen=True, slots=True)
class Size:
    """Width and height of the picture in pixels; a narrow one is for telephones."""

    width: float
    height: float
    left: float = 46.0
    right: float = 14.0
    top: float = 26.0
    bottom: float = 44.0

    @property
    def box(self) -> Box:
        """The box of the data."""
        return Box(self.left, self.top, self.width - self.right, self.height - self.bottom)


WIDE, NARROW = Size(900, 460), Size(360, 380, 38)


@dataclass(frozen=True, slots=True)
class Layout:
    """A roofline before it is text: what a test can look at. Boxes are those of all texts in the data's box."""

    frame: frames.Frame
    roofs: tuple[str, ...]
    roof_labels: tuple[str, ...]
    points: tuple[str, ...]
    labels: tuple[str, ...]
    boxes: tuple[tuple[Box, ...], ...]
    """Of each label; a slanted one fills several."""
    labelled: int
    """Points that carry their name or number."""


def roofline(name: str, shown: Picture, size: Size = WIDE, heading: str = "Roofline") -> str:
    """Return the picture; `name` is unique in the page."""
    return drawn(name, shown, layout(shown, size), size, heading)


def drawn(name: str, shown: Picture, found: Layout, size: Size, heading: str = "Roofline") -> str:
    """Return the picture of a roofline that is laid out."""
    return picture(
        name, size.width, size.height, heading, description(shown), *content(found), css="plot roofline"
    )


def content(found: Layout) -> list[str]:
    """Return the markup of a roofline that is laid out, the labels above everything else."""
    return [
        *frames.drawn(found.frame),
        element("g", *found.roofs, class_="roofs"),
        element("g", *found.points, class_="points"),
        element("g", *found.roof_labels, class_="roof-labels"),
        element("g", *found.labels, class_="labels"),
    ]


def roof_attributes(roofs: Roofs) -> dict[str, str | float | None]:
    """Return what makes a line look like one of these roofs: by kind, or of a card its own colour and dash."""
    if roofs.kind != "card":
        return {"class_": f"roof {roofs.kind}"}
    return {"class_": f"roof card {colour(roofs.series)}", "stroke_dasharray": dash(roofs.series)}


def layout(shown: Picture, size: Size) -> Layout:
    """Place everything: roofs, points, then labels where nothing else is."""
    frame = _frame(shown, size)
    room = Room(frame.box)
    roofs = tuple(_roof(each, frame) for each in shown.roofs)
    for point in shown.points:
        room.take(_around(point, frame))
    for each in shown.roofs:
        for box in _roof_boxes(each, frame):
            room.take(box)
    texts, boxes = _roof_labels(shown.roofs, frame, room)
    labels, placed = _labels(shown.points, frame, room)
    hovering = size.width >= WIDE.width or len(shown.points) <= _MOST_HOVERING
    points = tuple(_point(point, frame, hovering=hovering) for point in shown.points)
    return Layout(frame, roofs, tuple(texts), points, tuple(labels), (*boxes, *placed), len(placed))


def _frame(shown: Picture, size: Size) -> frames.Frame:
    ridges = [value / roofs.bandwidth for roofs in shown.roofs if roofs.bandwidth for _, value in roofs.peaks]
    at = [point.intensity for point in shown.points]
    low = min([*at, *(ridge / 8 for ridge in ridges), *([] if at or ridges else [0.1])]) / 1.8
    high = max([*at, *(ridge * 6 for ridge in ridges), *([] if at or ridges else [100.0])]) * 1.8
    tops = [value for roofs in shown.roofs for _, value in roofs.peaks] + [
        point.rate for point in shown.points
    ]
    slopes = [roofs.bandwidth for roofs in shown.roofs if roofs.bandwidth]
    bottoms = [point.rate for point in shown.points] + (
        [max(slopes) * low] if slopes else [value for roofs in shown.roofs for _, value in roofs.peaks]
    )
    top = max(tops, default=max(slopes, default=1e12) * high) * 1.9
    bottom = max(min(bottoms, default=top / 1e4) / 1.6, top / 1e9)
    box = size.box
    across = Scale(low, high, box.left, box.right, logarithmic=True)
    up = Scale(min(bottom, top / 10), top, box.bottom, box.top, logarithmic=True)
    return frames.Frame(
        box,
        across,
        up,
        log_ticks(low, high, si),
        log_ticks(up.low, up.high, si),
        "arithmetic intensity, flop/byte (log)",
        "FLOP/s (log)",
    )


def _corners(roofs: Roofs, frame: frames.Frame) -> list[list[tuple[float, float]]]:
    """Return the lines of roofs in pixels, cut off at the frame: the slope once, each flat from its ridge on."""
    left, right, bottom, top = frame.across.low, frame.across.high, frame.up.low, frame.up.high
    lines = []
    speed = roofs.bandwidth
    if speed is not None and roofs.sloped:
        end = min([right, top / speed, *(value / speed for _, value in roofs.peaks[:1])])
        begin = max(left, bottom / speed)
        if begin < end:
            lines.append([(begin, begin * speed), (end, end * speed)])
    for _, value in roofs.peaks:
        begin = left if speed is None else max(left, value / speed)
        if bottom <= value <= top and begin < right:
            lines.append([(begin, value), (right, value)])
    return [[(frame.across.at(x), frame.up.at(y)) for x, y in line] for line in lines]


def _roof(roofs: Roofs, frame: frames.Frame) -> str:
    lines = _corners(roofs, frame)
    path = "".join(f"M{number(x0)} {number(y0)}L{number(x1)} {number(y1)}" for (x0, y0), (x1, y1) in lines)
    return element("path", title(roofs_title(roofs)), d=path, **roof_attributes(roofs)) if path else ""


def _roof_boxes(roofs: Roofs, frame: frames.Frame) -> list[Box]:
    """Return small boxes along the lines: what a label must not lie on."""
    boxes = []
    for (x0, y0), (x1, y1) in _corners(roofs, frame):
        steps = max(1, math.ceil(math.hypot(x1 - x0, y1 - y0) / 2))
        for step in range(steps + 1):
            x, y = x0 + (x1 - x0) * step / steps, y0 + (y1 - y0) * step / steps
            boxes.append(Box(x - 1, y - 1, x + 1, y + 1))
    return boxes


def _roof_labels(
    roofs: Sequence[Roofs], frame: frames.Frame, room: Room
) -> tuple[list[str], list[tuple[Box, ...]]]:
    """Write each roof's figure along its line, where it meets nothing that was written before."""
    texts: list[str] = []
    boxes: list[tuple[Box, ...]] = []
    for each in roofs:
        lines = _corners(each, frame)
        names = [peak_text(name or each.name, value) for name, value in each.peaks if frame.up.holds(value)]
        slope = memory_text(each) if len(lines) > len(names) else []
        for line, full in zip(lines, slope + names, strict=False):
            # Where the name is too long for its line, the figure alone may fit; the legend has both.
            for text in (full, " ".join(full.split()[:2])):
                laid = lay(line, text, room, _TEXT)
                if laid is not None:
                    texts.append(_roof_label(text, laid, each.kind))
                    boxes.append(laid.boxes)
                    for box in laid.boxes:
                        room.take(box)
                    break
    return texts, boxes


def _roof_label(text: str, laid: Laid, kind: Kind) -> str:
    turned = f"rotate({number(laid.angle)} {number(laid.x)} {number(laid.y)})" if laid.angle else None
    return label(text, laid.x, laid.y, text_anchor="middle", transform=turned, class_=f"roof-label {kind}")


def _extent(point: Point) -> float:
    """Return the radius of what is drawn for a point, its ring included."""
    return _RING + 1.5 if point.word in BROKEN else 6.0


def _around(point: Point, frame: frames.Frame) -> Box:
    x, y, r = frame.across.at(point.intensity), frame.up.at(point.rate), _extent(point)
    return Box(x - r, y - r, x + r, y + r)


def _point(point: Point, frame: frames.Frame, *, hovering: bool) -> str:
    x, y = frame.across.at(point.intensity), frame.up.at(max(point.rate, frame.up.low))
    share = "" if point.share is None else f"\n{percent(point.share)} of the {point.share_of}"
    verdict = "" if point.word == "pass" else f"\n{point.word}"
    hover = (
        ""
        if not hovering
        else title(
            f"{point.number}: {point.name}\n"
            f"{rate_text(point.rate)} at {readable(point.intensity)} flop/byte{share}{verdict}"
        )
    )
    broken = point.word in BROKEN
    ring = element("circle", cx=x, cy=y, r=_RING, class_="broken") if broken else ""
    css = "" if point.word == "pass" else "doubtful"
    return element("g", hover, ring, mark(point.series, x, y, 5.0, css=css))


def _labels(
    points: Sequence[Point], frame: frames.Frame, room: Room
) -> tuple[list[str], list[tuple[Box, ...]]]:
    """Label the points: by name where they are few and every name finds room, else by number.

    Broken ones come first, then those that stand alone: a crowd is read as one, a mark far from it is looked for.
    """
    crowd = _crowd(points, frame)

    def order(point: Point) -> tuple[bool, bool, int]:
        return point.word not in BROKEN, point.number in crowd, point.number

    first = sorted(points, key=order)[:_MOST_LABELS]
    placed = _named(first, frame, room) or place(
        [_wish(point, str(point.number), frame) for point in first], room, _TEXT
    )
    texts = []
    for each in placed:
        if each.apart:
            texts.append(_leader(each.wish, each.box))
        texts.append(label(each.wish.text, each.x, each.y))
    return texts, [(each.box,) for each in placed]


def _crowd(points: Sequence[Point], frame: frames.Frame) -> set[int]:
    """Return the numbers of the points that have another one near."""
    cells: dict[tuple[int, int], list[int]] = defaultdict(list)
    for point in points:
        x, y = frame.across.at(point.intensity), frame.up.at(point.rate)
        cells[int(x // _NEAR), int(y // _NEAR)].append(point.number)
    return {
        number
        for (column, row), own in cells.items()
        if len(own) + sum(len(cells.get((column + x, row + y), ())) for x, y in _AROUND) > 1
        for number in own
    }


def _named(points: Sequence[Point], frame: frames.Frame, room: Room) -> list[Placed]:
    """Return the labels with names, none when they are too many for all to find room."""
    if len(points) > MOST_NAMED:
        return []
    tried = room.copy()
    placed = place([_wish(point, point.label or point.kernel, frame) for point in points], tried, _TEXT, FAR)
    return placed if len(placed) == len(points) else []


def _wish(point: Point, text: str, frame: frames.Frame) -> Wish:
    return Wish(text, frame.across.at(point.intensity), frame.up.at(point.rate), _extent(point) - 1)


def _leader(wish: Wish, box: Box) -> str:
    x, y = min(max(wish.x, box.left), box.right), min(max(wish.y, box.top), box.bottom)
    return element("path", d=f"M{number(wish.x)} {number(wish.y)}L{number(x)} {number(y)}", class_="leader")
