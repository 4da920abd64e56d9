import pytest

from kmrun.core.card import Card
from kmrun.core.case import Peak
from kmrun.core.roofs import roofs_of
from kmrun.core.score import Roofs
from support.cases import make_case

CARD = Card(
    "test-card",
    "Test Card",
    "nvidia",
    "test",
    "test",
    sm_count=100,
    vector_clock_hz=2e9,
    matmul_clock_hz=1.8e9,
    bus_bits=5120,
    pin_bits_per_s=5e9,
    vector_rates={"fp32": 256.0},
    matmul_rates={"bf16": 4096.0},
)


def of(peak, clock=None):
    return roofs_of(make_case(peak=peak), CARD, clock)


def test_without_a_card_there_is_no_roof():
    assert roofs_of(make_case(), None) == Roofs()


def test_roofs_of_the_case_s_units():
    roofs = of(Peak("matmul", "bf16", "fp32"))
    assert roofs.bandwidth == pytest.approx(3.2e12)
    assert roofs.compute == roofs.compute_max == pytest.approx(4096 * 100 * 1.8e9)
    assert roofs.vector_fp32 == pytest.approx(256 * 100 * 2e9)
    assert roofs.card == "test-card"


def test_the_highest_clock_moves_only_the_maximum_and_never_down():
    roofs = of(Peak("matmul", "bf16", "fp32"), 2.0e9)
    assert roofs.compute == pytest.approx(4096 * 100 * 1.8e9)
    assert roofs.compute_max == pytest.approx(4096 * 100 * 2.0e9)
    slow = of(Peak("matmul", "bf16", "fp32"), 1.0e9)
    assert slow.compute_max == slow.compute


def test_the_clock_held_moves_each_peak_from_its_own_clock():
    tensor = roofs_of(make_case(peak=Peak("matmul", "bf16", "fp32")), CARD, None, 0.9e9)
    assert tensor.compute_clk / tensor.compute == pytest.approx(0.9 / 1.8)
    vector = roofs_of(make_case(peak=Peak("vector", "fp32")), CARD, None, 0.9e9)
    assert vector.compute_clk / vector.compute == pytest.approx(0.9 / 2.0)
    own = roofs_of(make_case(peak=Peak(tflops=312.0)), CARD, None, 0.9e9)
    assert own.compute_clk == pytest.approx(156e12)
    assert of(Peak("vector", "fp32")).compute_clk is None


def test_the_author_s_own_figure():
    roofs = of(Peak(tflops=312.0), 1.98e9)
    assert roofs.compute == pytest.approx(312e12)
    assert roofs.compute_max == pytest.approx(312e12 * 1.1)
    assert of(Peak(tflops=312.0)).compute_max == pytest.approx(312e12)


@pytest.mark.parametrize("peak", [None, Peak(), Peak("matmul", "fp4_e2m1", "fp32")])
def test_no_peak_or_no_such_rate_is_no_compute_roof(peak):
    roofs = of(peak, 2e9)
    assert (roofs.compute, roofs.compute_max) == (None, None)
    assert roofs.bandwidth is not None
