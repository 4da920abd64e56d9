"""The roofline: which roof counts, and where they meet."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kmrun.core.roofline import attainable, bound, ridge_point, roof_time_s

rates = st.floats(min_value=1e3, max_value=1e18)
intensities = st.floats(min_value=1e-6, max_value=1e6)


def test_left_of_the_ridge_memory_limits_and_right_of_it_compute() -> None:
    assert attainable(0.5, 1e12, 10e12) == 0.5e12
    assert attainable(100, 1e12, 10e12) == 10e12
    assert ridge_point(1e12, 10e12) == 10
    assert bound(9.9, 1e12, 10e12) == "mem"
    assert bound(10, 1e12, 10e12) == "comp"


def test_the_roof_time_is_the_longer_of_the_two() -> None:
    assert roof_time_s(1e9, 1e12, 1e12, 10e12) == 0.1
    assert roof_time_s(1e12, 1e9, 1e12, 10e12) == 1.0


@pytest.mark.parametrize(
    ("bytes_moved", "flops", "bandwidth", "peak", "time"),
    [
        (1e12, None, 1e12, 1e12, 1.0),
        (None, 1e12, 1e12, 1e12, 1.0),
        (1e12, 1e12, 1e12, None, 1.0),
        (1e12, 5e12, None, 1e12, 5.0),
        (None, None, 1e12, 1e12, None),
        (0, 0, 1e12, 1e12, None),
        (1e12, 1e12, None, None, None),
    ],
)
def test_a_roof_that_does_not_apply_is_left_out(
    bytes_moved: float | None,
    flops: float | None,
    bandwidth: float | None,
    peak: float | None,
    time: float | None,
) -> None:
    assert roof_time_s(bytes_moved, flops, bandwidth, peak) == time


@given(intensity=intensities, bandwidth=rates, peak=rates)
def test_attainable_never_exceeds_a_roof_and_touches_one(
    intensity: float, bandwidth: float, peak: float
) -> None:
    value = attainable(intensity, bandwidth, peak)
    assert value <= peak and value <= intensity * bandwidth
    assert value in (peak, intensity * bandwidth)


@given(intensity=intensities, bandwidth=rates, peak=rates, bytes_moved=st.floats(1, 1e12))
def test_roof_time_and_attainable_are_one_model(
    intensity: float, bandwidth: float, peak: float, bytes_moved: float
) -> None:
    flops = intensity * bytes_moved
    time = roof_time_s(bytes_moved, flops, bandwidth, peak)
    assert time == pytest.approx(flops / attainable(intensity, bandwidth, peak))
