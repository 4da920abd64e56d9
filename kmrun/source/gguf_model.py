"""The metadata of a GGUF file as a model: keys of llama.cpp's `<architecture>.*` (gguf-py/gguf/constants.py)."""

from collections.abc import Callable
from pathlib import Path

from kmrun.core.llm_model import Attention, Model, Parameters, Recurrent
from kmrun.errors import InvalidInput
from kmrun.source.gguf_header import GgufHeader

_LARGEST = 1 << 24
_EVERY = {"gemma2": 2, "gemma3": 6, "gpt-oss": 2, "llama4": 4, "cohere2": 4, "gemma3n": 5, "exaone4": 4}
"""Architecture to how many layers apart those with full attention stand, where the file does not say."""

_ALL_WINDOW = ("phi3", "mistral")
Whole = Callable[[str], int | None]


def model_of(header: GgufHeader, counted: Parameters, path: Path) -> Model:
    """Return the model that the metadata describes, with the parameters that were counted.

    Raises:
        InvalidInput: layers or width are missing, or a figure is impossible.
    """
    architecture = str(header.metadata.get("general.architecture", ""))

    def whole(key: str) -> int | None:
        value = header.metadata.get(f"{architecture}.{key}")
        if value is None or isinstance(value, list | str):
            return None
        if not 0 <= value <= _LARGEST or value != int(value):
            raise InvalidInput(f"{path}: '{architecture}.{key}' cannot be {value}")
        return int(value)

    def several(key: str, layers: int) -> list[int]:
        value = header.metadata.get(f"{architecture}.{key}")
        if isinstance(value, list):
            numbers = [int(item) for item in value if isinstance(item, int | bool)]
            if len(numbers) < layers or any(not 0 <= item <= _LARGEST for item in numbers):
                raise InvalidInput(f"{path}: '{architecture}.{key}' does not hold one number a layer")
            return numbers[:layers]
        one = whole(key)
        return [] if one is None else [one] * layers

    blocks, hidden = whole("block_count"), whole("embedding_length")
    if not blocks or not hidden:
        raise InvalidInput(
            f"{path} says neither layers nor width of '{architecture}'", "is it a language model?"
        )
    layers = blocks - (whole("nextn_predict_layers") or 0)
    if not 0 < layers <= 1 << 12:
        raise InvalidInput(f"{path} claims {layers} layers")
    return Model(
        id=str(header.metadata.get("general.name") or path.stem),
        layers=layers,
        hidden=hidden,
        vocab=whole("vocab_size") or header.lengths.get("tokenizer.ggml.tokens", 0),
        attention=_attention(architecture, whole, several, layers, hidden),
        recurrent=_recurrent(whole, several, layers),
        tied=counted.tied,
        max_context=whole("context_length"),
        source=str(path),
        counted=counted,
    )


def decoding_layers(header: GgufHeader) -> int | None:
    """Return how many layers take part in decoding: all but those that only draft."""
    architecture = header.metadata.get("general.architecture", "")
    blocks = header.metadata.get(f"{architecture}.block_count")
    drafting = header.metadata.get(f"{architecture}.nextn_predict_layers", 0)
    return blocks - drafting if isinstance(blocks, int) and isinstance(drafting, int) else None


def expert_counts(header: GgufHeader) -> tuple[int | None, int | None]:
    """Return experts of a layer, and those that a token uses."""
    architecture = header.metadata.get("general.architecture", "")
    found = [header.metadata.get(f"{architecture}.{key}") for key in ("expert_count", "expert_used_count")]
    count, used = (item if isinstance(item, int) and 0 < item <= _LARGEST else None for item in found)
    return count, used


def _attention(
    architecture: str, whole: Whole, several: Callable[[str, int], list[int]], layers: int, hidden: int
) -> tuple[Attention, ...]:
    heads = several("attention.head_count", layers)
    kept = several("attention.head_count_kv", layers) or heads
    if not heads or max(heads) == 0:
        return ()
    if rank := whole("attention.kv_lora_rank"):
        rotary = whole("rope.dimension_count") or 64
        return (
            Attention(
                layers=layers,
                heads=heads[0],
                kind="mla",
                head_dim=whole("attention.key_length_mla") or 128 + rotary,
                v_head_dim=whole("attention.value_length_mla") or 128,
                q_lora_rank=whole("attention.q_lora_rank"),
                kv_lora_rank=rank,
                rope_head_dim=rotary,
                selected=whole("attention.indexer.top_k"),
            ),
        )
    windowed = _windowed(architecture, whole, several, layers)
    every = whole("full_attention_interval")
    groups: dict[tuple[int, int, bool], int] = {}
    for index, (own, kv) in enumerate(zip(heads, kept, strict=True)):
        recurrent = kv == 0 or (every and (index + 1) % every)
        if own and not recurrent:
            key = (own, kv, windowed[index])
            groups[key] = groups.get(key, 0) + 1
    return tuple(
        Attention(
            layers=count,
            heads=own,
            kv_heads=kv,
            head_dim=_size(whole, "key", window, hidden // own),
            v_head_dim=_size(whole, "value", window, hidden // own),
            window=_window(whole) if window else None,
            chunked=window and not whole("attention.sliding_window"),
        )
        for (own, kv, window), count in groups.items()
    )


def _window(whole: Whole) -> int | None:
    return whole("attention.sliding_window") or whole("attention.chunk_size") or None


def _size(whole: Whole, part: str, window: bool, usual: int) -> int:
    own = whole(f"attention.{part}_length_swa") if window else None
    return own or whole(f"attention.{part}_length") or usual


def _windowed(
    architecture: str, whole: Whole, several: Callable[[str, int], list[int]], layers: int
) -> list[bool]:
    if not _window(whole):
        return [False] * layers
    pattern = several("attention.sliding_window_pattern", layers)
    if pattern and max(pattern) <= 1:
        return [bool(item) for item in pattern]
    every = pattern[0] if pattern else _EVERY.get(architecture, 0)
    if not every:
        return [architecture in _ALL_WINDOW] * layers
    return [(index + 1) % every != 0 for index in range(layers)]


def _recurrent(whole: Whole, several: Callable[[str, int], list[int]], layers: int) -> tuple[Recurrent, ...]:
    inner, state = whole("ssm.inner_size"), whole("ssm.state_size")
    if not inner or not state:
        return ()
    kept = several("attention.head_count_kv", layers)
    every = whole("full_attention_interval")
    count = layers - layers // every if every else sum(item == 0 for item in kept) or layers
    heads = whole("ssm.time_step_rank") or 1
    return (
        Recurrent(
            layers=count,
            kind="gated-deltanet" if every else "mamba2",
            heads=heads,
            head_dim=max(1, inner // heads),
            state=state,
            groups=whole("ssm.group_count") or 1,
            conv=max(1, whole("ssm.conv_kernel") or 4),
        ),
    )
