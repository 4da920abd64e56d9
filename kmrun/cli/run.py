"""`kmrun run`, the default command: measure, judge and score suites."""

from typing import Annotated

import typer

from kmrun.cli import options

ISOLATIONS = ("auto", "paired", "serial", "inline")


def command(
    suites: options.Suites,
    device: options.Device = "auto",
    pattern: options.Pattern = None,
    tag: options.Tags = None,
    seed: options.Seed = None,
    quick: options.Quick = False,
    no_flush_l2: options.NoFlush = False,
    hot_and_cold: options.HotAndCold = False,
    lock_clocks: options.LockClocks = False,
    isolation: Annotated[
        str, typer.Option(metavar="|".join(ISOLATIONS), help="How kernel and reference are kept apart.")
    ] = "auto",
    allow_inconclusive: Annotated[
        bool, typer.Option("--allow-inconclusive", help="Exit 0, not 4, when something is undecided.")
    ] = False,
    card: options.Card = None,
    cards: options.CardFiles = None,
    save: Annotated[
        str | None, typer.Option(metavar="FILE", help="Write the result document there, after every case.")
    ] = None,
    junit: Annotated[
        str | None, typer.Option(metavar="FILE", help="Write a JUnit report there, for Jenkins and GitLab.")
    ] = None,
    markdown: Annotated[
        str | None, typer.Option(metavar="FILE", help="Write a report in Markdown there.")
    ] = None,
    html: Annotated[
        str | None, typer.Option(metavar="FILE", help="Write a report there that opens in any browser.")
    ] = None,
    against: Annotated[
        str | None,
        typer.Option(
            metavar="REF|PATH", help="Judge whether it is slower than at that commit, or in that folder."
        ),
    ] = None,
    build: Annotated[
        str | None, typer.Option(metavar="CMD", help="With --against: run this in each version's tree first.")
    ] = None,
    save_baseline: Annotated[
        bool,
        typer.Option("--save-baseline", help="Keep how fast the suite is here, in baselines/ beside it."),
    ] = False,
    against_baseline: Annotated[
        bool, typer.Option("--against-baseline", help="Judge whether it is slower than its baseline.")
    ] = False,
    compare: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Judge whether it is slower than what --save wrote there."),
    ] = None,
    json: options.ResultJson = False,
) -> None:
    """Measure, judge and score suites.

    Exit code 0: all clauses hold; 1: a contract is broken; 2: a suite or the command line is wrong; 3: the
    environment lacks something; 4: something is undecided; 130: interrupted.
    """
    from kmrun.cli.running import Settings, run_suites
    from kmrun.cli.terminal import seed_given

    raise typer.Exit(
        run_suites(
            suites,
            Settings(
                device=device,
                pattern=pattern,
                tags=tuple(tag or ()),
                seed=seed_given(seed),
                quick=quick,
                flush_l2=not no_flush_l2,
                hot_and_cold=hot_and_cold,
                lock_clocks=lock_clocks,
                isolation=isolation,
                allow_inconclusive=allow_inconclusive,
                card=card,
                overlays=tuple(map(str, cards or ())),
                save=save,
                junit=junit,
                markdown=markdown,
                html=html,
                save_baseline=save_baseline,
                against_baseline=against_baseline,
                compare=compare,
                against=against,
                build=build,
                as_json=json,
            ),
        )
    )
