"""`kmrun gpus`: the card database, filtered and sorted."""

from typing import Annotated

import typer

from kmrun.cli import options


def command(
    filter_text: Annotated[
        str | None, typer.Argument(metavar="[FILTER]", help="Part of an id, name, alias or architecture.")
    ] = None,
    vendor: Annotated[
        str | None, typer.Option(metavar="NAME", help="nvidia, amd, intel, apple, google, aws.")
    ] = None,
    arch: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Family, architecture or capability: ada, cdna3, 9.0, gfx942."),
    ] = None,
    min_vram: Annotated[float | None, typer.Option(metavar="GB", help="At least so much memory.")] = None,
    sort: Annotated[
        str | None,
        typer.Option(
            metavar="KEY", help="name, year, memory, vram, tdp, fp32, bf16, fp8, ...; -KEY turns it round."
        ),
    ] = None,
    cards_file: options.CardFiles = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON array.")] = False,
) -> None:
    """List the cards that kmrun knows, with peaks derived from rates, clocks and units.

    \b
    kmrun gpus --vendor nvidia --min-vram 80 --sort bf16
    """  # noqa: D301 (Click wants the control character)
    import json

    from kmrun.cli import listing
    from kmrun.source.catalogue import load_cards

    cards = listing.ordered(
        listing.chosen(load_cards(cards_file or []), filter_text, vendor, arch, min_vram), sort
    )
    if as_json:
        typer.echo(json.dumps([listing.record(card) for card in cards], indent=2))
    else:
        typer.echo("\n".join(listing.lines(cards)))
