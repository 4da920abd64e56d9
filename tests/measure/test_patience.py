"""A person is told what is waited for, but only once it takes long."""

import threading

import pytest

from kmrun.measure import patience as module
from kmrun.measure.patience import patience


def test_what_takes_long_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "AFTER_S", 0.01)
    told: list[str] = []
    said = threading.Event()

    def tell(text: str) -> None:
        told.append(text)
        said.set()

    with patience("torch to find its devices", 120.0, tell):
        assert said.wait(60)
    assert told == ["waiting for torch to find its devices, for at most 120 s\n"]


def test_what_is_over_soon_is_not() -> None:
    before = threading.active_count()
    told: list[str] = []
    with pytest.raises(KeyboardInterrupt), patience("torch", 120.0, told.append):
        raise KeyboardInterrupt
    assert told == []
    for thread in threading.enumerate():
        if isinstance(thread, threading.Timer):
            thread.join(60)  # it ends at once
    assert threading.active_count() <= before
