"""`kmrun init`: a first suite, so that nobody starts from a blank page."""

from typing import Annotated

import typer

from kmrun.cli import options


def command(
    target: options.Target,
    arg: options.Args = None,
    ref: options.Ref = None,
    output: Annotated[
        str | None,
        typer.Option("-o", "--output", metavar="FILE", help="Where to write it; else it is printed."),
    ] = None,
) -> None:
    """Write a small, working suite for a function. Runs none of its code.

    Without --arg, every parameter that has no default is a 1024 x 1024 tensor to begin with.
    """
    from pathlib import Path

    from kmrun.cli.draft import draft
    from kmrun.cli.terminal import file_named
    from kmrun.errors import UsageError

    path = Path("suite.yaml") if output is None else file_named(output, "-o")
    drafted = draft(target, arg or [], ref, path.parent)
    # What is written has been read: a first suite with a mistake in it would teach nothing.
    drafted.planned(str(path), path.parent)
    if output is None:
        typer.echo(drafted.text, nl=False)
        return
    try:
        with path.open("x", encoding="utf-8") as stream:
            stream.write(drafted.text)
    except FileExistsError as error:
        raise UsageError(f"{output} exists", "name another file with -o, or take that one away") from error
    except OSError as error:
        raise UsageError(f"{output}: cannot be written: {(error.strerror or str(error)).lower()}") from error
    typer.echo(f"wrote {output}: run it with `kmrun {output}`")
