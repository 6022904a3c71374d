"""A server that says exactly the bytes it is told to, and remembers those it was sent."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field


@dataclass(slots=True)
class RawServer:
    """One listening server.

    Attributes:
        url: its address.
        reply: what it says to each request, before it closes the connection.
        stays_open: whether it keeps the connection open instead, and says nothing more.
        pause: seconds between two bytes; 0 = all at once.
        requests: the bytes of each request.
        connections: how many were made.
    """

    url: str = ""
    reply: bytes = b""
    stays_open: bool = False
    pause: float = 0
    requests: list[bytes] = field(default_factory=list)
    connections: int = 0
    tasks: set[asyncio.Task[None]] = field(default_factory=set)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer the requests of one connection."""
        task = asyncio.current_task()
        assert task is not None
        self.tasks.add(task)
        self.connections += 1
        try:
            # The client leaves, which is how most of these conversations end.
            with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
                await self._converse(reader, writer)
        finally:
            writer.close()
            with contextlib.suppress(ConnectionError):
                await writer.wait_closed()
            self.tasks.discard(task)

    async def _converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            self.requests.append(await _request(reader))
            pieces = [self.reply]
            if self.pause:
                pieces = [self.reply[at : at + 1] for at in range(len(self.reply))]
            for piece in pieces:
                writer.write(piece)
                await writer.drain()
                await asyncio.sleep(self.pause)
            if not self.stays_open:
                return


@contextlib.asynccontextmanager
async def raw_server() -> AsyncIterator[RawServer]:
    """Run a raw server."""
    state = RawServer()
    server = await asyncio.start_server(state.serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    state.url = f"http://127.0.0.1:{port}"
    try:
        yield state
    finally:
        server.close()
        for task in state.tasks:
            task.cancel()
        await asyncio.gather(*state.tasks, return_exceptions=True)


def http(status: int, body: object = b"", headers: Mapping[str, str] | None = None) -> bytes:
    """Write an HTTP answer; a body that is no bytes becomes JSON, Content-Length included."""
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    lines = {"Content-Length": str(len(content))} | dict(headers or {})
    head = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
    return f"HTTP/1.1 {status} Whatever\r\n{head}\r\n".encode("latin-1") + content


async def _request(reader: asyncio.StreamReader) -> bytes:
    head = await reader.readuntil(b"\r\n\r\n")
    length = 0
    for line in head.lower().split(b"\r\n"):
        if line.startswith(b"content-length:"):
            length = int(line.partition(b":")[2])
    return head + await reader.readexactly(length)
