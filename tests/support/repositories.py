"""Small git repositories for tests."""

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

_IDENTITY = {
    "GIT_AUTHOR_NAME": "A",
    "GIT_AUTHOR_EMAIL": "a@example.org",
    "GIT_COMMITTER_NAME": "A",
    "GIT_COMMITTER_EMAIL": "a@example.org",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
}


def git(root: Path, *words: str) -> str:
    """Run git in a repository, and return what it printed."""
    done = subprocess.run(
        ["git", "-C", str(root), *words],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, **_IDENTITY},
    )
    return done.stdout


def make_repository(root: Path, files: Mapping[str, str]) -> Path:
    """Make a repository with one commit."""
    root.mkdir(parents=True)
    git(root, "init", "-q", "-b", "main")
    return commit(root, files)


def commit(root: Path, files: Mapping[str, str]) -> Path:
    """Write files and commit them."""
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    git(root, "add", "-A")
    git(root, "commit", "-q", "-m", "more")
    return root
