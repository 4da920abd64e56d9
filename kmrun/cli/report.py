"""`kmrun report`: results, or a card, as one self-contained HTML file."""

from pathlib import Path
from typing import Annotated

import typer

from kmrun.cli import options


def command(
    results: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="[RESULT.json...]",
            help="What `--save` or `--json` wrote, `-` is standard input; several stand side by side. None: a page"
            " about a card.",
        ),
    ] = None,
    out: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Where to; `-` is standard output. By default named after what is shown, here.",
        ),
    ] = None,
    gpu: Annotated[
        str | None, typer.Option(metavar="CARD", help="A card of the database instead of results.")
    ] = None,
    device: Annotated[
        int | None, typer.Option(metavar="N", help="A local GPU instead of results (the default: 0).")
    ] = None,
    cards_file: options.CardFiles = None,
) -> None:
    """Write a report that can be shared: one HTML file, no script, no request to any network.

    \b
    kmrun report result.json
    kmrun report before.json after.json --out compare.html
    kmrun report --gpu h100-sxm
    """  # noqa: D301 (Click wants the control character)
    import gc

    from kmrun.cli.report_page import card_report, destination, result_report, write
    from kmrun.errors import UsageError

    if results and (gpu is not None or device is not None):
        raise UsageError("results name their own device", "leave --gpu and --device out")
    if gpu is not None and device is not None:
        raise UsageError("--gpu and --device each name a card", "give one of them")
    gc.disable()  # thousands of cases are millions of objects, none of which goes before the page is written
    try:
        name, make = (
            result_report(results, cards_file or [])
            if results
            else card_report(gpu, device, cards_file or [])
        )
        target = destination(out, name)
        write(target, make())
    finally:
        gc.enable()
