"""Runs the command line in this process, as the script would."""

import sys
from dataclasses import dataclass

import pytest

from kmrun.cli import main


@dataclass(frozen=True, slots=True)
class Ran:
    """What a command left: exit code, stdout, stderr."""

    code: int
    out: str
    err: str


class Command:
    """`command("check", "x.yaml")` is `kmrun check x.yaml`."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self._monkeypatch = monkeypatch
        self._capsys = capsys

    def __call__(self, *words: object) -> Ran:
        self._monkeypatch.setattr(sys, "argv", ["kmrun", *map(str, words)])
        self._capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main()
        out, err = self._capsys.readouterr()
        code = ended.value.code
        return Ran(0 if code is None else int(code), out, err)
