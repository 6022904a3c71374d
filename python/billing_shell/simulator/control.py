"""The control interface for tests, and the books as JSON. No password: keep it local."""

from typing import Any
from urllib.parse import urlsplit

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from billing_shell.simulator.behaviour import Fault, behaviour_of_outcome
from billing_shell.simulator.chance import FaultRate
from billing_shell.simulator.clocks import from_text, to_text
from billing_shell.simulator.controls import Controls, WebhookTarget
from billing_shell.simulator.courier import Courier
from billing_shell.simulator.ledger import Ledger, Row
from billing_shell.simulator.lifecycle import Lifecycle
from billing_shell.simulator.options import Latency
from billing_shell.simulator.parameters import invalid, read_document
from billing_shell.webhook_signature import SecretError

_PAGE = 1_000
_LARGEST_PAGE = 10_000
_LONGEST_TOKEN = 255
_FAIL_CODE = "generic_decline"


class Control:
    """Answers `/_control/…`, `/_ledger`, `/_calls` and `/_faults`."""

    def __init__(
        self, ledger: Ledger, controls: Controls, lifecycle: Lifecycle, courier: Courier
    ) -> None:
        self._ledger = ledger
        self._controls = controls
        self._lifecycle = lifecycle
        self._courier = courier

    def routes(self) -> list[Route]:
        """Return the routes."""
        put, post = ["PUT"], ["POST"]
        payment = "/_control/charges/{payment_id}"
        return [
            Route("/_control", self.settings, methods=["GET"]),
            Route("/_control/clock", self.set_clock, methods=put),
            Route("/_control/script", self.set_script, methods=put),
            Route("/_control/faults", self.set_faults, methods=put),
            Route("/_control/latency", self.set_latency, methods=put),
            Route("/_control/webhooks", self.set_webhooks, methods=put),
            Route(f"{payment}/complete", self.complete, methods=post),
            Route(f"{payment}/fail", self.fail, methods=post),
            Route("/_ledger", self.ledger, methods=["GET"]),
            Route("/_calls", self.calls, methods=["GET"]),
            Route("/_faults", self.faults, methods=["GET"]),
        ]

    async def settings(self, _: Request) -> Response:
        """`GET /_control`: what is set now."""
        return JSONResponse(self._settings())

    async def set_clock(self, request: Request) -> Response:
        """`PUT /_control/clock {"now": "2027-05-01T00:00:00Z" | null}`."""
        now = await _member(request, "now")
        if now is not None and not isinstance(now, str):
            raise invalid("now", "an ISO 8601 instant with its offset, or null")
        try:
            frozen_at = None if now is None else from_text(now)
        except (ValueError, OverflowError) as error:
            raise invalid("now", "an ISO 8601 instant with its offset, or null") from error
        await self._controls.set_clock(frozen_at)
        await self._lifecycle.expire_actions()
        return JSONResponse(self._settings())

    async def set_script(self, request: Request) -> Response:
        """`PUT /_control/script {"token": "tok_ok", "outcomes": ["decline_do_not_honor", …]}`."""
        document = await read_document(request)
        token, outcomes = document.get("token"), document.get("outcomes")
        if not isinstance(token, str) or not 0 < len(token) <= _LONGEST_TOKEN:
            raise invalid("token", f"a text of 1 to {_LONGEST_TOKEN} characters")
        if not isinstance(outcomes, list) or not all(isinstance(word, str) for word in outcomes):
            raise invalid("outcomes", "a list of outcomes")
        try:
            for word in outcomes:
                behaviour_of_outcome(word)
        except ValueError as error:
            raise invalid("outcomes", f"a list of outcomes: {error}") from error
        await self._controls.set_script(token, outcomes)
        return JSONResponse({"token": token, "outcomes": outcomes})

    async def set_faults(self, request: Request) -> Response:
        """`PUT /_control/faults {"rate": 0.02, "kinds": ["timeout_charged", …] | null}`."""
        document = await read_document(request)
        rate, kinds = _number(document, "rate"), document.get("kinds")
        if not 0 <= rate <= 1:
            raise invalid("rate", "a share from 0 to 1")
        if kinds is not None and not isinstance(kinds, list):
            raise invalid("kinds", "a list of faults, or null for all")
        try:
            chosen = None if kinds is None else frozenset(Fault(kind) for kind in kinds)
        except (ValueError, TypeError) as error:
            raise invalid("kinds", f"a list of faults: {error}") from error
        await self._controls.set_faults(FaultRate(rate, chosen))
        return JSONResponse(self._settings())

    async def set_latency(self, request: Request) -> Response:
        """`PUT /_control/latency {"least": 0.05, "most": 0.8}`, seconds."""
        document = await read_document(request)
        try:
            latency = Latency(_number(document, "least"), _number(document, "most"))
        except ValueError as error:
            raise invalid("latency", f"a span: {error}") from error
        await self._controls.set_latency(latency)
        return JSONResponse(self._settings())

    async def set_webhooks(self, request: Request) -> Response:
        """`PUT /_control/webhooks {"url": "http://…", "secret": "…"}`, both null for nowhere."""
        document = await read_document(request)
        url, secret = document.get("url"), document.get("secret")
        if url is None and secret is None:
            await self._controls.set_webhooks(None)
            return JSONResponse(self._settings())
        if not isinstance(url, str) or urlsplit(url).scheme not in {"http", "https"}:
            raise invalid("url", "an http address")
        if not isinstance(secret, str):
            raise invalid("secret", "a text")
        try:
            target = WebhookTarget(url, secret)
        except SecretError as error:
            raise invalid("secret", f"a key: {error}") from error
        await self._controls.set_webhooks(target)
        self._courier.take_up()
        return JSONResponse(self._settings())

    async def complete(self, request: Request) -> Response:
        """`POST /_control/charges/{id}/complete`: the customer acted, or the bank paid."""
        charge = await self._lifecycle.complete(request.path_params["payment_id"])
        return JSONResponse(charge.document())

    async def fail(self, request: Request) -> Response:
        """`POST /_control/charges/{id}/fail {"code": "…"}`; without a body, a generic decline."""
        code: Any = _FAIL_CODE
        if await request.body():
            code = (await read_document(request)).get("code", _FAIL_CODE)
        if not isinstance(code, str) or not 0 < len(code) <= _LONGEST_TOKEN:
            raise invalid("code", f"a text of 1 to {_LONGEST_TOKEN} characters")
        charge = await self._lifecycle.fail(request.path_params["payment_id"], code)
        return JSONResponse(charge.document())

    async def ledger(self, request: Request) -> Response:
        """`GET /_ledger?reference=&after=&limit=`: payments and refunds, and the sums of all."""
        after, limit = _page(request)
        reference = request.query_params.get("reference")
        charges = await self._ledger.scan(
            "SELECT * FROM charges WHERE charge_no > :after"
            " AND (:reference IS NULL OR reference = :reference) ORDER BY charge_no LIMIT :limit",
            {"after": after, "reference": reference, "limit": limit},
        )
        refunds = await self._ledger.scan(
            "SELECT r.* FROM refunds AS r INNER JOIN charges AS c ON r.payment_id = c.payment_id"
            " WHERE :reference IS NULL OR c.reference = :reference ORDER BY r.refund_no",
            {"reference": reference},
        )
        totals = await self._ledger.scan(
            "SELECT currency, status, count(*) AS payments, sum(amount) AS amount"
            " FROM charges GROUP BY currency, status ORDER BY currency, status"
        )
        refunded = await self._ledger.scan(
            "SELECT currency, count(*) AS refunds, sum(amount) AS amount"
            " FROM refunds GROUP BY currency ORDER BY currency"
        )
        document = {
            "charges": _documents(charges),
            "next_after": charges[-1]["charge_no"] if len(charges) == limit else None,
            "refunds": _documents(refunds),
            "totals": {"charges": _documents(totals), "refunds": _documents(refunded)},
        }
        return JSONResponse(document)

    async def calls(self, request: Request) -> Response:
        """`GET /_calls?after=&limit=`: every arrival below `/v1`, in order."""
        after, limit = _page(request)
        calls = await self._ledger.scan(
            "SELECT * FROM calls WHERE call_no > ? ORDER BY call_no LIMIT ?", (after, limit)
        )
        next_after = calls[-1]["call_no"] if len(calls) == limit else None
        return JSONResponse({"calls": _documents(calls), "next_after": next_after})

    async def faults(self, _: Request) -> Response:
        """`GET /_faults`: how often what went wrong, and by whose wish; and what else was shown."""
        faults = await self._ledger.scan(
            "SELECT operation, fault, fault_cause, count(*) AS calls FROM calls"
            " WHERE fault IS NOT NULL GROUP BY operation, fault, fault_cause"
            " ORDER BY operation, fault, fault_cause"
        )
        answers = await self._ledger.scan(
            "SELECT operation, http_status, limited, replayed, count(*) AS calls FROM calls"
            " GROUP BY operation, http_status, limited, replayed"
            " ORDER BY operation, http_status, limited, replayed"
        )
        return JSONResponse({"faults": _documents(faults), "answers": _documents(answers)})

    def _settings(self) -> dict[str, Any]:
        frozen_at = self._controls.clock.frozen_at
        kinds = self._controls.faults.kinds
        webhooks = self._controls.webhooks
        return {
            "clock": None if frozen_at is None else to_text(frozen_at),
            "faults": {
                "rate": self._controls.faults.rate,
                "kinds": None if kinds is None else sorted(kinds),
            },
            "latency": {
                "least": self._controls.latency.least,
                "most": self._controls.latency.most,
            },
            "webhooks": None if webhooks is None else {"url": webhooks.url},
        }


async def _member(request: Request, name: str) -> Any:  # noqa: ANN401  any JSON value
    document = await read_document(request)
    if name not in document:
        raise invalid(name, "given")
    return document[name]


def _page(request: Request) -> tuple[int, int]:
    try:
        after = int(request.query_params.get("after", "0"))
        limit = int(request.query_params.get("limit", _PAGE))
    except ValueError as error:
        raise invalid("after and limit", "whole numbers") from error
    if not 0 <= after < 2**63 or not 0 < limit <= _LARGEST_PAGE:
        raise invalid("after and limit", f"at least 0, and from 1 to {_LARGEST_PAGE}")
    return after, limit


def _documents(rows: list[Row]) -> list[dict[str, Any]]:
    return [dict(row) for row in rows]


def _number(document: dict[str, Any], name: str) -> float:
    value = document.get(name)
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise invalid(name, "a number")
    return float(value)
