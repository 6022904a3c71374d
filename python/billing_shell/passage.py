"""The passage of one HTTP request through its gate, on httpx's trace."""

import asyncio

from billing_shell import crashpoints
from billing_shell.gateway import Gate


class Passage:
    """Leads one request through its gate, told by the transport how far it is.

    The limit begins anew behind the gate: what came before was not the gateway's time.
    """

    def __init__(self, gate: Gate, limit: asyncio.Timeout, seconds: float) -> None:
        self._gate = gate
        self._limit = limit
        self._seconds = seconds

    async def __call__(self, event: str, _info: object) -> None:  # noqa: D102  httpx's trace
        if event == "http11.send_request_headers.started":
            self._limit.reschedule(None)
            await self._gate()
            self._limit.reschedule(asyncio.get_running_loop().time() + self._seconds)
        elif event == "http11.send_request_body.complete":
            crashpoints.reach("request_sent")
