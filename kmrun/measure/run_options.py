"""What the command line says about measuring."""

from dataclasses import dataclass
from typing import Literal

Isolation = Literal["auto", "paired", "serial", "inline"]


@dataclass(frozen=True, slots=True)
class RunOptions:
    """How a run measures.

    `seed` None takes one from the OS after the first kernel was loaded. `flush_l2` False times on hot caches.
    `threads` None uses every core that the process may run on. `lock_clocks` holds a GPU's clock for the run.
    `compared` says that times are held against those of other processes.
    """

    isolation: Isolation = "auto"
    seed: int | None = None
    quick: bool = False
    flush_l2: bool = True
    hot_and_cold: bool = False
    threads: int | None = None
    lock_clocks: bool = False
    compared: bool = False
