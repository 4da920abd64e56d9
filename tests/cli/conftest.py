import pytest

from support.commands import Command


@pytest.fixture
def kmrun(monkeypatch, capsys):
    """The command line: `kmrun("check", path)` returns code, out, err."""
    return Command(monkeypatch, capsys)
