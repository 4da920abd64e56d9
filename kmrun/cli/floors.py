"""`kmrun floors`: raise the floors of a suite to what a result showed."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, cast

import typer

if TYPE_CHECKING:
    from kmrun.core.floors import Shown
    from kmrun.core.result import Result
    from kmrun.plan.selection import DeviceKind
    from kmrun.source.suite_floors import Edited
    from kmrun.source.suite_plan import PlannedSuite


def command(
    suite: Annotated[str, typer.Argument(metavar="FILE.yaml", help="The suite.")],
    result: Annotated[
        list[str], typer.Option("--result", metavar="FILE", help="What --save wrote; several may be given.")
    ],
    update: Annotated[
        bool, typer.Option("--update", help="Write the suite; without it the change is only shown.")
    ] = False,
    headroom: Annotated[
        float, typer.Option(metavar="SHARE", help="What is left below the lowest bound shown.")
    ] = 0.1,
) -> None:
    """Raise the `min_...` clauses of a suite to what a result showed; nothing is ever lowered.

    A floor becomes the lowest bound that its cases kept, over all results, less the head-room, rounded down to two
    digits. Only the number that spoke of the result's device is touched, and only where all of its cases passed.
    """
    import sys
    from pathlib import Path

    from kmrun.cli.terminal import file_named
    from kmrun.core.floors import raised
    from kmrun.core.printable import printable
    from kmrun.errors import UsageError
    from kmrun.report.table import encodable
    from kmrun.source.suite_floors import numbers, with_raised
    from kmrun.source.suite_plan import read_and_plan
    from kmrun.store import results
    from kmrun.store.targets import TargetFile

    if not 0 <= headroom < 1:
        raise UsageError(f"--headroom {headroom:g}: a share lies between 0 and 1")
    path = file_named(suite, "FILE.yaml")
    planned = read_and_plan(path, suite)
    seen: list[Shown] = []
    for name in result:
        seen += _shown(planned, _of_suite(results.read(Path(name)), planned, name))
    groups, elsewhere = numbers(planned.read.document, seen)
    found = raised(groups, headroom)
    edited = with_raised(path, planned.read.document, found)
    before = path.read_bytes().decode("utf-8")
    if edited.raised and update:
        TargetFile(path, "--update", "suite", lambda _: True).replace(edited.text)
    lines = [*_difference(suite, before, edited.text), *_told(planned, groups, edited, headroom)]
    lines += [f"{_named(place)}: stands in another file, and was left alone" for place in elsewhere]
    if edited.raised:
        written = "written" if update else "--update writes it"
        lines.append(f"{len(edited.raised)} of {len(groups)} floors raised: {written}")
    else:
        lines.append("no floor to raise")
    text = "".join(f"{printable(line)}\n" for line in lines)
    typer.echo(encodable(text, sys.stdout.encoding), nl=False)


def _of_suite(found: "Sequence[Result]", planned: "PlannedSuite", name: str) -> "Result":
    """Return the result of the suite as its text is now: the places of its clauses are those of that text.

    Raises:
        InvalidInput: the file has none.
    """
    from kmrun.errors import InvalidInput

    suite = planned.read.suite.suite
    named = [one for one in found if one.suite.name == suite]
    same = [one for one in named if one.suite.digest == planned.read.digest]
    if same:
        return same[-1]
    if named:
        raise InvalidInput(
            f"{name}: is of another text of {suite}", "run the suite as it is now, with --save"
        )
    raise InvalidInput(f"{name}: has no result of {suite}")


def _shown(planned: "PlannedSuite", result: "Result") -> "list[Shown]":
    from kmrun.core.floors import shown
    from kmrun.plan.selection import runs_on

    kind, card = cast("DeviceKind", result.device.kind), result.device.card
    cases = [case for case in planned.expansion.cases if runs_on(case, kind, card)]
    return shown(cases, result.cases, kind, card)


def _difference(name: str, before: str, after: str) -> list[str]:
    import difflib

    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), name, f"{name} raised", lineterm="")
    return list(lines)


def _told(
    planned: "PlannedSuite", groups: "Sequence[Sequence[Shown]]", edited: "Edited", headroom: float
) -> list[str]:
    """Say for every number what became of it, and why."""
    from kmrun.core.units import format_number
    from kmrun.source.suite_floors import line_of

    raises = {one.floor: one for one in edited.raised}
    lines = []
    for group in groups:
        raised = next((raises[seen.floor] for seen in group if seen.floor in raises), None)
        first = group[0]
        where = f"line {line_of(planned.read.document, first.floor)}: {first.floor.kind} {first.bound:g}"
        silent = next((seen for seen in group if seen.low is None), None)
        if raised is not None:
            low = min(seen.low for seen in group if seen.low is not None)
            share = f"{headroom * 100:.3g} % head-room below {format_number(low)} of {raised.case_id}"
            lines.append(f"{where} -> {raised.new:g}: {share}")
        elif (
            why := next((edited.left[seen.floor] for seen in group if seen.floor in edited.left), "")
        ) != "":
            lines.append(f"{where} stays: {why}")
        elif silent is not None:
            lines.append(f"{where} stays: {silent.case_id} {silent.why}")
        else:
            lowest = min(group, key=lambda seen: seen.low or 0.0)
            lines.append(f"{where} stays: {lowest.case_id} showed {format_number(lowest.low or 0.0)}")
    return lines


def _named(path: tuple[str | int, ...]) -> str:
    return ".".join(str(step) for step in path)
