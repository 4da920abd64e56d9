"""`kmrun roofline --result`: the picture that the report has, in a terminal, as JSON or as SVG."""

import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kmrun.cli.terminal import colour_wanted, terminal_width
from kmrun.core.card import per_device
from kmrun.core.printable import printable
from kmrun.report.numbers import percent, readable
from kmrun.report.outcome import PARTIAL
from kmrun.report.roof_words import roofs_title
from kmrun.report.roofs import Picture, Point, Roofs, picture_of
from kmrun.report.terminal_plot import MARKS, MOST, Curve, Mark, rate_text, render
from kmrun.source.catalogue import load_cards

if TYPE_CHECKING:
    from kmrun.core.result import Result

_WIDTH = 100


def pictures(results: "Sequence[Result]", overlays: Sequence[Path]) -> list[tuple[str, Picture]]:
    """Return title and picture of each result, with the roofs of its card where the database has it."""
    catalogue = load_cards(overlays)
    found = []
    for result in results:
        named = result.device.card
        card = per_device(catalogue.card(named)) if named in catalogue.ids else None
        title = f"{result.suite.name} on {result.device.name}" + (f" ({named})" if named else "")
        if not result.complete:
            title += f": {PARTIAL}"
        found.append((title, picture_of(result, card)))
    return found


def lines(shown: Sequence[tuple[str, Picture]]) -> list[str]:
    """Return what people read: for each result its roofs, the picture, and a sentence for every case on it."""
    output: list[str] = []
    for title, picture in shown:
        curves = _curves(picture.roofs)
        points = picture.points[: len(MARKS)]
        # Names are others' words: nothing of a document may move the cursor.
        named = textwrap.wrap(printable(title), _WIDTH, subsequent_indent="  ")
        output += ["", *named] if output else named
        for roofs in picture.roofs:
            output += textwrap.wrap(f"  {printable(roofs_title(roofs))}", _WIDTH, subsequent_indent="    ")
        if curves:
            marks = [Mark(point.name, point.intensity, point.rate) for point in points]
            output += [
                "",
                *render(curves, marks, min(terminal_width(), _WIDTH), colour_wanted(), marks_named=False),
            ]
        output.append("")
        for letter, point in zip(MARKS, points, strict=False):
            output += textwrap.wrap(
                f"{letter}: {printable(_sentence(point))}", _WIDTH, subsequent_indent="   "
            )
        if len(picture.points) > len(points):
            output.append(f"({len(picture.points) - len(points)} more are not shown)")
        if picture.left_out:
            output.append(f"({picture.left_out} have no intensity, no speed or no right result)")
    return output


def document(shown: Sequence[tuple[str, Picture]]) -> dict[str, Any]:
    """Return what `--json` prints."""
    return {
        "results": [
            {
                "title": title,
                "roofs": [_roofs(roofs) for roofs in picture.roofs],
                "kernels": [_kernel(point) for point in picture.points],
                "left_out": picture.left_out,
            }
            for title, picture in shown
        ]
    }


def _roofs(roofs: Roofs) -> dict[str, Any]:
    return {
        "kind": roofs.kind,
        "mem_gb_per_s": None if roofs.bandwidth is None else roofs.bandwidth / 1e9,
        "peaks": [{"name": name, "peak_tflops": value / 1e12} for name, value in roofs.peaks],
    }


def _kernel(point: Point) -> dict[str, Any]:
    return {
        "name": point.name,
        "verdict": point.word.lower(),
        "intensity_flop_per_byte": point.intensity,
        "measured_tflop_per_s": point.rate / 1e12,
        "fraction": point.share,
        "fraction_of": point.share_of,
    }


def _curves(every: Sequence[Roofs]) -> list[Curve]:
    """Return a curve for each compute roof over its kind's memory roof, as many as have a symbol."""
    top = max((value for roofs in every for _, value in roofs.peaks), default=0.0)
    curves = [
        Curve(printable(f"{roofs.kind} {name}".rstrip()), roofs.bandwidth, value)
        for roofs in every
        if roofs.bandwidth
        for name, value in roofs.peaks or ((("", top),) if top else ())
    ]
    return curves[:MOST]


def _sentence(point: Point) -> str:
    share = "" if point.share is None else f", {percent(point.share)} of the {point.share_of}"
    verdict = "" if point.word == "pass" else f", {point.word}"
    return f"{point.name}: {rate_text(point.rate)} at {readable(point.intensity)} flop/byte{share}{verdict}"
