"""What people call cards: one spelling for `4090`, `rtx 4090`, `RTX-4090` and `NVIDIA GeForce RTX 4090`."""

import re
from collections.abc import Iterable, Mapping

from kmrun.core.card import Card

_VENDORS = ("nvidia", "amd", "intel", "apple", "google", "aws")
_LINES = ("geforce", "tesla", "quadro", "instinct", "radeon", "rtx", "gtx", "rx", "graphics", "gpu")
_BRANDS = frozenset((*_VENDORS, *_LINES))
_GENERIC = frozenset({"", "amd radeon graphics", "radeon graphics", "amd radeon (tm) graphics"})

_SIZE = re.compile(r"\d+ ?gi?b")
_ZEROS = re.compile(r"(?<=\d)o+")

Spellings = Mapping[str, list[str]]
"""A name without blanks, dashes and case, to the ids of the cards that have it."""


def spellings(cards: Iterable[Card]) -> dict[str, list[str]]:
    """Return all exact names: ids, then aliases, names without brands, product and driver names.

    A spelling that an earlier kind of name already has means that one alone.
    """
    tiers: list[dict[str, list[str]]] = [{}, {}, {}, {}]
    for card in cards:
        own = [card.id, *card.aliases]
        texts = (
            [card.id],
            card.aliases,
            map(_unbranded, own),
            [card.name, *card.driver_names, _unbranded(card.name)],
        )
        for tier, names in zip(tiers, texts, strict=True):
            for spelling in dict.fromkeys(map(_compact, names)):
                tier.setdefault(spelling, []).append(card.id)
    merged: dict[str, list[str]] = {}
    for tier in tiers:
        for spelling, ids in tier.items():
            merged.setdefault(spelling, ids)
    return merged


def exact(name: str, known: Spellings) -> list[str]:
    """Return the ids of the cards of that very name: one, several (ambiguous), or none."""
    for spelling in (_compact(name), _compact(_unbranded(name))):
        if spelling in known:
            return list(known[spelling])
    return []


def family(name: str, cards: Iterable[Card]) -> list[str]:
    """Return the ids of the cards whose name begins with this one, and those that have all its words."""
    prefix = _compact(_unbranded(name))
    wanted = set(_words(name)) - set(_VENDORS)
    return [card.id for card in cards if wanted and (_begins(card, prefix) or wanted <= _all_words(card))]


def near(name: str, known: Spellings) -> list[str]:
    """Return up to three ids whose spelling, or whose family's (`h100`), is close to the name."""
    import difflib

    candidates: dict[str, list[str]] = {}
    for card_id in dict.fromkeys(one for ids in known.values() for one in ids):
        first, dash, _ = card_id.partition("-")
        if dash and any(char.isdigit() for char in first):
            candidates.setdefault(first, []).append(card_id)
    candidates |= known
    scores: dict[str, float] = {}
    for spelling in _readings(name):
        for match in difflib.get_close_matches(spelling, candidates, n=3, cutoff=0.7):
            score = difflib.SequenceMatcher(None, match, spelling).ratio()
            for card_id in candidates[match]:
                scores[card_id] = max(score, scores.get(card_id, 0.0))
    return sorted(scores, key=lambda card_id: -scores[card_id])[:3]


def driver_key(name: str) -> str:
    """Return a driver's device name without what varies between driver versions."""
    return " ".join(name.casefold().split()).removeprefix("nvidia ")


def is_generic(name: str) -> bool:
    """Return whether a driver's device name says nothing about the card."""
    return driver_key(name) in _GENERIC


def _readings(name: str) -> list[str]:
    """Return how a misspelt name may be meant: whole, without brands and memory size, with `o` for zero."""
    bare = _unbranded(name)
    sizeless = " ".join(word for word in _words(bare) if not _SIZE.fullmatch(word))
    with_zeros = _ZEROS.sub(lambda match: "0" * len(match[0]), bare.lower())
    return list(dict.fromkeys(filter(None, map(_compact, (name, bare, sizeless, with_zeros)))))


def _words(text: str) -> list[str]:
    return "".join(char if char.isalnum() or char == "." else " " for char in text.lower()).split()


def _compact(text: str) -> str:
    return "".join(_words(text))


def _unbranded(text: str) -> str:
    """Return the text without brands, or whole where only a brand tells it from others (Titan RTX)."""
    words = _words(text)
    bare = " ".join(word for word in words if word not in _BRANDS)
    return bare if any(char.isdigit() for char in bare) else " ".join(words)


def _all_words(card: Card) -> set[str]:
    return {word for text in (card.id, *card.aliases, card.name, *card.driver_names) for word in _words(text)}


def _begins(card: Card, prefix: str) -> bool:
    """Return whether an id or alias begins with the prefix, which does not end within a number."""
    for text in (card.id, *card.aliases):
        spelling = _compact(_unbranded(text))
        rest = spelling[len(prefix) :]
        if prefix and spelling.startswith(prefix) and not (prefix[-1].isdigit() and rest[:1].isdigit()):
            return True
    return False
