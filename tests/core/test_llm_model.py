"""Parameters, caches and states follow from the shapes, and agree with what others derived or published."""

import csv
from pathlib import Path

import pytest

from kmrun.core.llm_cache import cached, elements_per_token, groups, kept, seen, state_bytes
from kmrun.core.llm_model import Attention, Experts, FeedForward, Model, Parameters, parameters
from kmrun.source.model_catalogue import load_models

with (Path(__file__).parent / "llm" / "models.csv").open(newline="", encoding="utf-8") as table:
    ROWS = list(csv.DictReader(table))
CATALOGUE = load_models()


def test_every_model_of_the_table_is_in_the_database() -> None:
    assert {row["id"] for row in ROWS} <= set(CATALOGUE.model_ids)
    assert len(ROWS) == 85


def test_every_published_total_is_met() -> None:
    published = [model for model in map(CATALOGUE.model, CATALOGUE.model_ids) if model.published_params]
    assert len(published) >= 25
    for model in published:
        assert parameters(model).total == pytest.approx(model.published_params, rel=0.01), model.id


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["id"])
def test_parameters_are_those_of_the_shapes(row) -> None:
    counts = parameters(CATALOGUE.model(row["id"]))
    if row["params_total_published"]:
        assert counts.total == pytest.approx(float(row["params_total_published"]), rel=0.01)
    if row["params_total"]:
        assert counts.total == pytest.approx(float(row["params_total"]), rel=0.001)
    if row["params_read_per_token_b1"]:
        assert counts.read_per_token == pytest.approx(float(row["params_read_per_token_b1"]), rel=0.001)
    if row["params_routed_experts"]:
        assert counts.routed == pytest.approx(float(row["params_routed_experts"]), rel=0.001)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["id"])
def test_caches_are_those_of_the_shapes(row) -> None:
    model = CATALOGUE.model(row["id"])

    def two_bytes(windowed: bool) -> int:
        return 2 * sum(elements_per_token(item) for item in model.attention if bool(item.window) == windowed)

    shared = any(cached(item) != item.layers for item in model.attention)
    if row["kv_bytes_per_token_bf16_full"] and not shared:
        assert two_bytes(False) == int(row["kv_bytes_per_token_bf16_full"])
    if row["kv_bytes_per_token_bf16_swa"] and not shared:
        assert two_bytes(True) == int(row["kv_bytes_per_token_bf16_swa"])
    if row["recurrent_state_elements_per_seq"]:
        assert state_bytes(model) == 2 * int(row["recurrent_state_elements_per_seq"])
    if row["max_context"]:
        assert model.max_context == int(row["max_context"])


def test_published_totals_are_the_ones_of_the_table() -> None:
    for row in ROWS:
        published = CATALOGUE.model(row["id"]).published_params
        assert published == (float(row["params_total_published"]) if row["params_total_published"] else None)


def test_effective_parameters_of_gemma_3n_leave_its_tables_out() -> None:
    for name, effective in (("gemma-3n-e4b", 3.98e9), ("gemma-3n-e2b", 1.91e9)):
        assert parameters(CATALOGUE.model(name)).body == pytest.approx(effective, rel=0.01)


def test_a_small_model_by_hand() -> None:
    model = Model(
        id="tiny",
        layers=2,
        hidden=8,
        vocab=10,
        attention=(Attention(layers=2, heads=4, kv_heads=2, head_dim=2),),
        ffn=(FeedForward(layers=1, width=16),),
        experts=Experts(layers=1, number=4, per_token=2, width=4, shared_width=6),
    )
    counts = parameters(model)
    attention = 8 * (8 + 2 * 4) + 8 * 8  # queries, keys and values, and back
    assert counts.routed == 4 * 3 * 8 * 4
    assert counts.body == 2 * attention + 3 * 8 * 16 + 3 * 8 * 6 + 4 * 8 + 2 * 8 * 2
    assert (counts.table, counts.head) == (80, 80)
    assert counts.multiplied == counts.body + counts.routed / 2
    assert counts.total == counts.body + counts.routed + 160


def test_a_tied_table_is_held_once_and_read_once() -> None:
    tied = Parameters(body=100, table=10, tied=True)
    assert (tied.total, tied.read_per_token) == (110, 110)
    untied = Parameters(body=100, table=10, head=10)
    assert (untied.total, untied.read_per_token) == (120, 110)


def test_what_a_layer_reads_and_what_it_keeps() -> None:
    full = Attention(layers=1, heads=1, kv_heads=1, head_dim=1)
    window = full._replace(window=1024)
    chunk = window._replace(chunked=True)
    sparse = full._replace(selected=2048)
    assert [seen(item, 5000) for item in (full, window, chunk, sparse)] == [5000, 1024, 0, 2048]
    assert [kept(item, 5000) for item in (full, window, chunk, sparse)] == [5000, 1024, 1024, 5000]
    assert [seen(item, 0) for item in (full, window, sparse)] == [0, 0, 0]


def test_kinds_of_attention_have_their_names() -> None:
    def kinds(name: str) -> list[str]:
        return [group.kind for group in groups(CATALOGUE.model(name), 1)]

    assert kinds("llama-2-7b") == ["MHA"]
    assert kinds("llama-3.1-8b") == ["GQA"]
    assert kinds("falcon-7b") == ["MQA"]
    assert kinds("deepseek-v3-671b") == ["MLA"]
    assert kinds("gpt-oss-20b") == ["GQA", "GQA, window 128"]
    assert kinds("deepseek-v3.2-671b") == ["MLA, 2048 selected"]
    assert kinds("llama-4-scout-17b-16e") == ["GQA", "GQA, chunk 8192"]
