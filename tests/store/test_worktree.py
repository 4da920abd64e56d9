"""The other version's folder: made beside the user's tree, and gone however the run ends."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from kmrun.errors import EnvironmentLacks
from kmrun.store import keeper, worktree
from kmrun.store.repository import LOCAL_VARIABLES, commit_named, toplevel
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


@pytest.fixture
def with_submodules(repository):
    """A repository with a submodule that has one itself; both moved on since its first commit with them."""
    allowed = ("-c", "protocol.file.allow=always")
    inner = make_repository(repository.parent / "inner", {"c.py": "c = 1\n"})
    outer = make_repository(
        repository.parent / "outer", {"b.py": "b = 1\n", ".gitattributes": "b.py export-ignore"}
    )
    git(outer, *allowed, "submodule", "--quiet", "add", str(inner), "deep/inner")
    commit(outer, {})
    git(repository, *allowed, "submodule", "--quiet", "add", str(outer), "lib/out er")
    git(repository, *allowed, "submodule", "--quiet", "update", "--init", "--recursive")
    commit(repository, {"k.py": "version = 4\n"})
    clone = repository / "lib" / "out er"
    commit(clone, {"b.py": "b = 2\n"})
    commit(repository, {"k.py": "version = 5\n"})
    return repository


def test_submodules_are_as_the_commit_has_them(with_submodules):
    root = with_submodules
    before = git(root, "status", "--porcelain"), git(root / "lib" / "out er", "status", "--porcelain")
    with Workshop() as workshop:
        tree = workshop.worktree(root, "HEAD~1")
        assert (tree / "lib/out er/b.py").read_text() == "b = 1\n"
        assert (tree / "lib/out er/deep/inner/c.py").read_text() == "c = 1\n"
        assert (root / "lib/out er/b.py").read_text() == "b = 2\n"
    assert left(root) == ([], [])
    assert (
        git(root, "status", "--porcelain"),
        git(root / "lib" / "out er", "status", "--porcelain"),
    ) == before
    assert git(root / "lib" / "out er", "worktree", "list").count("\n") == 1


def test_a_submodule_that_moved_since_lies_where_it_lay(with_submodules):
    root = with_submodules
    git(root, "mv", "lib/out er", "elsewhere")
    commit(root, {"k.py": "version = 6\n"})
    for remove in (False, True):
        if remove:
            git(root, "rm", "-q", "--force", "elsewhere")
            commit(root, {"k.py": "version = 7\n"})
        with Workshop() as workshop:
            tree = workshop.worktree(root, "HEAD~3" if remove else "HEAD~2")
            assert (tree / "lib/out er/b.py").read_text() == "b = 1\n"
            assert (tree / "lib/out er/deep/inner/c.py").read_text() == "c = 1\n"
        assert left(root) == ([], [])
        assert git(root, "status", "--porcelain") == ""


def test_a_submodule_without_the_commit_is_told_and_one_without_a_clone_stays_empty(with_submodules):
    root, clone = with_submodules, with_submodules / "lib" / "out er"
    blob = git(clone, "rev-parse", "HEAD~1").strip()
    (root / ".git/modules/lib/out er/objects" / blob[:2] / blob[2:]).unlink(missing_ok=True)
    for pack in (root / ".git/modules/lib/out er/objects/pack").iterdir():
        pack.unlink()
    with Workshop() as workshop, pytest.raises(EnvironmentLacks) as told:
        workshop.worktree(root, "HEAD~1")
    assert (
        f"the submodule lib/out er has no commit {blob[:12]}: `git -C lib/out er fetch`"
        in told.value.sentence
    )
    git(root, "submodule", "--quiet", "deinit", "--force", "--all")
    with Workshop() as workshop:
        assert list((workshop.worktree(root, "HEAD~1") / "lib" / "out er").iterdir()) == []
    assert left(root) == ([], [])


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


def test_a_hook_s_index_and_repository_are_left_alone(repository, monkeypatch):
    """git gives a pre-commit hook GIT_DIR and GIT_INDEX_FILE, which would make a checkout overwrite the index."""
    (repository / "staged.py").write_text("")
    git(repository, "add", "staged.py")
    before = git(repository, "status", "--porcelain")
    monkeypatch.setenv("GIT_DIR", str(repository / ".git"))
    monkeypatch.setenv("GIT_INDEX_FILE", str(repository / ".git" / "index"))
    monkeypatch.setenv("GIT_WORK_TREE", str(repository))
    assert toplevel(repository / "..") is None
    with Workshop() as workshop:
        tree = workshop.worktree(repository, "HEAD~1")
        workshop.build("git rev-parse --show-toplevel > top; env > seen", tree, {})
        assert (tree / "top").read_text().strip() == str(tree)
        assert "GIT_DIR" not in (tree / "seen").read_text()
    for name in ("GIT_DIR", "GIT_INDEX_FILE", "GIT_WORK_TREE"):
        monkeypatch.delenv(name)
    assert git(repository, "status", "--porcelain") == before
    assert left(repository) == ([], [])


def test_every_variable_that_git_calls_local_is_kept_from_it(repository):
    kept = {"GIT_CONFIG_COUNT", "GIT_CONFIG_PARAMETERS"}
    assert set(git(repository, "rev-parse", "--local-env-vars").split()) - kept <= LOCAL_VARIABLES


def test_the_user_s_own_worktree_that_is_away_stays_registered(repository, tmp_path):
    git(repository, "worktree", "add", "--detach", str(tmp_path / "mine"))
    (tmp_path / "mine").rename(tmp_path / "unmounted")
    with Workshop() as workshop:
        workshop.worktree(repository, "HEAD")
    (tmp_path / "unmounted").rename(tmp_path / "mine")
    assert left(repository) == ([], [f"worktree {tmp_path}/mine"])
    assert git(tmp_path / "mine", "status", "--porcelain") == ""


def test_a_worktree_whose_files_are_gone_is_forgotten(repository):
    with Workshop() as workshop:
        tree = workshop.worktree(repository, "HEAD")
        (tree / ".git").unlink()
    assert left(repository) == ([], [])


def test_a_live_folder_is_not_swept_whatever_process_numbers_say(repository):
    """In a container of its own a keeper's number means another process, or none."""
    with Workshop() as first:
        tree = first.worktree(repository, "HEAD")
        owner = Path(first.folder) / keeper.OWNER
        owner.write_text(json.dumps({**json.loads(owner.read_text()), "keeper": 2**22}))
        with Workshop():
            assert (tree / "k.py").exists()
    assert left(repository) == ([], [])


def test_the_parent_cleans_up_after_a_killed_keeper(repository):
    with Workshop() as workshop:
        workshop.worktree(repository, "HEAD")
        workshop._keeper.kill()
        workshop._keeper.wait()
        with pytest.raises(EnvironmentLacks, match="was killed"):
            workshop.build("true", repository, {})
    assert left(repository) == ([], [])


def test_a_build_whose_keeper_is_killed_is_stopped_by_the_parent(repository, tmp_path):
    noted = tmp_path / "pid"
    with Workshop() as workshop:
        owner = Path(workshop.folder) / keeper.OWNER

        def begun():
            return noted.exists() and noted.read_text() and json.loads(owner.read_text()).get("build")

        kill = threading.Thread(target=lambda: wait_until(begun) and workshop._keeper.kill())
        kill.start()
        with pytest.raises(EnvironmentLacks, match="was killed"):
            workshop.build(f"echo $$ > {noted}; sleep 60", repository, {})
        kill.join()
    assert wait_until(lambda: not alive(int(noted.read_text())))
    assert left(repository) == ([], [])


def test_what_a_build_left_running_is_stopped_with_it(repository, tmp_path):
    noted = tmp_path / "pid"
    with Workshop() as workshop:
        workshop.build(f"sleep 60 & echo $! > {noted}", repository, {})
        pid = int(noted.read_text())
        assert wait_until(lambda: not alive(pid))


def test_a_build_that_never_ends_is_stopped(repository, monkeypatch, tmp_path):
    monkeypatch.setattr(keeper, "BUILD_S", 0.2)
    reading, writing = os.pipe()
    with os.fdopen(reading) as stdin, os.fdopen(writing, "w"):
        monkeypatch.setattr(sys, "stdin", stdin)
        done = keeper.Keeper(tmp_path)._build("echo begun; sleep 60", str(repository), {})
    assert (done["status"], done["tail"]) == (-signal.SIGKILL, "begun\nstopped after 0.2 s")


def alive(pid: int) -> bool:
    """Whether a process still runs; a zombie does not."""
    status = Path(f"/proc/{pid}/stat")
    return status.exists() and status.read_text().rpartition(")")[2].split()[0] != "Z"


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


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_a_checkout_is_stopped_when_its_parent_is_gone(repository, tmp_path, number):
    """A large checkout takes minutes: whoever interrupts it is not made to wait for it."""
    commit(repository, {".gitattributes": "slow.txt filter=slow", "slow.txt": ""})
    commit(repository, {"k.py": "version = 9\n"})
    git(repository, "config", "filter.slow.smudge", f"echo $$ > {tmp_path}/pid; sleep 120; cat")
    noted = tmp_path / "pid"
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(repository)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as parent:
        assert wait_until(lambda: noted.exists() and noted.read_text().strip())
        parent.send_signal(number)
        parent.wait(60)
    assert wait_until(lambda: left(repository) == ([], []) and not alive(int(noted.read_text())), 60)
    assert not list((repository / ".git").glob("worktrees/*"))


def test_a_clean_up_that_takes_long_is_no_error_and_comes_to_its_end(repository, monkeypatch):
    monkeypatch.setattr(worktree, "_GRACE_S", 0.1)
    with Workshop() as workshop:
        workshop.worktree(repository, "HEAD")
        kept = workshop._keeper
        kept.send_signal(signal.SIGSTOP)
    assert left(repository) != ([], [])
    kept.send_signal(signal.SIGCONT)
    assert kept.wait(60) == 0
    assert left(repository) == ([], [])


def test_folders_that_a_build_closed_are_opened_to_be_deleted(tmp_path):
    """As whoever is not root would find them: root may delete from any folder."""
    inside = tmp_path / "cache" / "module" / "v1"
    inside.mkdir(parents=True)
    (tmp_path / "outside").mkdir(mode=0o500)
    (inside / "link").symlink_to(tmp_path / "outside")
    for folder in (inside, inside.parent, inside.parent.parent):
        folder.chmod(0o500)
    keeper._unlock(tmp_path / "cache")
    assert {folder.stat().st_mode & 0o777 for folder in (inside, inside.parent, inside.parent.parent)} == {
        0o700
    }
    assert (tmp_path / "outside").stat().st_mode & 0o777 == 0o500


def test_no_room_for_temporary_files_is_told(repository, monkeypatch):
    script = "import tempfile\ndef refuse(**_): raise OSError(28, 'No space left on device', '/full')\n"
    script += "tempfile.mkdtemp = refuse\nfrom kmrun.store import keeper\nkeeper.main()"
    ordinary = subprocess.Popen
    monkeypatch.setattr(
        subprocess, "Popen", lambda words, **given: ordinary([sys.executable, "-c", script], **given)
    )
    with pytest.raises(
        EnvironmentLacks, match="no folder for the other version: /full: No space left"
    ) as told:
        Workshop().__enter__()
    assert "TMPDIR" in told.value.hint


def test_what_lies_in_the_user_s_folder_is_not_imported(repository, monkeypatch):
    """Kernels are called `select` and `copy`, as modules are that the keeper needs."""
    for name in ("select.py", "copy.py", "signal.py"):
        (repository / name).write_text("raise SystemExit(7)\n")
    monkeypatch.chdir(repository)
    with Workshop() as workshop:
        assert workshop.worktree(repository, "HEAD").is_dir()


def test_a_folder_to_build_in_that_is_gone_is_told(repository):
    with Workshop() as workshop, pytest.raises(EnvironmentLacks, match="cannot be run in /nowhere"):
        workshop.build("true", Path("/nowhere"), {})
