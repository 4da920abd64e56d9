"""Prices of cards on the command line: `--cost CARD=X,...`."""

import math
from collections.abc import Sequence

from kmrun.cli.terminal import positive
from kmrun.core.card import Card
from kmrun.errors import UsageError
from kmrun.source.catalogue import Catalogue
from kmrun.source.suggest import some_of


def prices(texts: Sequence[str], catalogue: Catalogue, cards: Sequence[Card]) -> dict[str, float]:
    """Return $/h by card id, from `CARD=X,...`.

    Raises:
        KmrunError: no such card, one that is not compared, one with two prices, or no price.
    """
    found: dict[str, float] = {}
    compared = [card.id for card in cards]
    for item in (part for text in texts for part in text.split(",") if part.strip()):
        name, equals, number = item.rpartition("=")
        try:
            price = float(number)
        except ValueError:
            price = math.nan
        if not equals or not name.strip() or not (price > 0 and math.isfinite(price)):
            raise UsageError(f"--cost {item.strip()!r} is no price", "write --cost CARD=DOLLARS_PER_HOUR,...")
        positive(price, f"--cost {name.strip()}", "dollars")
        card = catalogue.find(name.strip())
        if card.id not in compared:
            raise UsageError(
                f"--cost names {card.id}, which is not compared", f"compared: {some_of(compared)}"
            )
        if card.id in found:
            raise UsageError(f"--cost names {card.id} twice", "give one price a card")
        found[card.id] = price
    return found
