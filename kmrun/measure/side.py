"""The supervisor's handle on a side: start it, ask it, stop and wake it, bury it. No torch."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from kmrun.core.measurement import Finding
from kmrun.core.plain import from_plain
from kmrun.measure.protocol import Channel, ChannelClosed, ChannelTimeout

SIDE_ENVIRONMENT = {
    "TOKENIZERS_PARALLELISM": "false",
    # An OpenMP thread that waits spins for a while by default, and on a busy machine takes the core from the very
    # thread it waits for: beside two busy loops everything took some 15 times as long. A spin that is shorter than
    # it takes to wake a thread makes short calls wait for that instead. This lies between; the user's own
    # setting wins.
    "GOMP_SPINCOUNT": "10000",
}

COMPARED_ENVIRONMENT = {
    # What glibc cuts off a block to align it, it keeps in a cache of the thread, where a small object takes it: then
    # the block, once freed, is too small for the next output of its size, which lies elsewhere, on pages that no call
    # has used before. Whether that happens went with the process: equal versions differed by 5 % for good, by 1 %
    # without that cache. It costs a call of torch some 50 ns, so that only runs that compare processes go without.
    "GLIBC_TUNABLES": "glibc.malloc.tcache_count=0",
}
"""Defaults for sides whose times are held against those of other processes."""

_TAIL_BYTES = 4096
_GRACE_S = 2.0


class SideBug(RuntimeError):
    """kmrun's own fault inside a side; carries that side's traceback."""


class Stopped(Exception):
    """The side reported that user code, the suite or the machine stopped it."""

    def __init__(self, finding: Finding) -> None:
        super().__init__(finding.sentence)
        self.finding = finding


class Died(Exception):
    """The side is gone. `status` is a waitpid exit code: negative for a signal."""

    def __init__(self, status: int, tail: str) -> None:
        super().__init__(f"exit status {status}" if status >= 0 else f"killed (signal {-status})")
        self.status = status
        self.tail = tail


class TimedOut(Exception):
    """The side did not answer in time, and was killed."""

    def __init__(self, seconds: float, tail: str) -> None:
        super().__init__(f"no answer within {seconds:g} s")
        self.seconds = seconds
        self.tail = tail


class Arenas:
    """The two anonymous memory files of a run: one that every side maps, one that only judges map."""

    def __init__(self) -> None:
        self.arena, self.vault = _memory_file("kmrun-arena"), _memory_file("kmrun-vault")

    def empty(self) -> None:
        """Free the memory of what the last case shared; no side may be at work."""
        os.ftruncate(self.arena, 0)

    def close(self) -> None:
        """Let both go; their memory is freed when the last side has ended."""
        os.close(self.arena)
        os.close(self.vault)


class Launcher:
    """Starts sides: forked from a zygote on Linux, as fresh interpreters elsewhere.

    `environment` holds defaults: what the user's environment says wins.
    """

    def __init__(self, environment: Mapping[str, str], folder: str) -> None:
        self._environment = {**environment, **os.environ}
        self._folder = folder
        self._zygote: subprocess.Popen[bytes] | None = None
        self._control: socket.socket | None = None
        self._children: dict[int, subprocess.Popen[bytes]] = {}
        self._living: set[int] = set()
        self._asked = 0
        self.lost = False
        """Whether the zygote was killed: every side died with it."""

    def start(self, arena: int, vault: int) -> "Side":
        """Start a side that maps these two memory files.

        Raises:
            ChannelClosed: the zygote could not start (its message is on stderr).
        """
        ours, theirs = socket.socketpair()
        reading, writing = os.pipe()
        descriptors = [theirs.fileno(), arena, vault, writing]
        try:
            pid = self._spawn(descriptors)
        except BaseException:
            ours.close()
            os.close(reading)
            raise
        finally:
            theirs.close()
            os.close(writing)
        self._living.add(pid)
        return Side(pid, Channel(ours), reading, self)

    def _spawn(self, descriptors: Sequence[int]) -> int:
        if sys.platform == "linux":
            control = self._zygote_control()
            return int(self._request(control, {"spawn": True}, descriptors)["pid"])
        module = ("-P", "-m", "kmrun.measure.worker")
        words = [sys.executable, *module, str(os.getpid()), *map(str, descriptors)]
        child = subprocess.Popen(
            words, pass_fds=descriptors, env=self._environment, start_new_session=True, cwd=self._folder
        )
        self._children[child.pid] = child
        return child.pid

    def pids(self) -> list[int]:
        """Return the processes that live now: the zygote and its sides."""
        zygote = [] if self._zygote is None else [self._zygote.pid]
        return [*zygote, *self._living]

    def reap(self, pid: int, grace_s: float) -> int:
        """Wait for a side that is ending, kill it after the grace, return its exit code (negative: signal)."""
        known = pid in self._living
        self._living.discard(pid)
        if pid not in self._children:
            if self._control is None or not known:  # its zygote is gone, and its sides with it
                return -signal.SIGKILL
            try:
                status = int(self._request(self._control, {"reap": pid, "grace_s": grace_s})["status"])
                # What user code detached from its side was re-parented to the zygote.
                self._request(self._control, {"sweep": sorted(self._living)})
            except ChannelClosed:
                self._lose_zygote()
                return -signal.SIGKILL
            return status
        child = self._children.pop(pid)
        try:
            return child.wait(grace_s)
        except subprocess.TimeoutExpired:
            child.kill()
            return child.wait()

    def close(self) -> None:
        """End the zygote; every side must have been reaped."""
        if self._control is not None:
            self._control.close()
        if self._zygote is not None:
            try:
                self._zygote.wait(_GRACE_S)
            except subprocess.TimeoutExpired:
                self._zygote.kill()
                self._zygote.wait()
        self._control = self._zygote = None

    def _zygote_control(self) -> socket.socket:
        if self._control is None:
            ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            self._zygote = subprocess.Popen(
                # -P: a kernel named `copy.py` beside the suite is nothing that torch imports.
                [sys.executable, "-P", "-m", "kmrun.measure.zygote", str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                # A kernel's noise must never reach the document on stdout.
                stdout=subprocess.DEVNULL,
                env=self._environment,
                cwd=self._folder,
                start_new_session=True,
            )
            theirs.close()
            self._control = ours
            self._answer(ours, 0)
        return self._control

    def end_of_zygote(self) -> tuple[str, str]:
        """Return why no side can be started any more, and what to do about it."""
        zygote = self._zygote
        self._lose_zygote()
        if zygote is not None and zygote.returncode is not None and zygote.returncode < 0:
            return (
                f"the process that hosts the sides was killed (signal {-zygote.returncode})",
                "run it again",
            )
        return "a worker could not start: importing torch failed", "try: python -c 'import torch'"

    def _lose_zygote(self) -> None:
        self.close()
        self._living.clear()
        self.lost = True

    def _request(
        self, control: socket.socket, request: dict[str, Any], descriptors: Sequence[int] = ()
    ) -> dict[str, Any]:
        self._asked += 1
        body = json.dumps({**request, "id": self._asked}).encode()
        try:
            if descriptors:
                socket.send_fds(control, [body], list(descriptors))
            else:
                control.send(body)
        except OSError as error:
            raise ChannelClosed(str(error)) from error
        return self._answer(control, self._asked)

    @staticmethod
    def _answer(control: socket.socket, asked: int) -> dict[str, Any]:
        while True:
            try:
                body = control.recv(1 << 16)
            except OSError as error:
                raise ChannelClosed(str(error)) from error
            if not body:
                raise ChannelClosed("the zygote ended")
            reply: dict[str, Any] = json.loads(body)
            if reply["id"] == asked:  # else it is late: an interrupt came before it was read
                return reply


class Side:
    """One worker process."""

    def __init__(self, pid: int, channel: Channel, output: int, launcher: Launcher) -> None:
        self.pid = pid
        self.on_progress: Callable[[str], None] | None = None
        self._channel = channel
        self._launcher = launcher
        self._ended = False
        self._output: deque[bytes] = deque()
        self._kept = 0
        self._drain = threading.Thread(target=self._read_output, args=(output,), daemon=True)
        self._drain.start()

    @property
    def alive(self) -> bool:
        """Whether it was not buried yet."""
        return not self._ended

    def ask(self, op: str, timeout_s: float | None = None, **arguments: Any) -> Any:
        """Run an operation in the side and return its result.

        Args:
            op: the operation's name.
            timeout_s: how long it may take; None for no limit.
            arguments: its plain arguments.

        Raises:
            Stopped: user code, the suite or the machine stopped it; the side lives on.
            Died: the process ended; it is buried.
            TimedOut: it did not answer; it was killed and is buried.
            SideBug: kmrun's own fault.
        """
        self.tell(op, **arguments)
        return self.answer(timeout_s)

    def tell(self, op: str, **arguments: Any) -> None:
        """Hand it an operation without waiting: it runs them in order, and each wants its `answer`.

        Raises:
            Died: the process ended; it is buried.
        """
        try:
            self._channel.send({"op": op, **arguments})
        except ChannelClosed as closed:
            raise self._died() from closed

    def answer(self, timeout_s: float | None = None) -> Any:
        """Return the result of the oldest operation that it was told of; arguments and errors as of `ask`."""
        deadline = None if timeout_s is None else time.monotonic() + max(timeout_s, 0.0)
        try:
            while True:
                reply = self._channel.receive(deadline)
                if "progress" not in reply:
                    break
                if self.on_progress is not None:
                    self.on_progress(reply["progress"])
        except ChannelClosed as closed:
            raise self._died() from closed
        except ChannelTimeout as late:
            self.bury(0.0)
            raise TimedOut(timeout_s or 0.0, self.tail()) from late
        if "bug" in reply:
            raise SideBug(reply["bug"])
        if "finding" in reply:
            raise Stopped(from_plain(Finding, reply["finding"]))
        return reply.get("ok")

    def _died(self) -> Died:
        status = self.bury(_GRACE_S)
        return Died(status, self.tail())

    def stop(self) -> None:
        """Make it truly idle: OpenMP threads spin after a parallel region and would steal the other side's cores."""
        self._signal(signal.SIGSTOP)

    def wake(self) -> None:
        """Let a stopped side go on."""
        self._signal(signal.SIGCONT)

    def kill(self) -> None:
        """Begin its end, which `bury` waits for: two processes that hold much memory end at once."""
        if not self._ended:
            self._signal(signal.SIGKILL)

    def bury(self, grace_s: float = 0.0) -> int:
        """End the process and everything it started, and return its exit code (negative: signal)."""
        if self._ended:
            return 0
        self._ended = True
        self._channel.close()
        if grace_s == 0.0:
            self._signal(signal.SIGKILL)
        status = self._launcher.reap(self.pid, max(grace_s, 0.5))
        self._signal(signal.SIGKILL)  # the rest of its process group
        self._drain.join(0.2)
        return status

    def tail(self) -> str:
        """Return the end of what user code printed, made harmless for a terminal."""
        time.sleep(0.01)  # the reader thread takes what is still in the pipe
        text = b"".join(self._output)[-_TAIL_BYTES:].decode(errors="replace")
        clean = "".join(char if char.isprintable() or char in "\n\t" else "�" for char in text)
        # faulthandler's list of every extension module says nothing about the crash.
        return "\n".join(
            line for line in clean.strip().splitlines() if not line.startswith("Extension modules:")
        )

    def _signal(self, number: int) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, number)

    def _read_output(self, descriptor: int) -> None:
        while True:
            chunk = os.read(descriptor, 1 << 16)
            if not chunk:
                os.close(descriptor)
                return
            self._output.append(chunk)
            self._kept += len(chunk)
            while self._kept - len(self._output[0]) > _TAIL_BYTES:
                self._kept -= len(self._output.popleft())


class Idle:
    """Keeps a side stopped for the length of a block; None keeps nothing."""

    def __init__(self, side: Side | None) -> None:
        self._side = side

    def __enter__(self) -> None:
        if self._side is not None and self._side.alive:
            self._side.stop()

    def __exit__(self, *_: object) -> None:
        if self._side is not None and self._side.alive:
            self._side.wake()


def _memory_file(name: str) -> int:
    if hasattr(os, "memfd_create"):
        return os.memfd_create(name)
    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())
