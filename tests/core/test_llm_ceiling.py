"""The terms of a ceiling by hand, and the laws that they obey."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kmrun.core.card import Card
from kmrun.core.llm_cache import cache_bytes, cache_read_bytes
from kmrun.core.llm_ceiling import (
    Load,
    Times,
    decode,
    in_practice,
    layer_split,
    pass_flops,
    prefill,
    prefill_rate,
    read_bytes,
    ridge_batch,
    tensor_parallel,
)
from kmrun.core.llm_link import all_reduce_bytes, all_reduce_factor, all_reduce_seconds
from kmrun.core.llm_model import Model, Parameters, parameters
from kmrun.core.llm_quant import weights
from kmrun.core.llm_roof import ComputeRoof
from kmrun.core.llm_work import attention_flops, decode_flops, matrix_flops, prefill_flops
from kmrun.source.model_catalogue import load_models

CATALOGUE = load_models()
BF16 = CATALOGUE.quant("bf16")
ROOF = ComputeRoof(1e15, 1.0, "bf16")
LINKED = Card("a", "A", "nvidia", "ampere", "ampere", link="nvlink", link_bytes_per_s=600e9)
MODELS = (
    "llama-3.1-8b",
    "gpt-oss-20b",
    "deepseek-v2-lite-16b",
    "qwen3.5-27b",
    "gemma-3-4b",
    "llama-4-scout-17b-16e",
)


def load(name: str, **how) -> Load:
    model = CATALOGUE.model(name)
    return Load(model, weights(parameters(model), BF16), **how)


def test_a_token_of_a_dense_model_reads_all_but_the_table() -> None:
    asked = load("llama-3.1-8b")
    assert read_bytes(asked) == pytest.approx(2 * 7504924672, rel=1e-4)
    assert decode(asked, 2e12, ROOF).tok_per_s == pytest.approx(2e12 / 15.0098e9, rel=1e-3)
    assert decode(asked, 2e12, ROOF).times.bound == "mem"


def test_the_cache_of_llama_2_7b_at_32k_is_17_gigabytes() -> None:
    model = CATALOGUE.model("llama-2-7b")
    assert cache_bytes(model, 32768, 16) == pytest.approx(17.2e9, rel=0.002)
    assert cache_bytes(model, 32768, 8.5) == pytest.approx(17.2e9 * 8.5 / 16, rel=0.002)


def test_an_mla_token_is_70_kilobytes() -> None:
    assert cache_bytes(CATALOGUE.model("deepseek-v3-671b"), 1, 16) == 70272


def test_windows_stop_growing() -> None:
    model = CATALOGUE.model("gpt-oss-20b")
    at_window, beyond = (cache_read_bytes(model, tokens, 16) for tokens in (128, 129))
    assert beyond - at_window == 24576  # only the half with full attention
    assert at_window == 128 * 2 * 24576


def test_a_state_is_read_and_written_whatever_the_context() -> None:
    short, long = (load("nemotron-h-56b", context=tokens) for tokens in (1, 2))
    assert read_bytes(long) - read_bytes(short) == 40960
    without = short.weights.read(0) + 40960
    assert read_bytes(short) - without == 2 * 2 * 229810176


def test_prefill_leaves_embedding_and_all_but_one_row_of_logits_out() -> None:
    model = CATALOGUE.model("llama-3-8b")
    counts = parameters(model)
    body = counts.total - 2 * 525336576
    assert matrix_flops(model, 512) == pytest.approx(2 * body * 512 + 2 * 525336576)
    assert attention_flops(model, 4096) == pytest.approx(2 * 32 * 32 * 128 * 4096**2, rel=1e-3)


def test_the_quadratic_term_is_what_the_notes_of_the_field_say() -> None:
    model = CATALOGUE.model("llama-3-8b")
    shares = [attention_flops(model, size) / matrix_flops(model, size) for size in (4096, 32768)]
    assert shares == pytest.approx([0.08, 0.62], abs=0.01)


def test_windows_and_chunks_have_fewer_pairs() -> None:
    model = CATALOGUE.model("llama-3.1-8b")
    group = model.attention[0]
    per_pair = 2 * 32 * 32 * 2 * 128
    window = model._replace(attention=(group._replace(window=4),))
    chunk = model._replace(attention=(group._replace(window=4, chunked=True),))
    assert attention_flops(model, 10) == per_pair * 55
    assert attention_flops(window, 10) == per_pair * (1 + 2 + 3 + 4 * 7)
    assert attention_flops(chunk, 10) == per_pair * (10 + 10 + 3)


def test_decode_flops_of_a_mixture_are_those_of_its_active_experts() -> None:
    model = CATALOGUE.model("qwen3-30b-a3b")
    assert decode_flops(model, 0) == pytest.approx(2 * 3041867776, rel=1e-3)
    assert decode_flops(model, 100) - decode_flops(model, 0) == 4 * 48 * 32 * 128 * 100


def test_a_batch_of_a_mixture_reads_at_least_the_experts_of_one_token() -> None:
    one, many = load("gpt-oss-20b"), load("gpt-oss-20b", batch=32)
    assert read_bytes(many) == read_bytes(one)
    counts = parameters(one.model)
    everything = read_bytes(many, distinct=32)
    assert everything - read_bytes(many) == pytest.approx(counts.routed * 28 / 32 * 2)


def test_the_ridge_batch_is_that_of_the_book() -> None:
    # An H100 in bf16: 989.4e12 x 2 bytes / (2 x 3352e9), 295.
    asked = load("llama-3.1-8b")
    ridge = ridge_batch(asked, 3.352e12, ComputeRoof(989.4e12, 1.0, "bf16"))
    assert ridge == pytest.approx(295, abs=1)
    for batch, bound in ((290, "mem"), (300, "comp")):
        roof = ComputeRoof(989.4e12, 1.0, "bf16")
        assert decode(asked._replace(batch=batch), 3.352e12, roof).times.bound == bound
    assert ridge_batch(asked._replace(context=100_000), 3.352e12, ComputeRoof(989.4e12, 1.0, "bf16")) is None


def test_drafted_tokens_multiply_the_ceiling_and_the_arithmetic() -> None:
    plain, drafted = load("llama-3.1-8b"), load("llama-3.1-8b", draft=3)
    assert decode(drafted, 1e12, ROOF).tok_per_s == pytest.approx(4 * decode(plain, 1e12, ROOF).tok_per_s)
    assert pass_flops(drafted) == 4 * pass_flops(plain)
    slow = ComputeRoof(1e12, 1.0, "bf16")
    assert decode(drafted, 1e12, slow).times.bound == "comp"
    assert decode(drafted, 1e12, slow).tok_per_s == pytest.approx(1e12 / decode_flops(plain.model, 0))


def test_one_stream_over_a_layer_split_gets_one_card() -> None:
    split = layer_split(load("llama-3-70b", cards=8), 1e12, ROOF)
    alone = decode(load("llama-3-70b"), 1e12, ROOF)
    assert split.tok_per_s == pytest.approx(alone.tok_per_s)
    full = layer_split(load("llama-3-70b", cards=8, batch=8), 1e12, ROOF)
    assert full.tok_per_s == pytest.approx(8 * alone.tok_per_s)


def test_no_layout_beats_all_cards_busy() -> None:
    for batch in (1, 4, 64, 4096):
        asked = load("llama-3-70b", cards=4, batch=batch, context=2048)
        best = decode(asked, 1e12, ROOF).tok_per_s
        assert tensor_parallel(asked, LINKED, 1e12, ROOF).tok_per_s <= best * (1 + 1e-9)
        assert layer_split(asked, 1e12, ROOF).tok_per_s <= best * (1 + 1e-9)


def test_two_sums_a_layer_pass_the_link() -> None:
    assert all_reduce_bytes(80, 8192, 1) == 2 * 80 * 8192 * 2
    assert all_reduce_factor(LINKED, 8) == 1.75
    assert all_reduce_factor(replace(LINKED, family="hopper"), 8) == 1.0
    assert all_reduce_seconds(LINKED, 1, 80, 8192, 1) == 0
    assert all_reduce_seconds(LINKED, 8, 80, 8192, 1) == pytest.approx(2621440 * 1.75 / 300e9)
    assert all_reduce_seconds(replace(LINKED, link_bytes_per_s=None), 8, 80, 8192, 1) is None
    narrow = replace(LINKED, link="pcie", link_bytes_per_s=1e6)
    assert tensor_parallel(load("llama-3-70b", cards=8), narrow, 1e12, ROOF).times.bound == "link"


def test_prefill_of_any_prompt_bounds_that_of_every_prompt() -> None:
    best = prefill_rate(load("llama-3.1-8b"), 1e12, ROOF)
    assert best == pytest.approx(1e15 / (2 * parameters(CATALOGUE.model("llama-3.1-8b")).multiplied))
    for prompt in (1, 16, 512, 8192, 131072):
        rate = prefill_rate(load("llama-3.1-8b", context=prompt), 1e12, ROOF)
        assert rate is not None and rate <= best
    assert prefill_rate(load("llama-3.1-8b"), 1e12, None) is None


def test_the_first_token_waits_for_the_weights_at_least() -> None:
    first = prefill(load("llama-3.1-8b"), 1e12, ROOF, 1)
    assert first.seconds == pytest.approx(15.0098e9 / 1e12, rel=1e-3)
    long = prefill(load("llama-3.1-8b"), 1e12, ROOF, 8192)
    assert long.seconds == prefill_flops(CATALOGUE.model("llama-3.1-8b"), 8192) / 1e15


def test_without_a_known_roof_memory_bounds_alone() -> None:
    found = decode(load("llama-3.1-8b", batch=100000), 1e12, None)
    assert (found.times.compute, found.times.bound) == (None, "mem")


def test_times_overlap_in_a_ceiling_and_add_up_in_an_estimate() -> None:
    times = Times(3.0, 2.0, 1.0)
    assert (times.seconds, times.together) == (3.0, 6.0)
    asked = load("gpt-oss-20b", batch=32)
    assert in_practice(asked, LINKED, 1e12, ROOF) < decode(asked, 1e12, ROOF).tok_per_s / 2


@given(
    st.sampled_from(MODELS),
    st.integers(1, 512),
    st.integers(0, 200_000),
    st.floats(1e10, 1e13),
    st.integers(1, 8),
)
def test_laws_of_the_ceiling(name, batch, context, memory, cards) -> None:
    asked = load(name, batch=batch, context=context or None, cards=cards)
    speed = decode(asked, memory, ROOF).tok_per_s

    def other(**change) -> float:
        return decode(asked._replace(**change), memory, ROOF).tok_per_s

    slack = 1 + 1e-9
    assert speed > 0
    assert decode(asked, memory * 2, ROOF).tok_per_s * slack >= speed  # more bandwidth is never slower
    assert other(batch=batch + 1) * slack >= speed  # nor is a larger batch, over all sequences
    assert other(batch=batch + 1) / (batch + 1) <= speed / batch * slack  # but each of them is
    assert other(context=context + 1000) <= speed * slack  # a longer context is never quicker
    assert other(kv_bits=8) * slack >= speed
    assert other(cards=cards + 1) * slack >= speed
    assert other(draft=1) * slack >= speed
    assert in_practice(asked, LINKED, memory, ROOF) <= speed * slack


@given(st.sampled_from(MODELS), st.integers(1, 100_000))
def test_laws_of_the_cache_and_of_prefill(name, context) -> None:
    model = CATALOGUE.model(name)
    assert cache_read_bytes(model, context, 16) <= cache_bytes(model, context, 16)
    assert cache_bytes(model, context, 16) <= cache_bytes(model, context + 1, 16)
    assert prefill_flops(model, context) < prefill_flops(model, context + 1)


def test_a_typed_size_is_read_whole() -> None:
    counts = Parameters(body=70e9)
    model = Model("70b", layers=1, hidden=1, vocab=1, counted=counts)
    asked = Load(model, weights(counts, BF16))
    assert read_bytes(asked) == 140e9
