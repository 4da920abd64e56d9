"""The card catalogue: finds a card by what people, scripts and drivers call it.

Reads the compiled form of cards.yaml, checked against the YAML; where they differ (an edited checkout), the
YAML is read instead. Without overlays neither yaml nor pydantic is imported.
"""

import json
import os
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING, fields
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kmrun import resources
from kmrun.core.card import Card
from kmrun.errors import UnknownName, UsageError
from kmrun.source import card_names
from kmrun.source.suggest import some_of

if TYPE_CHECKING:
    from kmrun.source.driver_match import DriverMatch

COMPILED = "catalogue.json"
OVERLAY_VARIABLE = "KMRUN_CARDS"


class Catalogue:
    """Cards by id, in the order of the files."""

    def __init__(self, entries: Mapping[str, Card | str], spellings: str | None = None) -> None:
        """Take cards, or their compiled entries (JSON text), which become cards when asked for.

        `spellings` is the JSON text of the index of names that was compiled with them.
        """
        self._entries = dict(entries)
        self._compiled_spellings = spellings

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
        if isinstance(entry, str):
            entry = self._entries[card_id] = from_entry(card_id, json.loads(entry))
        return entry

    def find(self, name: str) -> Card:
        """Return the card that a person means: id, alias, product name, driver's name; exact before family.

        Raises:
            UsageError: several cards answer to the name; the hint lists them.
            UnknownName: none does; the hint names near ones.
        """
        if name in self._entries:
            return self.card(name)
        found = card_names.exact(name, self._spellings) or card_names.family(name, self)
        if len(found) == 1:
            return self.card(found[0])
        if found:
            raise UsageError(f"{name!r} names {len(found)} cards", f"say which: {some_of(found)}")
        wanted = name.strip().lower()
        if any(wanted in (card.family, card.architecture, card.compute_capability) for card in self):
            hint = f"it is an architecture: `kmrun gpus --arch {wanted}` lists its cards"
        elif near := card_names.near(name, self._spellings):
            hint = f"did you mean {' or '.join(near)}?"
        else:
            hint = "`kmrun gpus` lists the cards"
        raise UnknownName(f"unknown card {name!r}", hint)

    def match_driver(
        self,
        name: str,
        sm_count: int | None = None,
        memory_bytes: int | None = None,
        architecture: str | None = None,
    ) -> "DriverMatch":
        """Return which card a device is, by what its driver reports; never a neighbour.

        Args:
            name: the device name of the driver (torch's is the same).
            sm_count: its SMs or CUs; with another count than the card's it is no such card (a MIG slice).
            memory_bytes: total memory.
            architecture: `9.0`, or for AMD `gfx942` (with feature flags after a colon), which alone decides
                where the driver's name says nothing.
        """
        # Its own module, so that commands without a device do not pay for it.
        from kmrun.source.driver_match import match

        return match(self, name, sm_count, memory_bytes, architecture)

    @cached_property
    def _spellings(self) -> card_names.Spellings:
        if self._compiled_spellings is None:
            return card_names.spellings(self)
        compiled: card_names.Spellings = json.loads(self._compiled_spellings)
        return compiled


def load_cards(overlays: Sequence[Path] = (), environ: Mapping[str, str] | None = None) -> Catalogue:
    """Return the shipped cards with those of `$KMRUN_CARDS` and then of `overlays` laid over them.

    A card of an overlay replaces the one of the same id.

    Raises:
        InvalidSuite: an overlay is wrong; carries the diagnostics.
    """
    variable = (os.environ if environ is None else environ).get(OVERLAY_VARIABLE, "")
    files = [*(Path(item) for item in variable.split(os.pathsep) if item), *overlays]
    entries, spellings = _shipped()
    if not files:
        return Catalogue(entries, spellings)
    from kmrun.source.card_files import read_cards

    laid_over = dict(entries)
    for file in files:
        laid_over.update(read_cards(file))
    return Catalogue(laid_over)


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


def compiled(cards: Iterable[Card]) -> str:
    """Return the text of the compiled form: JSON of which every line can be read alone."""
    every = list(cards)
    lines = ",\n".join(f"{json.dumps(card.id)}: {json.dumps(as_entry(card))}" for card in every)
    names = json.dumps(card_names.spellings(every))
    return (
        f'{{"generated_from": {json.dumps(fingerprint())},\n"names": {names},\n"cards": {{\n{lines}\n}}}}\n'
    )


def _shipped() -> tuple[Mapping[str, Card | str], str | None]:
    path = resources.folder("cards") / COMPILED
    if path.exists():
        lines = path.read_text(encoding="utf-8").splitlines()
        if lines and lines[0] == f'{{"generated_from": "{fingerprint()}",':
            _, names, _, *rows, _ = lines
            pairs = (row.rstrip(",").split(": ", 1) for row in rows)
            return {key.strip('"'): entry for key, entry in pairs}, names.split(": ", 1)[1].rstrip(",")
    from kmrun.source.card_files import read_architectures, read_cards

    cards_yaml, architectures_yaml = sources()
    return read_cards(cards_yaml, architectures=read_architectures(architectures_yaml)), None
