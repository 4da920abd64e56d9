"""The submodules of a commit, written into a worktree from the user's own clones. Nothing is fetched.

`git worktree` leaves their folders empty, and checking them out in it would clone each of them again. What is
written is plain files: there is nothing that git would have to be told of when they are taken away.
"""

import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

_LINK = "160000"
"""The mode that a tree has a submodule under."""


class SubmoduleMissing(Exception):
    """The clone in the user's tree lacks the commit of a submodule; the text says which."""


class Git(Protocol):
    """Runs git in a folder and returns what it printed, or raises `subprocess.CalledProcessError`."""

    def __call__(self, folder: Path, *words: str, variables: Mapping[str, str] | None = None) -> str:
        """Run it; `variables` are of its environment."""
        raise NotImplementedError


def fill(repository: Path, commit: str, tree: Path, scratch: Path, git: Git) -> None:
    """Write a commit's submodules, and theirs, into a tree of that commit.

    Those that the user's tree has no clone of stay empty, as they are there.

    Args:
        repository: the user's working tree.
        commit: of it.
        tree: the working tree to complete.
        scratch: a file that may be written, for git's index.
        git: what runs git.

    Raises:
        SubmoduleMissing: a clone lacks the commit.
    """
    for line in git(repository, "ls-tree", "-r", "-z", "--full-tree", commit).split("\0"):
        facts, _, path = line.partition("\t")
        if not facts.startswith(_LINK):
            continue
        clone, wanted = repository / path, facts.split()[2]
        if not _is_clone(clone, git):
            continue
        index = {"GIT_INDEX_FILE": str(scratch)}
        try:
            git(clone, "read-tree", wanted, variables=index)
        except subprocess.CalledProcessError as error:
            told = f"the submodule {path} has no commit {wanted[:12]}: `git -C {path} fetch` brings it"
            raise SubmoduleMissing(told) from error
        target = tree / path
        target.mkdir(parents=True, exist_ok=True)
        git(clone, "checkout-index", "--all", "--force", f"--prefix={target}/", variables=index)
        scratch.unlink(missing_ok=True)
        fill(clone, wanted, target, scratch, git)


def _is_clone(folder: Path, git: Git) -> bool:
    """Whether a folder is a working tree of its own; an empty one belongs to the repository around it."""
    if not folder.is_dir():
        return False
    root = git(folder, "rev-parse", "--show-toplevel").rstrip("\n")
    return Path(root).resolve() == folder.resolve()
