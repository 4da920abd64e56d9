import subprocess

import pytest

from kmrun.store.repository import git_state


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
