"""Several hundred HTTP calls in flight at one client, each on a connection of its own.

The usual pool of httpx looks through all its connections, pair by pair, whenever a call begins or
ends: with 100 in flight that took 17 ms of CPU per call, more than the call itself. Here a call
takes the connection that became free last, whatever the number of the others.
"""

import asyncio
import importlib.util
import ssl
import sys
from collections.abc import AsyncIterator, Awaitable
from functools import partial
from typing import Protocol

import httpx

# httpcore asks for this module several times per call. What is not installed is looked for in all
# directories each time, unless it is known to be missing.
if importlib.util.find_spec("sniffio") is None:
    sys.modules["sniffio"] = None  # type: ignore[assignment]


class ConnectionLanes(httpx.AsyncBaseTransport):
    """An HTTP/1.1 transport of up to `most` lanes, each one connection at most.

    A call for which no lane becomes free within its pool time-out raises httpx.PoolTimeout, and
    nothing of it was sent. Nothing is ever sent twice. Idle connections are closed after
    `idle_seconds`, at the latest when their lane is next used. For one origin only: a lane that
    changes its host would close a good connection.
    """

    def __init__(self, most: int, idle_seconds: float) -> None:
        self._places = asyncio.Semaphore(most)
        self._idle: list[httpx.AsyncHTTPTransport] = []
        self._closed = False
        self._ssl_context: ssl.SSLContext = httpx.create_ssl_context(trust_env=False)
        self._limits = httpx.Limits(
            max_connections=1, max_keepalive_connections=1, keepalive_expiry=idle_seconds
        )

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send one request on a free lane; the lane is free again when the response is closed."""
        try:
            async with asyncio.timeout(request.extensions.get("timeout", {}).get("pool")):
                await self._places.acquire()
        except TimeoutError as error:
            raise httpx.PoolTimeout("no connection became free", request=request) from error
        lane = self._idle.pop() if self._idle else self._open()
        try:
            response = await lane.handle_async_request(request)
        except BaseException:
            # Whatever state it is in, a broken or abandoned connection is not used again.
            await self._give_back(lane, intact=False)
            raise
        return httpx.Response(
            response.status_code,
            headers=response.headers,
            stream=_LaneStream(response, partial(self._give_back, lane)),
            extensions=response.extensions,
        )

    async def aclose(self) -> None:
        """Close the idle connections now, those in use when their call ends."""
        self._closed = True
        while self._idle:
            await self._idle.pop().aclose()

    def _open(self) -> httpx.AsyncHTTPTransport:
        return httpx.AsyncHTTPTransport(
            verify=self._ssl_context, trust_env=False, limits=self._limits, retries=0
        )

    async def _give_back(self, lane: httpx.AsyncHTTPTransport, *, intact: bool) -> None:
        self._places.release()
        if intact and not self._closed:
            self._idle.append(lane)
        else:
            await lane.aclose()


class _GiveBack(Protocol):
    def __call__(self, *, intact: bool) -> Awaitable[None]: ...


class _LaneStream(httpx.AsyncByteStream):
    """A response body that gives its lane back, once, when it is closed."""

    def __init__(self, response: httpx.Response, give_back: _GiveBack) -> None:
        self._response = response
        self._give_back: _GiveBack | None = give_back

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for chunk in self._response.aiter_raw():
            yield chunk

    async def aclose(self) -> None:
        """Close the response; where that fails, its connection is not used again."""
        give_back, self._give_back = self._give_back, None
        if give_back is None:
            return
        try:
            await self._response.aclose()
        except BaseException:
            await give_back(intact=False)
            raise
        await give_back(intact=True)
