"""`kmrun diff`: two results side by side; nothing is measured and nothing judged."""

from typing import Annotated

import typer


def command(
    old: Annotated[str, typer.Argument(metavar="OLD.json", help="What `--save` wrote before.")],
    new: Annotated[str, typer.Argument(metavar="NEW.json", help="What `--save` wrote after.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print a JSON document.")] = False,
) -> None:
    """Show how times, verdicts and surroundings changed between two results.

    Exit code 0, whatever changed: `kmrun SUITE --against REF` is what judges a change.
    """
    import json
    import sys
    from pathlib import Path

    from kmrun.cli.streams import in_json
    from kmrun.core.counterpart import counterparts
    from kmrun.core.difference import compare
    from kmrun.core.printable import printable
    from kmrun.errors import InvalidInput
    from kmrun.report import diff
    from kmrun.report.table import encodable
    from kmrun.store import results

    before, after = (results.read(Path(name)) for name in (old, new))
    pairs = counterparts(before, after)
    if not pairs:
        told = [", ".join(dict.fromkeys(result.suite.name for result in each)) for each in (before, after)]
        raise InvalidInput(
            printable(f"the two have no suite in common: {told[0] or 'none'} there, {told[1] or 'none'} here")
        )
    found, names = [compare(*pair) for pair in pairs], (old, new)
    if as_json:
        text = json.dumps(diff.document(found, names), indent=2, ensure_ascii=False) + "\n"
        typer.echo(in_json(text, sys.stdout.encoding), nl=False)
    else:
        typer.echo(encodable(diff.render(found, names), sys.stdout.encoding), nl=False)
