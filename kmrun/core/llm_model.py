"""A language model by its shapes, and the parameters that follow from them."""

from typing import Literal, NamedTuple

AttentionKind = Literal["gqa", "mla"]
RecurrentKind = Literal["mamba2", "gated-deltanet"]


class Attention(NamedTuple):
    """Attention layers of one kind. MHA is GQA with as many KV heads as heads, MQA with one.

    `head_dim` is that of queries and keys, `v_head_dim` that of values (None: the same). `window` is how many
    tokens a layer sees (None: all), `chunked` that the window is a chunk, which starts anew. `selected`: of the tokens
    that it keeps a layer reads so many (sparse attention; what selects them is not counted). `cached_layers` of
    the layers keep keys and values of their own (None: all). `gated`: the query projection is doubled. `shared_kv`: one
    projection is both keys and values, which are still cached apart. MLA caches `kv_lora_rank + rope_head_dim`
    elements for all heads together.
    """

    layers: int
    heads: int
    kind: AttentionKind = "gqa"
    kv_heads: int = 0
    head_dim: int = 0
    v_head_dim: int | None = None
    window: int | None = None
    chunked: bool = False
    selected: int | None = None
    cached_layers: int | None = None
    gated: bool = False
    shared_kv: bool = False
    q_lora_rank: int | None = None
    kv_lora_rank: int = 0
    rope_head_dim: int = 0

    @property
    def value_dim(self) -> int:
        """Elements of a value head."""
        return self.v_head_dim or self.head_dim


class Recurrent(NamedTuple):
    """Layers with a state of fixed size in place of a cache: Mamba-2, or gated delta rule.

    Mamba-2: `heads` heads of `head_dim` with `state` elements for each of their channels, B and C for each of
    `groups`. Gated delta rule: `heads` value heads of `head_dim` and `groups` key heads of `state`. `conv` is
    the width of the short convolution before it.
    """

    layers: int
    kind: RecurrentKind
    heads: int
    head_dim: int
    state: int
    groups: int
    conv: int = 4

    @property
    def inner(self) -> int:
        """Channels that leave the mixer."""
        return self.heads * self.head_dim

    @property
    def convolved(self) -> int:
        """Channels of the short convolution: values, and twice the groups (B and C, or queries and keys)."""
        return self.inner + 2 * self.groups * self.state

    @property
    def state_elements(self) -> int:
        """Elements of the state of one sequence, over all layers."""
        return self.layers * (self.inner * self.state + (self.conv - 1) * self.convolved)


class FeedForward(NamedTuple):
    """Dense MLP layers: two projections, three where gated (SwiGLU, GeGLU)."""

    layers: int
    width: int
    gated: bool = True


class Experts(NamedTuple):
    """Mixture-of-experts layers. `shared_width` is the width of all shared experts together.

    `latent`: routed experts work in so many dimensions, with a projection into and out of them (0: in all).
    """

    layers: int
    number: int
    per_token: int
    width: int
    shared_width: int = 0
    gated: bool = True
    latent: int = 0


class Parameters(NamedTuple):
    """How many parameters stand where.

    `table` is the token embedding, looked up and not streamed; where the head is `tied` the same table is
    read once as the head. `lookups` are further tables that are only looked up (per-layer embeddings).
    `body` is all that every token multiplies with: attention, dense MLPs, shared experts, routers, mixers.
    """

    body: float
    table: float = 0
    head: float = 0
    tied: bool = False
    lookups: float = 0
    routed: float = 0
    experts: int = 1
    per_token: int = 0

    @property
    def total(self) -> float:
        """All of them: what must be held."""
        return self.body + self.table + self.head + self.lookups + self.routed

    @property
    def head_read(self) -> float:
        """Parameters that make the logits: the head, or the table that is also the head."""
        return self.table if self.tied else self.head

    def routed_read(self, distinct: float) -> float:
        """Parameters of so many distinct experts in each layer."""
        return self.routed * distinct / self.experts

    @property
    def multiplied(self) -> float:
        """Parameters that one token multiplies with, without the head."""
        return self.body + self.routed_read(self.per_token)

    @property
    def read_per_token(self) -> float:
        """Parameters read for one token of one sequence."""
        return self.multiplied + self.head_read


class Model(NamedTuple):
    """A model. Empty `attention` and `recurrent`: its cache is not known.

    `counted` stands for the derived parameters where they were counted (a file's header, a typed size).
    `extra_params` are small parts that the shapes above do not say, `lookup_params` tables only looked up.
    `native` is the format in which it is published.
    """

    id: str
    layers: int
    hidden: int
    vocab: int
    attention: tuple[Attention, ...] = ()
    recurrent: tuple[Recurrent, ...] = ()
    ffn: tuple[FeedForward, ...] = ()
    experts: Experts | None = None
    tied: bool = False
    extra_params: int = 0
    lookup_params: int = 0
    max_context: int | None = None
    native: str = "bf16"
    aliases: tuple[str, ...] = ()
    published_params: float | None = None
    published_active: float | None = None
    source: str = ""
    note: str = ""
    counted: Parameters | None = None


def parameters(model: Model) -> Parameters:
    """Return where the parameters stand, derived from the shapes unless they were counted.

    Biases and the finer norms are left out: under 0.1 % of any model, and a ceiling may only read too little.
    """
    if model.counted is not None:
        return model.counted
    table = model.vocab * model.hidden
    body = float(model.extra_params + 2 * model.hidden * model.layers)
    body += sum(group.layers * attention_params(group, model.hidden) for group in model.attention)
    body += sum(group.layers * recurrent_params(group, model.hidden) for group in model.recurrent)
    body += sum(group.layers * mlp_params(group.width, group.gated, model.hidden) for group in model.ffn)
    routed, moe = 0, model.experts
    if moe is not None:
        one = mlp_params(moe.width, moe.gated, moe.latent or model.hidden)
        routed = moe.layers * moe.number * one
        shared = mlp_params(moe.shared_width, moe.gated, model.hidden)
        body += moe.layers * (shared + (moe.number + 2 * moe.latent) * model.hidden)
    return Parameters(
        body=body,
        table=table,
        head=0 if model.tied else table,
        tied=model.tied,
        lookups=model.lookup_params,
        routed=routed,
        experts=moe.number if moe else 1,
        per_token=moe.per_token if moe else 0,
    )


def attention_params(group: Attention, hidden: int) -> int:
    """Return the parameters of one such layer: projections to queries, keys, values and back."""
    if group.kind == "mla":
        query = group.heads * group.head_dim
        down = hidden * group.q_lora_rank if group.q_lora_rank else 0
        compressed = group.kv_lora_rank
        unpacked = group.heads * (group.head_dim - group.rope_head_dim + group.value_dim)
        return (
            down
            + (group.q_lora_rank or hidden) * query
            + hidden * (compressed + group.rope_head_dim)
            + compressed * unpacked
            + group.heads * group.value_dim * hidden
        )
    query = group.heads * group.head_dim * (2 if group.gated else 1)
    keys, values = group.kv_heads * group.head_dim, group.kv_heads * group.value_dim
    kept = keys if group.shared_kv else keys + values
    return hidden * (query + kept + group.heads * group.value_dim)


def recurrent_params(group: Recurrent, hidden: int) -> int:
    """Return the parameters of one such layer: into the mixer, its convolution, and back."""
    # in: values, gate, groups, and a number or two for each head; the convolution; out.
    per_head = 1 if group.kind == "mamba2" else 2
    into = group.convolved + group.inner + per_head * group.heads
    return hidden * into + group.convolved * group.conv + group.inner * hidden


def mlp_params(width: int, gated: bool, hidden: int) -> int:
    """Return the parameters of an MLP, or of an expert, of that width."""
    return (3 if gated else 2) * hidden * width
