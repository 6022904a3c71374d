"""A proxy that loses answers: what was asked is done, and nobody is told."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from urllib.parse import urlsplit


@dataclass(slots=True)
class CuttingProxy:
    """Stands before a server.

    Attributes:
        upstream: address of the server.
        cuts: how many answers are still to be lost, whichever come first.
        lost: how many have been.
        url: its own address.
    """

    upstream: str
    cuts: int
    lost: int = 0
    url: str = ""
    tasks: set[asyncio.Task[None]] = field(default_factory=set)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Passes one connection on, until an answer is to be lost."""
        task = asyncio.current_task()
        assert task is not None
        self.tasks.add(task)
        target = urlsplit(self.upstream)
        server_reader, server_writer = await asyncio.open_connection(target.hostname, target.port)
        try:
            with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
                while True:
                    server_writer.write(await _message(reader))
                    # The whole answer: by now the server has committed what it answers about.
                    answer = await _message(server_reader)
                    if self.cuts > 0:
                        self.cuts -= 1
                        self.lost += 1
                        writer.transport.abort()
                        return
                    writer.write(answer)
                    await writer.drain()
        finally:
            for each in (writer, server_writer):
                each.close()
            self.tasks.discard(task)


@contextlib.asynccontextmanager
async def cutting_proxy(upstream: str, cuts: int) -> AsyncIterator[CuttingProxy]:
    """Runs such a proxy."""
    proxy = CuttingProxy(upstream, cuts)
    server = await asyncio.start_server(proxy.serve, "127.0.0.1", 0)
    proxy.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield proxy
    finally:
        server.close()
        for task in proxy.tasks:
            task.cancel()
        await asyncio.gather(*proxy.tasks, return_exceptions=True)


async def _message(reader: asyncio.StreamReader) -> bytes:
    """One request or answer with a Content-Length."""
    head = await reader.readuntil(b"\r\n\r\n")
    length = 0
    for line in head.lower().split(b"\r\n"):
        if line.startswith(b"content-length:"):
            length = int(line.partition(b":")[2])
    return head + await reader.readexactly(length)
