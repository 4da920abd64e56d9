"""The static site: one page that holds the cards, the models, kmrun's own formulas as a script, and nothing foreign."""

import base64
import hashlib
import json
from typing import Any

from kmrun import __version__, resources
from kmrun.report.numbers import count
from kmrun.source import card_names
from kmrun.source.catalogue import Catalogue, as_entry
from kmrun.source.model_catalogue import ModelCatalogue, spellings
from kmrun.source.model_catalogue import as_entry as model_entry

GENERATOR = "kmrun site"
"""What a page of ours says that it is from, before the version: only such a page is ever replaced."""

_UNUSED = frozenset(
    {
        "aliases",
        "driver_names",
        "source",
        "stated",
        "implied",
        "note",
        "compute_capability",
        "l2_bytes",
        "llc_bytes",
    }
)
"""Fields of a card that no formula of the page reads."""
_SCRIPTS = ("numbers", "python", "catalogue", "settings", "work", "elements", "table", "picture", "page")
_BEFORE = 2
"""So many of the scripts are what the formulas need; the others need the formulas."""
_FOLDER = "site"


def page(
    cards: Catalogue,
    models: ModelCatalogue,
    formulas: str,
    usual: tuple[str, ...] = (),
) -> str:
    """Return the HTML document.

    Args:
        cards: the cards to offer.
        models: the language models and weight formats to offer.
        formulas: the translated functions (`site_script.script`) that templates/site/*.js call.
        usual: ids of the cards that "what people have or rent" adds.
    """
    # Imported here: the commands that never make a page should not pay for it.
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    folder = resources.folder("templates")
    own = folder / _FOLDER
    style = (own / "style.css").read_text(encoding="utf-8")
    parts = [(own / f"{name}.js").read_text(encoding="utf-8") for name in _SCRIPTS]
    script = "\n".join([*parts[:_BEFORE], formulas, *parts[_BEFORE:]])
    environment = Environment(loader=FileSystemLoader(folder), autoescape=True, undefined=StrictUndefined)
    # The template takes the last three as they are: they are ours, and `data` has no `<` left that could end it.
    text: str = environment.get_template("site.html.j2").render(
        generator=f"{GENERATOR} {__version__}",
        policy=_policy(style, script),
        about=f"{count(len(cards), 'card')}, {count(len(models.model_ids), 'model')}, kmrun {__version__}.",
        style=style,
        script=script,
        data=_inert(_data(cards, models, usual)),
    )
    return text


def is_page(content: bytes) -> bool:
    """Return whether a file is a page that this module made."""
    return f'<meta name="generator" content="{GENERATOR} '.encode() in content[:4000]


def _policy(style: str, script: str) -> str:
    """Return the content security policy: this style and this script by their digests, and nothing from anywhere."""
    return "; ".join(
        (
            "default-src 'none'",
            f"script-src '{_digest(script)}'",
            f"style-src '{_digest(style)}'",
            "img-src data:",
            "base-uri 'none'",
            "form-action 'none'",
        )
    )


def _digest(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def _data(cards: Catalogue, models: ModelCatalogue, usual: tuple[str, ...]) -> dict[str, Any]:
    every = list(cards)
    known = [models.model(key) for key in models.model_ids]
    formats = [models.quant(key) for key in models.quant_ids]
    return {
        "version": __version__,
        "usual": [key for key in usual if key in cards.ids],
        "cards": {card.id: _without_unused(as_entry(card)) for card in every},
        "card_names": card_names.spellings(every),
        "models": {item.id: _without_unused(model_entry(item)) for item in known},
        "model_names": spellings(known),
        "quants": {item.id: _without_unused(model_entry(item)) for item in formats},
        "quant_names": spellings(formats),
    }


def _without_unused(entry: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in entry.items() if name not in _UNUSED}


def _inert(data: dict[str, Any]) -> str:
    """Return JSON that no HTML parser finds an end of its element, a comment or an entity in."""
    text = json.dumps(data, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
