"""What git says about the code that was measured."""

import os
import re
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

_TIMEOUT_S = 5.0
_PATHS = "surrogateescape"
"""How Python holds the names of files that are no UTF-8."""
_HASH = re.compile("[0-9a-f]{40,64}")

LOCAL_VARIABLES = frozenset(
    {
        "GIT_ALTERNATE_OBJECT_DIRECTORIES",
        "GIT_COMMON_DIR",
        "GIT_CONFIG",
        "GIT_DIR",
        "GIT_GRAFT_FILE",
        "GIT_IMPLICIT_WORK_TREE",
        "GIT_INDEX_FILE",
        "GIT_INTERNAL_SUPER_PREFIX",
        "GIT_NO_REPLACE_OBJECTS",
        "GIT_OBJECT_DIRECTORY",
        "GIT_PREFIX",
        "GIT_REPLACE_REF_BASE",
        "GIT_SHALLOW_FILE",
        "GIT_WORK_TREE",
    }
)
"""What `git rev-parse --local-env-vars` lists: a hook inherits them, and they send git to the hook's repository and
index whatever folder it is told. `GIT_CONFIG_COUNT` and `GIT_CONFIG_PARAMETERS` stay, as they do where git itself
enters another repository: they may be what makes git trust a folder."""


def without_repository(environment: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return an environment (this process's, where none is given) in which a folder alone says which repository."""
    given = os.environ if environment is None else environment
    return {name: value for name, value in given.items() if name not in LOCAL_VARIABLES}


def git_state(folder: Path) -> dict[str, Any] | None:
    """Return `commit`, `branch` (None when detached) and `dirty` of the repository around a folder.

    None when the folder is in no repository, the repository has no commit, or git is not there.
    """
    commit = _git(folder, "rev-parse", "--verify", "HEAD")
    if commit is None:
        return None
    changes = _git(folder, "status", "--porcelain", "--untracked-files=no")
    return {
        "commit": commit,
        "branch": _git(folder, "symbolic-ref", "--short", "-q", "HEAD"),
        "dirty": None if changes is None else bool(changes),
    }


def _git(folder: Path, *words: str, errors: str = "replace") -> str | None:
    try:
        done = subprocess.run(
            ["git", "--no-optional-locks", "-C", str(folder), *words],
            capture_output=True,
            text=True,
            errors=errors,
            timeout=_TIMEOUT_S,
            check=False,
            env=without_repository(),
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.removesuffix("\n") if done.returncode == 0 else None


def toplevel(folder: Path) -> Path | None:
    """Return the root of the working tree around a folder; None when it is in none, or git is not there."""
    root = _git(folder, "rev-parse", "--show-toplevel", errors=_PATHS)
    return Path(root).resolve() if root else None


def refusal(folder: Path) -> str:
    """Return what git says against working in a folder's repository, such as that another user owns it; else ""."""
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), "rev-parse", "--show-toplevel"],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_TIMEOUT_S,
            check=False,
            env=without_repository({**os.environ, "LC_ALL": "C"}),
        )
    except OSError as error:
        return f"git cannot be run: {error.strerror or error}"
    except subprocess.TimeoutExpired:
        return "git does not answer"
    said = done.stderr.strip()
    return "" if done.returncode == 0 or "not a git repository" in said else said.removeprefix("fatal: ")


def tracked(folder: Path, glob: str) -> tuple[str, ...]:
    """Return the files below a folder that git tracks and a pattern fits, relative to it."""
    found = _git(folder, "ls-files", "-z", "--", glob, errors=_PATHS)
    return tuple(name for name in (found or "").split("\0") if name)


def commit_named(folder: Path, name: str) -> str | None:
    """Return the commit that a name (a branch, a tag, `HEAD~1`, part of a hash) stands for; None when none."""
    if name.startswith("-"):
        return None
    found = _git(folder, "rev-parse", "--verify", "--quiet", f"{name}^{{commit}}")
    # `^name` stands for what is not below a commit, and is answered with `^` and a hash.
    return found if found and _HASH.fullmatch(found) else None
