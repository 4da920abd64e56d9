"""From files or a card to a written page; the one place of the command line that imports the page's machinery."""

import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from kmrun.cli.result_files import STREAM, read_results
from kmrun.cli.terminal import file_named
from kmrun.core.card import Card
from kmrun.core.peaks import peaks
from kmrun.core.result import Result
from kmrun.errors import EnvironmentLacks
from kmrun.source.catalogue import Catalogue, load_cards
from kmrun.store.targets import TargetFile

if TYPE_CHECKING:
    from kmrun.device.facts import GpuFacts

_UNSAFE = re.compile(r"[^\w.+-]+")
_LONGEST = 80

Make = Callable[[], str]
"""Makes the page, once it is known that it can be written."""


class PageFile:
    """Where a page goes: a file that is replaced whole, or standard output."""

    def __init__(self, name: str, option: str) -> None:
        """Prepare to write; `-` is standard output.

        Raises:
            UsageError: the file cannot be written there, or holds something else than a report.
        """
        self.shown = name
        self._target = None if name == "-" else _target(name, option)

    def write(self, page: str) -> None:
        """Write the page.

        Raises:
            UsageError: the file can no longer be written.
        """
        if self._target is None:
            sys.stdout.reconfigure(encoding="utf-8")  # type: ignore[union-attr]  # the page says that it is UTF-8
            typer.echo(page, nl=False)
        else:
            self._target.replace(page)


def _target(name: str, option: str) -> TargetFile:
    from kmrun.report.html import is_report

    return TargetFile(file_named(name, option), option, "report of kmrun", is_report)


def destination(out: str | None, name: str) -> PageFile:
    """Return where a page goes: `--out`, else a file of that name in this folder."""
    return PageFile(f"{_UNSAFE.sub('-', name)[:_LONGEST]}.html" if out is None else out, "--out")


def write(target: PageFile, page: str) -> None:
    """Write a page and say where."""
    target.write(page)
    if target.shown != "-":
        typer.echo(f"wrote {target.shown} ({len(page.encode()) / 1e3:.0f} kB)")


def result_report(paths: Sequence[Path], overlays: Sequence[Path]) -> tuple[str, Make]:
    """Return the name of a page about results, and what makes it.

    Raises:
        InvalidInput: a file is no result document, or holds none.
    """
    results = read_results(paths)
    catalogue = load_cards(overlays)
    name = results[0].suite.name if paths[0] == STREAM else paths[0].stem
    return name, lambda: results_page(results, catalogue)


def results_page(results: Sequence[Result], catalogue: Catalogue) -> str:
    """Return the page of results, with the roofs of their cards."""
    from kmrun.report.html import result_page

    named = {result.device.card for result in results if result.device.card is not None}
    return result_page(results, {card: catalogue.card(card) for card in named if card in catalogue.ids})


def card_report(gpu: str | None, device: int | None, overlays: Sequence[Path]) -> tuple[str, Make]:
    """Return the name of a page about a card, and what makes it: the database's, else that of a local device.

    Raises:
        KmrunError: the card is unknown, or there is no such device.
    """
    from kmrun.report.html import card_page
    from kmrun.report.html_card import card_parts, known_limits

    if gpu is None:
        return _local(device or 0, overlays, asked=device is not None)
    card = load_cards(overlays).find(gpu)
    origin = f"{card.id} of kmrun's card database; peaks derived from its units and clocks."
    return card.id, lambda: card_page(card_parts(card, peaks(card), origin, known_limits(card)))


def _local(index: int, overlays: Sequence[Path], *, asked: bool) -> tuple[str, Make]:
    from kmrun.device.facts import gpus
    from kmrun.report.html import card_page
    from kmrun.report.html_card import card_parts, known_limits
    from kmrun.report.info_text import sensor_rows

    found = gpus(load_cards(overlays), index)
    if not found.devices:
        error = found.failures[0]
        raise (
            error
            if asked
            else EnvironmentLacks(error.sentence, "--gpu CARD reports any card of the database")
        )
    device = found.devices[0]
    card = device.card or _card_of(device)
    facts = [*sensor_rows(device), *found.versions.items()]
    clocks = (
        "at the driver's highest clocks" if device.peaks.values else "none: a slice has no published peak"
    )
    origin = f"Device {device.index} of this machine, peaks {clocks}."
    limits = known_limits(card)
    return f"device-{device.index}", lambda: card_page(
        card_parts(card, device.peaks, origin, limits, facts, device.attributes)
    )


def _card_of(device: "GpuFacts") -> Card:
    """Return what is known of a device that no card of the database is."""
    return Card(
        id=f"device-{device.index}",
        name=device.name,
        vendor=device.vendor,
        architecture=device.architecture or "unknown",
        family=device.architecture or "unknown",
        unit="SM" if device.vendor == "nvidia" else "CU",
        compute_capability=device.architecture,
        memory_bytes=device.memory_bytes,
        source="the driver",
        note=f"It may be {' or '.join(device.candidates)}." if device.candidates else "",
    )
