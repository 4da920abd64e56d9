"""What plain scalars mean: the core schema of YAML 1.2, and refusals instead of guesses."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kmrun.source.yaml_scalars import MAX_DIGITS, Refusal, resolve


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", None),
        ("~", None),
        ("null", None),
        ("true", True),
        ("False", False),
        ("TRUE", True),
        ("0", 0),
        ("-17", -17),
        ("+4", 4),
        ("0x1F", 31),
        ("0o17", 15),
        ("1e-3", 0.001),
        ("1.", 1.0),
        (".5", 0.5),
        ("-1E+2", -100.0),
        ("y", "y"),
        ("n", "n"),
        ("Y", "Y"),
        ("-", "-"),
        ("2024-01-31", "2024-01-31"),
        ("1.2.3", "1.2.3"),
        ("bf16", "bf16"),
        ("yess", "yess"),
        ("0x", "0x"),
        ("s * 2", "s * 2"),
        ("-inf", "-inf"),
        ("1e", "1e"),
        ("12:99", "12:99"),
        ("_1", "_1"),
        ("+", "+"),
        ("0b2", "0b2"),
    ],
)
def test_core_schema(text: str, value: object) -> None:
    assert resolve(text) == value
    assert type(resolve(text)) is type(value)


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("yes", "true"),
        ("NO", "false"),
        ("On", "true"),
        ("off", "false"),
        ("017", "17"),
        ("-00", "0"),
        ("1_000", "1000"),
        ("1_0.5", "10.5"),
        ("0x_ff", "0xff"),
        ("1:30", '"1:30"'),
        ("20:30:40.5", "quote"),
        ("0b101", ""),
        ("1e999", ""),
    ],
)
def test_what_reads_two_ways_is_refused(text: str, hint: str) -> None:
    refusal = resolve(text)
    assert isinstance(refusal, Refusal)
    assert hint in refusal.hint
    assert f"'{text}'" in refusal.message


def test_infinity_and_nan() -> None:
    assert resolve("-.inf") == float("-inf")
    nan = resolve(".nan")
    assert nan != nan


def test_integers_are_limited() -> None:
    assert resolve("9" * MAX_DIGITS) == 10**MAX_DIGITS - 1
    refusal = resolve("9" * 5000)
    assert isinstance(refusal, Refusal)
    assert refusal.code == "K107"


@given(st.integers(min_value=-(10**30), max_value=10**30))
def test_integers_stay_exact(number: int) -> None:
    assert resolve(str(number)) == number


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_floats_come_back(number: float) -> None:
    assert resolve(repr(number)) == number


@given(st.text(alphabet="0123456789+-._:eExob yonfs", max_size=12))
def test_nothing_escapes(text: str) -> None:
    value = resolve(text)
    assert value is None or isinstance(value, bool | int | float | str | Refusal)
