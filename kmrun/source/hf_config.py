"""A Hugging Face `config.json` as a model: the shapes that the usual architectures name, by their usual keys.

Nothing of transformers is imported and nothing is fetched. Figures are untrusted: each must be a whole number in
a range that a model can have.
"""

import json
from pathlib import Path

from kmrun.core.llm_model import Attention, Experts, FeedForward, Model, Recurrent
from kmrun.errors import InvalidInput
from kmrun.source.hf_layers import Config, Figures, Plan, plan_of

MOST_BYTES = 4 << 20
_UNGATED = (
    "falcon",
    "gpt2",
    "gpt_neox",
    "opt",
    "nemotron",
    "nemotron_h",
    "phi",
    "bloom",
    "starcoder2",
    "mpt",
)
_TIED_BY_DEFAULT = (
    "gemma",
    "gemma2",
    "gemma3",
    "gemma3_text",
    "cohere",
    "cohere2",
    "falcon",
    "gpt2",
    "opt",
    "bloom",
)


def read_config(path: Path) -> tuple[Model, str | None]:
    """Return the model of a config.json, and the format that its `quantization_config` names (None: none).

    Raises:
        InvalidInput: no readable JSON object, or figures that no model can have.
    """
    try:
        if not path.is_file():
            raise InvalidInput(f"{path} is no file")
        if path.stat().st_size > MOST_BYTES:
            raise InvalidInput(f"{path} is larger than any config.json", "is it the right file?")
        config = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InvalidInput(f"cannot read {path}: {error.strerror or error}") from None
    except (ValueError, RecursionError):
        raise InvalidInput(f"{path} is no JSON") from None
    if not isinstance(config, dict):
        raise InvalidInput(f"{path} is no config.json: it holds no JSON object")
    return model_of(config, str(path)), _format(config)


def model_of(config: Config, where: str) -> Model:
    """Return the model of a configuration.

    Raises:
        InvalidInput: a figure is missing or impossible; `where` names the document.
    """
    outer = config
    inner = config.get("text_config") or config.get("llm_config") or config.get("language_config")
    text = {**config, **inner} if isinstance(inner, dict) else dict(config)
    get = Figures(text, where)
    kind = str(text.get("model_type", ""))
    plan = plan_of(text, get)
    hidden = get.one("hidden_size", "n_embd", "d_model")
    tied = text.get("tie_word_embeddings", outer.get("tie_word_embeddings"))
    return Model(
        id=str(outer.get("_name_or_path") or Path(where).parent.name or kind or "model"),
        layers=plan.layers,
        hidden=hidden,
        vocab=get.one("vocab_size"),
        attention=_attention(text, get, hidden, plan),
        recurrent=_recurrent(get, plan),
        ffn=_dense(text, get, kind, hidden, plan),
        experts=_experts(get, kind, plan),
        tied=kind in _TIED_BY_DEFAULT if tied is None else bool(tied),
        max_context=get.maybe("max_position_embeddings", "n_positions", "seq_length"),
        source=where,
    )


def _attention(text: Config, get: Figures, hidden: int, plan: Plan) -> tuple[Attention, ...]:
    heads = get.one("num_attention_heads", "n_head")
    if plan.full + plan.window == 0:
        return ()
    if get.maybe("kv_lora_rank"):
        return (_latent(get, plan, heads),)
    kv_heads = get.maybe("num_key_value_heads", "num_kv_heads") or heads
    if text.get("multi_query") is True and not text.get("new_decoder_architecture"):
        kv_heads = 1
    head_dim = get.maybe("head_dim", "attention_head_dim") or hidden // heads
    if not head_dim:
        raise get.error(f"heads of no size: hidden {hidden} over {heads} heads")
    kind = str(text.get("model_type", ""))
    gated = bool(text.get("attn_output_gate")) or kind.startswith(("qwen3_next", "qwen3_5"))
    usual = Attention(
        layers=plan.full,
        heads=heads,
        kv_heads=kv_heads,
        head_dim=head_dim,
        v_head_dim=get.maybe("v_head_dim"),
        gated=gated,
    )
    full = usual._replace(
        kv_heads=get.maybe("num_global_key_value_heads") or kv_heads,
        head_dim=get.maybe("global_head_dim") or head_dim,
        shared_kv=bool(text.get("attention_k_eq_v")),
    )
    window = usual._replace(
        layers=plan.window,
        heads=get.maybe("swa_num_attention_heads") or heads,
        kv_heads=get.maybe("swa_num_key_value_heads") or kv_heads,
        head_dim=get.maybe("swa_head_dim") or head_dim,
        v_head_dim=get.maybe("swa_v_head_dim") or usual.v_head_dim,
        window=get.maybe("sliding_window", "attention_chunk_size") or None,
        chunked=kind.startswith("llama4"),
    )
    return tuple(group for group in (*_sparse(text, full), window) if group.layers)


def _latent(get: Figures, plan: Plan, heads: int) -> Attention:
    rotary = get.one("qk_rope_head_dim")
    return Attention(
        layers=plan.full + plan.window,
        heads=heads,
        kind="mla",
        head_dim=get.one("qk_nope_head_dim") + rotary,
        v_head_dim=get.one("v_head_dim"),
        q_lora_rank=get.maybe("q_lora_rank"),
        kv_lora_rank=get.one("kv_lora_rank"),
        rope_head_dim=rotary,
        selected=get.maybe("index_topk"),
    )


def _sparse(text: Config, full: Attention) -> tuple[Attention, ...]:
    """Return the layers with full attention, those apart that select blocks of the tokens they keep."""
    said = text.get("sparse_attention_config")
    if not isinstance(said, dict) or not said.get("use_sparse_attention"):
        return (full,)
    layers, sizes = said.get("sparse_attention_freq"), Figures(said, "sparse_attention_config")
    count = sum(item == 1 for item in layers[: full.layers]) if isinstance(layers, list) else full.layers
    selected = sizes.one("sparse_topk_blocks") * sizes.one("sparse_block_size")
    return (full._replace(layers=full.layers - count), full._replace(layers=count, selected=selected))


def _recurrent(get: Figures, plan: Plan) -> tuple[Recurrent, ...]:
    if not plan.recurrent:
        return ()
    if heads := get.maybe("linear_num_value_heads"):
        return (
            Recurrent(
                layers=plan.recurrent,
                kind="gated-deltanet",
                heads=heads,
                head_dim=get.one("linear_value_head_dim"),
                state=get.one("linear_key_head_dim"),
                groups=get.one("linear_num_key_heads"),
                conv=get.maybe("linear_conv_kernel_dim") or 4,
            ),
        )
    return (
        Recurrent(
            layers=plan.recurrent,
            kind="mamba2",
            heads=get.one("mamba_num_heads", "mamba_n_heads"),
            head_dim=get.one("mamba_head_dim", "mamba_d_head"),
            state=get.one("ssm_state_size", "mamba_d_state"),
            groups=get.maybe("n_groups", "mamba_n_groups") or 1,
            conv=get.maybe("conv_kernel", "mamba_d_conv") or 4,
        ),
    )


def _dense(text: Config, get: Figures, kind: str, hidden: int, plan: Plan) -> tuple[FeedForward, ...]:
    # Gemma 4 has a dense MLP beside its experts in every layer.
    count = plan.layers if text.get("enable_moe_block") else plan.dense
    if not count:
        return ()
    if isinstance(text.get("intermediate_size"), list):
        raise get.error("layers of different MLP widths are not understood")
    keys = (
        "intermediate_size_mlp",
        "dense_intermediate_size",
        "intermediate_size",
        "ffn_hidden_size",
        "n_inner",
    )
    return (FeedForward(count, get.maybe(*keys) or 4 * hidden, gated=kind not in _UNGATED),)


def _experts(get: Figures, kind: str, plan: Plan) -> Experts | None:
    if not plan.moe:
        return None
    number = get.one("num_local_experts", "num_experts", "n_routed_experts")
    width = get.one("moe_intermediate_size", "intermediate_size")
    shared = get.maybe("shared_expert_intermediate_size", "shared_intermediate_size", "share_expert_dim")
    if shared is None and (several := get.maybe("n_shared_experts")):
        shared = several * (get.maybe("moe_shared_expert_intermediate_size") or width)
    if shared is None and kind.startswith("llama4"):
        shared = width
    per_token = get.one("num_experts_per_tok", "experts_per_token", "num_experts_per_token", "top_k_experts")
    if per_token > number:
        raise get.error(f"{per_token} experts per token of {number} experts")
    latent = get.maybe("moe_latent_size", "routed_expert_hidden_size") or 0
    return Experts(plan.moe, number, per_token, width, shared or 0, kind not in _UNGATED, latent)


def _format(config: Config) -> str | None:
    quantization = config.get("quantization_config")
    if not isinstance(quantization, dict):
        quantization = config.get("quantization")
        if not isinstance(quantization, dict):
            return _plain(config)
        return {"4": "mlx-4bit", "6": "mlx-6bit", "8": "mlx-8bit"}.get(str(quantization.get("bits")))
    method = str(quantization.get("quant_method", "")).lower()
    if method == "fp8":
        return "fp8-block" if quantization.get("weight_block_size") else "fp8"
    if method in ("awq", "gptq"):
        return "int4-g32" if quantization.get("group_size") == 32 else "int4-g128"
    if method == "modelopt":
        return "nvfp4" if "FP4" in str(quantization.get("quant_algo")) else "fp8"
    return {"mxfp4": "mxfp4", "bitsandbytes": "nf4" if quantization.get("load_in_4bit") else "int8"}.get(
        method
    )


def _plain(config: Config) -> str | None:
    inner = config.get("text_config")
    own = {"float16": "f16", "float32": "f32", "bfloat16": "bf16"}
    for said in (config, inner if isinstance(inner, dict) else {}):
        name = str(said.get("torch_dtype") or said.get("dtype"))
        if name in own:
            return own[name]
    return None
