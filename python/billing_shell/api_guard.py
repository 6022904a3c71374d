"""What surrounds every request: an id, limits, headers, one line in the log, no stack traces."""

import asyncio
import re
import time
import uuid
from dataclasses import dataclass, field
from http import HTTPStatus

import structlog
from fastapi import FastAPI
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from billing_shell.api_problem import ProblemError, internal_error, of_status
from billing_shell.metrics import HttpMetrics

REQUEST_ID_HEADER = "X-Request-Id"

LARGEST_BODY = 64 * 1024
"""Bytes of a request's body."""
LARGEST_EVENT = 256 * 1024
"""Bytes of a webhook's body: gateways are chatty."""
BODY_SECONDS = 15.0
"""From the end of the headers to the end of the body."""

_KEY = "billing.exchange"
_REQUEST_ID = re.compile(r"[A-Za-z0-9._:/+=-]{1,64}")
_LONGEST_PATH = 200
_WEBHOOKS = "/webhooks/"
_QUIET = frozenset({"/healthz", "/readyz", "/metrics"})

# Answers are data, never pages: nothing in them is to be guessed at, framed, run or kept.
_HEADERS: list[tuple[bytes, bytes]] = [
    (b"x-content-type-options", b"nosniff"),
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"strict-transport-security", b"max-age=31536000"),
    (b"cache-control", b"no-store"),
]

_log = structlog.get_logger(__name__)


@dataclass(slots=True)
class Exchange:
    """One request and what is known of it so far; for the log and the figures.

    Attributes:
        request_id: of the caller, or made up.
        body: all of it, as received.
        route: path with names for its parameters; empty where no endpoint has it.
        key_name: of the key that was let in, or empty.
        sqlstate: of the refusal, or empty.
        status: of the answer, 0 before it.
    """

    request_id: str
    body: bytes = b""
    route: str = ""
    key_name: str = ""
    sqlstate: str = ""
    status: int = 0
    begun: float = field(default_factory=time.perf_counter)


def exchange_of(request: Request) -> Exchange:
    """The exchange that a request belongs to."""
    exchange: Exchange = request.scope[_KEY]
    return exchange


class Guard:
    """The outermost layer, an ASGI application around another."""

    def __init__(self, app: FastAPI, answering: ASGIApp, metrics: HttpMetrics) -> None:
        """Nothing happens yet.

        Args:
            app: whose life this is, and whose specification.
            answering: answers its requests.
            metrics: of requests.
        """
        self.app = app
        self._answering = answering
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handles one request; anything else is passed on."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        exchange = Exchange(_request_id(Headers(scope=scope)))
        scope["app"] = self.app
        scope[_KEY] = exchange
        structlog.contextvars.bind_contextvars(request_id=exchange.request_id)
        with self._metrics.in_flight.track_inprogress():
            await self._handle(scope, receive, _Sender(send, exchange), exchange)
        self._note(scope, exchange)

    async def _handle(
        self, scope: Scope, receive: Receive, send: "_Sender", exchange: Exchange
    ) -> None:
        try:
            try:
                exchange.body = await _body(scope, receive)
                await self._answering(_as_get(scope), _nothing_more, send)
            except ProblemError as problem:
                await problem.response(exchange.request_id)(scope, receive, send)
        except _ClientGoneError:
            exchange.status = exchange.status or 499
        except Exception:  # noqa: BLE001 - whatever it was, the caller gets an answer
            _log.exception("request_failed", route=exchange.route)
            if not exchange.status:
                await internal_error().response(exchange.request_id)(scope, receive, send)

    def _note(self, scope: Scope, exchange: Exchange) -> None:
        seconds = time.perf_counter() - exchange.begun
        self._metrics.observe(scope["method"], exchange.route, exchange.status, seconds)
        if exchange.route in _QUIET:
            return
        _log.info(
            "http_request",
            method=scope["method"],
            route=exchange.route,
            path=scope["path"][:_LONGEST_PATH],
            status=exchange.status,
            sqlstate=exchange.sqlstate,
            key=exchange.key_name,
            ms=round(seconds * 1000, 1),
        )


class _ClientGoneError(Exception):
    """Nobody is there any more to answer to."""


class _Sender:
    """Sends an answer with the headers that every answer has."""

    def __init__(self, send: Send, exchange: Exchange) -> None:
        self._send = send
        self._exchange = exchange

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._exchange.status = int(message["status"])
            headers = list(message.get("headers", ()))
            headers += _HEADERS
            headers.append((b"x-request-id", self._exchange.request_id.encode("ascii")))
            message = {**message, "headers": headers}
        await self._send(message)


def _request_id(headers: Headers) -> str:
    given = headers.get(REQUEST_ID_HEADER)
    return given if given is not None and _REQUEST_ID.fullmatch(given) else uuid.uuid4().hex


async def _body(scope: Scope, receive: Receive) -> bytes:
    """Reads the whole body.

    Raises:
        ProblemError: 413 too large, or 408 too slow; the connection ends with it.
    """
    limit = LARGEST_EVENT if scope["path"].startswith(_WEBHOOKS) else LARGEST_BODY
    headers = Headers(scope=scope)
    announced = headers.get("content-length", "0")
    if announced == "0" and "transfer-encoding" not in headers:
        return b""
    if not announced.isdecimal() or int(announced) > limit:
        raise _closing(HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
    body = bytearray()
    try:
        async with asyncio.timeout(BODY_SECONDS):
            more = True
            while more:
                message = await receive()
                if message["type"] == "http.disconnect":
                    raise _ClientGoneError
                body += message.get("body", b"")
                if len(body) > limit:
                    raise _closing(HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
                more = message.get("more_body", False)
    except TimeoutError:
        raise _closing(HTTPStatus.REQUEST_TIMEOUT) from None
    return bytes(body)


def _as_get(scope: Scope) -> Scope:
    """HEAD is answered like GET (RFC 9110, 9.3.2); the server keeps the content back."""
    return {**scope, "method": "GET"} if scope["method"] == "HEAD" else scope


def _closing(status: int) -> ProblemError:
    return of_status(status, {"Connection": "close"})


async def _nothing_more() -> Message:
    """The body has been read; who asks for more waits for the end of the connection."""
    return {"type": "http.request", "body": b"", "more_body": False}
