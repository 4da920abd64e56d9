"""`kmrun time`: the scorecard of one function, without a suite file."""

import typer

from kmrun.cli import options


def command(
    target: options.Target,
    arg: options.Args = None,
    ref: options.Ref = None,
    device: options.Device = "auto",
    seed: options.Seed = None,
    quick: options.Quick = False,
    no_flush_l2: options.NoFlush = False,
    hot_and_cold: options.HotAndCold = False,
    lock_clocks: options.LockClocks = False,
    json: options.ResultJson = False,
) -> None:
    """Time one function, beside its reference where one is named.

    Exit codes are those of `kmrun run`. `kmrun init` with the same arguments writes the suite of it.
    """
    from pathlib import Path

    from kmrun.cli.draft import draft
    from kmrun.cli.running import Settings, jobs_of, run_jobs
    from kmrun.cli.terminal import seed_given

    settings = Settings(
        device=device,
        seed=seed_given(seed),
        quick=quick,
        flush_l2=not no_flush_l2,
        hot_and_cold=hot_and_cold,
        lock_clocks=lock_clocks,
        as_json=json,
    )
    planned = draft(target, arg or [], ref, Path()).planned("<kmrun time>", Path())
    raise typer.Exit(run_jobs(jobs_of([planned], settings, in_files=False), settings))
