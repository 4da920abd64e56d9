"""Options that several commands have: one spelling, one help text, one type each."""

from pathlib import Path
from typing import Annotated

import typer

Suites = Annotated[
    list[str], typer.Argument(metavar="FILE|DIR...", help="Suite files, or folders to search for suites.")
]
Target = Annotated[str, typer.Argument(metavar="FILE.py:FN|MODULE:FN", help="The function to measure.")]
Args = Annotated[
    list[str] | None,
    typer.Option(metavar="ARG", help="What it is called with: 'randn[4096,4096]:bf16', 0.5, eps=1e-5."),
]
Ref = Annotated[str | None, typer.Option(metavar="TARGET", help="The trusted implementation: torch:relu.")]

Device = Annotated[
    str,
    typer.Option(metavar="auto|cpu|cuda|cuda:N", help="Where to run; auto is the first GPU, else cpu."),
]
LocalDevice = Annotated[int | None, typer.Option(metavar="N", help="A local device (the default: 0).")]
Gpu = Annotated[str | None, typer.Option(metavar="CARD", help="A card of the database.")]
Card = Annotated[
    str | None, typer.Option(metavar="CARD", help="The card that this GPU is, where its name does not say.")
]
CardFiles = Annotated[
    list[Path] | None,
    typer.Option("--cards", metavar="FILE", help="Your own cards, laid over ours (also $KMRUN_CARDS)."),
]

Pattern = Annotated[
    str | None, typer.Option("-k", metavar="CASE", help="An id, a glob (* and ?), or a part of an id.")
]
Tags = Annotated[
    list[str] | None, typer.Option("--tag", metavar="TAG", help="Only kernels with one of these tags.")
]
Seed = Annotated[
    int | None, typer.Option(metavar="N", help="Replay the inputs of the run that printed this seed.")
]
Quick = Annotated[bool, typer.Option("--quick", help="A quarter of the time, wider intervals.")]
NoFlush = Annotated[
    bool, typer.Option("--no-flush-l2", help="Time with hot caches; there is no memory roof then.")
]
HotAndCold = Annotated[bool, typer.Option("--hot-and-cold", help="Time with hot caches as well.")]
LockClocks = Annotated[
    bool, typer.Option("--lock-clocks", help="Hold the GPU's base clock for the run; mostly needs root.")
]

Peak = Annotated[
    str | None,
    typer.Option(
        metavar="NAME", help="Compute roof: fp32 (default), fp64, tf32, fp16, bf16, fp8, int8, fp4, ..."
    ),
]
Tensor = Annotated[bool, typer.Option("--tensor", help="Short for --peak fp16.")]

Json = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]
ResultJson = Annotated[bool, typer.Option("--json", help="Print the result document and nothing else.")]
