import os
import subprocess
import sys

import pytest

from kmrun.errors import UsageError
from kmrun.store.targets import TargetFile

WRITER = """
import sys
from pathlib import Path
from kmrun.store.targets import TargetFile

target = TargetFile(Path(sys.argv[1]), "--out", "text", lambda content: True)
print("ready", flush=True)
number = 0
while True:
    number += 1
    target.replace(f"{number}\\n" * 2000)
"""


def target(path):
    return TargetFile(path, "--out", "text of mine", lambda content: content.startswith(b"mine"))


@pytest.mark.parametrize("has_nameless_files", [True, False])
def test_a_file_is_replaced_whole(tmp_path, monkeypatch, has_nameless_files):
    if not has_nameless_files:
        monkeypatch.delattr(os, "O_TMPFILE", raising=False)
    path = tmp_path / "out"
    target(path).replace("mine: ü\r\n")
    target(path).replace("mine: two\n")
    assert path.read_bytes() == b"mine: two\n"
    assert [entry.name for entry in tmp_path.iterdir()] == ["out"]


def test_where_no_nameless_file_can_be_opened_a_named_one_serves(tmp_path, monkeypatch):
    original = os.open

    def refusing(path, flags, *rest, **more):
        if flags & getattr(os, "O_TMPFILE", 0) == getattr(os, "O_TMPFILE", -1):
            raise OSError(95, "Operation not supported")
        return original(path, flags, *rest, **more)

    monkeypatch.setattr(os, "open", refusing)
    target(tmp_path / "out").replace("mine\n")
    assert [entry.name for entry in tmp_path.iterdir()] == ["out"]


def test_what_is_of_another_kind_stays(tmp_path):
    path = tmp_path / "out"
    path.write_text("yours")
    with pytest.raises(UsageError, match=r"--out .*: is there already, and is no text of mine"):
        target(path)
    path.write_text(" \n")
    target(path).replace("mine\n")


def test_a_folder_that_vanished_is_a_sentence(tmp_path):
    folder = tmp_path / "folder"
    folder.mkdir()
    opened = target(folder / "out")
    folder.rmdir()
    with pytest.raises(UsageError, match="cannot be written: no such file"):
        opened.replace("mine\n")


@pytest.mark.skipif(not hasattr(os, "O_TMPFILE"), reason="needs files without names")
def test_a_writer_that_is_killed_leaves_a_whole_file_and_nothing_else(tmp_path):
    path = tmp_path / "out"
    for delay in (0.02, 0.05, 0.08):
        writer = subprocess.Popen([sys.executable, "-c", WRITER, str(path)], stdout=subprocess.PIPE)
        try:
            assert writer.stdout.readline() == b"ready\n"
            with pytest.raises(subprocess.TimeoutExpired):
                writer.wait(delay)
        finally:
            writer.kill()
            writer.communicate()
        if path.exists():
            lines = path.read_text().splitlines()
            assert len(lines) == 2000
            assert len(set(lines)) == 1
        # A kill between a file's naming and its renaming leaves it under its first name, whole like any other.
        for named in tmp_path.glob(".kmrun-*"):
            lines = named.read_text().splitlines()
            assert (len(lines), len(set(lines))) == (2000, 1)
            named.unlink()
        assert {entry.name for entry in tmp_path.iterdir()} <= {"out"}
