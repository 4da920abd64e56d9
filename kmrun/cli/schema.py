"""`kmrun schema`: print the JSON Schema of a document kind."""

from typing import Annotated

import typer


def command(
    kind: Annotated[
        str | None, typer.Argument(metavar="[KIND]", help="suite, result, card, ...; none lists the kinds.")
    ] = None,
) -> None:
    """Print the JSON Schema of a document kind, for editors and scripts.

    In an editor: a first line `# yaml-language-server: $schema=FILE` with the output saved as FILE.
    """
    from kmrun.errors import UnknownName
    from kmrun.schema import export
    from kmrun.source.suggest import listed, meant

    if kind is None:
        for name, entry in export.KINDS.items():
            typer.echo(f"{name:<14} version {entry.version}   {entry.title}")
        return
    if kind not in export.KINDS:
        near = meant(kind, export.KINDS)
        hint = f"did you mean '{near}'?" if near else f"kinds: {listed(export.KINDS)}"
        raise UnknownName(f"no document kind '{kind}'", hint)
    typer.echo(export.text_of(kind), nl=False)
