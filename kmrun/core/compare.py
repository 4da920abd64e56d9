"""Cards side by side: what each can reach at an intensity, how that compares, and what it costs."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from kmrun.core import roofline
from kmrun.core.card import Card
from kmrun.core.peaks import COMPUTE_FIGURES, SCALE, bandwidth, peaks, rate

PEAK_NAMES: dict[str, str] = {
    "fp32": "fp32_tflops",
    "fp64": "fp64_tflops",
    "tf32": "tf32_tensor_tflops",
    "fp16": "fp16_tensor_tflops",
    "fp16-fp32acc": "fp16_tensor_fp32acc_tflops",
    "bf16": "bf16_tensor_tflops",
    "fp8": "fp8_tensor_tflops",
    "int8": "int8_tensor_tops",
    "fp4": "fp4_tensor_tflops",
}
"""What `--peak` takes, to the figure it stands for."""

Roof = Callable[[Card], float | None]
"""Gives a card's compute roof in flop/s."""


@dataclass(frozen=True, slots=True)
class Standing:
    """One card of a comparison, in SI; None where a figure is unknown or was not asked for.

    `ratio` is the attainable rate over that of the first card that has one. `value` is flop/s per dollar and
    hour.
    """

    card: Card
    bandwidth: float | None
    peak: float | None
    ridge: float | None
    attainable: float | None
    ratio: float | None
    bound: roofline.Bound | None
    usd_per_h: float | None
    value: float | None


FP16 = PEAK_NAMES["fp16"]


def packed_fp16(card: Card) -> float | None:
    """Return the fp16 rate of the vector units in flop/s, where a card has no matrix units for fp16 (RDNA 2, P100)."""
    return None if FP16 in peaks(card).values else rate(card, "vector", "fp16")


def figure_roof(figure: str) -> Roof:
    """Return the roof that a figure (`bf16_tensor_tflops`) is; fp16 falls back on the vector units' packed rate."""

    def roof(card: Card) -> float | None:
        found = peaks(card).values.get(figure)
        return packed_fp16(card) if found is None and figure == FP16 else found

    return roof


def peak_title(figure: str) -> str:
    """Return a figure's name for a table: `fp16 tensor`, `fp16 tensor (fp32 accumulate)`, `fp32`."""
    units, name = COMPUTE_FIGURES[figure]
    dtype, accumulated, _ = name.partition("_fp32acc")
    return f"{dtype} tensor{' (fp32 accumulate)' if accumulated else ''}" if units == "matmul" else name


def compare(
    cards: Sequence[Card],
    roof: Roof,
    intensity: float | None = None,
    costs: Mapping[str, float] | None = None,
) -> list[Standing]:
    """Return the standing of every card, in the order given; `costs` is $/h by card id."""
    found: list[Standing] = []
    first: float | None = None
    for card in cards:
        standing = _standing(card, roof(card), intensity, (costs or {}).get(card.id), first)
        first = first or standing.attainable
        found.append(standing)
    return found


def _standing(
    card: Card, peak: float | None, intensity: float | None, price: float | None, first: float | None
) -> Standing:
    speed = bandwidth(card)
    if not speed or not peak:
        return Standing(card, speed, peak, None, None, None, None, price, None)
    ridge = roofline.ridge_point(speed, peak)
    if intensity is None:
        return Standing(card, speed, peak, ridge, None, None, None, price, None)
    reach = roofline.attainable(intensity, speed, peak)
    ratio = reach / (first or reach)
    bound = roofline.bound(intensity, speed, peak)
    return Standing(card, speed, peak, ridge, reach, ratio, bound, price, reach / price if price else None)


def sentence(standings: Sequence[Standing]) -> str:
    """Return what is being bought at that intensity, and where it is cheapest; empty if unknown."""
    known = [item for item in standings if item.bound is not None]
    if not known:
        return ""
    memory = [item.card.id for item in known if item.bound == "mem"]
    compute = [item.card.id for item in known if item.bound == "comp"]
    every = "Every card is" if len(known) == len(standings) else "Every card with known figures is"
    if len(known) == 1:
        every = f"{known[0].card.id} is"
    if not compute:
        said = f"{every} memory-bound here: bandwidth is what you are buying."
    elif not memory:
        said = f"{every} compute-bound here: arithmetic is what you are buying."
    else:
        said = (
            f"Memory-bound here: {', '.join(memory)} (bandwidth counts); "
            f"compute-bound: {', '.join(compute)} (arithmetic counts)."
        )
    priced = [item for item in known if item.value is not None]
    if len(priced) > 1:
        best = max(priced, key=lambda item: item.value or 0.0)
        said += f" Cheapest throughput: {best.card.id}."
    return said


def scaled(standing: Standing, figure: str) -> float | None:
    """Return a card's figure in the unit that its name carries."""
    value = peaks(standing.card).values.get(figure)
    return None if value is None else value / SCALE[figure]
