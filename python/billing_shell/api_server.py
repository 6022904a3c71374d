"""Serving the door: one process, one event loop, and no patience for clients who dawdle.

uvicorn parses and answers; it has a time-out for idle connections only. What is added here ends a
connection whose request line and headers do not arrive in time or grow too large, and one whose
peer does not read what it asked for. How long a body may take is the guard's business.
"""

import asyncio
from typing import Any

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

HEAD_SECONDS = 10.0
"""From the first byte to the end of the headers, and from connecting to the first byte."""
IDLE_SECONDS = 30.0
"""Between two requests on one connection."""
READ_SECONDS = 20.0
"""For which a peer may refuse to read while there is something for it."""
LARGEST_HEAD = 32 * 1024
"""Bytes of request line and headers."""
GRACE_SECONDS = 20
"""At the end, for requests that run."""

_MOST_CONNECTIONS = 2000
_END_OF_HEAD = b"\r\n\r\n"
_TOO_LARGE = (
    b"HTTP/1.1 431 Request Header Fields Too Large\r\n"
    b"content-length: 0\r\nconnection: close\r\n\r\n"
)


class ImpatientProtocol(HttpToolsProtocol):
    """HTTP/1.1 on one connection, with deadlines."""

    def __init__(self, *arguments: Any, **options: Any) -> None:  # noqa: ANN401 - as uvicorn has it
        super().__init__(*arguments, **options)
        self._head_bytes, self._tail = 0, b""
        self._in_body = False
        self._head_deadline: asyncio.TimerHandle | None = None
        self._read_deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """A client has come; it may not stay without saying what it wants."""
        super().connection_made(transport)
        self._expect_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """It has gone."""
        self._cancel(self._head_deadline)
        self._cancel(self._read_deadline)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Some of a request, or of several."""
        if not self._in_body:
            if self._head_deadline is None:
                self._expect_head()
            if self._grows_too_large(data):
                self.transport.write(_TOO_LARGE)
                self.transport.close()
                return
        super().data_received(data)

    def on_headers_complete(self) -> None:
        """It is known what is wanted."""
        self._in_body = True
        self._head_bytes, self._tail = 0, b""
        self._cancel(self._head_deadline)
        self._head_deadline = None
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        """What follows is another request."""
        self._in_body = False
        super().on_message_complete()

    def pause_writing(self) -> None:
        """The peer does not read."""
        super().pause_writing()
        self._cancel(self._read_deadline)
        self._read_deadline = self.loop.call_later(READ_SECONDS, self.transport.abort)

    def resume_writing(self) -> None:
        """It reads again."""
        self._cancel(self._read_deadline)
        self._read_deadline = None
        super().resume_writing()

    def _expect_head(self) -> None:
        self._head_deadline = self.loop.call_later(HEAD_SECONDS, self.transport.abort)

    def _grows_too_large(self, data: bytes) -> bool:
        """Whether the head does; a large body that comes along with it does not count."""
        end = (self._tail + data).find(_END_OF_HEAD)
        self._head_bytes += len(data) if end < 0 else end
        self._tail = (self._tail + data)[1 - len(_END_OF_HEAD) :]
        return self._head_bytes > LARGEST_HEAD

    @staticmethod
    def _cancel(timer: asyncio.TimerHandle | None) -> None:
        if timer is not None:
            timer.cancel()


def server(app: ASGIApp, *, host: str, port: int) -> uvicorn.Server:
    """A server for the app; `run` or `serve` of it ends on SIGTERM, requests that run first.

    Args:
        app: the door.
        host: address to listen on.
        port: 0 = any that is free.
    """
    return uvicorn.Server(
        uvicorn.Config(
            app,
            host=host,
            port=port,
            http=ImpatientProtocol,
            ws="none",
            loop="uvloop",
            lifespan="on",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            limit_concurrency=_MOST_CONNECTIONS,
            timeout_keep_alive=int(IDLE_SECONDS),
            timeout_graceful_shutdown=GRACE_SECONDS,
            h11_max_incomplete_event_size=LARGEST_HEAD,
        )
    )
