"""The process that sides are forked from: torch imported once, the GPU untouched, no tensor operation ever run.

A fork after a parallel region would hang in OpenMP, and one after CUDA was initialised is useless; so nothing
here computes. Requests come as JSON lines with the side's descriptors passed along (SCM_RIGHTS):

    {"spawn": true} + [channel, arena, vault or arena, output]   ->  {"pid": 123}
    {"reap": 123, "grace_s": 1.0}                                ->  {"status": -11}   (waitpid's exit code)
    {"sweep": [pids to spare]}                                   ->  {"swept": 2}

Every request has an `id`, which its reply repeats; `{"ready": true, "id": 0}` comes first.
"""

import contextlib
import json
import os
import signal
import socket
import sys
import time

from kmrun.measure import lifeline


def main() -> None:
    """Import torch, then fork a side per request until the supervisor is gone."""
    # No death signal here: when the supervisor is gone, however it went, the control socket reads as ended, and
    # then this process, which adopts whatever user code detached, kills all of it before it goes itself.
    lifeline.adopt_orphans()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    control = socket.socket(fileno=int(sys.argv[1]))
    import torch  # noqa: F401

    from kmrun.measure import worker

    with contextlib.suppress(BrokenPipeError):
        control.send(b'{"ready":true,"id":0}')
    while True:
        try:
            body, descriptors, _, _ = socket.recv_fds(control, 1 << 16, 8)
        except ConnectionResetError:
            body, descriptors = b"", []
        if not body:
            _bury_all()
            # Nothing here is worth finalising, and tearing down torch's modules takes half a second.
            os._exit(0)
        request = json.loads(body)
        if "spawn" in request:
            zygote = os.getpid()
            pid = os.fork()
            if pid == 0:
                control.close()
                _become_side(zygote, descriptors, worker)
            for descriptor in descriptors:
                os.close(descriptor)
            reply: dict[str, int] = {"pid": pid}
        elif "reap" in request:
            reply = {"status": _reap(request["reap"], request["grace_s"])}
        else:
            reply = {"swept": _sweep(set(request["sweep"]))}
        with contextlib.suppress(BrokenPipeError):  # seen as the end of the stream, next
            control.send(json.dumps({**reply, "id": request["id"]}).encode())


def _become_side(zygote: int, descriptors: list[int], worker: object) -> None:
    # `worker` was imported before the fork; it is passed to say so.
    from kmrun.measure.worker import serve

    os.setsid()
    lifeline.die_with(zygote)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
    channel, arena, vault, output = descriptors
    try:
        serve(channel, arena, vault, output)
    finally:
        # Also where user code forked and its child came back here: never fall into the zygote's own loop.
        os._exit(0)


def _reap(pid: int, grace_s: float) -> int:
    deadline = time.monotonic() + grace_s
    while time.monotonic() < deadline:
        found, status = os.waitpid(pid, os.WNOHANG)
        if found:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.005)
    os.kill(pid, signal.SIGKILL)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def _bury_all() -> None:
    while _sweep(set()):
        pass  # their own children are re-parented here, and found in the next round


def _sweep(spared: set[int]) -> int:
    swept = 0
    for pid in lifeline.children_of(os.getpid()):
        if pid not in spared:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            swept += 1
    return swept


if __name__ == "__main__":
    main()
