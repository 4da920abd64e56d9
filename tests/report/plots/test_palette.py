"""The colours of both schemes, read from the style sheets: contrast, and what colour-blind readers see."""

import itertools
import re

import pytest

from kmrun.report.plots.marks import COLOURS, colour, dash, mark
from kmrun.resources import folder

AA_TEXT, AA_GRAPHICS = 4.5, 3.0
"""WCAG 2.2, 1.4.3 and 1.4.11."""
BLIND = {
    "protanopia": (
        (0.152286, 1.052583, -0.204868),
        (0.114503, 0.786281, 0.099216),
        (-0.003882, -0.048116, 1.051998),
    ),
    "deuteranopia": (
        (0.367322, 0.860646, -0.227968),
        (0.280085, 0.672501, 0.047413),
        (-0.011820, 0.042940, 0.968881),
    ),
    "tritanopia": (
        (1.255528, -0.076749, -0.178779),
        (-0.078411, 0.930809, 0.147602),
        (0.004733, 0.691367, 0.303900),
    ),
}
"""Machado, Oliveira & Fernandes, IEEE TVCG 15(6), 2009, severity 1.0, on linear RGB."""


def schemes() -> dict[str, dict[str, str]]:
    """Variable name to colour, light and dark, of both style sheets."""
    text = "\n".join((folder("templates") / name).read_text() for name in ("report.css", "report_plots.css"))
    found: dict[str, dict[str, str]] = {"light": {}, "dark": {}}
    for dark, body in re.findall(r"^(@media \(prefers-color-scheme:dark\)\{)?:root\{([^}]*)\}", text, re.M):
        for name, value in re.findall(r"--([\w-]+):(#[0-9a-f]+)", body):
            found["dark" if dark else "light"].setdefault(name, value)
    return found


SCHEMES = schemes()


def linear(colour: str) -> tuple[float, ...]:
    digits = colour[1:] if len(colour) == 7 else "".join(each * 2 for each in colour[1:])
    parts = [int(digits[at : at + 2], 16) / 255 for at in (0, 2, 4)]
    return tuple(part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)


def contrast(one: str, other: str) -> float:
    high, low = sorted(
        (
            sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear(each), strict=True))
            for each in (one, other)
        ),
        reverse=True,
    )
    return (high + 0.05) / (low + 0.05)


def lab(rgb: tuple[float, ...]) -> tuple[float, float, float]:
    rows = ((0.4124, 0.3576, 0.1805), (0.2126, 0.7152, 0.0722), (0.0193, 0.1192, 0.9505))
    xyz = [sum(a * max(0.0, b) for a, b in zip(row, rgb, strict=True)) for row in rows]
    x, y, z = (
        part ** (1 / 3) if part > 0.008856 else 7.787 * part + 16 / 116
        for part in (value / white for value, white in zip(xyz, (0.9505, 1.0, 1.089), strict=True))
    )
    return 116 * y - 16, 500 * (x - y), 200 * (y - z)


def seen(colour: str, kind: str) -> tuple[float, float, float]:
    rgb = linear(colour)
    return lab(tuple(sum(a * b for a, b in zip(row, rgb, strict=True)) for row in BLIND[kind]))


def test_both_schemes_name_the_same_colours():
    assert set(SCHEMES["light"]) == set(SCHEMES["dark"])
    assert {f"s{index}" for index in range(COLOURS)} <= set(SCHEMES["light"])


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize(
    ("ink", "grounds"),
    [
        ("fg", ("bg", "card", "soft", "pass-bg", "fail-bg", "warn-bg", "skip-bg")),
        ("muted", ("bg", "card", "soft")),
        ("link", ("bg", "card")),
        ("pass", ("pass-bg", "card")),
        ("fail", ("fail-bg", "card")),
        ("warn", ("warn-bg", "card")),
        ("skip", ("skip-bg", "card")),
        ("ink", ("back", "faint")),
        ("dim", ("back", "faint")),
    ],
)
def test_text_can_be_read(scheme, ink, grounds):
    colours = SCHEMES[scheme]
    for ground in grounds:
        assert contrast(colours[ink], colours[ground]) >= AA_TEXT, (ink, ground)


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("index", range(COLOURS))
def test_every_series_stands_out_from_the_ground(scheme, index):
    colours = SCHEMES[scheme]
    for ground in ("back", "card"):
        assert contrast(colours[f"s{index}"], colours[ground]) >= AA_GRAPHICS


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("kind", BLIND)
def test_the_first_four_series_differ_for_colour_blind_readers(scheme, kind):
    colours = [SCHEMES[scheme][f"s{index}"] for index in range(4)]
    for one, other in itertools.combinations(colours, 2):
        distance = sum((a - b) ** 2 for a, b in zip(seen(one, kind), seen(other, kind), strict=True)) ** 0.5
        assert distance >= 10, (one, other)


def test_neighbouring_series_differ_in_shape_and_dash_too():
    shapes = [mark(index, 0, 0, 5).partition(" class")[0] for index in range(56)]
    assert len({(shapes[index], colour(index)) for index in range(56)}) == 56
    assert len(set(shapes[:7])) == 7
    assert len({dash(index) for index in range(COLOURS)}) == COLOURS
