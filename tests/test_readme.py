"""Every block of README.md is run: the two commands by `.ci/run`, the examples here."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"(?:^<!-- (?P<mark>[^>]+) -->\n)?^```(?P<language>\w*)\n(?P<body>.*?)^```$", re.M | re.S)
BLOCKS = [(match["mark"], match["language"], match["body"]) for match in BLOCK.finditer(README)]
LINES = [
    line
    for mark, language, body in BLOCKS
    if (mark, language) == ("example", "sh")
    for line in body.splitlines()
]
SUITES = [body for mark, language, body in BLOCKS if (mark, language) == ("example", "yaml")]


@pytest.fixture(scope="module")
def environment(tmp_path_factory):
    """The environment of a reader who has installed kmrun: the command is found."""
    folder = tmp_path_factory.mktemp("bin")
    script = folder / "kmrun"
    script.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m kmrun "$@"\n')
    script.chmod(0o755)
    return {**os.environ, "PATH": f"{folder}{os.pathsep}{os.environ['PATH']}"}


def test_every_block_is_marked():
    """A block that nothing runs is a promise that nobody keeps. Blocks without a language are output."""
    unmarked = [body for mark, language, body in BLOCKS if language and mark is None]
    assert unmarked == []
    assert {mark for mark, _, _ in BLOCKS if mark} == {"command: run", "command: test", "example"}
    assert LINES
    assert SUITES


@pytest.mark.parametrize("line", LINES)
def test_an_example(line, environment):
    done = subprocess.run(
        ["bash", "-c", line], capture_output=True, text=True, check=False, cwd=ROOT, env=environment
    )
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    assert done.stdout


@pytest.mark.parametrize("body", SUITES)
def test_an_example_suite(body):
    from kmrun.source.suite_text import plan_text

    planned = plan_text(body, "README.md", ROOT)
    assert planned.warnings == ()
    assert planned.expansion.cases


def test_the_ci_script_finds_both_commands():
    script = (ROOT / ".ci/run").read_text()
    assert "for name in run test; do" in script
    commands = {mark: body for mark, _, body in BLOCKS if mark and mark.startswith("command: ")}
    assert commands["command: run"].strip().endswith("kmrun suites/attention.yaml")
    assert commands["command: test"].strip().endswith("-m pytest")


def test_the_changelog_speaks_of_this_version():
    from kmrun import __version__

    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert "## [Unreleased]" in changelog or f"## [{__version__}]" in changelog
