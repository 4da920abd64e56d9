"""What crosses between the supervisor and a side: length-prefixed JSON messages, one reply a request.

The channel is a Unix socket that user code never sees as stdin, stdout or stderr, so nothing a kernel prints
can be mistaken for a message. A reply is one of

    {"ok": ...}         the operation's result
    {"finding": {...}}  the user's code, or the machine, stopped it: a `core.measurement.Finding`
    {"bug": "..."}      kmrun's own traceback, raised again in the supervisor
    {"progress": "..."} any number of these may come before the reply
"""

import json
import select
import socket
import struct
import time
from typing import Any

VERSION = 1
_LIMIT = 256 * 2**20


class ChannelClosed(Exception):
    """The other end is gone."""


class ChannelTimeout(Exception):
    """No whole message came before the deadline."""


class Channel:
    """One end of the socket between a supervisor and a side."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self._pending = bytearray()

    def fileno(self) -> int:
        """Return the descriptor, for select."""
        return self._sock.fileno()

    def close(self) -> None:
        """Close this end."""
        self._sock.close()

    def send(self, message: dict[str, Any]) -> None:
        """Send one message.

        Raises:
            ChannelClosed: the other end is gone.
        """
        body = json.dumps(message, separators=(",", ":")).encode()
        try:
            self._sock.sendall(struct.pack("!I", len(body)) + body)
        except OSError as error:
            raise ChannelClosed(str(error)) from error

    def receive(self, deadline: float | None = None) -> dict[str, Any]:
        """Return the next message.

        Args:
            deadline: a `time.monotonic()` moment, None to wait for ever.

        Raises:
            ChannelClosed: the other end is gone, or sent what is no message.
            ChannelTimeout: the deadline passed.
        """
        (length,) = struct.unpack("!I", self._read(4, deadline))
        if length > _LIMIT:
            raise ChannelClosed(f"a message of {length} bytes is no message")
        try:
            message = json.loads(self._read(length, deadline))
        except ValueError as error:
            raise ChannelClosed(f"not JSON: {error}") from error
        if not isinstance(message, dict):
            raise ChannelClosed("a message is an object")
        return message

    def _read(self, count: int, deadline: float | None) -> bytes:
        while len(self._pending) < count:
            if deadline is not None:
                left = deadline - time.monotonic()
                if left <= 0 or not select.select([self._sock], [], [], left)[0]:
                    raise ChannelTimeout
            try:
                chunk = self._sock.recv(1 << 20)
            except OSError as error:
                raise ChannelClosed(str(error)) from error
            if not chunk:
                raise ChannelClosed("end of stream")
            self._pending += chunk
        body = bytes(self._pending[:count])
        del self._pending[:count]
        return body
