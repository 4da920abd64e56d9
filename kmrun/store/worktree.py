"""Another version of the code on disk: a git worktree for the length of a run, and builds in either tree."""

import contextlib
import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from kmrun.errors import EnvironmentLacks
from kmrun.store import keeper
from kmrun.store.repository import without_repository

_GRACE_S = 30.0


class BuildFailed(EnvironmentLacks):
    """A build command ended with an error."""


class Workshop:
    """A folder of the run's own, kept by a process that outlives it; see `store.keeper`.

    A context manager: leaving it leaves nothing on disk.
    """

    def __init__(self) -> None:
        self.folder = ""
        self._keeper: subprocess.Popen[str] | None = None

    def __enter__(self) -> Self:
        """Start the keeper."""
        self._keeper = subprocess.Popen(
            # -P: what lies in the user's folder (a kernel named `select.py`) is none of its imports.
            [sys.executable, "-P", "-m", "kmrun.store.keeper"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
            env=without_repository(),
        )
        try:
            self.folder = self._begun()
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Let the keeper clean up, and wait for it; where it was killed, clean up in its place."""
        if self._keeper is None or self._keeper.stdin is None:
            return
        with contextlib.suppress(BrokenPipeError):
            self._keeper.stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired):  # a large tree: it goes on without us, and ends
            self._keeper.wait(_GRACE_S)
        if self._keeper.stdout is not None:
            self._keeper.stdout.close()
        if self._keeper.returncode not in (0, None) and self.folder:
            keeper.stop_build(Path(self.folder))
            keeper.sweep_one(Path(self.folder))
        self._keeper = None

    def _begun(self) -> str:
        reply = self._reply()
        if "error" in reply:
            sentence = f"no folder for the other version: {reply['error']}"
            raise EnvironmentLacks(sentence, "TMPDIR names another place")
        return str(reply["folder"])

    def worktree(self, repository: Path, commit: str) -> Path:
        """Check a commit out beside the repository's own tree, which is not touched; return its root.

        Raises:
            EnvironmentLacks: git cannot.
        """
        reply = self._ask({"worktree": str(repository), "commit": commit})
        if "error" in reply:
            raise EnvironmentLacks(f"git made no worktree of {commit[:12]}: {reply['error']}")
        return Path(reply["root"])

    def build(self, command: str, root: Path, environment: Mapping[str, str]) -> None:
        """Run a command in a tree.

        Raises:
            BuildFailed: it failed; with the end of what it printed.
            EnvironmentLacks: it could not be run.
        """
        reply = self._ask({"build": command, "folder": str(root), "environment": dict(environment)})
        if "error" in reply:
            raise EnvironmentLacks(f"`{command}` cannot be run in {root}: {reply['error']}")
        if reply["status"] != 0:
            sentence = f"`{command}` failed in {root} with exit status {reply['status']}"
            raise BuildFailed(sentence, reply["tail"].strip())

    def _ask(self, request: dict[str, Any]) -> dict[str, Any]:
        if self._keeper is None or self._keeper.stdin is None:
            raise ValueError("the workshop was not entered")
        with contextlib.suppress(BrokenPipeError):  # the reply that does not come says it
            self._keeper.stdin.write(json.dumps(request) + "\n")
            self._keeper.stdin.flush()
        return self._reply()

    def _reply(self) -> dict[str, Any]:
        assert self._keeper is not None
        assert self._keeper.stdout is not None
        line = self._keeper.stdout.readline()
        if not line:
            raise EnvironmentLacks("the process that keeps the other version's folder was killed")
        reply: dict[str, Any] = json.loads(line)
        return reply
