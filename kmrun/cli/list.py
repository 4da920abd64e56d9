"""`kmrun list`: the cases that suites expand to; none of their code is imported."""

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kmrun.cli import options
from kmrun.core.printable import printable
from kmrun.report.columns import WIDTH

if TYPE_CHECKING:
    from kmrun.core.case import Case
    from kmrun.plan import Selection
    from kmrun.source.suite_plan import PlannedSuite


def command(
    suites: options.Suites,
    pattern: options.Pattern = None,
    tag: options.Tags = None,
    device: Annotated[
        str | None,
        typer.Option(
            "--device", metavar="cpu|cuda|rocm|CARD", help="Say which cases are not for this device."
        ),
    ] = None,
    as_json: options.Json = False,
) -> None:
    """Show the cases of suites: bytes, operations, intensity, and the memory that each side needs.

    A dash is what is known only when the case has run (outputs learned from the reference).
    """
    import json

    from kmrun.plan import select
    from kmrun.source.suite_files import find_suites
    from kmrun.source.suite_plan import read_and_plan

    planned = [read_and_plan(path, name) for path, name in find_suites(suites)]
    cases = [case for one in planned for case in one.expansion.cases]
    kind, card = _device(device)
    selection = select(cases, kind=kind, card=card, pattern=pattern, tags=tag or ())
    elsewhere = _elsewhere(selection)
    shown = {id(case) for case in (*selection.cases, *elsewhere)}
    blocks = [
        (one, [case for case in one.expansion.cases if id(case) in shown])
        for one in planned
        if (pattern is None and not tag) or any(id(case) in shown for case in one.expansion.cases)
    ]
    away = {id(case) for case in elsewhere}
    if as_json:
        documents = [_document(one, rows, away) for one, rows in blocks]
        typer.echo(json.dumps(documents[0] if len(planned) == 1 else documents, indent=2, ensure_ascii=False))
    else:
        typer.echo("\n".join(_text(one, rows, away) for one, rows in blocks), nl=False)


def _device(word: str | None) -> tuple[Any, str | None]:
    """Return (kind, card) of `--device`; `cuda:1` is a kind with an index that makes no difference here."""
    from kmrun.errors import UsageError
    from kmrun.source.catalogue import load_cards

    if word is None:
        return None, None
    kind, _, index = word.partition(":")
    if kind in ("cpu", "cuda", "rocm") and (not index or index.isdigit()):
        return kind, None
    if kind == "gpu":
        raise UsageError(
            "--device gpu is open: a case may want one kind", "write cuda, rocm or a card's name"
        )
    card = load_cards().find(word)
    return "rocm" if card.vendor == "amd" else "cuda", card.id


def _elsewhere(selection: "Selection") -> list["Case"]:
    """Return the cases that are left out for their device alone."""
    return [item.case for item in selection.left_out if item.is_device]


def _document(planned: "PlannedSuite", rows: Sequence["Case"], away: set[int]) -> dict[str, Any]:
    return {
        "suite": planned.read.suite.suite,
        "file": str(planned.read.path),
        "cases": [
            {
                "id": case.id,
                "kernel": case.kernel,
                "axes": {name: case.axes[name] for name in case.shown_axes},
                "device": case.device,
                "other_device": id(case) in away,
                "tags": list(case.tags),
                "bytes": case.bytes,
                "flops": case.flops,
                "intensity": _intensity(case),
                "needed_bytes": dict(case.needed_bytes),
            }
            for case in rows
        ],
        "excluded": [{"id": item.id, "reason": item.reason} for item in planned.expansion.excluded],
    }


def _intensity(case: "Case") -> float | None:
    return case.flops / case.bytes if case.flops is not None and case.bytes else None


def _text(planned: "PlannedSuite", rows: Sequence["Case"], away: set[int]) -> str:
    from kmrun.core import units

    moved, moved_texts = units.format_column([case.bytes for case in rows], units.BYTES)
    work, work_texts = units.format_column([case.flops for case in rows], units.FLOPS)
    need = units.choose_unit([size for case in rows for size in case.needed_bytes.values()], units.BYTES)
    columns = [
        ["case", *(case.id for case in rows)],
        ["device", *(_device_text(case, id(case) in away) for case in rows)],
        [moved.symbol, *moved_texts],
        [work.symbol, *work_texts],
        ["flop/B", *(units.format_number(_intensity(case)) for case in rows)],
        [f"kernel {need.symbol}", *(units.format_in(case.needed_bytes["kernel"], need) for case in rows)],
        [f"judge {need.symbol}", *(units.format_in(case.needed_bytes["judge"], need) for case in rows)],
    ]
    lines = _table(columns)
    head = f"{planned.read.suite.suite}   {planned.read.path}   {_counts(planned, rows, away)}\n"
    text = head + "\n" + "".join(f"{line}\n" for line in lines) + _learned(rows)
    text += _excluded(planned, {case.kernel for case in rows})
    return "".join(f"{printable(line)}\n" for line in text.removesuffix("\n").split("\n"))


def _table(columns: Sequence[Sequence[str]]) -> list[str]:
    """Return the lines of a table, names left and figures right.

    Gaps shrink where it is too wide; then ids that do not fit stand on a line of their own, since they are copied.
    """
    widths = [max(map(len, column)) for column in columns]
    gap = "  " if sum(widths) + 2 * (len(widths) - 1) <= WIDTH else " "
    room = WIDTH - sum(widths[1:]) - len(gap) * (len(widths) - 1)
    if widths[0] > room:
        widths[0] = max(len(name) for name in columns[0] if len(name) <= room)
    lines = []
    for name, *cells in zip(*columns, strict=True):
        if len(name) > widths[0]:
            lines.append(name)
            name = ""
        shown = [name, *cells]
        placed = [
            cell.ljust(width) if number < 2 else cell.rjust(width)
            for number, (cell, width) in enumerate(zip(shown, widths, strict=True))
        ]
        lines.append(gap.join(placed).rstrip())
    return lines


def _learned(rows: Sequence["Case"]) -> str:
    if all(case.bytes is not None for case in rows):
        return ""
    return "bytes and flop/B are `-` where a run first learns the outputs: `outputs:` or `bytes:` says them here\n"


def _device_text(case: "Case", away: bool) -> str:
    name = case.device or "any"
    return f"{name} (not here)" if away else name


def _counts(planned: "PlannedSuite", rows: Sequence["Case"], away: set[int]) -> str:
    others = sum(id(case) in away for case in rows)
    total = len(planned.expansion.cases)
    parts = [f"{len(rows)} case{'' if len(rows) == 1 else 's'}"]
    if len(rows) < total:
        parts[0] += f" of {total}"
    if others:
        parts.append(f"{others} for other devices")
    return ", ".join(parts)


def _excluded(planned: "PlannedSuite", kernels: Collection[str]) -> str:
    counts: dict[str, int] = {}
    for item in planned.expansion.excluded:
        kernel = item.id.partition("[")[0]
        if kernel in kernels:
            key = f"{kernel}: {item.reason}"
            counts[key] = counts.get(key, 0) + 1
    return "".join(f"excluded {count} of {reason}\n" for reason, count in counts.items())
