"""The run-time part of the page means what Python means: formats, rounding, powers, division, order, text."""

import json
import math
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from web.pages import watched

SPECS = (".0f", ".1f", ".2f", ".6f", "g", ".1g", ".3g", ".4g", ".0e", ".2e")
NUMBERS = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False),
    st.floats(min_value=-1e6, max_value=1e6),
    # Ties, which Python rounds to even: halves, quarters, eighths.
    st.integers(-(10**7), 10**7).map(lambda number: number / 8),
    st.integers(-(10**15), 10**15).map(float),
    st.sampled_from(
        [0.0, -0.0, 9.995, 9.5, 99.5, 999.5, 9.999999999999999e22, 1e21, 1e22, 5e-324, 1.7976931348623157e308]
    ),
)
BRIEF = settings(max_examples=25, deadline=None)


@pytest.fixture(scope="module")
def ask(browser, site):
    """Evaluates a function of one argument in the page; both ways as JSON, which keeps every double."""
    with watched(browser) as opened:
        page = opened.open(site)
        yield lambda function, value: json.loads(
            page.evaluate(f"(text) => JSON.stringify(({function})(JSON.parse(text)))", json.dumps(value)),
            # JavaScript writes a whole double as an integer, and rounds what it writes to what reads back the same.
            parse_int=float,
        )


@BRIEF
@given(st.lists(NUMBERS, min_size=30, max_size=60))
def test_formats(ask, numbers):
    found = ask(
        f"(numbers) => numbers.map((one) => {list(SPECS)}.map((how) => py.format(one, how)))", numbers
    )
    # JSON has no -0.0 on the way back from JavaScript, but has it on the way there.
    assert found == [[format(number, spec) for spec in SPECS] for number in numbers]


@BRIEF
@given(st.lists(st.tuples(NUMBERS, st.integers(0, 4)), min_size=20, max_size=40))
def test_round(ask, pairs):
    found = ask("(pairs) => pairs.map(([one, digits]) => py.round(one, digits))", pairs)
    assert found == [round(number, digits) for number, digits in pairs]


@BRIEF
@given(st.lists(st.tuples(st.floats(0.001, 1), st.integers(0, 3000)), min_size=20, max_size=40))
def test_powers_are_rounded_once(ask, pairs):
    found = ask("(pairs) => pairs.map(([base, power]) => py.pow(base, power))", pairs)
    for (base, power), value in zip(pairs, found, strict=True):
        exact = Fraction(base) ** power
        wanted = exact.numerator / exact.denominator if exact > Fraction(1, 2**1000) else 0.0
        assert math.isclose(value, wanted, rel_tol=0, abs_tol=1e-250) or value == wanted


@BRIEF
@given(
    st.lists(st.tuples(st.integers(-(2**50), 2**50), st.integers(-(10**6), 10**6).filter(bool)), min_size=30)
)
def test_whole_division(ask, pairs):
    found = ask("(pairs) => pairs.map(([a, b]) => [py.floordiv(a, b), py.mod(a, b)])", pairs)
    assert found == [[a // b, a % b] for a, b in pairs]


@BRIEF
@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 9)), min_size=1, max_size=30), st.booleans())
def test_order_is_stable(ask, pairs, reverse):
    reversing = "true" if reverse else "false"
    found = ask(
        f"""(pairs) => [
          py.sorted(pairs, (pair) => pair[0], {reversing}),
          py.sorted(pairs, undefined, {reversing}),
          py.max(pairs, (pair) => pair[0]),
          py.min(pairs, (pair) => pair[0]),
        ]""",
        pairs,
    )
    wanted = [
        sorted(pairs, key=lambda pair: pair[0], reverse=reverse),
        sorted(pairs, reverse=reverse),
        max(pairs, key=lambda pair: pair[0]),
        min(pairs, key=lambda pair: pair[0]),
    ]
    assert found == json.loads(json.dumps(wanted))


@BRIEF
@given(
    st.lists(st.text(alphabet="ab.-= ,0", max_size=8), min_size=20),
    st.text(alphabet="ab.-=", min_size=1, max_size=2),
)
def test_text(ask, texts, by):
    found = ask(
        f"""(texts) => texts.map((text) => [
          py.method.partition(text, {json.dumps(by)}), py.method.rpartition(text, {json.dumps(by)}),
          py.method.replace(text, {json.dumps(by)}, "+"), py.method.replace(text, {json.dumps(by)}, "+", 1),
          py.method.split(text), py.method.split(text, {json.dumps(by)}), py.method.strip(text),
          py.method.isdigit(text), py.method.isalnum(text), py.method.removesuffix(text, {json.dumps(by)}),
          py.method.removeprefix(text, {json.dumps(by)}), py.slice(text, 1, -1), py.slice(text, -2), py.repr(text),
        ])""",
        texts,
    )
    wanted = [
        [
            text.partition(by),
            text.rpartition(by),
            text.replace(by, "+"),
            text.replace(by, "+", 1),
            text.split(),
            text.split(by),
            text.strip(),
            text.isdigit(),
            text.isalnum(),
            text.removesuffix(by),
            text.removeprefix(by),
            text[1:-1],
            text[-2:],
            repr(text),
        ]
        for text in texts
    ]
    assert found == json.loads(json.dumps(wanted))


@BRIEF
@given(
    st.lists(st.one_of(st.text(alphabet="0123456789+-._eE ", max_size=7), st.floats().map(str)), min_size=30)
)
def test_numbers_that_are_typed(ask, texts):
    found = ask(
        """(texts) => texts.map((text) => {
          try {
            const value = py.float(text);
            return Number.isFinite(value) ? value : py.str(value);
          } catch (error) {
            return error instanceof py.ValueError ? null : "another error";
          }
        })""",
        texts,
    )

    def read(text):
        try:
            value = float(text)
        except ValueError:
            return None
        return value if math.isfinite(value) else str(value)

    assert found == [read(text) for text in texts]


def test_truth(ask):
    values = [None, False, 0, "", [], True, 1, "0", [0], 0.5]
    assert ask("(values) => values.map(py.truth)", values) == [bool(value) for value in values]
    assert ask("() => [py.truth(NaN), py.truth(py.dict([])), py.truth(py.set([1]))]", None) == [
        True,
        False,
        True,
    ]
