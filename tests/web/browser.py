"""Debian's Chromium for tests: found, or installed, and started so that it touches nothing but the page."""

import fcntl
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-dev-shm-usage",
    "--no-first-run",
)
"""`--no-sandbox`: a container's root has no namespaces for it. `/dev/shm` of one is often too small."""

_APT = ("apt-get", "-o", "DPkg::Lock::Timeout=120", "-qq")
_LOCK = Path(tempfile.gettempdir()) / "kmrun-tests-chromium.lock"
"""Two processes of a test run may both find it missing."""


class NoBrowser(Exception):
    """There is no browser, and none could be installed; the text says why."""


def find() -> str | None:
    """Return the path of a Chromium, `$KMRUN_CHROMIUM` first; None when there is none."""
    named = os.environ.get("KMRUN_CHROMIUM")
    return named or next((path for name in NAMES if (path := shutil.which(name))), None)


def find_or_install() -> str:
    """Return the path of a Chromium, after installing Debian's where that is missing and allowed.

    Raises:
        NoBrowser: it is missing, and this user cannot install it.
    """
    with _LOCK.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        return find() or _install()


def _install() -> str:
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        raise NoBrowser("no chromium here: install Debian's `chromium`, or name one with KMRUN_CHROMIUM")
    environ = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for words in (["update"], ["install", "-y", "--no-install-recommends", "chromium", "fonts-dejavu-core"]):
        done = subprocess.run([*_APT, *words], capture_output=True, text=True, check=False, env=environ)
        if done.returncode != 0:
            raise NoBrowser(f"apt-get {words[0]} failed: {done.stderr.strip()[-500:]}")
    found = find()
    if found is None:
        raise NoBrowser("apt-get installed chromium, but it is not on PATH")
    return found


def missing_is_failure() -> bool:
    """Return whether this run promises a browser: CI does, a laptop need not."""
    return os.environ.get("CI", "").lower() in ("1", "true", "yes")


SHOTS = Path(__file__).parent / "screenshots"
"""Ignored by git: pictures to look at, never to compare."""
