"""The other version's folder: made beside the user's tree, and gone however the run ends."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from kmrun.errors import EnvironmentLacks
from kmrun.store import keeper
from kmrun.store.repository import commit_named, toplevel
from kmrun.store.worktree import Workshop
from support.repositories import commit, git, make_repository


@pytest.fixture
def repository(tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    (tmp_path / "tmp").mkdir()
    root = make_repository(tmp_path / "code", {"k.py": "version = 1\n"})
    commit(root, {"k.py": "version = 2\n"})
    (root / "k.py").write_text("version = 3\n")
    return root


def left(repository: Path) -> tuple[list[str], list[str]]:
    """What stands in the folder for temporary files, and the worktrees that git knows of beside the user's."""
    folders = [path.name for path in (repository.parent / "tmp").iterdir()]
    trees = [
        line for line in git(repository, "worktree", "list", "--porcelain").splitlines() if "worktree" in line
    ]
    return folders, trees[1:]


def test_a_worktree_of_a_dirty_repository_leaves_no_trace(repository):
    before = git(repository, "status", "--porcelain")
    with Workshop() as workshop:
        tree = workshop.worktree(repository, commit_named(repository, "HEAD~1"))
        assert (tree / "k.py").read_text() == "version = 1\n"
        assert (repository / "k.py").read_text() == "version = 3\n"
        assert git(repository, "status", "--porcelain") == before
        assert toplevel(tree) == tree
    assert left(repository) == ([], [])
    assert git(repository, "branch", "--list").split() == ["*", "main"]


def test_no_hook_of_the_repository_runs(repository):
    hook = repository / ".git" / "hooks" / "post-checkout"
    hook.write_text(f"#!/bin/sh\ntouch {repository}/ran\n")
    hook.chmod(0o755)
    with Workshop() as workshop:
        workshop.worktree(repository, "HEAD")
    assert not (repository / "ran").exists()


def test_builds_run_in_a_tree_with_its_variables_and_fail_with_what_they_said(repository):
    with Workshop() as workshop:
        tree = workshop.worktree(repository, "HEAD")
        workshop.build("echo $FLAG > built", tree, {"FLAG": "fast"})
        assert (tree / "built").read_text() == "fast\n"
        with pytest.raises(EnvironmentLacks) as failed:
            workshop.build("echo no compiler >&2; exit 7", tree, {})
    assert failed.value.sentence == f"`echo no compiler >&2; exit 7` failed in {tree} with exit status 7"
    assert failed.value.hint == "no compiler"
    assert left(repository) == ([], [])


def test_what_is_no_commit_is_told_by_git(repository):
    assert commit_named(repository, "no-such") is None
    assert commit_named(repository, "--all") is None
    with Workshop() as workshop, pytest.raises(EnvironmentLacks, match="git made no worktree"):
        workshop.worktree(repository, "0" * 40)
    assert left(repository) == ([], [])


HOLDER = """
import sys, time
from pathlib import Path
from kmrun.store.worktree import Workshop
with Workshop() as workshop:
    tree = workshop.worktree(Path(sys.argv[1]), "HEAD~1")
    print(tree, flush=True)
    workshop.build("echo $$ > " + sys.argv[2] + "; exec sleep 60", tree, {}) if len(sys.argv) > 2 else time.sleep(60)
"""


def wait_until(done, seconds=20.0):
    deadline = time.monotonic() + seconds
    while not done() and time.monotonic() < deadline:
        time.sleep(0.02)
    return done()


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM])
def test_a_parent_that_ends_in_any_way_leaves_nothing(repository, number):
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(repository)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as parent:
        assert Path(parent.stdout.readline().strip()).is_dir()
        parent.send_signal(number)
    assert wait_until(lambda: left(repository) == ([], []))


def test_a_build_is_stopped_when_its_parent_is_killed(repository, tmp_path):
    noted = tmp_path / "pid"
    with subprocess.Popen([sys.executable, "-c", HOLDER, str(repository), str(noted)]) as parent:
        assert wait_until(lambda: noted.exists() and noted.read_text().strip())
        parent.kill()
    pid = int(noted.read_text())
    assert wait_until(lambda: not Path(f"/proc/{pid}").exists())
    assert wait_until(lambda: left(repository) == ([], []))


def test_what_a_killed_keeper_left_is_taken_away_by_the_next(repository):
    with Workshop() as first:
        first.worktree(repository, "HEAD")
        owner = json.loads((Path(first.folder) / keeper.OWNER).read_text())
        os.kill(owner["keeper"], signal.SIGKILL)
        wait_until(lambda: not Path(f"/proc/{owner['keeper']}").exists(), 0.5)
        first._keeper.wait()
        with Workshop() as second:
            assert not Path(first.folder).exists()
            assert Path(second.folder).is_dir()
    assert left(repository) == ([], [])
