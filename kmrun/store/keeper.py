"""The process that owns what a comparison leaves on disk: a folder, a git worktree in it, builds that run.

It outlives its parent, on purpose: a parent that was killed cannot clean up. Its standard input ends with the
parent, however that ended; then it stops what it runs, takes away what it made, and goes. One JSON line a
request, one a reply:

    (at start)                                              ->  {"folder": "/tmp/kmrun-against-..."}
    {"worktree": repository, "commit": name}                ->  {"root": "..."} or {"error": "..."}
    {"build": command, "folder": where, "environment": {}}  ->  {"status": 0, "tail": "..."}
"""

import contextlib
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

PREFIX = "kmrun-against-"
OWNER = "owner.json"
"""Says whose folder it is, for whoever finds it after its keeper was killed, too."""

_TAIL_BYTES = 4096
_POLL_S = 0.05
_TRIES = 100


def main() -> None:
    """Serve until the parent is gone, then leave nothing behind."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    sweep(Path(tempfile.gettempdir()))
    folder = Path(tempfile.mkdtemp(prefix=PREFIX)).resolve()
    keeper = Keeper(folder)
    try:
        keeper.tell({"folder": str(folder)})
        for line in iter(sys.stdin.readline, ""):
            keeper.answer(json.loads(line))
    finally:
        remove(folder)


class Keeper:
    """Answers the parent's requests in one folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._own({"keeper": os.getpid()})

    def answer(self, request: dict[str, Any]) -> None:
        """Do what was asked, and reply."""
        if "worktree" in request:
            self.tell(self._worktree(request["worktree"], request["commit"]))
        else:
            self.tell(self._build(request["build"], request["folder"], request["environment"]))

    def tell(self, reply: dict[str, Any]) -> None:
        """Send one reply; a parent that is gone is noticed at the next read."""
        with contextlib.suppress(BrokenPipeError):
            sys.stdout.write(json.dumps(reply) + "\n")
            sys.stdout.flush()

    def _worktree(self, repository: str, commit: str) -> dict[str, Any]:
        # Known before it is made: whoever finds the folder must also find the repository.
        self._own({"keeper": os.getpid(), "repository": repository})
        root = self._folder / "tree"
        done = _git(repository, "worktree", "add", "--detach", "--force", str(root), commit)
        if done.returncode != 0:
            return {"error": (done.stderr.strip().splitlines() or ["git failed"])[-1]}
        return {"root": str(root)}

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
            while process.poll() is None:
                # Nothing is asked meanwhile, so what can be read is the end.
                if select.select([sys.stdin], [], [], _POLL_S)[0]:
                    os.killpg(process.pid, signal.SIGKILL)
                    process.wait()
        return {
            "status": process.returncode,
            "tail": output.read_bytes()[-_TAIL_BYTES:].decode(errors="replace"),
        }

    def _own(self, facts: dict[str, Any]) -> None:
        (self._folder / OWNER).write_text(json.dumps(facts))


def remove(folder: Path) -> None:
    """Take a keeper's folder away, and git's note of the worktree in it."""
    facts = _facts(folder)
    repository = facts.get("repository")
    if repository is not None:
        _git(repository, "worktree", "remove", "--force", "--force", str(folder / "tree"))
    for _ in range(_TRIES):
        # A compiler of a side that is being killed may still write there.
        shutil.rmtree(folder, ignore_errors=True)
        if not folder.exists():
            break
        time.sleep(_POLL_S)
    if repository is not None:
        _git(repository, "worktree", "prune")


def sweep(where: Path) -> None:
    """Take away the folders whose keeper was killed."""
    for folder in where.glob(f"{PREFIX}*"):
        facts = _facts(folder)
        # A folder without the note is being made at this moment, or is not ours.
        if facts and not _is_keeper(facts["keeper"]):
            remove(folder)


def _facts(folder: Path) -> dict[str, Any]:
    try:
        facts = json.loads((folder / OWNER).read_text())
    except (OSError, ValueError):
        return {}
    return facts if isinstance(facts, dict) and isinstance(facts.get("keeper"), int) else {}


def _is_keeper(pid: int) -> bool:
    """Whether a process still keeps a folder; where /proc does not say, whether it lives."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    command = Path(f"/proc/{pid}/cmdline")
    return not command.exists() or b"kmrun.store.keeper" in command.read_bytes()


def _git(repository: str, *words: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        # No hook of the repository's runs, as the user did not ask for a checkout.
        ["git", "-C", repository, "-c", "core.hooksPath=/dev/null", *words],
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
        stdin=subprocess.DEVNULL,
    )


if __name__ == "__main__":
    main()
