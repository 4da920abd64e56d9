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

    One that was moved or taken out since is read from what git still keeps of it. Those that the user has no clone
    of stay empty, as they are there.

    Args:
        repository: the user's working tree.
        commit: of it.
        tree: the working tree to complete.
        scratch: a file that may be written, for git's index.
        git: what runs git.

    Raises:
        SubmoduleMissing: a clone lacks the commit.
    """
    _fill(_git_dir(repository, git), repository, commit, tree, scratch, git)


def _fill(home: Path, around: Path | None, commit: str, tree: Path, scratch: Path, git: Git) -> None:
    """Do it for the repository in a git folder, whose working tree is `around`, where it has one."""
    where = {"GIT_DIR": str(home), "GIT_WORK_TREE": str(tree)}
    for line in git(tree, "ls-tree", "-r", "-z", "--full-tree", commit, variables=where).split("\0"):
        facts, _, path = line.partition("\t")
        if not facts.startswith(_LINK):
            continue
        wanted, target = facts.split()[2], tree / path
        clone = around / path if around is not None and _is_clone(around / path, git) else None
        inner = _git_dir(clone, git) if clone is not None else _kept(home, commit, path, where, git)
        if inner is None:
            continue
        target.mkdir(parents=True, exist_ok=True)
        inside = {"GIT_DIR": str(inner), "GIT_WORK_TREE": str(target), "GIT_INDEX_FILE": str(scratch)}
        try:
            git(target, "read-tree", wanted, variables=inside)
        except subprocess.CalledProcessError as error:
            if clone is None:
                continue  # git keeps an older state of it
            told = f"the submodule {path} has no commit {wanted[:12]}: `git -C {path} fetch` brings it"
            raise SubmoduleMissing(told) from error
        git(target, "checkout-index", "--all", "--force", variables=inside)
        scratch.unlink(missing_ok=True)
        _fill(inner, clone, wanted, target, scratch, git)


def _kept(home: Path, commit: str, path: str, where: Mapping[str, str], git: Git) -> Path | None:
    """Return the git folder of a submodule that no longer lies where it lay: git keeps it by its name."""
    words = ("config", "--null", "--blob", f"{commit}:.gitmodules", "--get-regexp", r"^submodule\..*\.path$")
    try:
        named = git(home, *words, variables=where)
    except subprocess.CalledProcessError:
        return None
    for entry in named.split("\0"):
        key, _, value = entry.partition("\n")
        kept = home / "modules" / key.removeprefix("submodule.").removesuffix(".path")
        if value == path and (kept / "HEAD").is_file():
            return kept
    return None


def _git_dir(tree: Path, git: Git) -> Path:
    return Path(git(tree, "rev-parse", "--absolute-git-dir").removesuffix("\n"))


def _is_clone(folder: Path, git: Git) -> bool:
    """Whether a folder is a working tree of its own; an empty one belongs to the repository around it."""
    if not folder.is_dir():
        return False
    root = git(folder, "rev-parse", "--show-toplevel").removesuffix("\n")
    return Path(root).resolve() == folder.resolve()
