"""What a plain YAML scalar means here: the YAML 1.2 core schema, and a refusal of all that reads two ways."""

import re
from dataclasses import dataclass

Value = bool | int | float | str | None

MAX_DIGITS = 40
"""Digits of an integer; far beyond any size in bytes, far below what makes arithmetic slow."""

_CONSTANTS: dict[str, Value] = {
    "": None, "~": None, "null": None, "Null": None, "NULL": None,
    "true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False,
}  # fmt: skip
_INTEGER = re.compile(r"[-+]?[0-9]+")
_LEADING_ZERO = re.compile(r"[-+]?0[0-9]+")
_BASED = re.compile(r"0o[0-7]+|0x[0-9a-fA-F]+")
_BINARY = re.compile(r"[-+]?0b[01_]+")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_INFINITE = re.compile(r"([-+]?)\.(inf|Inf|INF)")
_NAN = re.compile(r"\.(nan|NaN|NAN)")
_UNDERSCORED = re.compile(r"[-+]?(0x[0-9a-fA-F_]+|0o[0-7_]+|[0-9][0-9_]*(\.[0-9_]*)?([eE][-+]?[0-9]+)?)")
_SEXAGESIMAL = re.compile(r"[-+]?[0-9][0-9_]*(:[0-5]?[0-9])+(\.[0-9]*)?")
_SWITCHES = {"yes": True, "no": False, "on": True, "off": False}
_START = frozenset("+-.0123456789")


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a scalar is refused, how to write it, and a value to go on with (one mistake, one error)."""

    message: str
    hint: str
    stand_in: Value
    code: str = "K103"


def resolve(text: str) -> Value | Refusal:
    """Return what a plain scalar stands for, or why it is refused."""
    if text in _CONSTANTS:
        return _CONSTANTS[text]
    if text[0] in _START:
        return _number(text)
    switch = _SWITCHES.get(text.lower()) if len(text) <= 3 else None
    if switch is None:
        return text
    return Refusal(
        f"'{text}' is a string to some YAML readers and a truth value to others",
        f'write {str(switch).lower()}, or "{text}" if the word is meant',
        switch,
    )


def _number(text: str) -> Value | Refusal:
    if _INTEGER.fullmatch(text):
        return _integer(text)
    if _BASED.fullmatch(text):
        return _limited(text, 8 if text[1] == "o" else 16)
    if _FLOAT.fullmatch(text):
        value = float(text)
        if value in (float("inf"), float("-inf")):
            return Refusal(f"'{text}' is larger than any floating-point number", "", 0.0)
        return value
    if infinite := _INFINITE.fullmatch(text):
        return float(f"{infinite[1]}inf")
    if _NAN.fullmatch(text):
        return float("nan")
    return _ambiguous(text)


def _integer(text: str) -> Value | Refusal:
    if _LEADING_ZERO.fullmatch(text):
        plain = text.lstrip("+-").lstrip("0") or "0"
        return Refusal(
            f"'{_short(text)}' is octal to some YAML readers and decimal to others",
            f"write {_short(plain)}, 0o{_short(plain)} for octal, or quote it if it is text",
            0,
        )
    return _limited(text, 10)


def _limited(text: str, base: int) -> Value | Refusal:
    digits = len(text.lstrip("+-"))
    if digits > MAX_DIGITS:
        return Refusal(f"an integer of {digits} digits; the limit is {MAX_DIGITS}", "", 0, "K107")
    return int(text, 0 if base != 10 else 10)


def _ambiguous(text: str) -> Value | Refusal:
    if _SEXAGESIMAL.fullmatch(text):
        return Refusal(
            f"'{_short(text)}' is a number of base 60 to some YAML readers and a string to others",
            f'quote it if it is text: "{_short(text)}"',
            0,
        )
    if "_" in text and _UNDERSCORED.fullmatch(text):
        plain = text.replace("_", "")
        return Refusal(
            f"'{_short(text)}' is a number to some YAML readers and a string to others",
            f"write {_short(plain)}",
            0,
        )
    if _BINARY.fullmatch(text):
        return Refusal(f"'{_short(text)}' is a number to some YAML readers and a string to others", "", 0)
    return text


def _short(text: str) -> str:
    return text if len(text) <= 24 else f"{text[:20]}..."
