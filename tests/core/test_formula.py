import math
import sys

import pytest

from kmrun.core.formula import Formula, FormulaError, TensorValue, compile_formula

SCOPE = {
    "b": 2,
    "s": 4096,
    "d": 64,
    "scale": 0.5,
    "causal": True,
    "dtype": "bf16",
    "layout": "nhwc",
    "lens": (128, 512, 128),
    "nothing": (),
    "q": TensorValue((2, 4096, 64), "bf16"),
    "packed": TensorValue((3, 3), "int4"),
}


def value(text: object) -> object:
    formula = compile_formula(text)  # type: ignore[arg-type]
    formula.check_names(SCOPE)
    return formula.evaluate(SCOPE)


def error(text: str) -> FormulaError:
    with pytest.raises(FormulaError) as caught:
        value(text)
    return caught.value


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("4 * b * s", 32768),
        ("s / d", 64.0),
        ("s * (s + 1) // 2 if causal else s * s", 4096 * 4097 // 2),
        ("-s // 3", -4096 // 3),
        ("2 ** 10 % 1000", 24),
        ("-2 ** 2", -4),
        ("1 < b <= 2", True),
        ("1 < b < 2", False),
        ("b and d", 64),
        ("causal and s > 5000 or b == 2", True),
        ("not causal", False),
        ("min(b, d, 1.5)", 1.5),
        ("max(lens)", 512),
        ("sum(lens)", 768),
        ("sumsq(lens)", 128**2 * 2 + 512**2),
        ("len(lens)", 3),
        ("len(unique(lens))", 2),
        ("sum(nothing)", 0),
        ("cdiv(s, 100)", 41),
        ("ceil(s / 100) + floor(scale)", 41),
        ("log2(s)", 12.0),
        ("sqrt(d)", 8.0),
        ("abs(b - d)", 62),
        ("sizeof(dtype)", 2),
        ("sizeof('fp4_e2m1')", 0.5),
        ("sizeof(q)", 2),
        ("bits(fp8_e4m3)", 8),
        ("numel(q)", 2 * 4096 * 64),
        ("nbytes(q)", 2 * 4096 * 64 * 2),
        ("nbytes(packed)", 5),
        ("dtype == 'bfloat16'", True),
        ("dtype == 'torch.bfloat16'", True),
        ("dtype == bf16", True),
        ("dtype != 'fp32'", True),
        ("layout == 'nhwc'", True),
        ('layout == "nchw"', False),
        ("layout == 3", False),
        ("causal == true", True),
        ("causal == True", True),
        ("dtype == null", False),
        ("2 ** 127 + 1", 2**127 + 1),
        ("\n  b +\t1 \n", 3),
        ("'é' == 'é' and b", 2),
        (7, 7),
        (0.25, 0.25),
        (True, True),
    ],
)
def test_value(text: object, expected: object) -> None:
    result = value(text)
    assert result == expected
    assert type(result) is type(expected)


@pytest.mark.parametrize(
    ("text", "code", "offset", "length", "message"),
    [
        ("4 * b * sq * d", "K201", 8, 2, "unknown name 'sq' in formula"),
        ("s if causal else zz", "K201", 17, 2, "unknown name 'zz' in formula"),
        ("", "K202", 0, 1, "the formula is empty"),
        ("4 b", "K202", 2, 1, "an operator is missing before 'b'"),
        ("b +", "K202", 2, 1, "a value is missing after '+'"),
        ("* b", "K202", 0, 1, "a value is missing before '*'"),
        ("(b", "K202", 0, 1, "this bracket is never closed"),
        ("b)", "K202", 1, 1, "this bracket closes nothing"),
        ("b, s", "K202", 1, 1, "a comma outside a call"),
        ("  b if s", "K202", 2, 6, "this does not read as a formula"),
        ("b + not s", "K202", 0, 9, "this does not read as a formula"),
        ("017", "K202", 0, 3, "'017' has a leading zero"),
        ("1_000", "K202", 0, 5, "'1_000' is neither a number nor a name"),
        ("layout == 'nhwc", "K202", 10, 5, "this string is never closed"),
        ("layout == '\\n'", "K203", 10, 4, "strings in formulas have no backslash"),
        ("b = 3", "K203", 2, 1, "'=' has no meaning in a formula"),
        ("q.shape", "K203", 1, 1, "'.' has no meaning in a formula"),
        ("lens[0]", "K203", 4, 1, "'[' has no meaning in a formula"),
        ("b in lens", "K203", 2, 2, "'in' has no meaning in a formula"),
        ("lambda: 1", "K203", 0, 6, "'lambda' has no meaning in a formula"),
        ("\uff53 + 1", "K203", 0, 1, "'\uff53' is not an ASCII letter or digit"),
        ("b $ s", "K203", 2, 1, "'$' has no meaning in a formula"),
        ("10 ** 10 ** 10", "K204", 6, 8, "an exponent beyond 1024"),
        ("10 ** 100", "K204", 6, 3, "the number is beyond 2 ** 128"),
        ("7 ** 1000", "K204", 5, 4, "the number is beyond 2 ** 128"),
        ("2 ** 100 * 2 ** 100", "K204", 0, 19, "the number is beyond 2 ** 128"),
        ("1e200 * 1e200", "K204", 0, 13, "the number is too large"),
        ("1e200 ** 2", "K204", 0, 10, "the number is too large"),
        ("1e999", "K204", 0, 5, "the number is too large"),
        ("floor(1e300)", "K204", 0, 12, "the number is beyond 2 ** 128"),
        ("layout * 3", "K205", 0, 6, "a number is needed here, this is a string"),
        ("3 + q", "K205", 4, 1, "a number is needed here, this is a tensor"),
        ("-lens", "K205", 1, 4, "a number is needed here, this is a list"),
        ("layout < 3", "K205", 0, 6, "a number is needed here, this is a string"),
        ("q == q", "K205", 0, 1, "a tensor cannot be compared"),
        ("not q", "K205", 4, 1, "a tensor is no condition"),
        ("sqrt(layout)", "K205", 5, 6, "sqrt takes numbers, this is a string"),
        ("sum(b)", "K205", 4, 1, "sum takes a list, this is a number"),
        ("len(layout)", "K205", 4, 6, "len takes a list, this is a string"),
        ("cdiv(b, 1.5)", "K205", 8, 3, "cdiv takes integers; for others write ceil(a / b)"),
        ("sizeof('bf17')", "K205", 7, 6, "sizeof takes a dtype or an argument, this is 'bf17'"),
        ("numel(b)", "K205", 6, 1, "numel takes an argument or an output that is a tensor, this is a number"),
        ("b / (s - 4096)", "K206", 5, 8, "division by zero"),
        ("cdiv(s, 0)", "K206", 8, 1, "division by zero"),
        ("0 ** -1", "K206", 0, 1, "division by zero"),
        ("(-8) ** 0.5", "K206", 0, 11, "this has no real value"),
        ("sqrt(0 - 1)", "K206", 5, 5, "sqrt of -1 has no value"),
        ("log2(0)", "K206", 5, 1, "log2 of 0 has no value"),
        ("min(nothing)", "K206", 4, 7, "min of an empty list has no value"),
        ("min", "K207", 0, 3, "'min' is a function"),
        ("cdiv(1)", "K207", 0, 7, "cdiv does not take 1 argument"),
        ("mim(b, s)", "K207", 0, 3, "unknown function 'mim' in formula"),
        ("exec('x')", "K207", 0, 4, "unknown function 'exec' in formula"),
        ("'é' == 'é' and bb", "K201", 15, 2, "unknown name 'bb' in formula"),
    ],
)
def test_error(text: str, code: str, offset: int, length: int, message: str) -> None:
    found = error(text)
    assert (found.code, found.offset, found.length, found.sentence) == (code, offset, length, message)


def test_unknown_name_suggests_and_lists_what_is_in_scope() -> None:
    formula = compile_formula("4 * b * sq * d")
    with pytest.raises(FormulaError) as caught:
        formula.check_names(["b", "causal", "s", "d"])
    assert caught.value.hint == "did you mean 's'?"
    assert caught.value.names == ("b", "causal", "d", "s")


def test_names_are_free_names_at_their_first_place() -> None:
    formula = compile_formula("s * b if dtype == fp32 else max(b, true)")
    assert formula.names == {"s": 0, "b": 4, "dtype": 9}


def test_branches_not_taken_are_not_evaluated() -> None:
    assert value("1 if causal else 1 / 0") == 1
    assert value("causal or 1 / 0") is True


def test_the_same_formula_serves_many_scopes() -> None:
    formula = compile_formula("a * a")
    assert [formula.evaluate({"a": a}) for a in range(4)] == [0, 1, 4, 9]


def test_long_numbers_end_before_python_reads_them() -> None:
    assert error("9" * 900).code == "K204"
    assert error("9" * 5000).code == "K204"
    with pytest.raises(FormulaError) as caught:
        compile_formula(10**5000)
    assert caught.value.code == "K204"


@pytest.mark.parametrize(
    "text",
    [
        "(" * 900,
        "-" * 900 + "1",
        "not " * 240 + "1",
        "1" + "+1" * 499,
        "2" + "**2" * 300,
        "9**9**9**9**9**9",
        "sumsq(lens) ** 99",
        "max(" * 100 + "1" + ")" * 100,
        "1 if 1 else " * 80 + "1",
        "''" * 400,
        "(lambda x: x)(1)",
        "().__class__.__bases__[0].__subclasses__()",
        "__import__('os').system('true')",
        "[x for x in (1,)]",
        "f'{1}'",
        "b'1'",
        "0x10",
        "1j",
        "1if b else 2",
        "(b := 3)",
        "*lens",
        "min(*lens)",
        "min(b=1)",
        "...",
        "b;s",
        "b\\\n+1",
        "# b",
        "@b",
        "\x00",
        "'\ud800'",
        "await b",
        "yield",
        "None + 1",
    ],
)
def test_hostile_text_is_refused(text: str) -> None:
    limit = sys.getrecursionlimit()
    assert error(text).code in {"K201", "K202", "K203", "K204", "K205", "K207"}
    assert sys.getrecursionlimit() == limit


def test_formula_is_a_value() -> None:
    one, other = compile_formula("a + 1"), compile_formula("a + 1")
    assert isinstance(one, Formula)
    assert one == other
    assert math.isclose(one.evaluate({"a": 0.5}), 1.5)
