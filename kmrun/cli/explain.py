"""`kmrun explain`: what a diagnostic code means and how to put it right."""

from typing import Annotated

import typer


def command(
    code: Annotated[
        str | None, typer.Argument(metavar="[CODE]", help="A code such as K201; none lists all codes.")
    ] = None,
) -> None:
    """Explain a diagnostic code, with an example that is wrong and one that is right."""
    from kmrun.errors import UnknownName
    from kmrun.source.codes import catalogue
    from kmrun.source.suggest import meant

    codes = catalogue()
    if code is None:
        for entry in codes.values():
            typer.echo(f"{entry.code}  {entry.title}")
        return
    wanted = code.strip().strip("[]").upper()
    if wanted not in codes:
        near = meant(wanted, codes)
        hint = f"did you mean {near}?" if near else "`kmrun explain` lists the codes"
        raise UnknownName(f"no diagnostic code '{code}'", hint)
    typer.echo(codes[wanted].page(), nl=False)
