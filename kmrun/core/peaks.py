"""Peaks of a card, derived from rates, units and clocks: never copied where they can be computed.

peak = rate per unit and clock x units x clock; bandwidth = bus width x pin rate / 8. All SI: flop/s (op/s for
integers), bytes/s. Tensor peaks are dense.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from kmrun.core.card import Card

Units = Literal["vector", "matmul"]
Provenance = Literal["derived", "published"]

BANDWIDTH = "mem_gb_per_s"
COMPUTE_FIGURES: dict[str, tuple[Units, str]] = {
    "fp32_tflops": ("vector", "fp32"),
    "fp64_tflops": ("vector", "fp64"),
    "tf32_tensor_tflops": ("matmul", "tf32"),
    "fp16_tensor_tflops": ("matmul", "fp16"),
    "fp16_tensor_fp32acc_tflops": ("matmul", "fp16_fp32acc"),
    "bf16_tensor_tflops": ("matmul", "bf16"),
    "fp8_tensor_tflops": ("matmul", "fp8"),
    "int8_tensor_tops": ("matmul", "int8"),
    "fp4_tensor_tflops": ("matmul", "fp4"),
}
"""Name of a figure, as documents and sheets carry it, to the unit and rate behind it."""

FIGURES: tuple[str, ...] = (BANDWIDTH, *COMPUTE_FIGURES)
SCALE: dict[str, float] = {BANDWIDTH: 1e9, **dict.fromkeys(COMPUTE_FIGURES, 1e12)}
"""Figure name to what one of its units is in SI."""

_BY_RATE = {behind: figure for figure, behind in COMPUTE_FIGURES.items()}
_AT_VECTOR_CLOCK = ("fp32", "fp64")
# Hopper's sheet gives fp64 matmul at the clock of the vector units; fp32 matmul is the vector units' work.


@dataclass(frozen=True, slots=True)
class Peaks:
    """The peaks of a card in SI by figure name, and whether each was derived or had to be taken as published.

    A figure that is neither known nor derivable is in neither mapping.
    """

    values: Mapping[str, float]
    provenance: Mapping[str, Provenance]

    def scaled(self) -> dict[str, float | None]:
        """Return every figure in the unit that its name carries (GB/s, TFLOP/s), None where unknown."""
        return {name: self.values[name] / SCALE[name] if name in self.values else None for name in FIGURES}


def peaks(card: Card) -> Peaks:
    """Return all figures that can be derived from units and clock, else as published, else in proportion to those."""
    values: dict[str, float] = {}
    provenance: dict[str, Provenance] = {}
    for name in FIGURES:
        derived = (
            _derived_bandwidth(card) if name == BANDWIDTH else _derived_rate(card, *COMPUTE_FIGURES[name])
        )
        if derived is not None:
            values[name], provenance[name] = derived, "derived"
        elif name in card.published:
            values[name], provenance[name] = card.published[name], "published"
        elif name != BANDWIDTH and (other := _by_another_figure(card, *COMPUTE_FIGURES[name])) is not None:
            values[name], provenance[name] = other, "derived"
    return Peaks(values, provenance)


def bandwidth(card: Card) -> float | None:
    """Return the peak memory bandwidth in bytes per second, None where unknown."""
    derived = _derived_bandwidth(card)
    return derived if derived is not None else card.published.get(BANDWIDTH)


def rate(
    card: Card, units: str, dtype: str, acc: str | None = None, at_clock_hz: float | None = None
) -> float | None:
    """Return the peak rate in flop/s for `{units, in, acc}`, None where nobody published one.

    Args:
        card: the card; for one device of several, `per_device(card)`.
        units: `matmul` or `vector`.
        dtype: canonical name (`fp32`, `tf32`, `fp8_e4m3`, ...). `fp32` matmul means IEEE arithmetic: the
            vector roof, or the matrix units' where they do IEEE fp32 (CDNA). `tf32` must be asked for.
        acc: what the sum is kept in; by default fp32, int32 for integers, fp64 for fp64.
        at_clock_hz: another clock than the sheet's, such as the driver's maximum or the clock held. A figure
            that is only known as published cannot be moved to another clock: None.
    """
    name = rate_name(units, dtype, acc)
    if name is None:
        return None
    if units == "matmul" and name in _AT_VECTOR_CLOCK:
        candidates = [
            value
            for unit in ("matmul", "vector")
            if (value := _rate(card, unit, name, at_clock_hz)) is not None
        ]
        return max(candidates, default=None)
    return _rate(card, units, name, at_clock_hz)


def rate_name(units: str, dtype: str, acc: str | None = None) -> str | None:
    """Return the name under which architectures list the rate, None when hardware has no such pair."""
    base = _base(dtype)
    if units == "vector":
        return base if base in ("fp64", "fp32", "fp16", "bf16") and acc in (None, base) else None
    if base in ("int8", "int4"):
        return base if acc in (None, "int32") else None
    if base == "fp64":
        return base if acc in (None, "fp64") else None
    if acc == "fp16":
        return {"fp16": "fp16", "fp8": "fp8_fp16acc"}.get(base)
    if acc not in (None, "fp32"):
        return None
    if base == "fp16":
        return "fp16_fp32acc"
    return base if base in ("fp32", "tf32", "bf16", "fp8", "fp4") else None


def _base(dtype: str) -> str:
    if dtype.startswith(("fp8", "fp4")):
        return dtype[:3]
    return {"uint8": "int8", "uint4": "int4"}.get(dtype, dtype)


def _rate(card: Card, units: str, name: str, at_clock_hz: float | None) -> float | None:
    derived = _derived_rate(card, units, name, at_clock_hz)
    if derived is not None or at_clock_hz is not None:
        return derived
    kind: Units = "vector" if units == "vector" else "matmul"
    figure = _BY_RATE.get((kind, name))
    if figure is None:
        return None
    return card.published[figure] if figure in card.published else _by_another_figure(card, kind, name)


def _derived_rate(card: Card, units: str, name: str, at_clock_hz: float | None = None) -> float | None:
    table = card.vector_rates if units == "vector" else card.matmul_rates
    per_clock = table.get(name)
    if per_clock is None or card.sm_count is None:
        return None
    vector_clock = units == "vector" or name in _AT_VECTOR_CLOCK
    clock = at_clock_hz or (card.vector_clock_hz if vector_clock else card.matmul_clock_hz)
    return None if clock is None else per_clock * card.sm_count * clock


def _by_another_figure(card: Card, units: Units, name: str) -> float | None:
    """Return a rate in flop/s from a published one of the same units at the same clock, None without any.

    For a card whose number of units or clock was never published: the rates per clock give the proportion.
    """
    table = card.vector_rates if units == "vector" else card.matmul_rates
    for figure, (kind, other) in COMPUTE_FIGURES.items():
        if kind == units and {name, other} <= table.keys() and figure in card.published:
            return card.published[figure] * table[name] / table[other]
    return None


def _derived_bandwidth(card: Card) -> float | None:
    if card.bus_bits is None or card.pin_bits_per_s is None:
        return None
    return card.bus_bits * card.pin_bits_per_s / 8
