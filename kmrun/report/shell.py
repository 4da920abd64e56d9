"""Words of a command as a shell takes them back: what is printed can be pasted."""

import os
import shlex

_ESCAPES = {"\\": "\\\\", "'": "\\'", "\n": "\\n", "\t": "\\t", "\r": "\\r"}


def shell_word(word: str) -> str:
    r"""Return a word quoted where it must be: `$'bad\xff'` where it is no printable text."""
    if word.isprintable():
        return shlex.quote(word)
    return "$'" + "".join(_spelled(char) for char in word) + "'"


def _spelled(char: str) -> str:
    if char in _ESCAPES:
        return _ESCAPES[char]
    if char.isprintable():
        return char
    try:
        encoded = os.fsencode(char)
    except UnicodeEncodeError:  # half a surrogate pair that stands for no byte: a document may hold one
        encoded = char.encode("utf-8", "surrogatepass")
    return "".join(f"\\x{byte:02x}" for byte in encoded)
