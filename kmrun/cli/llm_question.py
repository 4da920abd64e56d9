"""The steps of `kmrun llm`: what its options ask, of which cards, and in which order the answers stand."""

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from kmrun.cli.sorting import by_key
from kmrun.core.card import Card
from kmrun.core.llm_answer import DEFAULT_CONTEXT, Answer, Question, answer
from kmrun.core.llm_cache import KV_BITS
from kmrun.core.llm_ceiling import Load
from kmrun.core.llm_fit import APPLE_SHARE, OVERHEAD_BYTES, UNIFIED_SHARE
from kmrun.errors import EnvironmentLacks, UnknownName, UsageError
from kmrun.source.llm_subject import Subject, Wish, parse_params, read_subject
from kmrun.source.model_catalogue import load_models

if TYPE_CHECKING:
    from kmrun.source.catalogue import Catalogue

USUAL_CARDS = (
    "rtx-3060-12gb", "rtx-4090", "rtx-5090", "rx-7900-xtx", "rtx-pro-6000-blackwell-ws", "l40s", "a100-sxm-80gb",
    "h100-sxm", "h200-sxm", "b200", "mi300x", "strix-halo-395", "gb10", "m4-max-40c",
)  # fmt: skip
"""What people have at home, on a desk, or rent: shown where nothing is asked for and no device is here."""

MOST_TOKENS = 1 << 24
MOST_BATCH = 1 << 20
MOST_CARDS = 1 << 14
MOST_DRAFT = 256
MOST_OVERHEAD_GB = 10_000
_SORTS: dict[str, tuple[Callable[[Answer], Any], bool]] = {
    "decode": (lambda item: item.tok_per_s, True),
    "prefill": (lambda item: item.prefill_tok_per_s, True),
    "fits": (lambda item: item.fit.fits, True),
    "context": (lambda item: item.fit.max_context, True),
    "cost": (lambda item: item.usd_per_million, False),
    "value": (lambda item: item.tok_per_s_per_usd, True),
    "watt": (lambda item: item.tok_per_joule, True),
    "name": (lambda item: item.card.id, False),
}
"""Sort key to what it sorts by, and whether the largest comes first."""


class Options(NamedTuple):
    """The command line."""

    model: str
    quant: str | None = None
    bytes_per_param: float | None = None
    active_params: str | None = None
    gpus: tuple[str, ...] = ()
    num_gpus: int = 1
    context: str | None = None
    batch: int = 1
    kv: str = "fp16"
    draft: int = 0
    overhead_gb: float | None = None
    cost: tuple[str, ...] = ()
    device: int | None = None
    overlays: tuple[Path, ...] = ()


class Inquiry(NamedTuple):
    """The question, the cards that it is asked of, and what was assumed. `usual`: nobody named the cards."""

    subject: Subject
    question: Question
    cards: tuple[Card, ...]
    assumptions: tuple[str, ...]
    usual: bool = False


def inquiry(options: Options) -> Inquiry:
    """Return what the options ask.

    Raises:
        KmrunError: an option is wrong, or something that it names is unknown or missing.
    """
    from kmrun.source.catalogue import load_cards

    in_range("--batch", options.batch, 1, MOST_BATCH)
    in_range("--num-gpus", options.num_gpus, 1, MOST_CARDS)
    in_range("--draft", options.draft, 0, MOST_DRAFT)
    subject = read_subject(_wish(options), load_models())
    load = Load(
        model=subject.model,
        weights=subject.weights,
        kv_bits=kv_bits(options.kv),
        context=None if options.context is None else tokens(options.context),
        batch=options.batch,
        cards=options.num_gpus,
        draft=options.draft,
    )
    catalogue = load_cards(options.overlays)
    cards, local, highest, said = _cards(options, catalogue)
    question = Question(load, subject.quant, overhead(options.overhead_gb), {}, local, highest)
    if options.cost:
        from kmrun.cli.prices import prices

        question = question._replace(prices=prices(options.cost, catalogue, cards))
    assumptions = (*subject.assumptions, *said, *assumed(question, cards, options.kv, subject))
    usual = not options.gpus and not local
    return Inquiry(subject, question, tuple(cards), assumptions, usual)


def ordered(asked: Inquiry, key: str | None) -> list[Answer]:
    """Return the answers, sorted by a key of `--sort`; the usual cards by what fits and then by speed.

    Raises:
        UsageError: there is no such key.
    """
    answers = [answer(asked.question, card) for card in asked.cards]
    if key is None and asked.usual:
        return sorted(answers, key=lambda item: (item.fit.fits is False, -(item.tok_per_s or 0.0)))
    if key is None:
        return answers
    return by_key(answers, key, _SORTS)


def tokens(text: str) -> int:
    """Return the number of `4096`, `32k` (32 x 1024), `1m`.

    Raises:
        UsageError: it is none, or more than any context.
    """
    spelling = text.strip().lower()
    factor = {"k": 1024, "m": 1024 * 1024}.get(spelling[-1:], 1)
    digits = spelling if factor == 1 else spelling[:-1]
    try:
        number = float(digits) * factor
    except ValueError:
        number = math.nan
    if not 1 <= number <= MOST_TOKENS:
        raise UsageError(f"--ctx '{text}' is no number of tokens", "4096, 32k, 128k")
    return int(number)


def _wish(options: Options) -> Wish:
    size = options.bytes_per_param
    if size is not None and not 0.05 <= size <= 16:
        hint = "4-bit formats take 0.5 to 0.65"
        raise UsageError(f"--bytes-per-param must be between 0.05 and 16, not {size:g}", hint)
    active = None
    if options.active_params is not None:
        active = parse_params(options.active_params)
        if active is None:
            raise UsageError(
                f"--active-params '{options.active_params}' is no number of parameters", "3.6b, 37b"
            )
    return Wish(options.model, options.quant, size, active)


def kv_bits(name: str) -> float:
    """Return the bits of an element of a cache in that format.

    Raises:
        UnknownName: there is none; the hint lists them.
    """
    if name.lower() not in KV_BITS:
        raise UnknownName(f"unknown format of the cache '{name}'", f"one of {', '.join(KV_BITS)}")
    return KV_BITS[name.lower()]


def overhead(gigabytes: float | None) -> float:
    """Return the bytes that the runtime takes on each card.

    Raises:
        UsageError: fewer than none, or more than any card has.
    """
    if gigabytes is None:
        return OVERHEAD_BYTES
    if not 0 <= gigabytes <= MOST_OVERHEAD_GB:
        raise UsageError(f"--overhead-gb must be between 0 and {MOST_OVERHEAD_GB:g}, not {gigabytes:g}")
    return gigabytes * 1e9


def in_range(option: str, value: int, low: int, high: int) -> None:
    """Refuse a value outside its range.

    Raises:
        UsageError: it is.
    """
    if not low <= value <= high:
        raise UsageError(f"{option} must be between {low} and {high}, not {value}")


def _cards(options: Options, catalogue: "Catalogue") -> tuple[list[Card], frozenset[str], bool, list[str]]:
    """Return the cards, which are in this machine, whether those have their highest clock, and what to say."""
    names = [name.strip() for text in options.gpus for name in text.split(",") if name.strip()]
    if names and options.device is not None:
        raise UsageError("--gpus and --device each name cards", "give one of them")
    if names:
        return list({card.id: card for card in map(catalogue.find, names)}.values()), frozenset(), False, []
    from kmrun.cli.llm_device import here
    from kmrun.cli.streams import say
    from kmrun.device.driver_library import NoDevice, NoDriver

    try:
        card, highest, said = here(options.device or 0, catalogue)
    except EnvironmentLacks as lacking:
        if options.device is not None:
            raise
        if not isinstance(lacking, NoDriver | NoDevice):
            say(f"warning: {lacking.sentence}: these are cards of the database\n")
        return [catalogue.card(key) for key in USUAL_CARDS], frozenset(), False, []
    return [card], frozenset((card.id,)), highest, [said]


def assumed(question: Question, cards: Sequence[Card], kv: str, subject: Subject) -> list[str]:
    """Return what is assumed about the cache, the batch, several cards and shared memory."""
    load, model = question.load, question.load.model
    said = []
    if load.context is None:
        said.append(
            f"no --ctx: rates of an empty cache, which bound every context; fit and first token at {DEFAULT_CONTEXT}"
        )
    elif model.max_context and load.context > model.max_context:
        said.append(f"{load.context} tokens are beyond the {model.max_context} of its configuration")
    said.append(
        f"cache in {kv.lower()}; the runtime takes {question.overhead / 1e9:g} GB on each card (--overhead-gb)"
    )
    if load.weights.routed and load.weights.per_token and load.batch * (load.draft + 1) > 1:
        said.append(
            f"the batch reads {load.weights.per_token} of {load.weights.experts} experts a layer, the fewest it can"
        )
    if load.draft:
        said.append(f"all {load.draft} drafted tokens are accepted, and the drafter is free")
    if load.cards > 1:
        said.append(f"{load.cards} of each card; decode is for any layout, tensor and layers for these two")
    if not subject.weights.exact and not subject.sized:
        said.append("the embedding is looked up, not read")
    shares = {
        card.vendor == "apple" for card in cards if card.memory_unified and card.id not in question.local
    }
    if shares:
        parts = [
            f"{share * 100:.0f} % of Apple's" for share, apple in ((APPLE_SHARE, True),) if apple in shares
        ]
        parts += [f"{UNIFIED_SHARE * 100:.0f} % of others'" for other in (False,) if other in shares]
        said.append(f"of memory shared with the CPU a model can have {' and '.join(parts)}")
    return said
