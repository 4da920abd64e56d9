"""The command line: `main` here, the commands in `app`, one module for each of them."""

import sys


def main() -> None:
    """Entry point of the `kmrun` script; never returns.

    Nothing is imported above, and all below inside the `try`: an interrupt while that goes on ends as quietly as
    any other. One that comes sooner meets Python's own start, where no program can answer it.
    """
    try:
        import kmrun.cli.start  # noqa: F401  # isort: skip
        from kmrun.cli.interrupts import interrupt_once

        interrupt_once()
        from kmrun.cli.app import run

        run()
    except KeyboardInterrupt:
        sys.exit(130)  # errors.Interrupted, which may not be there yet
    finally:
        # An interrupt that came while a text was run (dataclasses and named tuples are made so) is remembered by
        # CPython, caught or not, and ends the process by the signal after all; until the next text is run.
        eval("None")
