"""The card catalogue: finds a card by what people, scripts and drivers call it.

Reads the compiled form of cards.yaml, checked against the YAML; where they differ (an edited checkout), the
YAML is read instead. Without overlays neither yaml nor pydantic is imported.
"""

import json
import os
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import Any

from kmrun import resources
from kmrun.core.card import Card, per_device
from kmrun.errors import UnknownName, UsageError
from kmrun.source import card_names

COMPILED = "catalogue.json"
OVERLAY_VARIABLE = "KMRUN_CARDS"
_MEMORY_SHARE = (0.85, 1.03)
# What a driver reports of the memory on the label: ECC and firmware take up to 9 % (T4: 14.6 of 16 GiB).


@dataclass(frozen=True, slots=True)
class DriverMatch:
    """Which card a local device is: `card`, one device's share of it, when exactly one fits.

    Several `candidates`: the user must say which (`--card`). None: the database does not know the device.
    """

    card: Card | None
    candidates: tuple[str, ...] = ()


class Catalogue:
    """Cards by id, in the order of the files."""

    def __init__(self, entries: Mapping[str, Card | Mapping[str, Any]]) -> None:
        """Take cards, or their compiled entries, which become cards when asked for."""
        self._entries = dict(entries)

    @property
    def ids(self) -> tuple[str, ...]:
        """All card ids."""
        return tuple(self._entries)

    def __iter__(self) -> Iterator[Card]:
        """Yield every card."""
        return (self.card(key) for key in self._entries)

    def __len__(self) -> int:
        """Return the number of cards."""
        return len(self._entries)

    def card(self, card_id: str) -> Card:
        """Return the card of an exact id.

        Raises:
            KeyError: no card has that id.
        """
        entry = self._entries[card_id]
        if not isinstance(entry, Card):
            entry = self._entries[card_id] = from_entry(card_id, entry)
        return entry

    def find(self, name: str) -> Card:
        """Return the card that a person means: id, alias, product name, driver's name; exact before family.

        Raises:
            UsageError: several cards answer to the name; the hint lists them.
            UnknownName: none does; the hint names near ones.
        """
        found = self._names.find(name)
        if len(found) == 1:
            return self.card(found[0])
        if found:
            raise UsageError(f"{name!r} names {len(found)} cards", f"say which: {_listed(found)}")
        near = self._names.near(name)
        hint = f"did you mean {' or '.join(near)}?" if near else "`kmrun gpus` lists the cards"
        raise UnknownName(f"unknown card {name!r}", hint)

    def match_driver(
        self,
        name: str,
        sm_count: int | None = None,
        memory_bytes: int | None = None,
        architecture: str | None = None,
    ) -> DriverMatch:
        """Return which card a device is, by what its driver reports; never a neighbour.

        Args:
            name: the device name of the driver (torch's is the same).
            sm_count: its SMs or CUs; with another count than the card's it is no such card (a MIG slice).
            memory_bytes: total memory.
            architecture: `9.0`, or for AMD `gfx942` (with feature flags after a colon), which alone decides
                where the driver's name says nothing.
        """
        wanted = card_names.driver_key(name)
        by_name = [
            card
            for card in self
            if any(card_names.driver_key(known) == wanted for known in card.driver_names)
        ]
        gfx = architecture.partition(":")[0] if architecture else None
        if not by_name and gfx and gfx.startswith("gfx") and card_names.is_generic(name):
            by_name = [card for card in self if card.compute_capability == gfx]
        alike = [
            device
            for device in map(per_device, by_name)
            if (sm_count is None or device.sm_count in (None, sm_count))
            and (gfx is None or device.compute_capability in (None, gfx))
        ]
        fitting = [device for device in alike if _holds(device, memory_bytes)] or [
            device for device in alike if device.memory_unified
        ]
        names = tuple(device.id for device in fitting)
        return DriverMatch(fitting[0] if len(fitting) == 1 else None, names)

    @cached_property
    def _names(self) -> card_names.Names:
        return card_names.Names(list(self))


def load_cards(overlays: Sequence[Path] = (), environ: Mapping[str, str] | None = None) -> Catalogue:
    """Return the shipped cards with those of `$KMRUN_CARDS` and then of `overlays` laid over them.

    A card of an overlay replaces the one of the same id.

    Raises:
        InvalidSuite: an overlay is wrong; carries the diagnostics.
    """
    variable = (os.environ if environ is None else environ).get(OVERLAY_VARIABLE, "")
    files = [*(Path(item) for item in variable.split(os.pathsep) if item), *overlays]
    entries: dict[str, Card | Mapping[str, Any]] = dict(_shipped())
    if files:
        from kmrun.source.card_files import read_cards

        for file in files:
            entries.update(read_cards(file))
    return Catalogue(entries)


def sources() -> tuple[Path, Path]:
    """Return the paths of cards.yaml and architectures.yaml."""
    folder = resources.folder("cards")
    return folder / "cards.yaml", folder / "architectures.yaml"


def fingerprint() -> str:
    """Return what the compiled form must carry to be the one of these files."""
    contents = (path.read_bytes().replace(b"\r\n", b"\n") for path in sources())
    return "-".join(f"{zlib.crc32(content):08x}" for content in contents)


def as_entry(card: Card) -> dict[str, Any]:
    """Return the compiled form of a card: its fields but the id, without those that have their default."""
    entry: dict[str, Any] = {}
    for field in fields(card):
        value = getattr(card, field.name)
        default = field.default_factory() if field.default_factory is not MISSING else field.default
        if field.name != "id" and value != default:
            entry[field.name] = dict(value) if isinstance(value, Mapping) else value
    return entry


def from_entry(card_id: str, entry: Mapping[str, Any]) -> Card:
    """Return the card of a compiled entry; the inverse of `as_entry` after JSON."""
    values: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value for name, value in entry.items()
    }
    return Card(id=card_id, **values)


def _shipped() -> Mapping[str, Card | Mapping[str, Any]]:
    compiled = resources.folder("cards") / COMPILED
    if compiled.exists():
        document = json.loads(compiled.read_bytes())
        if document["generated_from"] == fingerprint():
            cards: Mapping[str, Mapping[str, Any]] = document["cards"]
            return cards
    from kmrun.source.card_files import read_architectures, read_cards

    cards_yaml, architectures_yaml = sources()
    return read_cards(cards_yaml, architectures=read_architectures(architectures_yaml))


def _holds(device: Card, memory_bytes: int | None) -> bool:
    if memory_bytes is None or device.memory_bytes is None:
        return True
    low, high = _MEMORY_SHARE
    return low <= memory_bytes / device.memory_bytes <= high


def _listed(names: Sequence[str], most: int = 8) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more
