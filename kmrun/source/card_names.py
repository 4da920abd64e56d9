"""What people call cards: one spelling for `4090`, `rtx 4090`, `RTX-4090` and `NVIDIA GeForce RTX 4090`."""

import re
from collections.abc import Iterable, Sequence

from kmrun.core.card import Card

_VENDORS = ("nvidia", "amd", "intel", "apple", "google", "aws")
_LINES = ("geforce", "tesla", "quadro", "instinct", "radeon", "rtx", "gtx", "rx", "graphics", "gpu")
_BRANDS = frozenset((*_VENDORS, *_LINES))
_WORD = re.compile(r"[a-z0-9.]+")
_GENERIC = frozenset({"", "amd radeon graphics", "radeon graphics", "amd radeon (tm) graphics"})


class Names:
    """An index of names: tried against ids, then aliases, then looser spellings, then as a family."""

    def __init__(self, cards: Sequence[Card]) -> None:
        """Index the cards."""
        self._tiers: list[dict[str, list[str]]] = [{}, {}, {}, {}]
        self._words: dict[str, frozenset[str]] = {}
        self._short: dict[str, set[str]] = {}
        for card in cards:
            own = [card.id, *card.aliases]
            loose = [card.name, *card.driver_names]
            self._add(0, card.id, [card.id])
            self._add(1, card.id, card.aliases)
            self._add(2, card.id, map(_unbranded, own))
            self._add(3, card.id, [*loose, _unbranded(card.name)])
            self._words[card.id] = frozenset(word for text in (*own, *loose) for word in _words(text))
            self._short[card.id] = {_compact(_unbranded(text)) for text in own}

    def find(self, name: str) -> list[str]:
        """Return the ids of the cards that answer to the name: one, several (ambiguous), or none."""
        spellings = dict.fromkeys((_compact(name), _compact(_unbranded(name))))
        spellings.pop("", None)
        for spelling in spellings:
            for tier in self._tiers:
                if spelling in tier:
                    return tier[spelling]
        return self._family(name) if spellings else []

    def near(self, name: str) -> list[str]:
        """Return up to three ids whose spelling is close to the name."""
        import difflib

        known = {spelling: ids[0] for tier in reversed(self._tiers[:3]) for spelling, ids in tier.items()}
        matches: list[str] = []
        for spelling in (_compact(name), _compact(_unbranded(name))):
            matches += difflib.get_close_matches(spelling, known, n=3, cutoff=0.7)
        return list(dict.fromkeys(known[match] for match in matches))[:3]

    def _add(self, tier: int, card_id: str, texts: Iterable[str]) -> None:
        for text in texts:
            spelling = _compact(text)
            ids = self._tiers[tier].setdefault(spelling, []) if spelling else []
            if card_id not in ids:
                ids.append(card_id)

    def _family(self, name: str) -> list[str]:
        """Return the cards whose name begins with this one, and those that have all its words."""
        prefix = _compact(_unbranded(name))
        wanted = set(_words(name)) - set(_VENDORS)
        if not wanted:
            return []
        return [
            card_id
            for card_id, words in self._words.items()
            if wanted <= words or any(_begins(spelling, prefix) for spelling in self._short[card_id])
        ]


def driver_key(name: str) -> str:
    """Return a driver's device name without what varies between driver versions."""
    return " ".join(name.casefold().split()).removeprefix("nvidia ")


def is_generic(name: str) -> bool:
    """Return whether a driver's device name says nothing about the card."""
    return driver_key(name) in _GENERIC


def _words(text: str) -> list[str]:
    return _WORD.findall(text.lower())


def _compact(text: str) -> str:
    return "".join(_words(text))


def _unbranded(text: str) -> str:
    """Return the text without brands, or whole where only a brand would tell it from others (Titan RTX)."""
    words = _words(text)
    bare = " ".join(word for word in words if word not in _BRANDS)
    return bare if any(char.isdigit() for char in bare) else " ".join(words)


def _begins(spelling: str, prefix: str) -> bool:
    if not prefix or not spelling.startswith(prefix):
        return False
    rest = spelling[len(prefix) :]
    return not rest or not (prefix[-1].isdigit() and rest[0].isdigit())
