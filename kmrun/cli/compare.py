"""`kmrun compare`: cards side by side, at a kernel's arithmetic intensity if one is given."""

from pathlib import Path
from typing import Annotated

import typer

from kmrun.cli import options


def command(
    cards: Annotated[list[str], typer.Argument(metavar="CARD...", help="Cards, by id or everyday name.")],
    ai: Annotated[
        float | None,
        typer.Option("--ai", metavar="X", help="Arithmetic intensity of a kernel, in flop/byte."),
    ] = None,
    suite: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Take intensity and peak from a case of this suite.")
    ] = None,
    case: Annotated[str | None, typer.Option("-k", metavar="CASE", help="The case of --suite.")] = None,
    peak: options.Peak = None,
    tensor: options.Tensor = False,
    cost: Annotated[
        list[str] | None, typer.Option(metavar="CARD=X,...", help="Price of a card in $ per hour.")
    ] = None,
    sort: Annotated[
        str | None,
        typer.Option(
            metavar="KEY", help="attainable, memory, peak, ridge, cost, value, name; -KEY turns it round."
        ),
    ] = None,
    cards_file: options.CardFiles = None,
    svg: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the rooflines as a picture.")
    ] = None,
    as_json: options.Json = False,
) -> None:
    """Compare cards: bandwidth, peaks, ridge point, what each attains at an intensity, and for what money.

    \b
    kmrun compare 4090 a100-80gb h100-sxm --ai 0.33 --cost 4090=0.35,a100-80gb=1.19,h100-sxm=2.69
    """  # noqa: D301 (Click wants the control character)
    import gc

    from kmrun.cli import comparing
    from kmrun.cli.prices import prices
    from kmrun.core.compare import compare
    from kmrun.source.catalogue import load_cards

    # This process ends soon: its last collection need not look at all that the imports made.
    gc.freeze()
    catalogue = load_cards(cards_file or [])
    chosen = list({card.id: card for card in map(catalogue.find, cards)}.values())
    intensity, choice = comparing.the_work(ai, suite, case, peak, tensor)
    costs = prices(cost or [], catalogue, chosen)
    standings = comparing.ordered(compare(chosen, choice.roof, intensity, costs), sort)
    if svg is not None:
        from kmrun.cli.terminal import write_svg
        from kmrun.report.svg import roofline_svg

        write_svg(svg, roofline_svg(comparing.curves(standings), comparing.marks(intensity, choice)))
    if as_json:
        import json

        typer.echo(json.dumps(comparing.document(standings, intensity, choice), indent=2))
    else:
        typer.echo(comparing.text(standings, intensity, choice), nl=False)
