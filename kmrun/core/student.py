"""Student's t distribution: the one quantile that a comparison with a single earlier session needs."""

import math
from functools import lru_cache


@lru_cache(maxsize=1024)
def student_quantile(alpha: float, freedom: float) -> float:
    """Return t with P(T > t) = alpha, by bisection on the tail.

    Raises:
        ValueError: `alpha` is not in (0, 1/2], or there is no degree of freedom.
    """
    if not 0 < alpha <= 0.5 or freedom <= 0:
        raise ValueError(f"no quantile at {alpha} with {freedom} degrees of freedom")
    low, high = 0.0, 1.0
    while student_tail(high, freedom) > alpha:
        low, high = high, high * 2
    while high - low > 1e-7 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if student_tail(middle, freedom) > alpha else (low, middle)
    return high


def student_tail(t: float, freedom: float) -> float:
    """Return P(T > t) for t >= 0: half of the regularised incomplete beta at v/(v+t^2) (A&S 26.7.1)."""
    return incomplete_beta(freedom / (freedom + t * t), freedom / 2, 0.5) / 2


def incomplete_beta(x: float, a: float, b: float) -> float:
    """Return the regularised incomplete beta function I_x(a, b) by its continued fraction (A&S 26.5.8)."""
    if x <= 0:
        return 0.0
    if x >= 1:
        return 1.0
    if x > (a + 1) / (a + b + 2):  # there the fraction converges slowly; the mirror image does not
        return 1 - incomplete_beta(1 - x, b, a)
    front = math.exp(
        math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)
    )
    return front * _fraction(x, a, b) / a


def _fraction(x: float, a: float, b: float) -> float:
    """Evaluate the continued fraction by Lentz's method."""
    tiny = 1e-300
    c, d = 1.0, 1 - (a + b) * x / (a + 1)
    d = 1 / (d if abs(d) > tiny else tiny)
    value = d
    for m in range(1, 1000):
        for part in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            d = 1 + part * d
            d = 1 / (d if abs(d) > tiny else tiny)
            c = 1 + part / c
            c = c if abs(c) > tiny else tiny
            value *= c * d
        if abs(c * d - 1) < 1e-15:
            break
    return value
