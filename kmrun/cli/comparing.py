"""The steps of `kmrun compare`: reading its options, sorting, and what it prints."""

import textwrap
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from kmrun.cli.roof_choice import RoofChoice, case_roof, chosen_roof
from kmrun.cli.sorting import by_key
from kmrun.cli.terminal import colour_wanted, positive, terminal_width
from kmrun.core.compare import FP16, Standing, packed_fp16, scaled, sentence
from kmrun.errors import UsageError
from kmrun.report.columns import MISSING, WIDTH, Column, figures, render
from kmrun.report.numbers import readable
from kmrun.report.terminal_plot import MOST, Curve, Mark
from kmrun.report.terminal_plot import render as picture

_SORTS: dict[str, tuple[Callable[[Standing], Any], bool]] = {
    "attainable": (lambda item: item.attainable, True),
    "memory": (lambda item: item.bandwidth, True),
    "peak": (lambda item: item.peak, True),
    "ridge": (lambda item: item.ridge, False),
    "cost": (lambda item: item.usd_per_h, False),
    "value": (lambda item: item.value, True),
    "name": (lambda item: item.card.id, False),
}
"""Sort key to what it sorts by, and whether the largest comes first."""
_NEEDS = {
    "attainable": "an intensity: --ai or --suite",
    "cost": "prices: --cost",
    "value": "an intensity and prices: --ai or --suite, and --cost",
}


def the_work(
    ai: float | None, suite: Path | None, case: str | None, peak: str | None, tensor: bool
) -> tuple[float | None, RoofChoice]:
    """Return the intensity in flop/byte, and the compute roof that counts.

    Raises:
        KmrunError: an option is wrong, or the suite is.
    """
    asked = chosen_roof(peak, tensor)
    if suite is None:
        if case is not None:
            raise UsageError("-k names a case of a suite, but there is no --suite")
        return None if ai is None else positive(ai, "--ai", "flop/byte"), asked or RoofChoice("fp32_tflops")
    if ai is not None:
        raise UsageError("--ai and --suite both give an intensity", "leave one out")
    intensity, of_case = case_roof(suite, case)
    return intensity, RoofChoice(asked.figure, what=of_case.what) if asked else of_case


def ordered(standings: list[Standing], key: str | None) -> list[Standing]:
    """Return the standings sorted by a key of `--sort`, those without the figure last.

    Raises:
        UsageError: there is no such key, or no card has the figure because it was not asked for.
    """
    if key is None:
        return standings
    found = by_key(standings, key, _SORTS)
    name = key.removeprefix("-")
    if name in _NEEDS and all(_SORTS[name][0](item) is None for item in standings):
        raise UsageError(f"nothing to sort by: --sort {name} needs {_NEEDS[name]}")
    return found


def text(standings: Sequence[Standing], intensity: float | None, choice: RoofChoice) -> str:
    """Return the comparison as people read it: table, sentence, rooflines."""
    return "\n".join(_lines(standings, intensity, choice)) + "\n"


def _lines(standings: Sequence[Standing], intensity: float | None, choice: RoofChoice) -> list[str]:
    lines = []
    if intensity is not None:
        lines += [*textwrap.wrap(caption(intensity, choice), WIDTH), ""]
    lines += render(columns(standings, intensity, choice))
    said = remarks(standings, choice)
    if said:
        lines += ["", *(line for remark in said for line in textwrap.wrap(remark, WIDTH))]
    drawn = curves(standings)
    if drawn:
        width = min(terminal_width(), WIDTH)
        lines += ["", *picture(drawn, marks(intensity, choice), width, colour_wanted())]
        if len(standings) > MOST:
            lines.append(f"(the picture shows the first {MOST})")
    return lines


def caption(intensity: float, choice: RoofChoice) -> str:
    """Return what is compared: the kernel, its intensity in flop/byte, and the roof."""
    return (
        f"{choice.what or 'A kernel'} at {readable(intensity, 4)} flop/byte, against the {choice.title} roof"
    )


def remarks(standings: Sequence[Standing], choice: RoofChoice) -> list[str]:
    """Return what is to be said below the table: what is bought, what is not known, what stands in for what."""
    said = [found] if (found := sentence(standings)) else []
    lacking = [item.card.id for item in standings if item.peak is None or item.bandwidth is None]
    if lacking:
        said.append(f"No {choice.title} or memory figure is known for {', '.join(lacking)}.")
    packed = [item.card.id for item in standings if choice.figure == FP16 and packed_fp16(item.card)]
    if packed:
        said.append(f"{', '.join(packed)}: no fp16 matrix units, the vector units' packed rate stands in.")
    if choice.figure == FP16 and any(item.card.segment == "geforce" for item in standings):
        said.append(
            "fp16 accumulates in fp16; GeForce runs fp32 accumulation at half of it: --peak fp16-fp32acc."
        )
    return said


def columns(standings: Sequence[Standing], intensity: float | None, choice: RoofChoice) -> list[Column]:
    """Return the table's columns; those of an intensity in flop/byte and of prices where there are any."""
    fast = any(item.bandwidth and item.bandwidth >= 1e12 for item in standings)
    factor, unit = (1e12, "TB/s") if fast else (1e9, "GB/s")
    shown = ["fp32_tflops", choice.column]
    found = [
        Column("card", [item.card.id for item in standings], left=True),
        Column("memory", figures([_over(item.bandwidth, factor) for item in standings]), unit),
    ]
    for figure in dict.fromkeys(shown):
        values = [scaled(item, figure) for item in standings]
        found.append(Column(*_head(figure, figures(values))))
    if choice.figure is None:
        found.append(Column("roof", figures([_over(item.peak, 1e12) for item in standings]), "TFLOP/s"))
    found.append(Column("ridge", figures([item.ridge for item in standings]), "flop/B"))
    if intensity is not None:
        first = next((item for item in standings if item.ratio == 1), None)
        reached = figures([_over(item.attainable, 1e12) for item in standings])
        found += [
            Column(f"at {readable(intensity)}", reached, choice.unit),
            Column("vs", [_ratio(item.ratio) for item in standings], _cut(first.card.id) if first else ""),
            Column("bound", [item.bound or MISSING for item in standings]),
        ]
    if any(item.usd_per_h is not None for item in standings):
        found.append(Column("$/h", [_price(item.usd_per_h) for item in standings]))
        if intensity is not None:
            values = [_over(item.value, 1e12) for item in standings]
            found.append(Column(choice.unit, figures(values), "per $"))
    return found


def _head(figure: str, cells: list[str]) -> tuple[str, list[str], str]:
    name, _, rest = figure.rpartition("_")[0].partition("_")
    return (name, cells, rest.replace("tensor_fp32acc", "fp32 acc") or "TFLOP/s")


def document(standings: Sequence[Standing], intensity: float | None, choice: RoofChoice) -> dict[str, Any]:
    """Return the comparison as `--json` prints it."""
    return {
        "intensity_flop_per_byte": intensity,
        "peak": choice.name,
        "cards": [
            {
                "id": item.card.id,
                "name": item.card.name,
                "mem_gb_per_s": _over(item.bandwidth, 1e9),
                "fp32_tflops": scaled(item, "fp32_tflops"),
                "fp16_tensor_tflops": scaled(item, "fp16_tensor_tflops"),
                "peak_tflops": _over(item.peak, 1e12),
                "ridge_flop_per_byte": item.ridge,
                "attainable_tflop_per_s": _over(item.attainable, 1e12),
                "ratio": item.ratio,
                "bound": item.bound,
                "usd_per_h": item.usd_per_h,
                "tflop_per_s_per_usd_per_h": _over(item.value, 1e12),
            }
            for item in standings
        ],
        "sentence": sentence(standings),
    }


def curves(standings: Sequence[Standing]) -> list[Curve]:
    """Return the rooflines of the first cards that have one."""
    known = [item for item in standings if item.bandwidth and item.peak]
    return [Curve(item.card.id, item.bandwidth or 0.0, item.peak or 0.0) for item in known[:MOST]]


def marks(intensity: float | None, choice: RoofChoice) -> list[Mark]:
    """Return the kernel's mark on the picture."""
    return [] if intensity is None else [Mark(choice.what or "kernel", intensity)]


def _over(value: float | None, factor: float) -> float | None:
    return None if value is None else value / factor


def _ratio(value: float | None) -> str:
    return MISSING if value is None else f"{value:.2f} x"


def _price(value: float | None) -> str:
    return MISSING if value is None else f"{value:.2f}"


def _cut(name: str, most: int = 12) -> str:
    return name if len(name) <= most else name[: most - 2] + ".."
