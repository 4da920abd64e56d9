"""`kmrun check`: validate suites, folders of suites included; none of their code is imported."""

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from kmrun.cli import options
from kmrun.core.printable import printable

if TYPE_CHECKING:
    from kmrun.source.diagnostics import Diagnostic


def command(
    suites: options.Suites,
    form: Annotated[
        str, typer.Option("--format", metavar="text|json|github", help="How to print what is wrong.")
    ] = "text",
) -> None:
    """Validate suites without running any of their code.

    Exit code 0: all is well (warnings do not count); 2: a suite is wrong.
    """
    from kmrun.cli.streams import in_json
    from kmrun.errors import UsageError
    from kmrun.source import diagnostics
    from kmrun.source.suite_files import search

    if form not in diagnostics.FORMATS:
        raise UsageError(f"'{form}' is no format", f"one of {', '.join(diagnostics.FORMATS)}")
    files, found = search(suites)
    counts: list[tuple[str, int, int]] = []
    if files:
        from kmrun.source.suite_plan import read_and_plan
    for path, name in files:
        try:
            planned = read_and_plan(path, name)
        except diagnostics.InvalidSuite as error:
            found += error.diagnostics
        else:
            found += planned.warnings
            counts.append((name, len(planned.read.suite.kernels), len(planned.expansion.cases)))
    found = list(dict.fromkeys(found))
    errors = [item for item in found if item.severity == "error"]
    colour = form == "text" and diagnostics.wants_colour()
    text = diagnostics.render(found, form, colour)
    if form == "text":
        text += _summary(counts, found, errors)
    typer.echo(in_json(text, sys.stdout.encoding) if form == "json" else text, nl=False)
    if errors:
        raise typer.Exit(2)


def _summary(
    counts: list[tuple[str, int, int]], found: "list[Diagnostic]", errors: "list[Diagnostic]"
) -> str:
    lines = [f"{name}: {_many(kernels, 'kernel')}, {_many(cases, 'case')}" for name, kernels, cases in counts]
    warnings = len(found) - len(errors)
    if errors:
        files = len({item.file for item in errors})
        more = f", {_many(warnings, 'warning')}" if warnings else ""
        codes = sorted({item.code for item in errors})
        lines.append(
            f"{_many(len(errors), 'error')} in {_many(files, 'file')}{more} · kmrun explain {codes[0]}"
        )
    elif warnings:
        codes = sorted({item.code for item in found})
        lines.append(f"no error, {_many(warnings, 'warning')} · kmrun explain {codes[0]}")
    else:
        lines.append("no mistake found")
    return "".join(f"{printable(line)}\n" for line in lines)


def _many(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
