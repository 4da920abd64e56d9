"""The entry of a side: one process that serves the supervisor's requests `{"op": NAME, ...}` one at a time."""

import contextlib
import faulthandler
import gc
import os
import signal
import socket
import sys
import traceback
from typing import Any, TextIO

from kmrun.core.measurement import Finding
from kmrun.core.plain import to_plain
from kmrun.measure import fork_guard, lifeline
from kmrun.measure.bound import ran_out_of_memory
from kmrun.measure.exchange import Arena, HostStorage
from kmrun.measure.faults import SideFault, one_line, traceback_tail
from kmrun.measure.operations import Operations
from kmrun.measure.protocol import Channel, ChannelClosed

SPACIOUS = frozenset({"expect", "compare", "self_test", "rival_agrees", "clear", "end"})
"""Operations that free a lot: of hundreds of megabytes the C library would keep most."""


def serve(channel: int, arena: int, vault: int, output: int) -> None:
    """Serve requests until the supervisor hangs up.

    The user's stdout and stderr go to `output`; stdin is empty. SIGINT is the supervisor's to handle.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    streams = _take_streams(output)
    faulthandler.enable(file=2)
    gc.freeze()  # what the imports made stays: collections before a window need not walk it again
    end = Channel(socket.socket(fileno=channel))
    side = Operations(
        Arena(HostStorage(arena)), Arena(HostStorage(vault)), lambda text: end.send({"progress": text})
    )
    # A child that user code forks must never answer in its parent's place.
    os.register_at_fork(after_in_child=end.close)
    fork_guard.watch()
    while True:
        try:
            request, late = _receive(end, side)
            op = request["op"]
            if op == "begin":
                late = None  # it came out of the case before, which is over
                streams = _take_streams(
                    output
                )  # a kernel of the case before may have closed or replaced them
            try:
                reply = {"finding": to_plain(_raised_late(late))} if late else _answer(side, request)
                _clean_up(op, streams)
            except Exception as error:
                if not side.raised_by_user(error):
                    raise
                reply = {"finding": to_plain(_raised_late(error))}
            fork_guard.end_if_child()
            end.send(reply)
        except ChannelClosed as closed:
            # Nobody reads this when the supervisor has gone; when user code closed the descriptor, it says why.
            with contextlib.suppress(OSError):
                os.write(
                    2, f"kmrun: this process closed its connection to the supervisor ({closed})\n".encode()
                )
            return


def _clean_up(op: str, streams: tuple[TextIO, TextIO]) -> None:
    if op in SPACIOUS:
        lifeline.give_back()
    for stream in streams:
        if not stream.closed:  # user code may do that
            stream.flush()


def _take_streams(output: int) -> tuple[TextIO, TextIO]:
    for number in (1, 2):
        os.dup2(output, number)
    out, err = (open(number, "w", buffering=1, closefd=False) for number in (1, 2))  # noqa: SIM115
    sys.stdout, sys.stderr = out, err
    return out, err


def _receive(end: Channel, side: Operations) -> tuple[dict[str, Any], Exception | None]:
    """Return the next request, and what a signal handler of the user's raised while it was waited for."""
    late: Exception | None = None
    while True:
        try:
            return end.receive(), late
        except Exception as error:
            if not side.raised_by_user(error):
                raise
            late = error


def _answer(side: Operations, request: dict[str, Any]) -> dict[str, Any]:
    op = request.pop("op")
    try:
        with side.placed(op):
            reply = {"ok": getattr(side, op)(**request)}
    except SideFault as fault:
        reply = {"finding": to_plain(fault.finding())}
    except Exception as error:
        if side.raised_by_user(error):
            reply = {"finding": to_plain(_raised_late(error))}
        elif ran_out_of_memory(error):
            # What kmrun needs itself was refused: copies of the inputs, or the set that bandwidth is measured over.
            sentence = f"skipped: the system refuses the memory that is needed here ({one_line(error)})"
            reply = {"finding": to_plain(Finding("memory", sentence, "environment", "skipped"))}
        else:
            # Not swallowed: kmrun's own fault, raised again in the supervisor with this traceback.
            reply = {"bug": traceback.format_exc()}
    # First of all: what failed for lack of memory, or of descriptors, did so because of that.
    return {"finding": to_plain(side.lowered.finding())} if side.lowered is not None else reply


def _raised_late(error: Exception) -> Finding:
    """Return the finding for what a signal handler or finaliser of the user's raised in kmrun's own code."""
    sentence = f"the kernel or its reference raised {one_line(error)} outside of a call"
    return Finding("raised", sentence, "kernel", "error", traceback_tail(error))


def main() -> None:
    """Entry point where sides are started directly instead of forked: descriptors in argv."""
    parent, channel, arena, vault, output = (int(word) for word in sys.argv[1:])
    lifeline.die_with(parent)
    serve(channel, arena, vault, output)


if __name__ == "__main__":
    main()
