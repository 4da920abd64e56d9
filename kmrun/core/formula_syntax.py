"""The first look at a formula: its words, before Python's parser sees it.

Everything that the language has no use for is refused here, by place and with what to write instead. That
keeps the messages the same on every Python version, and keeps hostile text away from the parser.
"""

import keyword
import re
from dataclasses import dataclass

from kmrun.core.formula_error import FORBIDDEN, SYNTAX, TOO_LARGE, FormulaError

MAX_LENGTH = 1000
MAX_NESTING = 40

_TOKEN = re.compile(
    r"""
    (?P<space>[ \t\r\n]+)
  | (?P<number>(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)
  | (?P<name>[A-Za-z_][A-Za-z_0-9]*)
  | (?P<string>'[^'\\]*'|"[^"\\]*")
  | (?P<op>\*\*|//|==|!=|<=|>=|&&|\|\||<<|>>|[-+*/%<>(),=!&|^~@\[\]{}.:;])
    """,
    re.VERBOSE,
)

_BINARY = {"+", "-", "*", "/", "//", "%", "**", "==", "!=", "<", "<=", ">", ">=", "and", "or", "if", "else"}
_PREFIX = {"+", "-", "not"}

_INSTEAD = {
    "=": "write '==' to compare",
    "!": "write 'not'",
    "&": "write 'and'",
    "&&": "write 'and'",
    "|": "write 'or'",
    "||": "write 'or'",
    "^": "write '**' for a power",
    "<<": "write '* 2 ** n'",
    ">>": "write '// 2 ** n'",
    "is": "write '==' to compare",
    "in": "write one comparison per value: d == 64 or d == 128",
    "lambda": "formulas call only the built-in functions",
    "for": "formulas have no loops; sum, min, max and sumsq take a whole list",
    ".": "formulas have no attributes; numel(x), nbytes(x) and sizeof(x) describe an argument",
    "[": "formulas have no subscripts and no list literals",
    "{": "formulas have no braces",
    ":": "write 'x if condition else y' to choose",
    ";": "one formula is one expression",
}

_TYPED_INSTEAD = {
    "\u00d7": "write '*'",
    "\u00b7": "write '*'",
    "\u00f7": "write '/' or '//'",
    "\u2212": "write '-'",
    "\u2013": "write '-'",
    "\u2264": "write '<='",
    "\u2265": "write '>='",
    "\u2260": "write '!='",
    "\u00b2": "write '** 2'",
    "\u00b3": "write '** 3'",
    **dict.fromkeys("\u2018\u2019\u201c\u201d", "write ' around a string"),
    **dict.fromkeys("\u00a0\u200b\u202f", "it looks like a space, or like nothing: type that again"),
}
"""Signs of word processors and textbooks, and what is meant."""

_FOREIGN_KEYWORDS = frozenset(keyword.kwlist) - {"and", "or", "not", "if", "else", "True", "False", "None"}

KEYWORDS = frozenset(keyword.kwlist) | {"true", "false", "null"}
"""Words that no axis, let name, argument or output can have in a formula."""


@dataclass(frozen=True, slots=True)
class Token:
    """One word of a formula, at `offset`."""

    kind: str
    text: str
    offset: int


def scan(text: str) -> None:
    """Check the words of a formula and their order.

    Raises:
        FormulaError: K202 (does not read as an expression), K203 (not in the language), K204 (too long).
    """
    if len(text) > MAX_LENGTH:
        raise FormulaError(
            TOO_LARGE,
            f"the formula is {len(text)} characters long; at most {MAX_LENGTH} are read",
            0,
            len(text),
            "name its parts in 'let'",
        )
    _check_order(_tokens(text), len(text))


def _tokens(text: str) -> list[Token]:
    tokens: list[Token] = []
    position = 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            raise _unreadable(text, position)
        kind, word = str(match.lastgroup), match.group()
        if kind != "space":
            if kind in ("name", "number", "string") and tokens:
                _check_gap(tokens[-1], position, word)
            if kind == "number":
                _check_number(word, position)
            if kind == "string" and not word.isprintable():
                raise FormulaError(FORBIDDEN, "a control character in a string", position, len(word))
            tokens.append(Token(kind, word, position))
        position = match.end()
    return tokens


def _unreadable(text: str, position: int) -> FormulaError:
    character = text[position]
    if character in "'\"":
        rest = text[position:]
        if "\\" in rest:
            return FormulaError(FORBIDDEN, "strings in formulas have no backslash", position, len(rest))
        return FormulaError(SYNTAX, "this string is never closed", position, len(rest))
    if character.isalnum():
        return FormulaError(
            FORBIDDEN,
            f"{character!r} is not an ASCII letter or digit",
            position,
            1,
            _TYPED_INSTEAD.get(character, "names are a-z A-Z 0-9 _"),
        )
    sentence = f"{character!r} has no meaning in a formula"
    return FormulaError(FORBIDDEN, sentence, position, 1, _TYPED_INSTEAD.get(character, ""))


def _check_gap(before: Token, position: int, word: str) -> None:
    if before.kind in ("name", "number", "string") and before.offset + len(before.text) == position:
        joined = before.text + word
        raise FormulaError(
            SYNTAX,
            f"'{joined}' is neither a number nor a name",
            before.offset,
            len(joined),
            "is an operator missing?",
        )


def _check_number(word: str, position: int) -> None:
    if len(word) > 1 and word[0] == "0" and word[1].isdigit():
        raise FormulaError(SYNTAX, f"'{word}' has a leading zero", position, len(word), "write it without")


def _check_order(tokens: list[Token], end: int) -> None:
    """Walk the words, knowing only whether a value or an operator must come next, and what is open."""
    if not tokens:
        raise FormulaError(SYNTAX, "the formula is empty", 0, max(end, 1))
    open_brackets: list[tuple[Token, bool]] = []  # the bracket, and whether it opens a call
    value_next = True
    before: Token | None = None
    for token in tokens:
        _refuse_foreign(token)
        if value_next:
            value_next = _take_value(token, before, open_brackets)
        else:
            value_next = _take_operator(token, before, open_brackets)
        if len(open_brackets) > MAX_NESTING:
            raise FormulaError(
                TOO_LARGE, f"more than {MAX_NESTING} brackets inside each other", token.offset, 1
            )
        before = token
    last = tokens[-1]
    if value_next:
        raise FormulaError(SYNTAX, f"a value is missing after '{last.text}'", last.offset, len(last.text))
    if open_brackets:
        raise FormulaError(SYNTAX, "this bracket is never closed", open_brackets[-1][0].offset, 1)


def _refuse_foreign(token: Token) -> None:
    if token.kind == "op" and token.text not in _BINARY | _PREFIX | {"(", ")", ","}:
        raise FormulaError(
            FORBIDDEN,
            f"'{token.text}' has no meaning in a formula",
            token.offset,
            len(token.text),
            _INSTEAD.get(token.text, ""),
        )
    if token.kind == "name" and token.text in _FOREIGN_KEYWORDS:
        raise FormulaError(
            FORBIDDEN,
            f"'{token.text}' has no meaning in a formula",
            token.offset,
            len(token.text),
            _INSTEAD.get(token.text, ""),
        )


def _take_value(token: Token, before: Token | None, open_brackets: list[tuple[Token, bool]]) -> bool:
    """Accept what may stand where a value is due; return whether a value is still due."""
    text = token.text
    if token.kind in ("number", "string") or (token.kind == "name" and text not in _BINARY and text != "not"):
        return False
    if text in _PREFIX:
        return True
    if text == "(":
        open_brackets.append((token, False))
        return True
    if text == ")" and before is not None and before.text == "(" and open_brackets and open_brackets[-1][1]:
        open_brackets.pop()  # f(): the number of arguments is judged later, with the function's name
        return False
    place = f"after '{before.text}'" if before is not None else f"before '{text}'"
    raise FormulaError(SYNTAX, f"a value is missing {place}", token.offset, len(text))


def _take_operator(token: Token, before: Token | None, open_brackets: list[tuple[Token, bool]]) -> bool:
    """Accept what may stand after a value; return whether a value is due next."""
    text = token.text
    if text in _BINARY:
        return True
    if text == "(" and before is not None and before.kind == "name":
        open_brackets.append((token, True))
        return True
    if text == ")":
        if not open_brackets:
            raise FormulaError(SYNTAX, "this bracket closes nothing", token.offset, 1)
        open_brackets.pop()
        return False
    if text == ",":
        if open_brackets and open_brackets[-1][1]:
            return True
        raise FormulaError(SYNTAX, "a comma outside a call", token.offset, 1, "one formula is one value")
    raise FormulaError(SYNTAX, f"an operator is missing before '{text}'", token.offset, len(text))
