"""Rooflines as SVG: one self-contained picture, log-log, light or dark by the viewer's setting."""

import math
from collections.abc import Sequence
from html import escape

from kmrun.report.numbers import readable
from kmrun.report.terminal_plot import Curve, Mark, Span, axes, rate_text

_WIDTH, _HEIGHT = 860, 480
_LEFT, _RIGHT, _TOP, _BOTTOM = 96, 24, 24, 52
_LEGEND_ROW = 20
_COLOURS = ("#1f77b4", "#d62728", "#2ca02c", "#9467bd", "#ff7f0e", "#17becf", "#8c564b", "#e377c2")
_DASHES = ("", "7 4", "2 3", "9 3 2 3", "12 4", "4 2", "1 4", "14 3 3 3")
_STYLE = (
    ":root{--ink:#1a1a1a;--grid:#d9d9d9;--back:#fff}"
    "@media (prefers-color-scheme:dark){:root{--ink:#e6e6e6;--grid:#444;--back:#16181c}}"
    "text{font:13px system-ui,sans-serif;fill:var(--ink)}.small{font-size:12px}"
)


def roofline_svg(curves: Sequence[Curve], marks: Sequence[Mark] = (), title: str = "Roofline") -> str:
    """Return an SVG document. Each curve has its own dash too: colour carries nothing alone."""
    height = _HEIGHT + _LEGEND_ROW * (len(curves) + len(marks))
    across, up = axes(curves, marks, _WIDTH - _LEFT - _RIGHT, _HEIGHT - _TOP - _BOTTOM)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" role="img">',
        f"<title>{escape(title)}</title><style>{_STYLE}</style>",
        f'<rect width="{_WIDTH}" height="{height}" fill="var(--back)"/>',
        *_grid(across, up),
        *(_curve(curve, index, across, up) for index, curve in enumerate(curves)),
        *(_mark(mark, curves, across, up) for mark in marks),
        *_legend(curves, marks),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _x(across: Span, intensity: float) -> float:
    return _LEFT + across.cell(intensity)


def _y(up: Span, rate: float) -> float:
    return _HEIGHT - _BOTTOM - up.cell(rate)


def _grid(across: Span, up: Span) -> list[str]:
    bottom, right = _HEIGHT - _BOTTOM, _WIDTH - _RIGHT
    lines = []
    for value in _decades(across):
        x = _x(across, value)
        lines.append(f'<path d="M{x:.1f} {_TOP}V{bottom}" stroke="var(--grid)"/>')
        lines.append(
            f'<text x="{x:.1f}" y="{bottom + 18}" text-anchor="middle" class="small">{value:g}</text>'
        )
    for value in _decades(up):
        y = _y(up, value)
        lines.append(f'<path d="M{_LEFT} {y:.1f}H{right}" stroke="var(--grid)"/>')
        label = rate_text(value)
        lines.append(f'<text x="{_LEFT - 8}" y="{y + 4:.1f}" text-anchor="end" class="small">{label}</text>')
    middle = (_LEFT + right) / 2
    lines.append(f'<text x="{middle}" y="{bottom + 38}" text-anchor="middle">flop/byte</text>')
    return lines


def _decades(span: Span) -> list[float]:
    first, last = math.ceil(math.log10(span.low) - 1e-9), math.floor(math.log10(span.high) + 1e-9)
    return [10.0**exponent for exponent in range(first, last + 1)]


def _curve(curve: Curve, index: int, across: Span, up: Span) -> str:
    corners = [
        (across.low, curve.at(across.low)),
        (curve.ridge, curve.peak),
        (across.high, curve.at(across.high)),
    ]
    points = " ".join(f"{_x(across, intensity):.1f},{_y(up, rate):.1f}" for intensity, rate in corners)
    return f'<polyline points="{points}" fill="none" {_stroke(index)}/>'


def _stroke(index: int) -> str:
    colour, dash = _COLOURS[index % len(_COLOURS)], _DASHES[index % len(_DASHES)]
    return f'stroke="{colour}" stroke-width="2.5"' + (f' stroke-dasharray="{dash}"' if dash else "")


def _mark(mark: Mark, curves: Sequence[Curve], across: Span, up: Span) -> str:
    x, y = _x(across, mark.intensity), _y(up, mark.rate or curves[0].at(mark.intensity))
    bottom = _HEIGHT - _BOTTOM
    return (
        f'<path d="M{x:.1f} {_TOP}V{bottom}" stroke="var(--ink)" stroke-dasharray="2 4"/>'
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="5" fill="var(--ink)">'
        f"<title>{escape(mark.name)}</title></circle>"
    )


def _legend(curves: Sequence[Curve], marks: Sequence[Mark]) -> list[str]:
    lines = []
    for index, curve in enumerate(curves):
        y = _HEIGHT + index * _LEGEND_ROW
        lines.append(f'<path d="M{_LEFT} {y}h36" {_stroke(index)}/>')
        text = f"{curve.name}, ridge at {readable(curve.ridge)} flop/byte"
        lines.append(f'<text x="{_LEFT + 46}" y="{y + 4}">{escape(text)}</text>')
    for index, mark in enumerate(marks):
        y = _HEIGHT + (len(curves) + index) * _LEGEND_ROW
        lines.append(f'<circle cx="{_LEFT + 18}" cy="{y}" r="5" fill="var(--ink)"/>')
        reached = f", measured {rate_text(mark.rate)}" if mark.rate else ""
        text = f"{mark.name} at {readable(mark.intensity)} flop/byte{reached}"
        lines.append(f'<text x="{_LEFT + 46}" y="{y + 4}">{escape(text)}</text>')
    return lines
