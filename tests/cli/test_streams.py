"""The command line where its streams are closed, full, or of an encoding that lacks signs."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from kmrun.cli.streams import in_json

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="asks a shell and /dev/full")

SUITE = """\
kmrun: 1
suite: s
kernels:
  - name: f
    target: k.py:f
    args: {x: {init: randn, shape: [4], dtype: fp32}}
"""
FULL = "error: standard output cannot be written: no space left on device\n"


def shell(folder, line, **environment):
    """Run a shell line in which $K is the command."""
    return subprocess.run(
        ["bash", "-c", line],
        cwd=folder,
        env={"K": f"{sys.executable} -m kmrun", "PATH": "/usr/bin:/bin", **environment},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "ok.yaml").write_text(SUITE)
    return tmp_path


@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&-", ">&- 2>&-", "<&- >&- 2>&-"])
def test_a_closed_stream_is_one_that_nobody_reads(folder, closed):
    ran = shell(folder, f"$K check ok.yaml {closed}")
    shown = "" if ">&-" in closed.replace("2>&-", "") else "ok.yaml: 1 kernel, 1 case\nno mistake found\n"
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, shown, "")


def test_a_closed_stream_does_not_hide_what_is_wrong(folder):
    (folder / "bad.yaml").write_text(SUITE.replace("randn", "rndn"))
    assert shell(folder, "$K check bad.yaml >&- 2>&-").returncode == 2


@pytest.mark.parametrize(
    "words",
    [
        *("gpus", "gpus --json", "check ok.yaml", "check ok.yaml --format json", "list ok.yaml", "--help"),
        *("schema suite", "compare 4090", "explain K201", "--version", "run --help"),
    ],
)
def test_a_full_disk_is_one_sentence(folder, words):
    ran = shell(folder, f"$K {words} >/dev/full")
    assert (ran.returncode, ran.stdout, ran.stderr) == (3, "", FULL)


def test_nobody_can_be_told_that_standard_error_is_full(folder):
    assert shell(folder, "$K check none.yaml 2>/dev/full").returncode == 2
    assert shell(folder, "$K gpus --no-such-option 2>/dev/full").returncode == 3
    assert shell(folder, "$K gpus >/dev/full 2>/dev/full").returncode == 3


def test_a_name_that_the_encoding_lacks_is_spelled(folder):
    (folder / "ł.yaml").write_text(SUITE)
    ran = shell(folder, "$K check ł.yaml", PYTHONIOENCODING="latin-1")
    assert ran.stdout == "\\u0142.yaml: 1 kernel, 1 case\nno mistake found\n"


def test_json_stays_json_in_every_encoding(folder):
    (folder / "ł.yaml").write_text(SUITE.replace("randn", "rnłdn"))
    ran = shell(folder, "$K check ł.yaml --format json", PYTHONIOENCODING="latin-1")
    assert json.loads(ran.stdout)[0]["file"] == "ł.yaml"
    assert in_json('{"a": "ß😀"}', "utf-8") == '{"a": "ß😀"}'
    assert json.loads(in_json('{"a": "ß😀"}', "ascii")) == {"a": "ß😀"}


def test_a_folder_whose_name_is_no_unicode(folder):
    odd = Path(str(folder), "bad\udcff")
    odd.mkdir()
    (odd / "ok.yaml").write_text(SUITE)
    ran = shell(folder, "$K check bad*")
    assert ran.returncode == 0
    assert ran.stdout == "bad\ufffd/ok.yaml: 1 kernel, 1 case\nno mistake found\n"


@pytest.mark.parametrize(
    "words", ["check .", "check . --format github", "list ok*", "check bad*", "check bad* --format github"]
)
def test_names_cannot_move_the_cursor(folder, words):
    (folder / "ok\x1b[2J.yaml").write_text(SUITE)
    (folder / "bad\x1b[2J.yml").write_text(SUITE.replace("randn", '"\\e[31m"'))
    ran = shell(folder, f"$K {words}")
    assert ran.stdout
    assert all(char.isprintable() for char in (ran.stdout + ran.stderr).replace("\n", ""))
