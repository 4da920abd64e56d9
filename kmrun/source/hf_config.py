"""A Hugging Face `config.json` as a model: the shapes that the usual architectures name, by their usual keys.

Nothing of transformers is imported and nothing is fetched. Figures are untrusted: each must be a whole number in
a range that a model can have.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kmrun.core.llm_model import Attention, Experts, FeedForward, Model, Recurrent
from kmrun.errors import InvalidInput

MOST_BYTES = 4 << 20
_LARGEST = 1 << 24
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
_WINDOW_ALL = ("mistral", "phi3", "mixtral", "starcoder2")

Config = Mapping[str, Any]


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
    get = _Figures(text, where)
    kind = str(text.get("model_type", ""))
    layers = get.one("num_hidden_layers", "n_layer", "num_layers")
    hidden = get.one("hidden_size", "n_embd", "d_model")
    tied = text.get("tie_word_embeddings", outer.get("tie_word_embeddings"))
    plan = _layer_plan(text, get, layers)
    return Model(
        id=str(outer.get("_name_or_path") or Path(where).parent.name or kind or "model"),
        layers=layers,
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


class _Figures:
    """Whole numbers of a configuration, each within what a model can have."""

    def __init__(self, config: Config, where: str) -> None:
        self._config = config
        self._where = where

    def maybe(self, *keys: str) -> int | None:
        """Return the first of the keys that is there."""
        for key in keys:
            value = self._config.get(key)
            if value is None:
                continue
            if isinstance(value, float) and value.is_integer():
                value = int(value)
            if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= _LARGEST:
                raise InvalidInput(f"{self._where}: '{key}' cannot be {value!r}")
            return value
        return None

    def one(self, *keys: str) -> int:
        """Return the first of the keys, which must be there and not zero."""
        value = self.maybe(*keys)
        if not value:
            hint = "a config.json of a language model has it"
            raise InvalidInput(f"{self._where} has no '{keys[0]}'", hint)
        return value

    def numbers(self, key: str) -> list[int]:
        """Return a list of whole numbers, empty where there is none."""
        value = self._config.get(key)
        return [item for item in value if isinstance(item, int)] if isinstance(value, list) else []


class _Plan:
    """How many layers are of each kind."""

    def __init__(self, full: int, window: int, recurrent: int, dense: int, moe: int) -> None:
        self.full = full
        self.window = window
        self.recurrent = recurrent
        self.dense = dense
        self.moe = moe


def _layer_plan(text: Config, get: _Figures, layers: int) -> _Plan:
    moe = _moe_layers(text, get, layers)
    pattern = text.get("hybrid_override_pattern")
    if isinstance(pattern, str):
        return _Plan(pattern.count("*"), 0, pattern.count("M"), pattern.count("-"), pattern.count("E"))
    types = text.get("layer_types")
    if not isinstance(types, list):
        types = text.get("layers_block_type")
    if isinstance(types, list) and types:
        names = [str(item) for item in types[:layers]]
        window = sum("sliding" in name or "chunked" in name for name in names)
        recurrent = sum(name.startswith(("linear", "mamba")) for name in names)
        return _Plan(len(names) - window - recurrent, window, recurrent, layers - moe, moe)
    window, recurrent = 0, 0
    every = get.maybe("full_attention_interval")
    if every and get.maybe("linear_num_value_heads"):
        recurrent = layers - layers // every
    if get.maybe("sliding_window", "attention_chunk_size"):
        window = _window_layers(text, get, layers)
    return _Plan(layers - window - recurrent, window, recurrent, layers - moe, moe)


def _window_layers(text: Config, get: _Figures, layers: int) -> int:
    if text.get("use_sliding_window") is False:
        return 0
    kind = str(text.get("model_type", ""))
    if every := get.maybe("sliding_window_pattern", "_sliding_window_pattern"):
        return layers - layers // every
    if kind in ("gemma2", "gpt_oss", "cohere2"):
        every = 4 if kind == "cohere2" else 2
        return layers - layers // every
    if kind.startswith("gemma3"):
        return layers - layers // 6
    if kind.startswith("llama4"):
        return layers - layers // 4
    context = get.maybe("max_position_embeddings") or 0
    window = get.maybe("sliding_window") or 0
    return layers if kind in _WINDOW_ALL and 0 < window < context else 0


def _moe_layers(text: Config, get: _Figures, layers: int) -> int:
    if not get.maybe("num_local_experts", "num_experts", "n_routed_experts"):
        return 0
    frequency = text.get("moe_layer_freq")
    if isinstance(frequency, list):
        return sum(item == 1 for item in frequency[:layers])
    first = get.maybe("first_k_dense_replace") or 0
    step = get.maybe("interleave_moe_layer_step", "decoder_sparse_step", "moe_layer_freq") or 1
    only = get.numbers("mlp_only_layers")
    return max(0, (layers - first) // step - len(only))


def _attention(text: Config, get: _Figures, hidden: int, plan: _Plan) -> tuple[Attention, ...]:
    heads = get.one("num_attention_heads", "n_head")
    if plan.full + plan.window == 0:
        return ()
    if rank := get.maybe("kv_lora_rank"):
        rotary = get.one("qk_rope_head_dim")
        return (
            Attention(
                layers=plan.full + plan.window,
                heads=heads,
                kind="mla",
                head_dim=get.one("qk_nope_head_dim") + rotary,
                v_head_dim=get.one("v_head_dim"),
                q_lora_rank=get.maybe("q_lora_rank"),
                kv_lora_rank=rank,
                rope_head_dim=rotary,
                selected=get.maybe("index_topk"),
            ),
        )
    kv_heads = get.maybe("num_key_value_heads", "num_kv_heads") or heads
    if text.get("multi_query") is True and not text.get("new_decoder_architecture"):
        kv_heads = 1
    head_dim = get.maybe("head_dim") or hidden // heads
    if not head_dim:
        raise InvalidInput(f"heads of no size: hidden {hidden} over {heads} heads")
    gated = bool(text.get("attn_output_gate")) or str(text.get("model_type", "")).startswith(
        ("qwen3_next", "qwen3_5")
    )
    shared: dict[str, Any] = {"heads": heads, "kv_heads": kv_heads, "head_dim": head_dim, "gated": gated}
    groups = []
    if plan.full:
        groups.append(Attention(layers=plan.full, **shared))
    if plan.window:
        window = get.maybe("sliding_window", "attention_chunk_size")
        chunked = get.maybe("sliding_window") is None
        groups.append(Attention(layers=plan.window, window=window or None, chunked=chunked, **shared))
    return tuple(groups)


def _recurrent(get: _Figures, plan: _Plan) -> tuple[Recurrent, ...]:
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


def _dense(text: Config, get: _Figures, kind: str, hidden: int, plan: _Plan) -> tuple[FeedForward, ...]:
    if not plan.dense:
        return ()
    keys = ("intermediate_size_mlp", "intermediate_size", "ffn_hidden_size", "n_inner")
    width = get.maybe(*keys) or 4 * hidden
    if isinstance(text.get("intermediate_size"), list):
        raise InvalidInput("layers of different MLP widths are not understood", "name the model, or its file")
    return (FeedForward(plan.dense, width, gated=kind not in _UNGATED),)


def _experts(get: _Figures, kind: str, plan: _Plan) -> Experts | None:
    if not plan.moe:
        return None
    count = get.one("num_local_experts", "num_experts", "n_routed_experts")
    width = get.one("moe_intermediate_size", "intermediate_size")
    shared = get.maybe("shared_expert_intermediate_size", "shared_intermediate_size")
    if shared is None and (number := get.maybe("n_shared_experts")):
        shared = number * (get.maybe("moe_shared_expert_intermediate_size") or width)
    if shared is None and kind.startswith("llama4"):
        shared = width
    per_token = get.one("num_experts_per_tok", "experts_per_token", "num_experts_per_token")
    if per_token > count:
        raise InvalidInput(f"{per_token} experts per token of {count} experts")
    return Experts(plan.moe, count, per_token, width, shared or 0, gated=kind not in _UNGATED)


def _format(config: Config) -> str | None:
    quantization = config.get("quantization_config")
    if not isinstance(quantization, dict):
        quantization = config.get("quantization")
        if not isinstance(quantization, dict):
            return {"float16": "f16", "float32": "f32"}.get(
                str(config.get("torch_dtype", config.get("dtype")))
            )
        return {4: "mlx-4bit", 6: "mlx-6bit", 8: "mlx-8bit"}.get(quantization.get("bits", 0))
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
