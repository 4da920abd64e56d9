"""Threads on cores of their own while something is timed, free before and after."""

import os
import subprocess
import sys
import threading
from collections.abc import Iterator

import pytest

from kmrun.measure.placement import Placement, cores_for, settle_on

pytestmark = pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="threads cannot be placed here")


@pytest.fixture
def cores() -> Iterator[set[int]]:
    found = os.sched_getaffinity(0)
    if len(found) < 2:
        pytest.skip("needs two cores")
    yield found
    os.sched_setaffinity(0, found)


def worker(stop: threading.Event) -> threading.Thread:
    ready = threading.Event()

    def wait() -> None:
        ready.set()
        stop.wait()

    thread = threading.Thread(target=wait)
    thread.start()
    ready.wait()
    return thread


def test_the_threads_are_on_distinct_cores_meanwhile_and_free_afterwards(cores: set[int]) -> None:
    stop = threading.Event()
    thread = worker(stop)
    try:
        with Placement(64).spread():
            one, other = os.sched_getaffinity(0), os.sched_getaffinity(thread.native_id or 0)
        assert len(one) == 1
        # With other threads about, the busiest come first: the second is bound elsewhere or not at all.
        assert one != other
        assert os.sched_getaffinity(0) == cores
        assert os.sched_getaffinity(thread.native_id or 0) == cores
    finally:
        stop.set()
        thread.join()


def test_a_thread_that_user_code_bound_stays_where_it_is(cores: set[int]) -> None:
    last = {max(cores)}
    os.sched_setaffinity(0, last)
    with Placement(64).spread():
        assert os.sched_getaffinity(0) == last
    assert os.sched_getaffinity(0) == last


def test_code_that_starts_threads_is_left_to_the_scheduler_from_then_on(cores: set[int]) -> None:
    placement, stop = Placement(64), threading.Event()
    with placement.spread():
        thread = worker(stop)
        inherited = os.sched_getaffinity(thread.native_id or 0)
    try:
        assert len(inherited) == 1
        assert os.sched_getaffinity(thread.native_id or 0) == cores
        assert not placement.possible
        with placement.spread():
            assert os.sched_getaffinity(0) == cores
    finally:
        stop.set()
        thread.join()


def test_threads_that_came_and_went_are_seen_by_their_work(cores: set[int]) -> None:
    placement = Placement(64)

    def work() -> None:
        end = [sum(range(1000)) for _ in range(10_000)]
        assert end

    with placement.spread(look=True):
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    assert not placement.possible


def test_a_team_with_room_to_move_is_left_to_the_scheduler(cores: set[int]) -> None:
    with Placement(len(cores) - 1).spread():
        assert os.sched_getaffinity(0) == cores


def test_work_in_the_threads_that_were_there_changes_nothing(cores: set[int]) -> None:
    # In a process of its own: here other tests' children may be reaped meanwhile, and count.
    code = """
from kmrun.measure.placement import Placement
placement = Placement(64)
with placement.spread(look=True):
    assert sum(range(3_000_000))
assert placement.possible
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_what_a_thread_did_before_it_was_looked_at_does_not_count_when_it_ends(cores: set[int]) -> None:
    code = """
import threading
from kmrun.measure.placement import Placement
stop, worked = threading.Event(), threading.Event()
def work():
    sum(range(3_000_000))
    worked.set()
    stop.wait()
thread = threading.Thread(target=work)
thread.start()
worked.wait()
placement = Placement(64)
with placement.spread(look=True):
    stop.set()
    thread.join()
assert placement.possible
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_team_that_leaves_cores_free_is_given_as_many_by_lot(cores: set[int]) -> None:
    chosen = {tuple(cores_for(1)) for _ in range(200)}
    assert chosen == {(core,) for core in cores}
    assert cores_for(len(cores)) == cores_for(len(cores) + 1) == []


def test_all_threads_settle_and_so_do_those_that_they_start(cores: set[int]) -> None:
    first = {min(cores)}
    before, after = threading.Event(), threading.Event()
    running = worker(before)
    try:
        settle_on(first)
        later = worker(after)
        bound = [os.sched_getaffinity(thread.native_id or 0) for thread in (running, later)]
        assert bound == [first, first]
    finally:
        settle_on(cores)
        before.set()
        after.set()
        running.join()
        later.join()


LOWERED = "import os; os.setpriority(os.PRIO_PROCESS, 0, -10)"
TAKES_PRECEDENCE = """
import os, threading
from pathlib import Path
from kmrun.measure.placement import take_precedence
os.setsid()
take_precedence()
seen = [os.getpriority(os.PRIO_PROCESS, 0)]
thread = threading.Thread(target=lambda: seen.append(os.getpriority(os.PRIO_PROCESS, threading.get_native_id())))
thread.start()
thread.join()
group = Path("/proc/self/autogroup")
print(*seen, group.read_text().split()[-1] if group.exists() else seen[0])
"""


def test_other_load_waits_where_that_may_be_asked_for() -> None:
    before = os.getpriority(os.PRIO_PROCESS, 0)
    may = subprocess.run([sys.executable, "-c", LOWERED], capture_output=True).returncode == 0
    found = subprocess.run(
        [sys.executable, "-c", TAKES_PRECEDENCE], capture_output=True, text=True, check=True
    ).stdout
    own, thread, group = map(int, found.split())
    assert own == thread == (min(-10, before) if may and before <= 0 else before)
    assert group <= (-10 if may and before <= 0 else max(before, 0))


def test_who_wants_to_be_behind_other_load_stays_there() -> None:
    code = """
import os
from kmrun.measure.placement import take_precedence
os.setsid()
os.nice(40)
take_precedence()
print(os.getpriority(os.PRIO_PROCESS, 0))
"""
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert found == "19\n"
