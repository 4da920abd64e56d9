"""The pictures of the README are what the commands beside them make, byte for byte."""

import re
from pathlib import Path

import pytest

from support.commands import Command

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
COMMAND = re.compile(r"`kmrun ((?:[^`]|\n)*?--svg (\.github/pictures/[\w-]+\.svg))`")
COMMANDS = {picture: words.split() for words, picture in COMMAND.findall(README)}
SHOWN = re.findall(r"!\[([^\]]+)\]\((\.github/[^)]+)\)", README)


def test_every_picture_has_its_command_and_a_text():
    there = {path.relative_to(ROOT).as_posix() for path in (ROOT / ".github/pictures").iterdir()}
    assert there == set(COMMANDS) == {picture for _, picture in SHOWN}
    assert there
    assert all(len(text) > 20 for text, _ in SHOWN)


@pytest.mark.parametrize("picture", COMMANDS)
def test_a_picture_is_what_its_command_makes(monkeypatch, capsys, tmp_path, picture):
    monkeypatch.chdir(ROOT)
    monkeypatch.delenv("KMRUN_CARDS", raising=False)
    made = tmp_path / "made.svg"
    words = [made if word == picture else word for word in COMMANDS[picture]]
    ran = Command(monkeypatch, capsys)(*words)
    assert (ran.code, ran.err) == (0, "")
    same = made.read_bytes() == (ROOT / picture).read_bytes()
    assert same, f"{picture} is stale: run `kmrun {' '.join(COMMANDS[picture])}`"
