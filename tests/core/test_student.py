import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kmrun.core.student import incomplete_beta, student_quantile, student_tail


# Abramowitz & Stegun, table 26.10.
@pytest.mark.parametrize(
    ("alpha", "freedom", "t"),
    [(0.05, 1, 6.314), (0.025, 10, 2.228), (0.01, 5, 3.365), (0.005, 30, 2.750), (0.0005, 4, 8.610)],
)
def test_printed_quantiles(alpha, freedom, t):
    assert student_quantile(alpha, freedom) == pytest.approx(t, abs=6e-4)


@given(st.floats(1e-6, 0.5), st.integers(1, 200))
def test_the_quantile_inverts_the_tail(alpha, freedom):
    assert student_tail(student_quantile(alpha, freedom), freedom) == pytest.approx(alpha, rel=1e-4)


@given(st.floats(0.01, 0.99), st.integers(1, 40))
def test_a_closed_form_of_the_incomplete_beta(x, n):
    assert incomplete_beta(x, n, 1) == pytest.approx(x**n, rel=1e-9)
    assert incomplete_beta(x, 1, n) == pytest.approx(1 - (1 - x) ** n, rel=1e-9)


def test_the_ends_of_the_incomplete_beta():
    assert (incomplete_beta(0.0, 2, 3), incomplete_beta(1.0, 2, 3)) == (0.0, 1.0)


def test_one_degree_of_freedom_is_cauchy():
    assert student_tail(1.0, 1) == pytest.approx(0.25)
    assert student_tail(3.0, 1) == pytest.approx(0.5 - math.atan(3.0) / math.pi)


@pytest.mark.parametrize(("alpha", "freedom"), [(0.0, 3), (0.6, 3), (0.05, 0)])
def test_what_has_no_quantile(alpha, freedom):
    with pytest.raises(ValueError, match="no quantile"):
        student_quantile(alpha, freedom)
