"""What is needed, what a card leaves, and the longest context that fits."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kmrun.core.llm_fit import fit, needed_bytes, usable_bytes
from kmrun.source.catalogue import load_cards
from kmrun.source.model_catalogue import load_models

CARDS = load_cards()
MODEL = load_models().model("llama-3.1-8b")
TOKEN = 131072


def test_needed_is_file_caches_and_overhead() -> None:
    assert needed_bytes(MODEL, 5e9, 1000, 3, 16, 1e9) == 6e9 + 3 * 1000 * TOKEN


def test_the_longest_context_is_the_last_that_fits() -> None:
    usable = 5e9 + 1e9 + 10000 * TOKEN
    found = fit(MODEL, 5e9, 4096, 1, 16, 1e9, usable)
    assert (found.fits, found.max_context) == (True, 10000)
    assert fit(MODEL, 5e9, 10001, 1, 16, 1e9, usable).fits is False
    assert fit(MODEL, 5e9, 4096, 1, 16, 1e9, 1e12).max_context == MODEL.max_context
    assert fit(MODEL, 5e9, 4096, 1, 16, 1e9, 5e9).max_context == 0


def test_unknown_memory_is_no_verdict() -> None:
    found = fit(MODEL, 5e9, 4096, 1, 16, 1e9, None)
    assert (found.fits, found.usable, found.max_context) == (None, None, None)
    assert usable_bytes(CARDS.card("m3-ultra")) is None


def test_shared_memory_is_not_all_the_models() -> None:
    assert usable_bytes(CARDS.card("gb10")) == pytest.approx(119e9 * 1.0737 * 0.99, rel=0.02)
    apple = replace(CARDS.card("m3-ultra"), memory_bytes=512 << 30)
    assert usable_bytes(apple) == 0.75 * (512 << 30)
    assert usable_bytes(CARDS.card("rtx-4090"), 2) == 2 * (24 << 30)


@given(st.floats(1e9, 2e11), st.integers(1, 64), st.sampled_from([4.5, 8, 16]))
def test_the_longest_context_fits_and_one_more_does_not(usable, batch, bits) -> None:
    found = fit(MODEL, 5e9, 1, batch, bits, 5e8, usable)
    longest = found.max_context
    assert longest is not None
    if longest:
        assert needed_bytes(MODEL, 5e9, longest, batch, bits, 5e8) <= usable
    if longest < (MODEL.max_context or 0):
        assert needed_bytes(MODEL, 5e9, longest + 1, batch, bits, 5e8) > usable
