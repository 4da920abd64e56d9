"""The frame of a plot: grid, ticks, axis titles."""

from collections.abc import Sequence
from dataclasses import dataclass

from kmrun.report.plots.element import element, label, number
from kmrun.report.plots.labels import Box, text_width
from kmrun.report.plots.scales import Scale, Tick, spaced

SMALL = 11.0
"""Font size of ticks and axis titles in pixels, as the style sheet has it."""


@dataclass(frozen=True, slots=True)
class Frame:
    """The box of the data, its two axes and their ticks, minor ones without a label."""

    box: Box
    across: Scale
    up: Scale
    across_ticks: Sequence[Tick]
    up_ticks: Sequence[Tick]
    across_title: str
    up_title: str


def drawn(frame: Frame) -> list[str]:
    """Return the markup of a frame; labels of ticks never touch each other."""
    box = frame.box
    across = spaced(frame.across_ticks, frame.across, lambda text: text_width(text, SMALL))
    up = spaced(frame.up_ticks, frame.up, lambda text: SMALL if text else 0.0, gap=2)
    major: list[str] = []
    minor: list[str] = []
    texts = []
    for tick in across:
        x = frame.across.at(tick.value)
        (major if tick.label else minor).append(f"M{number(x)} {number(box.top)}V{number(box.bottom)}")
        if tick.label:
            texts.append(label(tick.label, x, box.bottom + 16, text_anchor="middle"))
    for tick in up:
        y = frame.up.at(tick.value)
        (major if tick.label else minor).append(f"M{number(box.left)} {number(y)}H{number(box.right)}")
        if tick.label:
            texts.append(label(tick.label, box.left - 7, y + 4, text_anchor="end"))
    texts.append(
        label(
            frame.across_title,
            (box.left + box.right) / 2,
            box.bottom + 34,
            text_anchor="middle",
            class_="axis-title",
        )
    )
    texts.append(label(frame.up_title, box.left, box.top - 9, text_anchor="start", class_="axis-title"))
    return [
        element("path", d="".join(minor), class_="grid minor") if minor else "",
        element("path", d="".join(major), class_="grid") if major else "",
        element(
            "path",
            d=f"M{number(box.left)} {number(box.top)}V{number(box.bottom)}H{number(box.right)}",
            class_="axis",
        ),
        element("g", *texts, class_="ticks"),
    ]
