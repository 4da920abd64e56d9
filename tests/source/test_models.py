"""The catalogue of models and formats: names, suggestions, the compiled form, and what a model can be."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kmrun.core.llm_model import parameters
from kmrun.errors import InvalidInput, KmrunError, UnknownName, UsageError
from kmrun.source import model_catalogue
from kmrun.source.llm_subject import Wish, parse_params, read_subject
from kmrun.source.model_catalogue import ModelCatalogue, load_models, sources, spellings
from kmrun.source.model_files import read_models, read_quants

CATALOGUE = load_models()


def test_the_compiled_form_is_that_of_the_yaml() -> None:
    models, quants = (read(path) for read, path in zip((read_models, read_quants), sources(), strict=True))
    assert tuple(models) == CATALOGUE.model_ids
    assert tuple(quants) == CATALOGUE.quant_ids
    for key, model in models.items():
        assert CATALOGUE.model(key) == model._replace(source="", note="")
    for key, quant in quants.items():
        assert CATALOGUE.quant(key) == quant._replace(source="", note="", title="")


def test_an_edited_checkout_is_read_from_its_yaml(monkeypatch, tmp_path) -> None:
    for path in sources():
        (tmp_path / path.name).write_text(path.read_text(encoding="utf-8") + "\n# edited\n", encoding="utf-8")
    compiled = sources()[0].parent / model_catalogue.COMPILED
    (tmp_path / model_catalogue.COMPILED).write_text(compiled.read_text(encoding="utf-8"), encoding="utf-8")
    monkeypatch.setattr(model_catalogue.resources, "folder", lambda name: tmp_path)
    assert load_models().model("llama-3.1-8b").source != ""


def test_no_spelling_means_two_models() -> None:
    models = list(read_models(sources()[0]).values())
    owners: dict[str, set[str]] = {}
    for model in models:
        for name in (model.id, *model.aliases):
            owners.setdefault(model_catalogue.compact(name), set()).add(model.id)
    assert [name for name, ids in owners.items() if len(ids) > 1] == []
    assert spellings(models).keys() == owners.keys()


@pytest.mark.parametrize(
    ("name", "model"),
    [
        ("llama-3.1-8b", "llama-3.1-8b"),
        ("Llama 3.1 8B", "llama-3.1-8b"),
        ("meta-llama/Meta-Llama-3.1-8B-Instruct", "llama-3.1-8b"),
        ("llama3.1:8b", "llama-3.1-8b"),
        ("openai/gpt-oss-120b", "gpt-oss-120b"),
        ("gpt-oss:20b", "gpt-oss-20b"),
        ("Qwen/Qwen3-30B-A3B", "qwen3-30b-a3b"),
        ("deepseek-r1", "deepseek-r1-671b"),
        ("google/gemma-3-27b-it", "gemma-3-27b"),
        ("mistral-nemo", "mistral-nemo-12b-2407"),
        ("kimi-k2", "kimi-k2-1t"),
    ],
)
def test_people_s_names_of_models(name, model) -> None:
    assert CATALOGUE.find_model(name).id == model


def test_several_are_listed_and_near_ones_suggested() -> None:
    with pytest.raises(UsageError) as several:
        CATALOGUE.find_model("llama-3.1")
    assert several.value.hint == "say which: llama-3.1-8b, llama-3.1-70b, llama-3.1-405b"
    with pytest.raises(UnknownName) as unknown:
        CATALOGUE.find_model("lama-3.1-8b")
    assert "llama-3.1-8b" in unknown.value.hint
    with pytest.raises(UnknownName, match="unknown model 'zzzz'"):
        CATALOGUE.find_model("zzzz")
    with pytest.raises(UnknownName) as quant:
        CATALOGUE.find_quant("q4_km2")
    assert "q4_k_m" in quant.value.hint


@pytest.mark.parametrize(
    ("text", "params"),
    [
        ("70b", 70e9),
        ("1.5B", 1.5e9),
        ("900m", 9e8),
        ("1t", 1e12),
        ("7000000000", 7e9),
        ("70", 70),
        ("7e9", None),
        ("b", None),
        ("x7b", None),
        ("", None),
    ],
)
def test_sizes(text, params) -> None:
    assert parse_params(text) == params


def test_a_size_is_dense_and_says_so() -> None:
    found = read_subject(Wish("70b", "q4"), CATALOGUE)
    assert parameters(found.model).read_per_token == 70e9
    assert any(said.startswith("a dense model of 70b") for said in found.assumptions)
    assert any("llama-3.1-70b" in said for said in found.assumptions)


def test_a_size_that_only_mixtures_have_names_them() -> None:
    assert any("gpt-oss-20b" in said for said in read_subject(Wish("20b"), CATALOGUE).assumptions)


def test_active_parameters_are_read_and_all_are_held() -> None:
    found = read_subject(Wish("120b", "q8", active=5e9), CATALOGUE)
    assert found.weights.read(found.weights.per_token) == pytest.approx(5e9 * 8.5 / 8)
    assert found.weights.file == pytest.approx(120e9 * 8.5 / 8, rel=0.001)
    for wish in (Wish("7b", active=8e9), Wish("7b", active=0), Wish("llama-3.1-8b", active=1e9)):
        with pytest.raises(UsageError):
            read_subject(wish, CATALOGUE)


def test_the_default_format_is_the_usual_mix_or_the_models_own() -> None:
    assert read_subject(Wish("llama-3.1-8b"), CATALOGUE).quant.id == "q4_k_m"
    assert read_subject(Wish("gpt-oss-20b"), CATALOGUE).quant.id == "mxfp4"


def test_a_format_can_be_its_bits_per_weight() -> None:
    found = read_subject(Wish("llama-3.1-8b", "4.25bpw"), CATALOGUE)
    assert found.quant.ceiling_bits == found.quant.file_bits == pytest.approx(4.25)
    for wrong in ("0.1bpw", "99bpw", "xbpw", "bpw", "1.2.3bpw"):
        with pytest.raises(KmrunError):
            read_subject(Wish("llama-3.1-8b", wrong), CATALOGUE)


@pytest.mark.parametrize(
    ("name", "quant"),
    [
        ("Q4_K_M", "q4_k_m"),
        ("MLX 4-bit", "mlx-4bit"),
        ("8-bit MLX", "mlx-8bit"),
        ("int4 (g32)", "int4-g32"),
        ("AWQ int4 g128", "int4-g128"),
        ("UD-Q4_K_XL", "ud-q4_k_xl"),
        ("Q8_K_XL", "ud-q8_k_xl"),
        ("FP4", "nvfp4"),
        ("BF16", "bf16"),
        ("IQ4_XS", "iq4_xs"),
    ],
)
def test_people_s_names_of_formats(name, quant) -> None:
    assert read_subject(Wish("llama-3.1-8b", name), CATALOGUE).quant.id == quant


@pytest.mark.parametrize("name", ["7b", "llama-3.1-8b"])
def test_an_exact_size_of_weights_counts_before_a_format(name) -> None:
    found = read_subject(Wish(name, "q8", 0.5), CATALOGUE)
    assert found.weights == read_subject(Wish(name, None, 0.5), CATALOGUE).weights
    assert found.assumptions[0] == "--bytes-per-param counts, not q8"


@pytest.mark.parametrize("size", ["0b", "70", "999k", "1000.1t", "1" + "0" * 60])
def test_no_model_is_so_small_or_large(size) -> None:
    with pytest.raises(UsageError, match="no language model has"):
        read_subject(Wish(size), CATALOGUE)


def test_other_paths_are_refused(tmp_path) -> None:
    (tmp_path / "model.bin").write_bytes(b"x")
    for path in (tmp_path / "model.bin", tmp_path, tmp_path / "absent.safetensors"):
        with pytest.raises(InvalidInput):
            read_subject(Wish(str(path)), CATALOGUE)
    (tmp_path / "a.gguf").write_bytes(b"GGUF")
    (tmp_path / "b.gguf").write_bytes(b"GGUF")
    with pytest.raises(UsageError, match="holds 2 models"):
        read_subject(Wish(str(tmp_path)), CATALOGUE)


@given(st.text(max_size=400))
def test_any_name_is_a_model_or_a_clear_error(name) -> None:
    try:
        read_subject(Wish(name), CATALOGUE)
    except KmrunError as error:
        assert error.sentence


def test_an_alias_that_is_taken_is_placed(tmp_path) -> None:
    path = tmp_path / "quants.yaml"
    entry = "{title: t, ceiling_bits: 8, arithmetic: [fp16], source: s, aliases: [same]}"
    path.write_text(f"kmrun_quants: 1\nquants:\n  a: {entry}\n  b: {entry}\n", encoding="utf-8")
    with pytest.raises(InvalidInput) as raised:
        read_quants(path)
    assert [item.code for item in raised.value.diagnostics] == ["K504"]


def test_an_entry_that_is_asked_for_twice_is_the_same() -> None:
    catalogue = ModelCatalogue({"m": CATALOGUE.model("gpt-oss-20b")}, {}, {"m": "m"}, {})
    assert catalogue.find_model("M") == catalogue.model("m")
