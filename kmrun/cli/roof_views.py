"""What `kmrun roofline` prints, for people and for scripts."""

import textwrap
from collections.abc import Sequence
from typing import Any

from kmrun.cli.roof_source import RoofPair
from kmrun.cli.terminal import colour_wanted, terminal_width
from kmrun.core.roofline import attainable, bound, ridge_point
from kmrun.report.numbers import readable
from kmrun.report.terminal_plot import MARKS, Mark, rate_text, render

_WORDS = {"mem": "memory-bound", "comp": "compute-bound"}
MOST_MARKS = len(MARKS)


def marks_of(intensities: Sequence[float]) -> list[Mark]:
    """Return the kernels to mark, at the intensities given."""
    return [Mark("kernel", value) for value in intensities]


def lines(roofs: RoofPair, marks: Sequence[Mark]) -> list[str]:
    """Return what people read: the roofs, the picture, and a sentence for every kernel."""
    shown = marks[:MOST_MARKS]
    output = [
        roofs.title,
        f"  peak bandwidth   {readable(roofs.bandwidth / 1e9, 4)} GB/s",
        f"  peak compute     {rate_text(roofs.peak)} ({roofs.peak_title})",
        f"  ridge point      {readable(ridge_point(roofs.bandwidth, roofs.peak))} flop/byte",
        *([f"  {roofs.note}"] if roofs.note else []),
        "",
        *render([roofs.curve], shown, min(terminal_width(), 100), colour_wanted()),
    ]
    if marks:
        output += [
            "",
            *(
                line
                for letter, mark in zip(MARKS, shown, strict=False)
                for line in textwrap.wrap(f"{letter}: {_sentence(roofs, mark)}", 100, subsequent_indent="   ")
            ),
        ]
    if len(marks) > MOST_MARKS:
        output.append(f"({len(marks) - MOST_MARKS} more are not shown)")
    return output


def document(roofs: RoofPair, marks: Sequence[Mark]) -> dict[str, Any]:
    """Return what `--json` prints."""
    return {
        "title": roofs.title,
        "name": roofs.name,
        "mem_gb_per_s": roofs.bandwidth / 1e9,
        "peak_tflops": roofs.peak / 1e12,
        "peak": roofs.peak_title,
        "ridge_flop_per_byte": ridge_point(roofs.bandwidth, roofs.peak),
        "note": roofs.note or None,
        "kernels": [_entry(roofs, mark) for mark in marks],
    }


def _entry(roofs: RoofPair, mark: Mark) -> dict[str, Any]:
    reach = attainable(mark.intensity, roofs.bandwidth, roofs.peak)
    return {
        "name": mark.name,
        "intensity_flop_per_byte": mark.intensity,
        "attainable_tflop_per_s": reach / 1e12,
        "bound": bound(mark.intensity, roofs.bandwidth, roofs.peak),
    }


def _sentence(roofs: RoofPair, mark: Mark) -> str:
    reach = attainable(mark.intensity, roofs.bandwidth, roofs.peak)
    where = _WORDS[bound(mark.intensity, roofs.bandwidth, roofs.peak)]
    return f"{mark.name} at {readable(mark.intensity)} flop/byte is {where}: {rate_text(reach)} attainable"
