"""Calls in a process of their own: what they return, raise, and how they may end."""

import os
import signal
import time
from functools import partial

import pytest

from kmrun.device import apart as module
from kmrun.device.apart import Apart, Crashed, apart
from kmrun.device.bounded import NoAnswer
from kmrun.errors import EnvironmentLacks


def returning(left: int, right: int = 1) -> int:
    print("on standard output, as a library may")
    return left * right


def lacking() -> None:
    raise EnvironmentLacks("no such thing", "get one")


def wrong() -> None:
    raise KeyError("a bug")


def test_returns_what_the_call_returns() -> None:
    assert apart("a library", 60, None, partial(returning, 6, right=7)) == 42
    assert apart("a library", 60, None, os.getpid) != os.getpid()


def test_raises_what_the_environment_lacks_with_its_hint() -> None:
    with pytest.raises(EnvironmentLacks, match="no such thing") as raised:
        apart("a library", 60, None, lacking)
    assert raised.value.hint == "get one"


def test_a_bug_keeps_its_traceback(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(RuntimeError, match="asking a library ended with status 1, and no answer"):
        apart("a library", 60, None, wrong)
    assert "KeyError: 'a bug'" in capfd.readouterr().err


def test_a_crash_is_a_sentence() -> None:
    with pytest.raises(Crashed, match=r"a library crashed when it was asked \(SIGABRT\)"):
        apart("a library", 60, None, os.abort)


def test_one_that_hangs_is_told_of_and_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PATIENCE_S", 0.05)
    told: list[str] = []
    with pytest.raises(NoAnswer, match=r"a library did not answer within 0\.2 s"):
        apart("a library", 0.2, told.append, partial(time.sleep, 600))
    assert told == ["waiting for a library, for at most 0.2 s\n"]


def test_leaving_ends_the_process() -> None:
    with pytest.raises(KeyboardInterrupt), Apart("a library", 60, None, partial(time.sleep, 600)) as asked:
        raise KeyboardInterrupt
    assert asked._child.returncode == -signal.SIGKILL


@pytest.mark.skipif(not hasattr(signal, "alarm"), reason="needs alarms")
def test_one_that_nobody_waits_for_ends_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_OUTLIVES_S", 0)
    with Apart("a library", 0.5, None, partial(time.sleep, 600)) as asked:
        assert asked._child.wait(120) == -signal.SIGALRM
