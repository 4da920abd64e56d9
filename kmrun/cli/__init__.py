"""The command line: `main` here, the commands in `app`, one module for each of them."""

import kmrun.cli.start  # noqa: F401  # isort: skip

import sys

from kmrun.cli.interrupts import interrupt_once
from kmrun.errors import Interrupted


def main() -> None:
    """Entry point of the `kmrun` script; never returns.

    Nothing is imported above that takes time: an interrupt while the rest is, ends as quietly as any other.
    """
    interrupt_once()
    try:
        from kmrun.cli.app import run

        run()
    except KeyboardInterrupt:
        sys.exit(Interrupted.exit_code)
