"""The process that owns what a comparison leaves on disk: a folder, a git worktree in it, builds that run.

It outlives its parent, on purpose: a parent that was killed cannot clean up. Its standard input ends with the
parent, however that ended; then it stops what it runs, takes away what it made, and goes. One JSON line a
request, one a reply:

    (at start)                                              ->  {"folder": "/tmp/kmrun-against-..."} or {"error": "..."}
    {"worktree": repository, "commit": name}                ->  {"root": "..."} or {"error": "..."}
    {"build": command, "folder": where, "environment": {}}  ->  {"status": 0, "tail": "..."}
"""

import contextlib
import fcntl
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kmrun.store import submodules
from kmrun.store.repository import without_repository

PREFIX = "kmrun-against-"
OWNER = "owner.json"
"""Says whose worktree lies in the folder, for whoever finds it after its keeper was killed, too. Its keeper holds a
lock on this file for life: unlike a process number it means the same in every container that shares the folder."""

BUILD_S = 3600.0
"""A build that has not ended by then is stopped."""

_TAIL_BYTES = 4096
_NOTE_BYTES = 8192
"""Of a note; a path is shorter."""
_POLL_S = 0.05
_TRIES = 100
_GRACE_S = 5.0
"""For git, told to stop, to take away what it has begun."""


def main() -> None:
    """Serve until the parent is gone, then leave nothing behind."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    try:
        sweep(Path(tempfile.gettempdir()))
        folder = Path(tempfile.mkdtemp(prefix=PREFIX)).resolve()
    except OSError as error:
        tell({"error": f"{error.filename or 'no folder for temporary files'}: {error.strerror or error}"})
        return
    try:
        owner = (folder / OWNER).open("w")
        with contextlib.suppress(OSError):  # where files cannot be locked, nobody else can sweep either
            fcntl.flock(owner, fcntl.LOCK_EX)
        keeper = Keeper(folder)
        tell({"folder": str(folder)})
        for line in iter(sys.stdin.readline, ""):
            tell(keeper.answer(json.loads(line)))
    except OSError as error:
        tell({"error": f"{error.filename or folder}: {error.strerror or error}"})
    except ParentGone:
        pass
    finally:
        remove(folder)


def tell(reply: dict[str, Any]) -> None:
    """Send one reply; a parent that is gone is noticed at the next read."""
    with contextlib.suppress(BrokenPipeError):
        sys.stdout.write(json.dumps(reply) + "\n")
        sys.stdout.flush()


class ParentGone(Exception):
    """The parent ended while something was done for it."""


class Keeper:
    """Answers the parent's requests in one folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._facts: dict[str, Any] = {}
        self._own(keeper=os.getpid())

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        """Do what was asked, and return the reply.

        Raises:
            ParentGone: nobody waits for it any more.
        """
        if "worktree" in request:
            return self._worktree(request["worktree"], request["commit"])
        return self._build(request["build"], request["folder"], request["environment"])

    def _worktree(self, repository: str, commit: str) -> dict[str, Any]:
        # Known before it is made: whoever finds the folder must also find the repository.
        self._own(repository=repository)
        root = self._folder / "tree"
        add = ("worktree", "add", "--detach", "--force", str(root), commit)
        try:
            self._git(Path(repository), *add)
            submodules.fill(Path(repository), commit, root, self._folder / "index", self._git)
        except submodules.SubmoduleMissing as missing:
            return {"error": str(missing)}
        except subprocess.CalledProcessError as failed:
            return {"error": _last_line(failed.stderr)}
        return {"root": str(root)}

    def _git(self, folder: Path, *words: str, variables: Mapping[str, str] | None = None) -> str:
        """Run git for as long as it takes, or until the parent is gone; return what it printed.

        Raises:
            subprocess.CalledProcessError: git failed.
            ParentGone: git was stopped.
        """
        command = _git_words(str(folder), *words)
        output, errors = self._folder / "git.out", self._folder / "git.err"
        with output.open("wb") as out, errors.open("wb") as err:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                env=without_repository() | dict(variables or {}),
                start_new_session=True,
            )
            pause = _POLL_S / 16  # most commands are short
            while not _has_ended(process.pid):
                pause = min(2 * pause, _POLL_S)
                if select.select([sys.stdin], [], [], pause)[0]:
                    # Asked first: git takes away a worktree that it has begun.
                    os.killpg(process.pid, signal.SIGTERM)
                    with contextlib.suppress(subprocess.TimeoutExpired):
                        process.wait(_GRACE_S)
                    with contextlib.suppress(ProcessLookupError):
                        os.killpg(process.pid, signal.SIGKILL)
                    process.wait()
                    raise ParentGone
            process.wait()
        said, wrong = (path.read_bytes().decode(errors="surrogateescape") for path in (output, errors))
        if process.returncode != 0:
            raise subprocess.CalledProcessError(process.returncode, command, said, wrong)
        return said

    def _build(self, command: str, folder: str, environment: dict[str, str]) -> dict[str, Any]:
        output = self._folder / "build.log"
        with output.open("wb") as stream:
            process = subprocess.Popen(
                command,
                shell=True,
                cwd=folder,
                env=os.environ | environment,
                stdin=subprocess.DEVNULL,
                stdout=stream,
                stderr=stream,
                start_new_session=True,
            )
            self._own(build=process.pid)
            limit, late = time.monotonic() + BUILD_S, False
            while not (late or _has_ended(process.pid)):
                # Nothing is asked meanwhile, so what can be read is the end.
                if select.select([sys.stdin], [], [], _POLL_S)[0]:
                    break
                late = time.monotonic() > limit
            # Not reaped yet, so its number is still its own; what it left running in its group goes, too.
            os.killpg(process.pid, signal.SIGKILL)
            self._own(build=None)
            process.wait()
        tail = output.read_bytes()[-_TAIL_BYTES:].decode(errors="replace")
        if late:
            tail = f"{tail.rstrip()}\nstopped after {BUILD_S:g} s"
        return {"status": process.returncode, "tail": tail}

    def _own(self, **facts: Any) -> None:
        self._facts |= facts
        # In one write, over what was there: a keeper that is killed here leaves the old note or the new one.
        note = os.open(self._folder / OWNER, os.O_WRONLY | os.O_CREAT, 0o600)
        os.write(note, json.dumps(self._facts).ljust(_NOTE_BYTES).encode())
        os.close(note)


def remove(folder: Path) -> None:
    """Take a keeper's folder away, and git's note of the worktree in it."""
    facts = _facts(folder)
    repository = facts.get("repository")
    if repository is not None:
        _git(repository, "worktree", "remove", "--force", "--force", str(folder / "tree"))
    for _ in range(_TRIES):
        # A compiler of a side that is being killed may still write there. The note goes last: who is killed
        # here, too, leaves it to the next.
        for inside in folder.glob("*"):
            if inside.name != OWNER:
                _delete(inside)
        if {inside.name for inside in folder.glob("*")} <= {OWNER}:
            break
        time.sleep(_POLL_S)
    if repository is not None:
        # What git would not remove with its files there it forgets without. Never `prune`: the user's own
        # worktrees may lie on a disk that is not mounted now.
        _git(repository, "worktree", "remove", "--force", "--force", str(folder / "tree"))
    shutil.rmtree(folder, ignore_errors=True)


def _delete(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
        if path.is_dir():
            _unlock(path)
            shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def _unlock(folder: Path) -> None:
    """Make folders writable that a build has closed, as package caches do: what is in them could not be deleted."""
    with contextlib.suppress(OSError):
        folder.chmod(0o700)
        for root, inside, _ in os.walk(folder):
            for name in inside:
                if not Path(root, name).is_symlink():
                    Path(root, name).chmod(0o700)


def stop_build(folder: Path) -> None:
    """Stop the build that a keeper was killed over; for its parent, to whom the numbers of processes mean the same."""
    build = _facts(folder).get("build")
    if build is not None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(build, signal.SIGKILL)


def sweep(where: Path) -> None:
    """Take away the folders whose keeper was killed."""
    for folder in where.glob(f"{PREFIX}*"):
        sweep_one(folder)


def sweep_one(folder: Path) -> None:
    """Take a folder away whose keeper is gone; leave one that is kept, or that is not this user's."""
    try:
        if folder.is_symlink() or folder.stat().st_uid != os.getuid():
            return
        with (folder / OWNER).open() as owner:
            fcntl.flock(owner, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # A folder with an empty note is being made at this moment, or is not ours.
            if _facts(folder):
                remove(folder)
    except OSError:
        return  # kept by a living process, gone by now, or without a note


def _facts(folder: Path) -> dict[str, Any]:
    try:
        facts = json.loads((folder / OWNER).read_text())
    except (OSError, ValueError):
        return {}
    return facts if isinstance(facts, dict) and isinstance(facts.get("keeper"), int) else {}


def _has_ended(pid: int) -> bool:
    """Whether a child has ended; it stays a zombie, so that nobody else gets its number."""
    return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def _last_line(said: str) -> str:
    return (said.strip().splitlines() or ["git failed"])[-1]


def _git_words(folder: str, *words: str) -> list[str]:
    # No hook of the repository's runs, as the user did not ask for a checkout.
    return ["git", "-C", folder, "-c", "core.hooksPath=/dev/null", *words]


def _git(repository: str, *words: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        _git_words(repository, *words),
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
        stdin=subprocess.DEVNULL,
        env=without_repository(),
    )


if __name__ == "__main__":
    main()
