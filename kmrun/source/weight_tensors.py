"""The tensors of a model's file, sorted by how often decoding reads them, by their names."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from kmrun.core.llm_model import Parameters
from kmrun.core.llm_quant import Weights

_TABLE = re.compile(r"(^|\.)(embed_tokens|wte|tok_embeddings|word_embeddings|token_embd|embed_in)\.weight$")
_LOOKUPS = re.compile(r"per_layer_token_embd|embed_tokens_per_layer")
_HEAD = re.compile(r"(^|\.)(lm_head|embed_out)\.|^output\.weight$")
_ROUTED = re.compile(r"_exps\.|(^|\.)experts\.")
_BESIDE = re.compile(
    r"(^|\.)(vision_tower|vision_model|visual|audio_tower|multi_modal_projector|mm_projector|mtp)\.|^(v|mm|a)\.|nextn"
)
# Towers for pictures and sound, and heads for drafting: in the file, not in a decoded token.
_LAYER = re.compile(r"(?:^|\.)(?:layers|blk|h|blocks)\.(\d+)\.")
_EXPERT = re.compile(r"(?:^|\.)experts\.(\d+)\.")
_PACKED = re.compile(r"\.(qweight|weight_packed)$|_blocks$")


@dataclass(frozen=True, slots=True)
class Tensor:
    """One tensor: its name, format (an id of quants.yaml, or what the file calls it), elements and bytes."""

    name: str
    format: str
    elements: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Inventory:
    """What a file holds. `layers` and `experts`: as counted in the names; `format`: that of most bytes."""

    weights: Weights
    parameters: Parameters
    format: str
    layers: int
    experts: int


def inventory(
    tensors: Iterable[Tensor], per_token: int | None, experts: int | None, layers: int | None = None
) -> Inventory:
    """Return the bytes that are read for every token, in part, and never.

    Args:
        tensors: all tensors of the model.
        per_token: experts that a token uses, None where nobody says: then one, the fewest.
        experts: experts of a layer, None: as many as the names number.
        layers: how many layers take part in decoding; tensors of later ones are drafting heads.
    """
    every = list(tensors)
    sums = {part: [0, 0] for part in ("body", "table", "head", "routed", "lookups", "beside")}
    formats: dict[str, int] = {}
    last, numbered = -1, set()
    for tensor in every:
        layer = _LAYER.search(tensor.name)
        number = int(layer.group(1)) if layer else -1
        part = "beside" if layers is not None and number >= layers else _part(tensor.name)
        if part != "beside":
            last = max(last, number)
        if part == "routed" and (expert := _EXPERT.search(tensor.name)):
            numbered.add(expert.group(1))
        sums[part][0] += tensor.bytes
        sums[part][1] += _parameters(tensor)
        formats[tensor.format] = formats.get(tensor.format, 0) + tensor.bytes
    tied = sums["head"][0] == 0
    count = experts or len(numbered) or 1
    used = min(per_token or 1, count) if sums["routed"][0] else 0
    held = sum(size for size, _ in sums.values())
    return Inventory(
        weights=Weights(
            body=sums["body"][0],
            head=sums["table"][0] if tied else sums["head"][0],
            routed=sums["routed"][0],
            experts=count,
            per_token=used,
            file=held,
            exact=True,
        ),
        parameters=Parameters(
            body=sums["body"][1],
            table=sums["table"][1],
            head=sums["head"][1],
            tied=tied,
            lookups=sums["lookups"][1] + sums["beside"][1],
            routed=sums["routed"][1],
            experts=count,
            per_token=used,
        ),
        format=max(formats, key=lambda name: formats[name], default="f16"),
        layers=last + 1,
        experts=count,
    )


def _part(name: str) -> str:
    if _BESIDE.search(name):
        return "beside"
    if _LOOKUPS.search(name):
        return "lookups"
    if _TABLE.search(name):
        return "table"
    if _HEAD.search(name):
        return "head"
    return "routed" if _ROUTED.search(name) else "body"


def _parameters(tensor: Tensor) -> int:
    """Return the weights in a tensor: packed ones hold several an element, and scales are none."""
    if tensor.name.endswith(("scales", "scale", "qzeros", "g_idx", "absmax", "scale_inv", "zero_point")):
        return 0
    if not _PACKED.search(tensor.name):
        return tensor.elements * (2 if tensor.format in ("nvfp4", "nf4") else 1)
    return tensor.bytes * 2
