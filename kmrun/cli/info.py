"""`kmrun info`: what this machine has, by its drivers: every GPU with all its attributes, and the CPU."""

from typing import Annotated

import typer

from kmrun.cli import options


def command(
    device: Annotated[
        str | None, typer.Option(metavar="N", help="Only this GPU, or `cpu` for the CPU alone.")
    ] = None,
    cards_file: options.CardFiles = None,
    as_json: options.Json = False,
) -> None:
    """Show what the drivers and the system know of this machine. Needs no torch, no toolkit and no kernel.

    \b
    kmrun info
    kmrun info --device 0 --json
    """  # noqa: D301 (Click wants the control character)
    import json
    import sys

    from kmrun.cli.app import explained
    from kmrun.cli.streams import say
    from kmrun.cli.terminal import terminal_width
    from kmrun.device.cpu_facts import cpu_facts
    from kmrun.device.facts import Gpus, gpus
    from kmrun.report import info_record, info_text
    from kmrun.report.table import encodable
    from kmrun.source.catalogue import load_cards

    only = _index(device)
    found = Gpus() if device == "cpu" else gpus(load_cards(cards_file or []), only, say)
    cpu = cpu_facts()
    if as_json:
        typer.echo(json.dumps(info_record.record(found, cpu), indent=2))
    else:
        typer.echo(encodable("\n".join(info_text.lines(found, cpu, terminal_width())), sys.stdout.encoding))
    for failure in found.failures:
        sys.stderr.write(explained(failure))
    if found.failures:
        # The facts of the CPU, and of the devices that answered, are still worth having.
        raise typer.Exit(found.failures[0].exit_code)


def _index(device: str | None) -> int | None:
    from kmrun.errors import UsageError

    if device in (None, "cpu"):
        return None
    text = str(device).removeprefix("cuda:")
    if not text.isdecimal():
        raise UsageError(
            f"--device {device}: no such device", "a number, as `kmrun info` counts them, or `cpu`"
        )
    return int(text)
