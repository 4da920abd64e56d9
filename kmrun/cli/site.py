"""`kmrun site`: compare and llm as a static page, for a pages host or a mail."""

from typing import Annotated

import typer

from kmrun.cli import options


def command(
    folder: Annotated[
        str, typer.Argument(metavar="DIR", help="Where to write index.html; made if it is not there.")
    ],
    cards_file: options.CardFiles = None,
) -> None:
    """Write a static site: which card for a kernel or a language model, every setting in the address.

    One index.html, without a server, a build step or a request: it works from a disk and from any pages host.
    """
    from kmrun.cli.llm_question import USUAL_CARDS
    from kmrun.cli.site_formulas import formulas
    from kmrun.cli.terminal import file_named
    from kmrun.errors import UsageError
    from kmrun.report.site import is_page, page
    from kmrun.source.catalogue import load_cards
    from kmrun.source.model_catalogue import load_models
    from kmrun.store.targets import TargetFile

    path = file_named(folder, "DIR")
    cards = load_cards(cards_file or [])
    try:
        path.mkdir(parents=True, exist_ok=True)
    except FileExistsError as error:
        raise UsageError(f"{folder}: is there already, and is no folder", "name another one") from error
    except OSError as error:
        raise UsageError(f"{folder}: cannot be made: {(error.strerror or str(error)).lower()}") from error
    target = TargetFile(path / "index.html", "DIR", "page of kmrun site", is_page)
    target.replace(page(cards, load_models(), formulas(), USUAL_CARDS))
    typer.echo(f"wrote {path / 'index.html'}: open it, or put {folder} on any pages host")
