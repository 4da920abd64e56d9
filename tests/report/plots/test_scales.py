import itertools
import math

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from kmrun.report.plots.labels import text_width
from kmrun.report.plots.scales import Scale, Tick, linear_ticks, log_ticks, si, spaced, ticks_at

LOWS = st.floats(1e-9, 1e15)
SPANS = st.floats(1.0001, 1e12)


def si_value(text: str) -> float:
    prefixes = {"k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15, "E": 1e18, "Z": 1e21, "Y": 1e24}
    return float(text[:-1]) * prefixes[text[-1]] if text[-1] in prefixes else float(text)


@given(LOWS, SPANS, st.floats(0, 1))
def test_a_logarithmic_axis_is_linear_in_the_logarithm(low, span, share):
    scale = Scale(low, low * span, 50, 850, logarithmic=True)
    assert scale.at(low) == pytest.approx(50)
    assert scale.at(low * span) == pytest.approx(850)
    assert scale.at(low * span**share) == pytest.approx(50 + 800 * share, abs=0.01)


@given(LOWS, SPANS)
def test_ticks_of_a_logarithmic_axis_lie_on_it_and_say_their_value(low, span):
    ticks = log_ticks(low, low * span, si)
    assert len({tick.value for tick in ticks}) == len(ticks)
    for tick in ticks:
        assert low * (1 - 1e-6) <= tick.value <= low * span * (1 + 1e-6)
        if tick.label:
            # Three digits are what a tick shows; a very short axis has ticks that need more.
            assert si_value(tick.label) == pytest.approx(tick.value, rel=0.006)


@given(st.integers(-9, 14), st.integers(2, 14))
def test_from_two_decades_on_powers_of_ten_are_labelled_at_even_steps(first, decades):
    ticks = log_ticks(10.0**first, 10.0 ** (first + decades), si)
    exponents = [round(math.log10(tick.value)) for tick in ticks if tick.label]
    assert all(
        10.0**exponent == pytest.approx(value.value)
        for exponent, value in zip(exponents, [t for t in ticks if t.label], strict=True)
    )
    assert 2 <= len(exponents) <= 9
    assert len({after - before for before, after in itertools.pairwise(exponents)}) <= 1
    minor = [tick for tick in ticks if not tick.label and round(math.log10(tick.value), 9) % 1]
    assert len(minor) == 8 * decades


@given(st.floats(-1e6, 1e6), st.floats(1e-6, 1e9), st.integers(1, 9))
def test_ticks_of_a_linear_axis_are_round_and_evenly_spaced(low, span, about):
    assume(span > 1e-6 * abs(low))
    high = low + span
    ticks = linear_ticks(low, high, lambda value: f"{value:.12g}", about)
    assert len(ticks) <= about + 2
    slack = span * 1e-4
    assert all(low - slack <= tick.value <= high + slack for tick in ticks)
    steps = [after.value - before.value for before, after in itertools.pairwise(ticks)]
    for step in steps:
        digit = step / 10 ** math.floor(math.log10(step) + 1e-6)
        assert min(abs(digit - nice) for nice in (1, 2, 5, 10)) < 1e-2


@given(st.lists(st.floats(1, 1e9), min_size=1, max_size=60, unique=True))
def test_labels_of_ticks_never_touch(values):
    scale = Scale(min(values) / 2, max(values) * 2, 0, 400, logarithmic=True)
    shown = spaced(ticks_at(values, si), scale, lambda text: text_width(text, 11))
    assert sorted(tick.value for tick in shown) == sorted(values)
    boxes = [
        (
            scale.at(tick.value) - text_width(tick.label, 11) / 2,
            scale.at(tick.value) + text_width(tick.label, 11) / 2,
        )
        for tick in shown
        if tick.label
    ]
    assert boxes
    assert all(before[1] < after[0] for before, after in itertools.pairwise(boxes))


def test_a_tick_that_lost_its_label_is_still_there():
    scale = Scale(0, 10, 0, 100)
    assert spaced([Tick(1, "a"), Tick(1.01, "b"), Tick(9, "c")], scale, lambda text: 10.0) == [
        Tick(1, "a"),
        Tick(1.01),
        Tick(9, "c"),
    ]


@pytest.mark.parametrize(
    ("value", "text"),
    [(1e12, "1T"), (1.5e9, "1.5G"), (1000, "1k"), (20, "20"), (0.1, "0.1"), (999.9999999999, "1k"), (0, "0")],
)
def test_prefixes(value, text):
    assert si(value) == text
