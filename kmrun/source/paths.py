"""Paths as people type them."""

from pathlib import Path


def exists(path: Path) -> bool:
    """Whether there is such a path that could be read: none is longer than any file's name, or behind a closed door."""
    try:
        return path.exists()
    except OSError:
        return False
