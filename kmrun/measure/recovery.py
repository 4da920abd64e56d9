"""After a side was killed on a GPU: waiting until the device works again, and its memory is back. No torch."""

import time
from collections.abc import Callable

from kmrun.errors import EnvironmentLacks
from kmrun.measure.side import Died, Side, Stopped, TimedOut

RECOVERY_S = 30.0
_BACK = 0.8
"""Share of the memory that was free at the start: some of it may be others' by now."""


def await_recovery(
    judge: Callable[[], Side], free_bytes: Callable[[], int], free_at_start: int, case_id: str
) -> None:
    """Wait for a GPU after its side was killed: its memory comes back, and a probe kernel runs.

    Raises:
        EnvironmentLacks: neither happens; going on would measure a broken device.
    """
    deadline = time.monotonic() + RECOVERY_S
    try:
        if judge().ask("probe", RECOVERY_S) != 64.0:
            raise EnvironmentLacks(f"device wedged after {case_id}: it computes wrongly")
        while free_bytes() < _BACK * free_at_start and time.monotonic() < deadline:
            time.sleep(0.2)
    except (Stopped, Died, TimedOut) as lost:
        raise EnvironmentLacks(f"device wedged after {case_id}: {lost}") from lost
    if free_bytes() < _BACK * free_at_start:
        raise EnvironmentLacks(f"device wedged after {case_id}: its memory does not come back")
