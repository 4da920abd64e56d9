import os
import subprocess
import sys

import pytest

from kmrun.store.repository import commit_named, git_state, toplevel, tracked


def git(folder, *words):
    identity = ("-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false")
    subprocess.run(["git", "-C", str(folder), *identity, *words], check=True, capture_output=True)


@pytest.fixture
def repository(tmp_path):
    git(tmp_path, "init", "-q", "-b", "trunk")
    (tmp_path / "suite.yaml").write_text("kmrun: 1\n")
    git(tmp_path, "add", "suite.yaml")
    return tmp_path


def test_commit_branch_and_dirt(repository):
    assert git_state(repository) is None
    git(repository, "commit", "-q", "-m", "first")
    state = git_state(repository)
    assert len(state["commit"]) == 40
    assert (state["branch"], state["dirty"]) == ("trunk", False)
    (repository / "suite.yaml").write_text("kmrun: 1\nsuite: x\n")
    assert git_state(repository)["dirty"] is True
    git(repository, "checkout", "-q", "--detach")
    assert git_state(repository)["branch"] is None


def test_no_repository_and_no_git(tmp_path, monkeypatch):
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    assert git_state(tmp_path) is None
    monkeypatch.setenv("PATH", "")
    assert git_state(tmp_path) is None


@pytest.mark.skipif(sys.platform == "darwin", reason="every name there is UTF-8")
@pytest.mark.parametrize("name", [b"no \xff utf8", b"ends in a space ", b"in a line's end\n"])
def test_names_that_are_not_what_one_expects(tmp_path, name):
    root = tmp_path / os.fsdecode(name)
    (root / root.name).mkdir(parents=True)
    (root / root.name / f" {root.name}.py").write_text("")
    git(root, "init", "-q")
    git(root, "add", "-A")
    git(root, "commit", "-q", "-m", "first")
    assert toplevel(root / root.name) == root.resolve()
    assert tracked(root, "*.py") == (f"{root.name}/ {root.name}.py",)
    assert commit_named(root, "HEAD") == git_state(root)["commit"]


@pytest.mark.parametrize("name", ["^HEAD", "HEAD..HEAD", "--all", "HEAD:suite.yaml", "", "HEAD\n"])
def test_what_stands_for_no_commit(repository, name):
    git(repository, "commit", "-q", "-m", "first")
    assert commit_named(repository, name) is None
