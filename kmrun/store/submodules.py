"""The submodules of a commit, written into a worktree from the user's own clones. Nothing is fetched.

`git worktree` leaves their folders empty, and checking them out in it would clone each of them again. What is
written is plain files: there is nothing that git would have to be told of when they are taken away.
"""

import subprocess
from pathlib import Path

from kmrun.store.repository import without_repository

_LINK = "160000"
"""The mode that a tree has a submodule under."""


class SubmoduleMissing(Exception):
    """The clone in the user's tree lacks the commit of a submodule; the text says which."""


def fill(repository: Path, commit: str, tree: Path, scratch: Path) -> None:
    """Write a commit's submodules, and theirs, into a tree of that commit.

    Those that the user's tree has no clone of stay empty, as they are there.

    Args:
        repository: the user's working tree.
        commit: of it.
        tree: the working tree to complete.
        scratch: a file that may be written, for git's index.

    Raises:
        SubmoduleMissing: a clone lacks the commit.
    """
    for line in _git(repository, "ls-tree", "-r", "-z", "--full-tree", commit).split("\0"):
        facts, _, path = line.partition("\t")
        if not facts.startswith(_LINK):
            continue
        clone, wanted = repository / path, facts.split()[2]
        if not _is_clone(clone):
            continue
        index = {"GIT_INDEX_FILE": str(scratch)}
        try:
            _git(clone, "read-tree", wanted, **index)
        except subprocess.CalledProcessError as error:
            told = f"the submodule {path} has no commit {wanted[:12]}: `git -C {path} fetch` brings it"
            raise SubmoduleMissing(told) from error
        target = tree / path
        target.mkdir(parents=True, exist_ok=True)
        _git(clone, "checkout-index", "--all", "--force", f"--prefix={target}/", **index)
        scratch.unlink(missing_ok=True)
        fill(clone, wanted, target, scratch)


def _is_clone(folder: Path) -> bool:
    """Whether a folder is a working tree of its own; an empty one belongs to the repository around it."""
    if not folder.is_dir():
        return False
    root = _git(folder, "rev-parse", "--show-toplevel").rstrip("\n")
    return Path(root).resolve() == folder.resolve()


def _git(folder: Path, *words: str, **variables: str) -> str:
    done = subprocess.run(
        ["git", "-C", str(folder), *words],
        capture_output=True,
        text=True,
        errors="surrogateescape",
        check=True,
        stdin=subprocess.DEVNULL,
        env=without_repository() | variables,
    )
    return done.stdout
