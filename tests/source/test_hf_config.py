"""config.json of the usual architectures gives the shapes that the database has for the same model."""

import json

import pytest

from kmrun.core.llm_model import parameters
from kmrun.errors import InvalidInput
from kmrun.source.hf_config import model_of, read_config
from kmrun.source.llm_subject import Wish, read_subject
from kmrun.source.model_catalogue import load_models

CATALOGUE = load_models()
LLAMA = {
    "model_type": "llama",
    "num_hidden_layers": 32,
    "hidden_size": 4096,
    "vocab_size": 128256,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "intermediate_size": 14336,
    "max_position_embeddings": 131072,
    "tie_word_embeddings": False,
}
CONFIGS = {
    "llama-3.1-8b": LLAMA,
    "mistral-7b-v0.1": {
        **LLAMA,
        "model_type": "mistral",
        "vocab_size": 32000,
        "sliding_window": 4096,
        "max_position_embeddings": 32768,
    },
    "mixtral-8x7b": {
        **LLAMA,
        "model_type": "mixtral",
        "vocab_size": 32000,
        "sliding_window": None,
        "num_local_experts": 8,
        "num_experts_per_tok": 2,
        "max_position_embeddings": 32768,
    },
    "qwen3-30b-a3b": {
        **LLAMA,
        "model_type": "qwen3_moe",
        "num_hidden_layers": 48,
        "hidden_size": 2048,
        "vocab_size": 151936,
        "num_key_value_heads": 4,
        "head_dim": 128,
        "intermediate_size": 6144,
        "moe_intermediate_size": 768,
        "num_experts": 128,
        "num_experts_per_tok": 8,
        "decoder_sparse_step": 1,
        "mlp_only_layers": [],
        "max_position_embeddings": 40960,
    },
    "deepseek-v3-671b": {
        "model_type": "deepseek_v3",
        "num_hidden_layers": 61,
        "hidden_size": 7168,
        "vocab_size": 129280,
        "num_attention_heads": 128,
        "num_key_value_heads": 128,
        "q_lora_rank": 1536,
        "kv_lora_rank": 512,
        "qk_nope_head_dim": 128,
        "qk_rope_head_dim": 64,
        "v_head_dim": 128,
        "intermediate_size": 18432,
        "moe_intermediate_size": 2048,
        "n_routed_experts": 256,
        "n_shared_experts": 1,
        "num_experts_per_tok": 8,
        "first_k_dense_replace": 3,
        "moe_layer_freq": 1,
        "max_position_embeddings": 163840,
        "tie_word_embeddings": False,
    },
    "gpt-oss-120b": {
        "model_type": "gpt_oss",
        "num_hidden_layers": 36,
        "hidden_size": 2880,
        "vocab_size": 201088,
        "num_attention_heads": 64,
        "num_key_value_heads": 8,
        "head_dim": 64,
        "intermediate_size": 2880,
        "num_local_experts": 128,
        "num_experts_per_tok": 4,
        "sliding_window": 128,
        "layer_types": ["sliding_attention", "full_attention"] * 18,
        "max_position_embeddings": 131072,
        "tie_word_embeddings": False,
    },
    "gemma-3-27b": {
        "model_type": "gemma3",
        "text_config": {
            "model_type": "gemma3_text",
            "num_hidden_layers": 62,
            "hidden_size": 5376,
            "vocab_size": 262144,
            "num_attention_heads": 32,
            "num_key_value_heads": 16,
            "head_dim": 128,
            "intermediate_size": 21504,
            "sliding_window": 1024,
            "max_position_embeddings": 131072,
        },
    },
    "qwen3-next-80b-a3b": {
        "model_type": "qwen3_next",
        "num_hidden_layers": 48,
        "hidden_size": 2048,
        "vocab_size": 151936,
        "num_attention_heads": 16,
        "num_key_value_heads": 2,
        "head_dim": 256,
        "full_attention_interval": 4,
        "linear_num_value_heads": 32,
        "linear_num_key_heads": 16,
        "linear_key_head_dim": 128,
        "linear_value_head_dim": 128,
        "linear_conv_kernel_dim": 4,
        "intermediate_size": 5120,
        "moe_intermediate_size": 512,
        "shared_expert_intermediate_size": 512,
        "num_experts": 512,
        "num_experts_per_tok": 10,
        "tie_word_embeddings": False,
    },
    "granite-4.0-h-small-32b-a9b": {
        "model_type": "granitemoehybrid",
        "num_hidden_layers": 40,
        "hidden_size": 4096,
        "vocab_size": 100352,
        "num_attention_heads": 32,
        "num_key_value_heads": 8,
        "layer_types": ["mamba" if index % 10 != 5 else "attention" for index in range(40)],
        "mamba_n_heads": 128,
        "mamba_d_head": 64,
        "mamba_d_state": 128,
        "mamba_n_groups": 1,
        "mamba_d_conv": 4,
        "intermediate_size": 768,
        "shared_intermediate_size": 1536,
        "num_local_experts": 72,
        "num_experts_per_tok": 10,
        "tie_word_embeddings": True,
        "max_position_embeddings": 1048576,
    },
    "nemotron-h-56b": {
        "model_type": "nemotron_h",
        "num_hidden_layers": 118,
        "hidden_size": 8192,
        "vocab_size": 131072,
        "num_attention_heads": 64,
        "num_key_value_heads": 8,
        "attention_head_dim": 128,
        "hybrid_override_pattern": "M-" * 54 + "*" * 10,
        "mamba_num_heads": 256,
        "mamba_head_dim": 64,
        "ssm_state_size": 256,
        "n_groups": 8,
        "conv_kernel": 4,
        "intermediate_size": 32768,
        "tie_word_embeddings": False,
        "max_position_embeddings": 8192,
    },
    "llama-4-maverick-17b-128e": {
        "model_type": "llama4",
        "text_config": {
            "model_type": "llama4_text",
            "num_hidden_layers": 48,
            "hidden_size": 5120,
            "vocab_size": 202048,
            "num_attention_heads": 40,
            "num_key_value_heads": 8,
            "head_dim": 128,
            "attention_chunk_size": 8192,
            "interleave_moe_layer_step": 2,
            "intermediate_size": 8192,
            "intermediate_size_mlp": 16384,
            "num_local_experts": 128,
            "num_experts_per_tok": 1,
            "max_position_embeddings": 1048576,
            "tie_word_embeddings": False,
        },
    },
    "gemma-4-26b-a4b": {
        "model_type": "gemma4",
        "text_config": {
            "model_type": "gemma4_text",
            "num_hidden_layers": 30,
            "hidden_size": 2816,
            "vocab_size": 262144,
            "num_attention_heads": 16,
            "num_key_value_heads": 8,
            "num_global_key_value_heads": 2,
            "head_dim": 256,
            "global_head_dim": 512,
            "attention_k_eq_v": True,
            "enable_moe_block": True,
            "intermediate_size": 2112,
            "moe_intermediate_size": 704,
            "num_experts": 128,
            "top_k_experts": 8,
            "sliding_window": 1024,
            "layer_types": (["sliding_attention"] * 5 + ["full_attention"]) * 5,
            "max_position_embeddings": 262144,
            "tie_word_embeddings": True,
        },
    },
    "nemotron-3-super-120b-a12b": {
        "model_type": "nemotron_h",
        "hidden_size": 4096,
        "vocab_size": 131072,
        "num_attention_heads": 32,
        "num_key_value_heads": 2,
        "head_dim": 128,
        "layers_block_type": ["attention"] * 8 + ["mamba"] * 40 + ["moe"] * 40,
        "mamba_num_heads": 128,
        "mamba_head_dim": 64,
        "ssm_state_size": 128,
        "n_groups": 8,
        "conv_kernel": 4,
        "intermediate_size": 2688,
        "moe_intermediate_size": 2688,
        "moe_latent_size": 1024,
        "moe_shared_expert_intermediate_size": 5376,
        "n_routed_experts": 512,
        "n_shared_experts": 1,
        "num_experts_per_tok": 22,
        "tie_word_embeddings": False,
        "max_position_embeddings": 262144,
    },
    "mimo-v2-flash-309b-a15b": {
        "model_type": "mimo_v2_flash",
        "num_hidden_layers": 48,
        "hidden_size": 4096,
        "vocab_size": 152576,
        "num_attention_heads": 64,
        "num_key_value_heads": 4,
        "head_dim": 192,
        "v_head_dim": 128,
        "swa_num_key_value_heads": 8,
        "swa_head_dim": 192,
        "swa_v_head_dim": 128,
        "sliding_window": 128,
        "attention_chunk_size": 128,
        "hybrid_layer_pattern": [0] * 9 + [1] * 39,
        "moe_layer_freq": [0] + [1] * 47,
        "intermediate_size": 16384,
        "moe_intermediate_size": 2048,
        "n_routed_experts": 256,
        "n_shared_experts": None,
        "num_experts_per_tok": 8,
        "tie_word_embeddings": False,
        "max_position_embeddings": 262144,
    },
    "falcon-7b": {
        "model_type": "falcon",
        "num_hidden_layers": 32,
        "hidden_size": 4544,
        "vocab_size": 65024,
        "num_attention_heads": 71,
        "multi_query": True,
        "max_position_embeddings": 2048,
    },
    "gemma-2-9b": {
        "model_type": "gemma2",
        "num_hidden_layers": 42,
        "hidden_size": 3584,
        "vocab_size": 256000,
        "num_attention_heads": 16,
        "num_key_value_heads": 8,
        "head_dim": 256,
        "intermediate_size": 14336,
        "sliding_window": 4096,
        "max_position_embeddings": 8192,
    },
}


@pytest.mark.parametrize("name", CONFIGS)
def test_a_config_is_the_model_of_the_database(name) -> None:
    known, found = CATALOGUE.model(name), model_of(CONFIGS[name], "config.json")
    expected, counts = parameters(known), parameters(found)
    assert counts.total == pytest.approx(expected.total, rel=1e-4)
    assert counts.read_per_token == pytest.approx(expected.read_per_token, rel=1e-4)
    assert (counts.routed, counts.per_token) == (expected.routed, expected.per_token)

    def caches(model):
        return {
            (
                item.kind,
                item.layers,
                item.kv_heads,
                item.head_dim,
                item.window,
                item.chunked,
                item.kv_lora_rank,
            )
            for item in model.attention
        }

    assert caches(found) == caches(known)
    assert [item.state_elements for item in found.recurrent] == [
        item.state_elements for item in known.recurrent
    ]
    assert found.tied == known.tied
    if found.max_context:
        assert found.max_context == known.max_context


@pytest.mark.parametrize(
    ("said", "quant"),
    [
        ({"quantization_config": {"quant_method": "fp8", "weight_block_size": [128, 128]}}, "fp8-block"),
        ({"quantization_config": {"quant_method": "fp8"}}, "fp8"),
        ({"quantization_config": {"quant_method": "awq", "bits": 4, "group_size": 128}}, "int4-g128"),
        ({"quantization_config": {"quant_method": "gptq", "bits": 4, "group_size": 32}}, "int4-g32"),
        ({"quantization_config": {"quant_method": "mxfp4"}}, "mxfp4"),
        ({"quantization_config": {"quant_method": "modelopt", "quant_algo": "NVFP4"}}, "nvfp4"),
        ({"quantization_config": {"quant_method": "bitsandbytes", "load_in_4bit": True}}, "nf4"),
        ({"quantization": {"group_size": 64, "bits": 4}}, "mlx-4bit"),
        ({"quantization": {"bits": []}}, "q4_k_m"),
        ({"torch_dtype": "float16"}, "f16"),
        ({"torch_dtype": "bfloat16"}, "bf16"),
        ({}, "q4_k_m"),
    ],
)
def test_its_own_format_is_the_default(said, quant, tmp_path) -> None:
    path = tmp_path / "config.json"
    path.write_text(json.dumps({**LLAMA, **said}), encoding="utf-8")
    assert read_subject(Wish(str(path)), CATALOGUE).quant.id == quant
    assert read_subject(Wish(str(path), "q8_0"), CATALOGUE).quant.id == "q8_0"


BAD = {
    "no JSON": b"{",
    "a list": b"[]",
    "no UTF-8": b"\xff\xfe",
    "deep": b"[" * 100_000,
    "a number of 10000 digits": b'{"num_hidden_layers": ' + b"9" * 10_000 + b"}",
    **{
        f"{key} {value!r}": json.dumps({**LLAMA, key: value}).encode()
        for key, value in (
            ("num_hidden_layers", 0),
            ("num_hidden_layers", -1),
            ("num_hidden_layers", 1 << 40),
            ("num_hidden_layers", "32"),
            ("num_hidden_layers", True),
            ("hidden_size", None),
            ("hidden_size", 1.5),
            ("vocab_size", [1]),
            ("num_attention_heads", 5000),
        )
    },
    "more experts than there are": json.dumps({**CONFIGS["mixtral-8x7b"], "num_experts_per_tok": 9}).encode(),
    "compressed attention": json.dumps({**LLAMA, "compress_ratios": [0, 4]}).encode(),
    "layers of an unknown kind": json.dumps({**LLAMA, "layer_types": ["conv"] * 32}).encode(),
    "layers of several widths": json.dumps({**LLAMA, "intermediate_size": [1, 2]}).encode(),
}


@pytest.mark.parametrize("content", BAD.values(), ids=BAD.keys())
def test_a_bad_config_gets_a_clear_error(content, tmp_path) -> None:
    path = tmp_path / "config.json"
    path.write_bytes(content)
    with pytest.raises(InvalidInput) as raised:
        read_config(path)
    assert len(raised.value.sentence) < 200 + len(str(path))
