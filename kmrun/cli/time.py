"""`kmrun time`: the scorecard of one function, without a suite file."""

from typing import Annotated

import typer


def command(
    target: Annotated[str, typer.Argument(metavar="FILE.py:FN|MODULE:FN", help="The function to measure.")],
    arg: Annotated[
        list[str] | None,
        typer.Option(metavar="ARG", help="What it is called with: 'randn[4096,4096]:bf16', 0.5, eps=1e-5."),
    ] = None,
    ref: Annotated[str, typer.Option(metavar="TARGET", help="The trusted implementation: torch:relu.")] = "",
    device: Annotated[
        str,
        typer.Option(metavar="auto|cpu|cuda|cuda:N", help="Where to run; auto is the first GPU, else cpu."),
    ] = "auto",
    seed: Annotated[int | None, typer.Option(metavar="N", help="Replay the inputs of that seed.")] = None,
    quick: Annotated[bool, typer.Option("--quick", help="A quarter of the time, wider intervals.")] = False,
    no_flush_l2: Annotated[bool, typer.Option("--no-flush-l2", help="Time with hot caches.")] = False,
    hot_and_cold: Annotated[
        bool, typer.Option("--hot-and-cold", help="Time with hot caches as well.")
    ] = False,
    lock_clocks: Annotated[
        bool, typer.Option("--lock-clocks", help="Hold the GPU's base clock for the run; mostly needs root.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="Print the result document and nothing else.")] = False,
) -> None:
    """Time one function, beside its reference where one is named.

    Exit codes are those of `kmrun run`. `kmrun init` with the same arguments writes the suite of it.
    """
    from pathlib import Path

    from kmrun.cli.draft import draft
    from kmrun.cli.running import Settings, jobs_of, run_jobs
    from kmrun.cli.terminal import seed_given
    from kmrun.source.suite_text import plan_text

    settings = Settings(
        device=device,
        seed=seed_given(seed),
        quick=quick,
        flush_l2=not no_flush_l2,
        hot_and_cold=hot_and_cold,
        lock_clocks=lock_clocks,
        as_json=json,
    )
    text = draft(target, arg or [], ref, Path())
    planned = plan_text(text, "<kmrun time>", Path())
    raise typer.Exit(run_jobs(jobs_of([planned], settings, in_files=False), settings))
