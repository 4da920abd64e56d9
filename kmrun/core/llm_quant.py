"""Weight formats, and how many bytes of a model are read and held in one."""

from typing import Literal, NamedTuple

from kmrun.core.llm_model import Parameters

Arithmetic = Literal["fp32", "fp16", "bf16", "fp8", "int8", "fp4"]


class Quant(NamedTuple):
    """A weight format. All sizes in bits per weight.

    `ceiling_bits` is the least that the name allows: the block of a pure format, of a named mix the smallest
    whole file that was published. `file_bits` is what a whole file takes. `outside_bits`: what weights outside
    the routed experts have at least, where only those are in the format. `table_bits`: what embedding and head
    keep in a whole file, where they are left out of the format. `arithmetic` lists what stacks multiply such
    weights in.
    """

    id: str
    ceiling_bits: float
    file_bits: float
    arithmetic: tuple[Arithmetic, ...]
    outside_bits: float | None = None
    table_bits: float | None = None
    aliases: tuple[str, ...] = ()
    mix: bool = False
    title: str = ""
    source: str = ""
    note: str = ""


class Weights(NamedTuple):
    """Bytes of the weights of a model: `body` and `head` are read for every token, `routed` in part.

    `file` is what must be held. `exact`: summed over a file's own tensors, else bits times parameters.
    """

    body: float
    head: float
    routed: float
    experts: int
    per_token: int
    file: float
    exact: bool = False

    def read(self, distinct: float) -> float:
        """Return the bytes read once, with so many distinct experts of each layer among them.

        The embedding is looked up and not read; a tied table is read once, as the head (scaling-book,
        "Inference"; zeux.io, "LLM inference speed of light", 2024).
        """
        return self.body + self.head + self.routed * distinct / self.experts


def weights(counts: Parameters, quant: Quant) -> Weights:
    """Return the least bytes that such parameters take in a format, and those of a whole file.

    Some stacks quantise the head, too, so a ceiling never counts on `table_bits`.
    """
    outside = quant.ceiling_bits if quant.outside_bits is None or not counts.routed else quant.outside_bits
    tables = counts.table + counts.head + counts.lookups
    if outside == quant.ceiling_bits:
        in_tables = quant.file_bits if quant.table_bits is None else quant.table_bits
        held = (counts.total - tables) * quant.file_bits + tables * in_tables
    else:
        held = counts.routed * quant.ceiling_bits + (counts.total - counts.routed) * outside
    return Weights(
        body=counts.body * outside / 8,
        head=counts.head_read * outside / 8,
        routed=counts.routed * quant.ceiling_bits / 8,
        experts=counts.experts,
        per_token=counts.per_token,
        file=held / 8,
    )


def plain_format(bytes_per_param: float) -> Quant:
    """Return the format of weights of which only the size is known.

    Such weights could be multiplied in anything up to their own width, so the fastest of that counts.
    """
    arithmetic: tuple[Arithmetic, ...] = ("fp16", "bf16")
    if bytes_per_param < 1.2:
        arithmetic = ("int8", "fp8", *arithmetic)
    if bytes_per_param < 0.8:
        arithmetic = ("fp4", *arithmetic)
    if bytes_per_param > 2.5:
        arithmetic = ("fp32", "fp16", "bf16")
    bits = bytes_per_param * 8
    return Quant(f"{bytes_per_param:g} bytes/param", bits, bits, arithmetic)


def expected_distinct(experts: int, per_token: int, tokens: float) -> float:
    """Return how many experts of a layer so many tokens meet if each draws its own at random.

    N x (1 - (1 - k/N)^B): MoE-CAP, arXiv 2412.07067. Routing is correlated in practice, so fewer may be met:
    this belongs to estimates, never to a ceiling, which knows only that one token meets k.
    """
    if not per_token or per_token >= experts:
        return float(per_token)
    missed: float = (1 - per_token / experts) ** tokens
    return experts * (1 - missed)
