"""Reports as self-contained HTML: no script, no request, one file."""

import functools
from collections.abc import Mapping, Sequence
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from kmrun import __version__
from kmrun.core.card import Card, per_device
from kmrun.core.printable import printable
from kmrun.core.result import Result
from kmrun.report.html_card import CardPage
from kmrun.report.html_compare import headings_of, overview_of
from kmrun.report.html_parts import Page
from kmrun.report.html_run import run_of
from kmrun.report.words import brief
from kmrun.resources import folder

GENERATOR = f"kmrun {__version__}"
_LONG = 200
"""Cases; a page of fewer is laid out at once, so that a picture of the whole page has all of it."""


def result_page(results: Sequence[Result], cards: Mapping[str, Card]) -> str:
    """Return the report of one result or several, with `cards` by id for their published roofs.

    Args:
        results: at least one.
        cards: of the database; one that is missing costs the roofs that only it has.
    """
    page = page_of(results, cards)
    return _environment().get_template("report.html.j2").render(page=page)


def card_page(page: CardPage) -> str:
    """Return the page of a card."""
    return _environment().get_template("report_card.html.j2").render(page=page)


def page_of(results: Sequence[Result], cards: Mapping[str, Card]) -> Page:
    """Return everything that the page shows, formatted."""
    headings = headings_of(results)
    anchors = [f"r{index}" for index in range(1, len(results) + 1)]
    overview = overview_of(results, headings, anchors)
    runs = tuple(
        run_of(result, _card(result, cards), anchor, heading)
        for result, heading, anchor in zip(results, headings, anchors, strict=True)
    )
    if overview is None:
        contents = [(section.anchor, section.heading) for section in runs[0].sections]
    else:
        contents = [(overview.anchor, overview.heading), *((run.anchor, run.heading) for run in runs)]
    suites = ", ".join(dict.fromkeys(result.suite.name for result in results))
    return Page(
        title=suites,
        subtitle=" · ".join(dict.fromkeys(result.device.name for result in results)),
        overview=overview,
        runs=runs,
        contents=tuple(contents),
        long=sum(len(result.cases) for result in results) > _LONG,
    )


def is_report(content: bytes) -> bool:
    """Say whether a file is a page that kmrun wrote, so that the next may replace it."""
    return b'<meta name="generator" content="kmrun ' in content[:4000]


def _card(result: Result, cards: Mapping[str, Card]) -> Card | None:
    card = cards.get(result.device.card or "")
    return None if card is None else per_device(card)


@functools.cache
def _environment() -> Environment:
    """Return the one environment: compiling the templates takes longer than filling them."""
    environment = Environment(
        loader=FileSystemLoader(folder("templates")),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        finalize=_harmless,
    )
    environment.filters["brief"] = brief
    environment.globals["generator"] = GENERATOR
    environment.globals["style"] = Markup(
        "\n".join(
            (folder("templates") / name).read_text(encoding="utf-8")
            for name in ("report.css", "report_plots.css")
        )
    )
    return environment


def _harmless(value: Any) -> Any:
    """Return text of others without characters that could turn its direction; markup is ours."""
    return printable(value) if type(value) is str else value
