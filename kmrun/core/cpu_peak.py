"""The vector peak of a CPU, derived: what a core does in a clock, times cores, times the highest clock.

A core's rate follows from its microarchitecture, which family and model name: two fused multiply-adds of the
vector width a clock on most, one or half of that on some. Sources: the vendors' optimisation manuals (Intel
248966, AMD 56305, 57647 and 58455, Arm's software optimisation guides).
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

FLOP_PER_FMA = 2


@dataclass(frozen=True, slots=True)
class VectorUnits:
    """`fma_bits` is the sum of the widths of the units that a core can start a fused multiply-add on in one clock."""

    name: str
    fma_bits: int

    def flop_per_clock(self, element_bits: int) -> int:
        """Return the flop that a core does in a clock on elements of that size."""
        return FLOP_PER_FMA * self.fma_bits // element_bits


_AVX512 = VectorUnits("Intel, two AVX-512 units", 1024)
_AVX2 = VectorUnits("Intel, two AVX2 units", 512)
_INTEL = {
    # Servers since Ice Lake-SP: a second 512-bit unit on port 5.
    **dict.fromkeys((0x6A, 0x6C, 0x8F, 0xCF, 0xAD, 0xAE), _AVX512),
    **dict.fromkeys(
        (0x3C, 0x3F, 0x45, 0x46, 0x3D, 0x47, 0x4F, 0x56, 0x4E, 0x5E, 0x8E, 0x9E, 0xA5, 0xA6), _AVX2
    ),
    # Clients with AVX-512 have one such unit, made of the two narrower ones.
    **dict.fromkeys((0x7D, 0x7E, 0x8C, 0x8D, 0xA7), _AVX2),
}
_SKYLAKE_SP = 0x55
_TWO_UNITS = re.compile(r"Platinum|Gold 6|Gold 5122|W-\d|i9-")
"""Of the first two generations of Xeon Scalable, which the name tells apart: the cheaper ones have one unit."""
_ARM = {
    0xD0C: VectorUnits("Neoverse N1", 256),
    0xD49: VectorUnits("Neoverse N2", 256),
    0xD40: VectorUnits("Neoverse V1", 512),
    0xD4F: VectorUnits("Neoverse V2", 512),
    0xD08: VectorUnits("Cortex-A72", 128),
}

_ARM_NAMES = {
    0xD03: "Cortex-A53", 0xD05: "Cortex-A55", 0xD07: "Cortex-A57", 0xD09: "Cortex-A73", 0xD0A: "Cortex-A75",
    0xD0B: "Cortex-A76", 0xD0D: "Cortex-A77", 0xD41: "Cortex-A78", 0xD44: "Cortex-X1", 0xD46: "Cortex-A510",
    0xD47: "Cortex-A710", 0xD48: "Cortex-X2", 0xD4A: "Neoverse E1", 0xD84: "Neoverse V3", 0xD8E: "Neoverse N3",
}  # fmt: skip
"""Cores whose vector units are not in the table above, by Arm's part numbers."""


def arm_core(implementer: str, part: str) -> str | None:
    """Return the name of an Arm core by the numbers that Linux gives, `0x41` and `0xd4f`; None for others' cores."""
    if implementer != "0x41":
        return None
    number = int(part, 16)
    known = _ARM.get(number)
    name = known.name if known else _ARM_NAMES.get(number)
    return f"Arm {name}" if name else None


def vector_units(
    vendor: str, family: int, model: int, flags: frozenset[str], name: str = ""
) -> VectorUnits | None:
    """Return the vector units of a core, None where the model is not known: never a neighbour's.

    Args:
        vendor: as the CPU spells it: `GenuineIntel`, `AuthenticAMD`, `0x41` (Arm).
        family: family; the architecture on Arm.
        model: model; the part number on Arm.
        flags: instruction sets. What the machine hides (a virtual machine may) is not used.
        name: the product's name, which alone tells some models apart.
    """
    if vendor == "GenuineIntel" and family == 6 and "fma" in flags:
        found = _INTEL.get(model)
        if model == _SKYLAKE_SP and _TWO_UNITS.search(name):
            found = _AVX512
        return _AVX2 if found is _AVX512 and "avx512f" not in flags else found
    if vendor == "AuthenticAMD" and "fma" in flags:
        return _amd(family, model, flags)
    return _ARM.get(model) if vendor == "0x41" else None


def _amd(family: int, model: int, flags: frozenset[str]) -> VectorUnits | None:
    if family == 0x17:
        return VectorUnits("Zen 2", 512) if model >= 0x30 else VectorUnits("Zen", 256)
    if family == 0x19:
        zen4 = "avx512f" in flags
        return VectorUnits("Zen 4" if zen4 else "Zen 3", 512)
    if family == 0x1A:
        # Strix Point and Krackan Point have half the data path.
        mobile = model in range(0x20, 0x30) or model in range(0x60, 0x70)
        return VectorUnits("Zen 5 mobile", 512) if mobile else VectorUnits("Zen 5", 1024)
    return None


def vector_peak(units: VectorUnits, clocks_hz: Sequence[float], element_bits: int) -> float:
    """Return the vector peak in flop/s of cores with these highest clocks: all at once, they hold less."""
    return units.flop_per_clock(element_bits) * sum(clocks_hz)
