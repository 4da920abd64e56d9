"""How many layers of a `config.json` are of each kind: attention, window, recurrent, dense, mixture."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from kmrun.errors import InvalidInput

Config = Mapping[str, Any]

LARGEST = 1 << 24
"""No figure of a model's shape is larger."""

_WINDOW_ALL = ("mistral", "phi3", "mixtral", "starcoder2")
_NOT_UNDERSTOOD = ("compress_ratios", "linear_attn_config", "block_configs")
# DeepSeek-V4's compressed attention, Kimi's delta attention, layers that each have another shape: what they keep
# and read does not follow from the usual keys.


class Plan(NamedTuple):
    """Numbers of layers by kind; `layers` is all of them."""

    layers: int
    full: int
    window: int
    recurrent: int
    dense: int
    moe: int


class Figures:
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
            if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= LARGEST:
                shown = repr(value) if len(repr(value)) <= 40 else f"{repr(value)[:40]}..."
                raise InvalidInput(f"{self._where}: '{key}' cannot be {shown}")
            return value
        return None

    def one(self, *keys: str) -> int:
        """Return the first of the keys, which must be there and not zero."""
        value = self.maybe(*keys)
        if not value:
            hint = "a config.json of a language model has it"
            raise InvalidInput(f"{self._where} has no '{keys[0]}'", hint)
        return value

    def error(self, what: str) -> InvalidInput:
        """Return the error that this configuration is not understood, and a way out."""
        hint = "name the model's size, with --active-params for a mixture, or its GGUF file"
        return InvalidInput(f"{self._where}: {what}", hint)

    def numbers(self, key: str) -> list[int]:
        """Return a list of whole numbers, empty where there is none."""
        value = self._config.get(key)
        return [item for item in value if isinstance(item, int)] if isinstance(value, list) else []


def plan_of(text: Config, get: Figures) -> Plan:
    """Return how many layers are of each kind.

    Raises:
        InvalidInput: some are of a kind whose cache or parameters do not follow from the usual keys.
    """
    for key in _NOT_UNDERSTOOD:
        if text.get(key):
            raise get.error(f"layers by '{key}' are not understood")
    pattern = text.get("hybrid_override_pattern")
    if isinstance(pattern, str) and pattern:
        kinds = [pattern.count(letter) for letter in "*M-E"]
        return Plan(len(pattern), kinds[0], 0, *kinds[1:])
    types = text.get("layer_types") or text.get("layers_block_type")
    if isinstance(types, list) and types:
        return _named(types, text, get)
    layers = get.one("num_hidden_layers", "n_layer", "num_layers")
    moe = _moe_layers(text, get, layers)
    window, recurrent = 0, 0
    every = get.maybe("full_attention_interval")
    if every and get.maybe("linear_num_value_heads"):
        recurrent = layers - layers // every
    pattern = text.get("hybrid_layer_pattern")
    if isinstance(pattern, list):
        window = sum(item == 1 for item in pattern[:layers])
    elif get.maybe("sliding_window", "attention_chunk_size"):
        window = _window_layers(text, get, layers)
    return Plan(layers, layers - window - recurrent, window, recurrent, layers - moe, moe)


def _named(types: list[Any], text: Config, get: Figures) -> Plan:
    layers = get.maybe("num_hidden_layers") or len(types)
    names = [str(item) for item in types[:layers]]
    window = sum("sliding" in name or "chunked" in name for name in names)
    recurrent = sum(name.startswith(("linear", "mamba")) for name in names)
    full = sum(name in ("full_attention", "attention") for name in names)
    moe, dense = names.count("moe"), names.count("mlp")
    if full + window + recurrent + moe + dense != layers:
        raise get.error(f"layers of kinds {', '.join(sorted(set(names)))[:80]} are not understood")
    if not moe and not dense:
        moe = _moe_layers(text, get, layers)
        dense = layers - moe
    return Plan(layers, full, window, recurrent, dense, moe)


def _window_layers(text: Config, get: Figures, layers: int) -> int:
    if text.get("use_sliding_window") is False:
        return 0
    kind = str(text.get("model_type", ""))
    if every := get.maybe("sliding_window_pattern", "_sliding_window_pattern"):
        return layers - layers // every
    if kind in ("gemma2", "gpt_oss", "cohere2"):
        return layers - layers // (4 if kind == "cohere2" else 2)
    if kind.startswith("gemma3"):
        return layers - layers // 6
    if kind.startswith("llama4"):
        return layers - layers // 4
    context = get.maybe("max_position_embeddings") or 0
    window = get.maybe("sliding_window") or 0
    return layers if kind in _WINDOW_ALL and 0 < window < context else 0


def _moe_layers(text: Config, get: Figures, layers: int) -> int:
    if not get.maybe("num_local_experts", "num_experts", "n_routed_experts"):
        return 0
    frequency = text.get("moe_layer_freq")
    if isinstance(frequency, list):
        return sum(item == 1 for item in frequency[:layers])
    first = get.maybe("first_k_dense_replace") or 0
    step = get.maybe("interleave_moe_layer_step", "decoder_sparse_step", "moe_layer_freq") or 1
    only = text.get("mlp_only_layers")
    return max(0, (layers - first) // step - (len(only) if isinstance(only, list) else 0))
