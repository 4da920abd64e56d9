"""Rooflines as SVG files: one self-contained picture, log-log, light or dark by the viewer's setting."""

from collections.abc import Mapping, Sequence

from kmrun.report.plots import legend
from kmrun.report.plots.element import element, number, picture
from kmrun.report.plots.roofline import WIDE, content, layout
from kmrun.report.roof_words import description
from kmrun.report.roofs import Picture, Point, Roofs
from kmrun.report.terminal_plot import Curve, Mark
from kmrun.resources import folder

_ROW = 20.0
_MARK = 7
"""The series of a mark that is of no kernel: ink, in a shape of its own."""


def roofline_svg(curves: Sequence[Curve], marks: Sequence[Mark] = (), title: str = "Roofline") -> str:
    """Return the picture of cards, each with its own colour and dash, and of kernels at given intensities.

    Args:
        curves: at least one; a mark without a rate stands on the first.
        marks: kernels.
        title: what the picture is called.
    """
    roofs = tuple(
        Roofs("card", curve.bandwidth, (("", curve.peak),), curve.name, index)
        for index, curve in enumerate(curves)
    )
    points = tuple(_point(number, mark, curves[0]) for number, mark in enumerate(marks, 1))
    return picture_svg(Picture(roofs, points), title, {_MARK: "kernel"} if points else {})


def picture_svg(shown: Picture, title: str, kernels: Mapping[int, str] | None = None) -> str:
    """Return any roofline as a file, with its legend below. `kernels` names the series of its points."""
    found = layout(shown, WIDE)
    keys = legend.roofline_keys(shown, legend.names_of(shown) if kernels is None else kernels)
    height = WIDE.height + _ROW * len(keys) + 8
    return (
        picture(
            "roofline",
            WIDE.width,
            height,
            title,
            description(shown),
            element("style", (folder("templates") / "report_plots.css").read_text(encoding="utf-8")),
            f'<rect width="{number(WIDE.width)}" height="{number(height)}" class="ground"/>',
            *content(found),
            *legend.rows(keys, found.frame.box.left, WIDE.height + 6, _ROW),
            css="plot roofline",
        )
        + "\n"
    )


def _point(index: int, mark: Mark, first: Curve) -> Point:
    return Point(
        number=index,
        name=mark.name,
        label=mark.name,
        kernel="kernel",
        series=_MARK,
        intensity=mark.intensity,
        rate=mark.rate or first.at(mark.intensity),
        word="pass",
        share=None,
        share_of="",
    )
