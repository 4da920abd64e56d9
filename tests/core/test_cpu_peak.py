import pytest

from kmrun.core.cpu_peak import VectorUnits, vector_peak, vector_units

AVX512 = frozenset({"fma", "avx2", "avx512f"})
AVX2 = frozenset({"fma", "avx2"})


@pytest.mark.parametrize(
    ("vendor", "family", "model", "flags", "name", "per_clock"),
    [
        ("GenuineIntel", 6, 0xCF, AVX512, "Intel(R) Xeon(R) Processor", 64),
        ("GenuineIntel", 6, 0x6A, AVX512, "Intel(R) Xeon(R) Silver 4310", 64),
        ("GenuineIntel", 6, 0x6A, AVX2, "hidden by the virtual machine", 32),
        ("GenuineIntel", 6, 0x55, AVX512, "Intel(R) Xeon(R) Platinum 8280 CPU @ 2.70GHz", 64),
        ("GenuineIntel", 6, 0x9E, AVX2, "Intel(R) Core(TM) i7-8700K", 32),
        ("GenuineIntel", 6, 0x8C, AVX512, "11th Gen Intel(R) Core(TM) i7-1185G7", 32),
        ("AuthenticAMD", 0x17, 0x01, AVX2, "AMD EPYC 7601", 16),
        ("AuthenticAMD", 0x17, 0x31, AVX2, "AMD EPYC 7742", 32),
        ("AuthenticAMD", 0x19, 0x11, AVX512, "AMD EPYC 9654", 32),
        ("AuthenticAMD", 0x1A, 0x02, AVX512, "AMD EPYC 9755", 64),
        ("AuthenticAMD", 0x1A, 0x24, AVX512, "AMD Ryzen AI 9 HX 370", 32),
        ("0x41", 8, 0xD4F, frozenset({"sve2"}), "Neoverse-V2", 32),
    ],
)
def test_flop_per_clock_of_known_cores(vendor, family, model, flags, name, per_clock) -> None:
    units = vector_units(vendor, family, model, flags, name)
    assert units is not None
    assert units.flop_per_clock(32) == per_clock
    assert units.flop_per_clock(64) == per_clock // 2


@pytest.mark.parametrize(
    ("vendor", "family", "model", "flags", "name"),
    [
        ("GenuineIntel", 6, 0xB7, AVX2, "a hybrid: its cores differ"),
        ("GenuineIntel", 6, 0x55, AVX512, "Intel(R) Xeon(R) Silver 4110"),
        ("GenuineIntel", 6, 0x55, AVX512, "Intel(R) Xeon(R) Processor"),
        ("GenuineIntel", 6, 0xCF, frozenset({"sse2"}), ""),
        ("AuthenticAMD", 0x16, 0x30, AVX2, ""),
        ("CentaurHauls", 6, 0x0F, AVX2, ""),
    ],
)
def test_an_unknown_core_is_never_a_neighbour(vendor, family, model, flags, name) -> None:
    assert vector_units(vendor, family, model, flags, name) is None


def test_the_peak_of_a_server() -> None:
    """EPYC 7742: 64 cores at 3.4 GHz."""
    assert vector_peak(VectorUnits("Zen 2", 512), [3.4e9] * 64, 32) == pytest.approx(6.963e12, rel=1e-3)
