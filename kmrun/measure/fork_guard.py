"""A kernel that calls fork and lets the child return: the child must not go on as if it were the side.

Where a child comes back into kmrun's own code it ends there; it says so in shared memory first, so that the
kernel is refused before it is called thousands of times, each time leaving one more process behind.
"""

import mmap
import os
import time

_WAIT_S = 0.05

_flag = mmap.mmap(-1, 1)
_owner = 0
_forks = 0


def watch() -> None:
    """Begin to watch this process; called once, by the side itself."""
    global _owner
    _owner = os.getpid()
    os.register_at_fork(after_in_parent=_count)


def _count() -> None:
    global _forks
    _forks += 1


def end_if_child() -> None:
    """End this process if it is a child of the side that came back from user code."""
    if _owner and os.getpid() != _owner:
        _flag[0] = 1
        os._exit(0)


def begin() -> int:
    """Return the mark that `came_back` takes, before user code is called."""
    return _forks


def came_back(mark: int) -> bool:
    """Say whether user code forked since the mark and a child came back; waits a moment for it where one forked."""
    if _forks == mark:
        return False
    time.sleep(_WAIT_S)
    return _flag[0] == 1
