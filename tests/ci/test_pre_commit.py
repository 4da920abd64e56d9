"""The hook, run by pre-commit itself from this repository: `pre-commit try-repo . kmrun-check`."""

import os
import re
import shutil
import site
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from kmrun.source.suite_files import find_suites

ROOT = Path(__file__).resolve().parents[2]
SUITE = """\
kmrun: 1
suite: adding
kernels:
  - name: add
    target: torch:add
    reference: torch:add
    args:
      x: {init: randn, shape: [64, 64], dtype: fp32}
      y: {init: randn, like: x}
    outputs: {o: {like: x}}
"""


@pytest.fixture(scope="module")
def environment(tmp_path_factory):
    """Let pre-commit build the hook's environment without the network: what it needs is here already."""
    return {
        **os.environ,
        "PRE_COMMIT_HOME": str(tmp_path_factory.mktemp("pre-commit")),
        "PIP_NO_DEPS": "1",
        "PIP_NO_COMPILE": "1",
        "PIP_NO_BUILD_ISOLATION": "0",  # pip takes the value of this one the other way round: no isolation
        "PIP_NO_INDEX": "1",
        "PYTHONPATH": os.pathsep.join(site.getsitepackages()),
        "GIT_CONFIG_COUNT": "2",
        "GIT_CONFIG_KEY_0": "user.name",
        "GIT_CONFIG_VALUE_0": "a",
        "GIT_CONFIG_KEY_1": "user.email",
        "GIT_CONFIG_VALUE_1": "a@example.org",
    }


def run(words, folder, environment):
    return subprocess.run(
        words, cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=200
    )


@pytest.mark.skipif(
    shutil.which("git") is None or not (ROOT / ".git").exists(), reason="needs the git checkout"
)
def test_the_hook_checks_the_suites_of_a_commit(tmp_path, environment):
    (tmp_path / "suites" / "kernels").mkdir(parents=True)
    (tmp_path / "suites" / "good.yaml").write_text(SUITE)
    (tmp_path / "suites" / "bad.yaml").write_text(SUITE.replace("randn", "random", 1))
    (tmp_path / "other.yaml").write_text("not: a suite\n")
    (tmp_path / "suites" / "kernels" / "table.yaml").write_text("not: a suite\n")
    run(["git", "init", "-q"], tmp_path, environment)
    run(["git", "add", "."], tmp_path, environment)
    words = [sys.executable, "-m", "pre_commit", "try-repo", str(ROOT), "kmrun-check", "--all-files"]
    done = run(words, tmp_path, environment)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "suites/good.yaml: 1 kernel, 1 case" in done.stdout
    assert "suites/bad.yaml:8:17: error[K305]" in done.stdout
    assert "1 error in 1 file" in done.stdout
    assert not re.search(r"other\.yaml|table\.yaml", done.stdout)


def test_shipped_suites_are_where_the_hook_looks():
    (hook,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))
    suites = [path.relative_to(ROOT).as_posix() for path, _ in find_suites([str(ROOT / "suites")])]
    assert suites
    assert all(re.search(hook["files"], name) for name in suites)
