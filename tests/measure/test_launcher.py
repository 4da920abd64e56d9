"""What the supervisor and the zygote say to each other."""

import json
import os
import signal
import socket
from pathlib import Path

import pytest

from kmrun.measure.lifeline import children_of
from kmrun.measure.protocol import ChannelClosed
from kmrun.measure.run_options import RunOptions
from kmrun.measure.side import COMPARED_ENVIRONMENT, Arenas, Launcher
from kmrun.measure.supervisor import Supervisor

pytestmark = pytest.mark.skipif(not hasattr(socket, "SOCK_SEQPACKET"), reason="a zygote needs Linux")


def test_a_reply_that_an_interrupt_left_unread_is_not_taken_for_the_next_one() -> None:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours, theirs:
        for reply in ({"ready": True, "id": 0}, {"pid": 12, "id": 1}, {"status": -9, "id": 2}):
            theirs.send(json.dumps(reply).encode())
        assert Launcher._answer(ours, 2) == {"status": -9, "id": 2}


def test_a_side_of_a_zygote_that_was_killed_is_not_asked_of_the_next_one(tmp_path: Path, capfd) -> None:
    launcher, memory = Launcher({}, str(tmp_path)), Arenas()
    try:
        old = [launcher.start(memory.arena, memory.vault) for _ in range(2)]
        os.kill(launcher.pids()[0], signal.SIGKILL)
        assert old[0].bury() == -signal.SIGKILL
        assert launcher.lost
        new = launcher.start(memory.arena, memory.vault)
        assert old[1].bury() == -signal.SIGKILL
        assert launcher.pids()[1:] == [new.pid]
        assert new.bury() in (
            0,
            -signal.SIGKILL,
        )  # it may see its channel closed, and go, before it is killed
    finally:
        launcher.close()
        memory.close()
    assert capfd.readouterr().err == ""


def test_a_zygote_that_was_killed_is_no_torch_that_cannot_be_imported(tmp_path: Path) -> None:
    launcher, memory = Launcher({}, str(tmp_path)), Arenas()
    try:
        sides = [launcher.start(memory.arena, memory.vault)]
        os.kill(launcher.pids()[0], signal.SIGKILL)
        with pytest.raises(ChannelClosed):
            while True:  # it may still read one request
                sides.append(launcher.start(memory.arena, memory.vault))
        assert launcher.end_of_zygote()[0] == "the process that hosts the sides was killed (signal 9)"
        assert launcher.lost
        assert {side.bury() for side in sides} == {-signal.SIGKILL}
        assert launcher.start(memory.arena, memory.vault).bury() in (0, -signal.SIGKILL)
    finally:
        launcher.close()
        memory.close()


def test_what_lies_beside_the_suite_is_not_imported_in_the_zygote(tmp_path: Path) -> None:
    """A kernel may be called `copy.py`, which torch would import in place of Python's own."""
    for name in ("copy.py", "select.py", "random.py"):
        (tmp_path / name).write_text("raise SystemExit(7)\n")
    launcher, memory = Launcher({}, str(tmp_path)), Arenas()
    try:
        assert launcher.start(memory.arena, memory.vault).bury() in (0, -signal.SIGKILL)
    finally:
        launcher.close()
        memory.close()


def test_a_zygote_that_is_gone_is_told() -> None:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    theirs.close()
    with ours, pytest.raises(ChannelClosed):
        Launcher._answer(ours, 1)


@pytest.mark.parametrize(
    ("compared", "own", "seen"),
    [
        (True, None, COMPARED_ENVIRONMENT["GLIBC_TUNABLES"]),
        (False, None, None),
        (True, "glibc.malloc.arena_max=1", "glibc.malloc.arena_max=1"),
    ],
)
def test_only_what_is_compared_goes_without_malloc_s_cache_and_the_user_s_setting_wins(
    compared, own, seen, monkeypatch
) -> None:
    monkeypatch.delenv("GLIBC_TUNABLES", raising=False)
    if own is not None:
        monkeypatch.setenv("GLIBC_TUNABLES", own)
    with Supervisor("cpu", RunOptions(threads=1, compared=compared)) as running:
        judge = running.judge().pid
        (zygote,) = (pid for pid in children_of(os.getpid()) if judge in children_of(pid))
        settings = Path(f"/proc/{zygote}/environ").read_bytes().decode().split("\0")
    found = dict(setting.split("=", 1) for setting in settings if setting)
    assert found.get("GLIBC_TUNABLES") == seen
    assert running.environment["glibc_tunables"] == seen
