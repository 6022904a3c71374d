"""HTTP whose requests carry the instant of their arrival, and the transport that brought them.

A busy process reads a request some time after it arrived. On Linux the kernel keeps the instant of
the arrival itself, so that the ledger holds what the callers did and not how busy this process was.
Elsewhere, and where the kernel has no stamp, the instant of reading stands in.
"""

import asyncio
import contextlib
import socket
import struct
import sys
import time
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

ARRIVAL_STATE = "arrived_monotonic_ns"
"""Where the ASGI state holds the instant of arrival, on the monotonic clock."""
TRANSPORT_STATE = "transport"
"""Where the ASGI state holds the connection's transport."""

_SO_TIMESTAMPNS = 35  # Linux; the socket module does not name it
_TIMESPEC = struct.Struct("@ll")
_READ_SIZE = 256 * 1024
_NS = 1_000_000_000


def listen(host: str, port: int, backlog: int) -> socket.socket:
    """Return a listening socket whose connections stamp what arrives; raises OSError."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # The protocol is named, or asyncio leaves Nagle's algorithm on, and each answer takes 40 ms.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if sys.platform == "linux":
            # Where the kernel refuses, the instant of reading stands in.
            with contextlib.suppress(OSError):
                listener.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPNS, 1)
        listener.bind((host, port))
        listener.listen(backlog)
    except OSError:
        listener.close()
        raise
    return listener


class StampingProtocol(H11Protocol, asyncio.BufferedProtocol):
    """HTTP over one connection; asks for the stamp just before it reads."""

    # Filled and emptied within one callback of the loop, so one serves all connections.
    _buffer = bytearray(_READ_SIZE)

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Hand the transport on in the ASGI state of this connection's requests."""
        accepted = transport.get_extra_info("socket")
        # The transport's socket, for the one call that it does not offer; never closed from here.
        self._peeked = socket.socket(
            accepted.family, accepted.type, accepted.proto, fileno=accepted.fileno()
        )
        self.app_state: dict[str, Any] = self.app_state | {TRANSPORT_STATE: transport}
        super().connection_made(transport)

    def connection_lost(self, exc: Exception | None) -> None:
        """Let go of the transport's socket before the transport closes it."""
        self._peeked.detach()
        super().connection_lost(exc)

    def get_buffer(self, sizehint: int) -> bytearray:
        """Note when what is about to be read arrived."""
        del sizehint
        self.app_state[ARRIVAL_STATE] = time.monotonic_ns() - self._waited_ns()
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        """Take what was read."""
        self.data_received(bytes(memoryview(self._buffer)[:nbytes]))

    def _waited_ns(self) -> int:
        """Return how long the first byte that waits to be read has been waiting."""
        try:
            _, stamps, _, _ = self._peeked.recvmsg(
                1, socket.CMSG_SPACE(_TIMESPEC.size), socket.MSG_PEEK | socket.MSG_DONTWAIT
            )
        except OSError:
            return 0
        for level, kind, content in stamps:
            if (level, kind) == (socket.SOL_SOCKET, _SO_TIMESTAMPNS):
                seconds, nanoseconds = _TIMESPEC.unpack(content)
                waited: int = time.time_ns() - seconds * _NS - nanoseconds
                return max(0, waited)
        return 0
