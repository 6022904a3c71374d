"""How answers leave: whole, cut in the middle, or never."""

import asyncio
import json
from dataclasses import dataclass, field
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

from billing_shell.simulator.behaviour import RETRY_AFTER_SECONDS, Delivery
from billing_shell.simulator.problems import Problem, ProblemResponse
from billing_shell.simulator.wire import TRANSPORT_STATE


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer, as it is kept under its key and as it goes out."""

    status: int
    body: str
    headers: dict[str, str] = field(default_factory=dict)
    delivery: Delivery = Delivery.WHOLE

    @classmethod
    def of_document(cls, status: int, document: dict[str, Any], delivery: Delivery) -> "Answer":
        """Return the answer that carries a payment, a refund or a list."""
        return cls(status, json.dumps(document), delivery=delivery)

    @classmethod
    def of_problem(cls, problem: Problem, delivery: Delivery = Delivery.WHOLE) -> "Answer":
        """Return the answer that tells of a problem."""
        return cls(problem.status, json.dumps(problem.document()), problem.headers, delivery)

    def response(self) -> Response:
        """Return it as a whole response."""
        is_error = self.status >= 400  # noqa: PLR2004  HTTP's errors
        media_type = ProblemResponse.media_type if is_error else "application/json"
        return Response(self.body, self.status, self.headers, media_type)


def internal_error() -> Problem:
    """Return the 500 that is answered on purpose."""
    return Problem(500, "internal_error", "Something went wrong on our side.")


def rate_limited() -> Problem:
    """Return the 429 that is answered on purpose."""
    return Problem(
        429,
        "rate_limited",
        "Too many requests, try again later.",
        headers={"Retry-After": str(RETRY_AFTER_SECONDS)},
    )


async def hand_over(request: Request, answer: Answer, hang: float) -> Response:
    """Return the response that lets an answer leave as its delivery says."""
    match answer.delivery:
        case Delivery.WHOLE:
            return answer.response()
        case Delivery.CUT:
            return _Cut(answer.response())
        case Delivery.NEVER:
            await _hang(request, hang)
            return _Nothing()


async def _hang(request: Request, seconds: float) -> None:
    """Wait until the caller goes away, but not longer than that."""
    try:
        async with asyncio.timeout(seconds):
            while (await request.receive())["type"] != "http.disconnect":
                pass
    except TimeoutError:
        return


class _Nothing(Response):
    """Cuts the connection without a byte of an answer."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Close the transport and let the server notice."""
        del send
        _transport(scope).abort()
        while (await receive())["type"] != "http.disconnect":
            pass


class _Cut(Response):
    """Sends the head and half of the body, then cuts the connection."""

    def __init__(self, whole: Response) -> None:
        super().__init__()
        self._whole = whole

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send what is sent and close the transport."""

        async def send_half(message: Message) -> None:
            if message["type"] == "http.response.body":
                body = message["body"]
                message = {**message, "body": body[: len(body) // 2], "more_body": True}
            await send(message)

        await self._whole(scope, receive, send_half)
        _transport(scope).close()
        while (await receive())["type"] != "http.disconnect":
            pass


def _transport(scope: Scope) -> asyncio.Transport:
    transport: asyncio.Transport = scope["state"][TRANSPORT_STATE]
    return transport
