"""Guessing what was meant: near spellings, and words that other tools use for the same thing."""

from collections.abc import Iterable, Sequence

from kmrun.core.formula_error import nearest

_SYNONYMS = {
    "ref": "reference", "baseline": "reference", "tol": "tolerance", "params": "matrix",
    "parameters": "matrix", "parametrize": "matrix", "axes": "matrix", "grid": "matrix",
    "arguments": "args", "inputs": "args", "keywords": "kwargs", "output": "outputs",
    "asserts": "contract", "clauses": "contract", "skip": "exclude",
    "variables": "let", "vars": "let", "func": "target", "function": "target", "kernel": "target",
    "competitors": "versus", "compare": "versus", "timeout": "timeout_s", "benchmarks": "kernels",
    "inplace": "mutates", "type": "dtype", "size": "shape", "dims": "shape", "kind": "init", "fill": "init",
    "normal": "randn", "gaussian": "randn", "random": "randn", "constant": "full",
    "scalar": "value", "const": "value", "eye": "call", "randperm": "permutation", "range": "arange",
    "matrix_multiply": "matmul", "tensor": "matmul", "simd": "vector", "min": "low", "max": "high",
    "rtol_atol": "allclose", "close": "allclose", "bitwise": "exact", "equal": "exact", "skip_check": "none",
    "min_frac": "min_roof", "min_fraction": "min_roof", "speedup": "min_speedup", "max_time": "max_ms",
    "max_time_s": "max_ms", "name": "suite",
}  # fmt: skip
"""Word to the one that kmrun uses; tried only where that one is known."""


def meant(word: str, candidates: Iterable[str]) -> str | None:
    """Return the candidate that was probably meant, None when nothing is near."""
    known = list(candidates)
    synonym = _SYNONYMS.get(word.lower())
    return synonym if synonym in known else nearest(word, known)


def listed(words: Iterable[str], limit: int = 12) -> str:
    """Return the words as `a, b, c`, cut after `limit`."""
    known = list(words)
    shown = ", ".join(known[:limit])
    return shown if len(known) <= limit else f"{shown}, ..."


def some_of(words: Sequence[str], room: int = 70) -> str:
    """Return `a, b, c and 9 more`: as many of the words as fit into so many columns, the first in any case."""
    shown = words[0] if words else ""
    count = min(len(words), 1)
    for word in words[1:]:
        if len(shown) + len(word) + 2 > room:
            break
        shown += f", {word}"
        count += 1
    return shown if count == len(words) else f"{shown} and {len(words) - count} more"
