"""The command line: registers one command a file, and makes `kmrun FILE.yaml` mean `kmrun run FILE.yaml`.

Only the module of the command that was asked for is imported, so that `kmrun compare` never pays for what
`kmrun run` needs. A command module defines one function, `command`, and imports what it needs inside it.
"""

import difflib
import importlib
import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from kmrun import __version__
from kmrun.cli import streams
from kmrun.cli.interrupts import ignore_from_now_on
from kmrun.core.printable import printable
from kmrun.errors import Interrupted, KmrunError, UsageError
from kmrun.source.paths import exists

COMMANDS = {
    "run": "measure, judge and score suites (the default: `kmrun FILE.yaml`)",
    "check": "validate suites without running any of their code",
    "list": "show the cases that a suite expands to",
    "diff": "show how two results differ",
    "report": "results, or a card, as one self-contained HTML file",
    "floors": "raise the floors of a suite to what a result showed",
    "explain": "explain a diagnostic code",
    "schema": "print the JSON Schema of a document kind",
    "init": "write a small, working suite for a function",
    "time": "time one function without a suite file",
    "exec": "run one case alone, for profilers and debuggers",
    "info": "show what this machine has: GPUs and CPU, by their drivers",
    "ceiling": "measure what this machine really delivers",
    "gpus": "list the card database",
    "compare": "compare cards, also at a kernel's arithmetic intensity",
    "llm": "language models: what fits on which card, and the speed that nothing beats",
    "site": "write compare and llm as a static page",
    "roofline": "draw a roofline in the terminal",
    "occupancy": "occupancy of a launch, and what limits it",
}
"""Command name to its one-line help, in the order `--help` shows them. The module is `kmrun.cli.<name>`."""


def run() -> None:
    """Run the command that `sys.argv` names, and end the process with its exit code."""
    streams.open_missing()
    standard = sys.stdout, sys.stderr
    try:
        try:
            arguments = with_default_command(sys.argv[1:])
            app = build_app(arguments)
            sys.exit(app(args=arguments, prog_name="kmrun", standalone_mode=True))
        finally:
            sys.stdout, sys.stderr = standard  # what `exec` has run may have put others in their place
            if not sys.stdout.closed:
                sys.stdout.flush()  # while there is still somebody to tell that it failed
    except KmrunError as error:
        code = _fail(error)
    except KeyboardInterrupt:
        streams.say("interrupted\n")
        code = Interrupted.exit_code
    except BrokenPipeError:
        # The reader of our output has gone (`| head`).
        streams.discard(sys.stdout.fileno())
        code = 1
    finally:
        ignore_from_now_on()
    sys.exit(code)


def _fail(error: KmrunError) -> int:
    streams.say(explained(error))
    if os.environ.get("GITHUB_ACTIONS") == "true" and (found := getattr(error, "diagnostics", ())):
        from kmrun.source.diagnostics import render

        streams.say(render(found, "github"))
    return error.exit_code


def explained(error: KmrunError, opening: str = "error: ") -> str:
    """Return an error as a person reads it: its places with excerpts, else its sentence and hint."""
    found = getattr(error, "diagnostics", ())
    if found:
        from kmrun.source.diagnostics import render

        number = len(found)
        codes = sorted({item.code for item in found})
        errors = "1 error" if number == 1 else f"{number} errors"
        return f"{render(found, 'text', sys.stderr.isatty())}{errors} · kmrun explain {codes[0]}\n"
    lines = [
        *f"{opening}{error.sentence}".split("\n"),
        *(f"hint: {error.hint}".split("\n") if error.hint else ()),
    ]
    return "".join(f"{printable(line)}\n" for line in lines)


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
    if (
        first.startswith("-")
        or Path(first).suffix in (".yaml", ".yml")
        or "/" in first
        or exists(Path(first))
    ):
        return ["run", *arguments]
    near = difflib.get_close_matches(first, COMMANDS, n=1)
    hint = f"did you mean 'kmrun {near[0]}'?" if near else "`kmrun --help` lists the commands"
    raise UsageError(f"'{first}' is neither a command nor a suite file", hint)


def build_app(arguments: list[str]) -> typer.Typer:
    """Return the application with the one command that was asked for, or for the help page."""
    app = typer.Typer(
        name="kmrun",
        add_completion=False,
        no_args_is_help=True,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
        help="Is this kernel good, measured against what the hardware can do, "
        "and which card is worth paying for?",
    )
    app.callback()(_root)
    if arguments[0] in COMMANDS:
        module = importlib.import_module(f"kmrun.cli.{arguments[0]}")
        app.command(arguments[0], short_help=COMMANDS[arguments[0]])(module.command)
    else:
        # The help page shows names and one line each; nothing is imported for it.
        for name, line in COMMANDS.items():
            app.command(name, short_help=line)(_never_called)
    return app


def _never_called() -> None:
    raise AssertionError("the application was built for the help page")


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
