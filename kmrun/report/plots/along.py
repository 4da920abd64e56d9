"""Text along a line: where beside it there is room, turned as the line is."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from kmrun.report.plots.labels import Box, Room, text_width

_FLAT_SHARES, _SLOPE_SHARES = (1.0, 0.75, 0.5, 0.25, 0.0), (0.35, 0.5, 0.2, 0.65, 0.05, 0.8)
"""Where along a line a text is tried: a flat one at its end first, a slope where it is free of others."""
_PIECE = 8.0


@dataclass(frozen=True, slots=True)
class Laid:
    """A text beside a line: the middle of its baseline, its angle in degrees, and boxes that cover it."""

    x: float
    y: float
    angle: float
    boxes: tuple[Box, ...]


def lay(line: Sequence[tuple[float, float]], text: str, room: Room, size: float) -> Laid | None:
    """Return where a text of that font size fits beside a line of two points, None where there is no room."""
    (x0, y0), (x1, y1) = line
    length, width = math.hypot(x1 - x0, y1 - y0), text_width(text, size)
    if length < width + 8:
        return None
    across, down = (x1 - x0) / length, (y1 - y0) / length
    flat = abs(down) < 1e-9
    for away in (0.5, -1.25) if flat else (0.8, -1.45):  # above the line, then below; in font sizes
        for share in _FLAT_SHARES if flat else _SLOPE_SHARES:
            middle = width / 2 + 4 + share * (length - width - 8)
            x, y = x0 + across * middle + down * away * size, y0 + down * middle - across * away * size
            boxes = _turned(x, y, across, down, width, size)
            if all(room.free(box) for box in boxes):
                return Laid(x, y, math.degrees(math.atan2(down, across)), boxes)
    return None


def _turned(x: float, y: float, across: float, down: float, width: float, size: float) -> tuple[Box, ...]:
    """Return upright boxes that cover a text which is centred on its baseline and turned: one for each piece."""
    pieces = 1 if abs(down) < 1e-9 else max(1, math.ceil(width / _PIECE))
    half = width / pieces / 2
    boxes = []
    for piece in range(pieces):
        offset = (piece + 0.5) * width / pieces - width / 2
        corners = [
            (x + across * (offset + end) + down * lift, y + down * (offset + end) - across * lift)
            for end in (-half, half)
            for lift in (size * 0.95, -size * 0.3)
        ]
        xs, ys = [corner[0] for corner in corners], [corner[1] for corner in corners]
        boxes.append(Box(min(xs), min(ys), max(xs), max(ys)))
    return tuple(boxes)
