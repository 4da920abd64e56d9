"""The command line: registers one command a file, and makes `kmrun FILE.yaml` mean `kmrun run FILE.yaml`.

Only the module of the command that was asked for is imported, so that `kmrun compare` never pays for what
`kmrun run` needs. A command module defines one function, `command`, and imports what it needs inside it.
"""

import difflib
import importlib
import sys
from pathlib import Path
from typing import Annotated

import typer

from kmrun import __version__
from kmrun.errors import KmrunError, UsageError

COMMANDS = {
    "run": "measure, judge and score suites (the default: `kmrun FILE.yaml`)",
    "check": "validate suites without running any of their code",
    "list": "show the cases that a suite expands to",
    "explain": "explain a diagnostic code",
    "schema": "print the JSON Schema of a document kind",
    "init": "write a small, working suite for a function",
    "time": "time one function without a suite file",
    "exec": "run one case alone, for profilers and debuggers",
    "gpus": "list the card database",
    "compare": "compare cards, also at a kernel's arithmetic intensity",
    "roofline": "draw a roofline in the terminal",
    "occupancy": "occupancy of a launch, and what limits it",
}
"""Command name to its one-line help, in the order `--help` shows them. The module is `kmrun.cli.<name>`."""


def main() -> None:
    """Entry point of the `kmrun` script; never returns."""
    try:
        arguments = with_default_command(sys.argv[1:])
        app = build_app(arguments)
        sys.exit(app(args=arguments, prog_name="kmrun", standalone_mode=True))
    except KmrunError as error:
        sys.stderr.write(f"error: {error.sentence}\n")
        if error.hint:
            sys.stderr.write(f"hint: {error.hint}\n")
        sys.exit(error.exit_code)


def with_default_command(arguments: list[str]) -> list[str]:
    """Return the arguments with `run` put in front where a suite is named instead of a command.

    Raises:
        UsageError: the first word is neither a command nor anything that could be a suite.
    """
    if not arguments:
        return ["--help"]
    first = arguments[0]
    if first in COMMANDS or first in ("--help", "-h", "--version"):
        return arguments
    if first.startswith("-") or Path(first).suffix in (".yaml", ".yml") or Path(first).exists() or "/" in first:
        return ["run", *arguments]
    near = difflib.get_close_matches(first, COMMANDS, n=1)
    hint = f"did you mean 'kmrun {near[0]}'?" if near else "`kmrun --help` lists the commands"
    raise UsageError(f"'{first}' is neither a command nor a suite file", hint)


def build_app(arguments: list[str]) -> typer.Typer:
    """Return the application with the one command that was asked for, or with all of them for the help page."""
    app = typer.Typer(
        name="kmrun",
        add_completion=False,
        no_args_is_help=True,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
        help="Is this kernel good, measured against what the hardware can do, and which card is worth paying for?",
    )
    app.callback()(_root)
    wanted = [arguments[0]] if arguments[0] in COMMANDS else list(COMMANDS)
    for name in wanted:
        module = importlib.import_module(f"kmrun.cli.{name}")
        app.command(name, short_help=COMMANDS[name])(module.command)
    return app


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"kmrun {__version__}")
        raise typer.Exit


def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    pass
