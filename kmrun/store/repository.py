"""What git says about the code that was measured."""

import subprocess
from pathlib import Path
from typing import Any

_TIMEOUT_S = 5.0


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


def _git(folder: Path, *words: str) -> str | None:
    try:
        done = subprocess.run(
            ["git", "--no-optional-locks", "-C", str(folder), *words],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def toplevel(folder: Path) -> Path | None:
    """Return the root of the working tree around a folder; None when it is in none, or git is not there."""
    root = _git(folder, "rev-parse", "--show-toplevel")
    return Path(root).resolve() if root else None


def commit_named(folder: Path, name: str) -> str | None:
    """Return the commit that a name (a branch, a tag, `HEAD~1`, part of a hash) stands for; None when none."""
    if name.startswith("-"):
        return None
    return _git(folder, "rev-parse", "--verify", "--quiet", f"{name}^{{commit}}")
