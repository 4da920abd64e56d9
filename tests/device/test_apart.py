"""Calls in a process of their own: what they return, raise, and how they may end."""

import os
import signal
import time

import pytest

from kmrun.device import apart as module
from kmrun.device.apart import Crashed, apart
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
    assert apart("a library", 60, None, returning, 6, right=7) == 42
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
        apart("a library", 0.2, told.append, time.sleep, 600)
    assert told == ["waiting for a library, for at most 0.2 s\n"]


def test_an_interrupt_ends_the_process_too(monkeypatch: pytest.MonkeyPatch) -> None:
    begun = []

    def interrupted(child, *_: object) -> bytes:
        begun.append(child)
        raise KeyboardInterrupt

    monkeypatch.setattr(module, "_heard", interrupted)
    with pytest.raises(KeyboardInterrupt):
        apart("a library", 60, None, time.sleep, 600)
    (child,) = begun
    assert child.returncode == -signal.SIGKILL
