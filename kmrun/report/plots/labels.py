"""Labels that overlap neither each other nor what they name."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

_NARROW, _WIDE = frozenset("iljtfrI.,:;'|!()[] /"), frozenset("mwMW%@")
_CELL = 40.0
NEAR, FAR = (3.0, 10.0, 20.0, 32.0), (3.0, 10.0, 20.0, 32.0, 46.0, 60.0)
"""Distances for many labels, whose leading lines would cross, and for few."""
LINE = 1.25
"""Height of a line of text over its font size."""
_ASCENT = 0.95


@dataclass(frozen=True, slots=True)
class Box:
    """A rectangle in pixels, y downwards."""

    left: float
    top: float
    right: float
    bottom: float

    def meets(self, other: "Box") -> bool:
        """Say whether two boxes share an area."""
        return (
            self.left < other.right
            and other.left < self.right
            and self.top < other.bottom
            and other.top < self.bottom
        )

    def within(self, other: "Box") -> bool:
        """Say whether this box lies inside another."""
        return (
            self.left >= other.left
            and self.top >= other.top
            and self.right <= other.right
            and self.bottom <= other.bottom
        )


@dataclass(frozen=True, slots=True)
class Wish:
    """A label that wants to stand beside a point of that radius."""

    text: str
    x: float
    y: float
    radius: float


@dataclass(frozen=True, slots=True)
class Placed:
    """A label that found room: its left end and baseline, and the box it fills."""

    wish: Wish
    x: float
    y: float
    box: Box

    @property
    def apart(self) -> bool:
        """Whether it is so far from its point that a line has to lead there."""
        across = max(self.box.left - self.wish.x, self.wish.x - self.box.right, 0.0)
        along = max(self.box.top - self.wish.y, self.wish.y - self.box.bottom, 0.0)
        return max(across, along) > self.wish.radius + 6


class Room:
    """What is free of a picture. Boxes are kept by grid cell, so that thousands cost little."""

    def __init__(self, bounds: Box) -> None:
        """Begin with everything free inside the bounds."""
        self.bounds = bounds
        self._cells: dict[tuple[int, int], list[Box]] = defaultdict(list)

    def copy(self) -> "Room":
        """Return a room of the same state, to try something in."""
        other = Room(self.bounds)
        for cell, boxes in self._cells.items():
            other._cells[cell] = list(boxes)
        return other

    def take(self, box: Box) -> None:
        """Mark a box as taken."""
        for cell in _cells(box):
            self._cells[cell].append(box)

    def free(self, box: Box) -> bool:
        """Say whether a box lies inside the bounds and meets nothing that was taken."""
        return box.within(self.bounds) and not any(
            box.meets(other) for cell in _cells(box) for other in self._cells.get(cell, ())
        )


def text_width(text: str, size: float) -> float:
    """Return how wide a text is at most in the usual sans-serif fonts, in pixels, at a font size in pixels."""
    return size * sum(_em(char) for char in text)


def text_box(text: str, x: float, y: float, size: float) -> Box:
    """Return the box of a text whose left end and baseline are given."""
    top = y - _ASCENT * size
    return Box(x, top, x + text_width(text, size), top + LINE * size)


def place(wishes: Sequence[Wish], room: Room, size: float, distances: Sequence[float] = NEAR) -> list[Placed]:
    """Return the labels for which there is room, in order; the first wishes choose first.

    A label that finds none is left out: its point still has its hover text and its line in the table.

    Args:
        wishes: labels that want a place.
        room: what is free; what is placed is taken.
        size: of the font in pixels.
        distances: between point and label in pixels, tried in this order.
    """
    found = []
    for wish in wishes:
        for x, y in _candidates(wish, size, distances):
            box = text_box(wish.text, x, y, size)
            if room.free(box):
                room.take(box)
                found.append(Placed(wish, x, y, box))
                break
    return found


def _candidates(wish: Wish, size: float, distances: Sequence[float]) -> Iterator[tuple[float, float]]:
    """Yield left ends and baselines round the point, the nearest and the most usual first."""
    width, rise = text_width(wish.text, size), (_ASCENT - LINE / 2) * size
    for distance in distances:
        far = wish.radius + distance
        up, down = wish.y - far - (LINE - _ASCENT) * size, wish.y + far + _ASCENT * size
        right, left, middle = wish.x + far, wish.x - far - width, wish.x - width / 2
        yield from (
            (right, wish.y + rise),
            (left, wish.y + rise),
            (middle, up),
            (middle, down),
            (wish.x + far * 0.7, up + far * 0.3),
            (wish.x - far * 0.7 - width, up + far * 0.3),
            (wish.x + far * 0.7, down - far * 0.3),
            (wish.x - far * 0.7 - width, down - far * 0.3),
        )


def _cells(box: Box) -> Iterable[tuple[int, int]]:
    for column in range(int(box.left // _CELL), int(box.right // _CELL) + 1):
        for row in range(int(box.top // _CELL), int(box.bottom // _CELL) + 1):
            yield column, row


def _em(char: str) -> float:
    if char in _NARROW:
        return 0.42
    if char in _WIDE:
        return 1.0
    if not char.isascii():
        return 1.05
    return 0.78 if char.isupper() else 0.66
