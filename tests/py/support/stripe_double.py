"""A double for the endpoints of Stripe that the adapter calls.

Its own process, `python -m tests.py.support.stripe_double`, so that the official SDK runs for
real. It has what the adapter must cope with: idempotency with replays, mismatches and conflicts,
429s, stored 500s, lost answers, declines with codes and advice, actions, bank money, a balance, and
signed webhooks, which it delivers itself once it is told where to. What a payment method does, its
id says:
`pm_ok`, `pm_decline_<code>`, `pm_advice_<advice>`, `pm_action`, `pm_processing`, `pm_charged` and
`pm_lost` (no answer, the first time), `pm_slow`, `pm_limited` (429, the first time), `pm_500`.
What the refunds of its charges meet: `pm_back_charged` and `pm_back_lost` (no answer, the first
time, with and without a refund), `pm_back_cut` (the connection breaks after it, the first time),
`pm_back_500` and `pm_back_500_charged` (a stored 500, without and with one), `pm_back_pending`.

Beside Stripe's: `GET /_ledger`, its books; `PUT /_webhooks`, where events go; `PUT /_clock`, the
instant at which things are created; `POST /_act/{intent}`, the customer passes 3-D Secure, and
`POST /_fail/{intent}` fails it; `POST /_cancel/{intent}`; `POST /_end/{refund}/{status}`, a bank
has taken a refund or sent it back.
"""

import asyncio
import contextlib
import hashlib
import hmac
import itertools
import json
import select
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Any, Self
from urllib.parse import parse_qsl

import httpx
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

API_KEY = "sk_test_double"
SECRET = "whsec_double_of_stripe"

_PATIENCE = 180.0
_ids = itertools.count(1)


_CUT = Response(b"{", 200, {"Content-Length": "999"})
"""The server closes the connection after this: it has one byte of the 999."""


class Refused(Exception):  # noqa: N818  an answer of the double, not a fault
    """An error document of Stripe."""

    def __init__(self, status: int, kind: str, **error: object) -> None:
        self.status = status
        self.document = {"error": {"type": kind, "message": "refused", **error}}


class Double:
    """Intents, charges, refunds, and the answers kept under keys."""

    def __init__(self) -> None:
        self.intents: dict[str, dict[str, Any]] = {}
        self.charges: dict[str, dict[str, Any]] = {}
        self.refunds: dict[str, dict[str, Any]] = {}
        self.events: list[dict[str, Any]] = []
        self.balance: list[dict[str, Any]] = []
        self.calls: list[str] = []
        self.refund_keys: list[str | None] = []
        self.sdk = ""
        self.now = int(time.time())
        self.courier = Courier()
        self._kept: dict[str, tuple[str, int, dict[str, Any]]] = {}
        self._in_flight: set[str] = set()
        self._seen: set[str] = set()
        self._refused_in_flight = asyncio.Event()

    async def serve(self, request: Request, deed: Callable[..., dict[str, Any]]) -> Response:
        """Answer one call, as its key and its payment method want it."""
        if request.headers.get("authorization") != f"Bearer {API_KEY}":
            return _answer(401, {"error": {"type": "invalid_request_error", "message": "key"}})
        self.calls.append(f"{request.method} {request.url.path}")
        self.sdk = request.headers.get("x-stripe-client-user-agent", "")
        body = (await request.body()).decode()
        form = dict(parse_qsl(body or request.url.query))
        key = request.headers.get("idempotency-key")
        if (request.method, request.url.path) == ("POST", "/v1/refunds"):
            self.refund_keys.append(key)
        print_of = hashlib.sha256(f"{request.url.path} {body}".encode()).hexdigest()
        known = self._known(key, print_of)
        if known is not None:
            return known
        method = self._method_of(request, form)
        first = str(key) not in self._seen
        self._seen.add(str(key))
        if first and "pm_limited" in method:
            return _answer(429, _error("invalid_request_error", "rate_limit"), {"Retry-After": "2"})
        if first and "pm_lost" in method:
            await asyncio.sleep(3600)
        with self._flying(key):
            if "pm_slow" in method:
                # Until somebody else has come with its key.
                await self._refused_in_flight.wait()
            try:
                status, document = 200, deed(form=form, key=key, **request.path_params)
            except Refused as refusal:
                status, document = refusal.status, refusal.document
        if key is not None:
            # As it is now: a replay tells nothing of what has happened since.
            self._kept[key] = (print_of, status, json.loads(json.dumps(document)))
        if first and "pm_charged" in method:
            await asyncio.sleep(3600)
        return _CUT if first and "pm_cut" in method else _answer(status, document)

    def _method_of(self, request: Request, form: dict[str, str]) -> str:
        """Return what says how to answer: the payment method, or what it wants for refunds."""
        paid = self.charges.get(form.get("charge", ""))
        if paid is None or request.method != "POST":
            return form.get("payment_method", "")
        _, _, fate = paid["payment_method"].partition("_back_")
        return f"pm_{fate}"

    def _known(self, key: str | None, print_of: str) -> Response | None:
        """What a key that is in flight, or was used before, is answered."""
        if key is not None and key in self._in_flight:
            self._refused_in_flight.set()
            return _answer(409, _error("idempotency_error", "idempotency_key_in_use"))
        if key is None or key not in self._kept:
            return None
        kept_print, status, document = self._kept[key]
        if kept_print != print_of:
            return _answer(400, _error("idempotency_error", None))
        return _answer(status, document)

    @contextlib.contextmanager
    def _flying(self, key: str | None) -> Iterator[None]:
        if key is None:
            yield
            return
        self._in_flight.add(key)
        try:
            yield
        finally:
            self._in_flight.discard(key)

    def create(self, *, form: dict[str, str], key: str | None) -> dict[str, Any]:
        """`POST /v1/payment_intents` with confirm."""
        intent: dict[str, Any] = {
            "id": _new("pi"),
            "object": "payment_intent",
            "amount": int(form["amount"]),
            "currency": form["currency"],
            "customer": form["customer"],
            "metadata": _nested(form, "metadata"),
            "payment_method": None,
            "status": "requires_payment_method",
            "latest_charge": None,
            "last_payment_error": None,
            "created": self.now,
        }
        self.intents[intent["id"]] = intent
        return self._confirmed(intent, form, key)

    def confirm(self, *, form: dict[str, str], key: str | None, intent: str) -> dict[str, Any]:
        """`POST /v1/payment_intents/{id}/confirm`."""
        found = self.intents.get(intent)
        if found is None:
            raise Refused(404, "invalid_request_error", code="resource_missing", param="intent")
        if found["status"] not in {"requires_payment_method", "requires_action"}:
            raise Refused(400, "invalid_request_error", code="payment_intent_unexpected_state")
        return self._confirmed(found, form, key)

    def _confirmed(
        self, intent: dict[str, Any], form: dict[str, str], key: str | None
    ) -> dict[str, Any]:
        method = intent["payment_method"] = form["payment_method"]
        intent["last_payment_error"] = None
        intent["on_session"] = form.get("off_session") != "true"
        if "pm_500" in method:
            raise Refused(500, "api_error")
        if "pm_missing" in method:
            raise Refused(
                400, "invalid_request_error", code="resource_missing", param="payment_method"
            )
        if "pm_action" in method:
            intent["status"] = "requires_action"
            return self._shown(intent)
        _, _, declined = method.partition("pm_decline_")
        _, _, advice = method.partition("pm_advice_")
        status = "failed" if declined or advice else "succeeded"
        if "pm_processing" in method:
            status = "pending"
        return self._charged(intent, key, status, declined=declined, advice=advice)

    def act(self, intent_id: str) -> dict[str, Any]:
        """The customer passes 3-D Secure in the browser: no request of ours causes the charge."""
        intent = self.intents[intent_id]
        assert intent["status"] == "requires_action"
        return self._charged(intent, None, "succeeded")

    def fail(self, intent_id: str) -> dict[str, Any]:
        """The customer fails 3-D Secure: no charge, the one before stays the latest."""
        intent = self.intents[intent_id]
        assert intent["status"] == "requires_action"
        intent["status"] = "requires_payment_method"
        intent["last_payment_error"] = {
            "type": "invalid_request_error",
            "code": "payment_intent_authentication_failure",
            "payment_method": {"id": intent["payment_method"], "object": "payment_method"},
        }
        self._tell("payment_intent.payment_failed", intent, None)
        return self._shown(intent)

    def _charged(
        self,
        intent: dict[str, Any],
        key: str | None,
        status: str,
        *,
        declined: str = "",
        advice: str = "",
    ) -> dict[str, Any]:
        charge = {
            "id": _new("ch"),
            "object": "charge",
            "amount": intent["amount"],
            "amount_captured": intent["amount"] if status == "succeeded" else 0,
            "currency": intent["currency"],
            "payment_intent": intent["id"],
            "payment_method": intent["payment_method"],
            "metadata": dict(intent["metadata"]),
            "status": status,
            "failure_code": "card_declined" if status == "failed" else None,
            "outcome": {"reason": declined or "generic_decline", "advice_code": advice or None}
            if status == "failed"
            else {"type": "authorized"},
            "key": key,
        }
        self.charges[charge["id"]] = charge
        if status == "succeeded":
            self._book("charge", charge, charge["amount"])
        intent["latest_charge"] = charge["id"]
        self._tell(f"charge.{status}", charge, key)
        if status == "failed":
            error = {
                "code": "card_declined",
                "decline_code": declined or "generic_decline",
                "advice_code": advice or None,
                "charge": charge["id"],
            }
            intent["last_payment_error"] = {"type": "card_error", **error}
            raise Refused(402, "card_error", **error, payment_intent=dict(intent))
        intent["status"] = "processing" if status == "pending" else "succeeded"
        return self._shown(intent)

    def retrieve(self, *, form: dict[str, str], key: str | None, intent: str) -> dict[str, Any]:
        """`GET /v1/payment_intents/{id}`."""
        del form, key
        if intent not in self.intents:
            raise Refused(404, "invalid_request_error", code="resource_missing", param="intent")
        return self._shown(self.intents[intent])

    def listing(self, *, form: dict[str, str], key: str | None) -> dict[str, Any]:
        """`GET /v1/payment_intents?customer=`, newest first."""
        del key
        found = [i for i in self.intents.values() if i["customer"] == form["customer"]]
        return _list([self._shown(intent) for intent in reversed(found)])

    def charge(self, *, form: dict[str, str], key: str | None, charge: str) -> dict[str, Any]:
        """`GET /v1/charges/{id}`."""
        del form, key
        if charge not in self.charges:
            raise Refused(404, "invalid_request_error", code="resource_missing", param="id")
        return self.charges[charge]

    def refund(self, *, form: dict[str, str], key: str | None) -> dict[str, Any]:
        """`POST /v1/refunds`; no replay comes this far."""
        charge = self.charges.get(form["charge"])
        if charge is None:
            raise Refused(404, "invalid_request_error", code="resource_missing", param="charge")
        _, _, fate = charge["payment_method"].partition("_back_")
        if fate == "500":
            raise Refused(500, "api_error")
        gone = sum(
            r["amount"]
            for r in self.refunds.values()
            if r["charge"] == charge["id"] and r["status"] != "failed"
        )
        if gone == charge["amount_captured"]:
            raise Refused(400, "invalid_request_error", code="charge_already_refunded")
        amount = int(form.get("amount", charge["amount_captured"] - gone))
        if amount > charge["amount_captured"] - gone:
            raise Refused(400, "invalid_request_error", param="amount")
        refund = {
            "id": _new("re"),
            "object": "refund",
            "amount": amount,
            "currency": charge["currency"],
            "charge": charge["id"],
            "metadata": _nested(form, "metadata"),
            "status": "pending" if fate == "pending" else "succeeded",
            "failure_reason": None,
            "key": key,
        }
        self.refunds[refund["id"]] = refund
        self._book("refund", refund, -amount)
        self._tell("refund.created", refund, key)
        if fate == "500_charged":
            raise Refused(500, "api_error")
        return refund

    def cancel(self, intent_id: str) -> dict[str, Any]:
        """Somebody cancels the intent in Stripe's own pages, or it was confirmed too often."""
        self.intents[intent_id]["status"] = "canceled"
        return self._shown(self.intents[intent_id])

    def end(self, refund_id: str, status: str) -> dict[str, Any]:
        """A bank has taken a refund, or sent it back, be it days after it was called succeeded."""
        refund = self.refunds[refund_id]
        refund["status"] = status
        if status == "failed":
            refund["failure_reason"] = "expired_or_canceled_card"
            self._book("refund_failure", refund, refund["amount"])
        self._tell("charge.refund.updated", refund, None)
        if status == "failed":
            self._tell("refund.failed", refund, None)
        return refund

    def refund_of(self, *, form: dict[str, str], key: str | None, refund: str) -> dict[str, Any]:
        """`GET /v1/refunds/{id}`."""
        del form, key
        if refund not in self.refunds:
            raise Refused(404, "invalid_request_error", code="resource_missing", param="id")
        return self.refunds[refund]

    def refunds_of(self, *, form: dict[str, str], key: str | None) -> dict[str, Any]:
        """`GET /v1/refunds?charge=`."""
        del key
        return _list([r for r in self.refunds.values() if r["charge"] == form["charge"]])

    def transactions(self, *, form: dict[str, str], key: str | None) -> dict[str, Any]:
        """`GET /v1/balance_transactions?created[gte]=&created[lt]=`, newest first."""
        del key
        first, end = int(form["created[gte]"]), int(form["created[lt]"])
        found = [t for t in reversed(self.balance) if first <= t["created"] < end]
        if (after := form.get("starting_after")) is not None:
            found = found[[t["id"] for t in found].index(after) + 1 :]
        return _list(found, int(form.get("limit", 10)))

    def _book(self, kind: str, source: dict[str, Any], amount: int) -> None:
        """One entry of the balance, and the fee that Stripe books beside it."""
        for name, about, value in ((kind, source, amount), ("stripe_fee", None, -30)):
            self.balance.append(
                {
                    "id": _new("txn"),
                    "object": "balance_transaction",
                    "type": name,
                    "amount": value,
                    "currency": source["currency"],
                    "created": self.now,
                    "source": about,
                }
            )

    def _shown(self, intent: dict[str, Any]) -> dict[str, Any]:
        charge = self.charges.get(intent["latest_charge"] or "")
        return intent | {"latest_charge": charge}

    def _tell(self, event_type: str, thing: dict[str, Any], key: str | None) -> None:
        event = {
            "id": _new("evt"),
            "object": "event",
            "type": event_type,
            "data": {"object": json.loads(json.dumps(thing))},
            "request": {"id": _new("req"), "idempotency_key": key},
        }
        self.events.append(event)
        self.courier.take(event)


class Courier:
    """Delivers events, each until it is acknowledged."""

    def __init__(self) -> None:
        self.url = ""
        self.delivered: list[str] = []
        self._under_way: set[asyncio.Task[None]] = set()

    def take(self, event: dict[str, Any]) -> None:
        """Begin to deliver an event, where there is somebody to deliver it to."""
        if self.url:
            task = asyncio.create_task(self._deliver(event))
            self._under_way.add(task)
            task.add_done_callback(self._under_way.discard)

    async def _deliver(self, event: dict[str, Any]) -> None:
        body = json.dumps(event).encode()
        async with httpx.AsyncClient(trust_env=False) as client:
            while True:
                headers = {"Stripe-Signature": signature(body, SECRET, int(time.time()))}
                with contextlib.suppress(httpx.HTTPError):
                    answer = await client.post(self.url, content=body, headers=headers)
                    if answer.is_success:
                        self.delivered.append(event["id"])
                        return
                # As Stripe does, though sooner.
                await asyncio.sleep(0.1)


def signature(body: bytes, secret: str, at: int) -> str:
    """Return the header `Stripe-Signature` of a delivery."""
    signed = hmac.new(secret.encode(), f"{at}.".encode() + body, hashlib.sha256).hexdigest()
    return f"t={at},v1={signed}"


class StripeDouble:
    """One double as a process."""

    def __init__(self) -> None:
        self.url = ""
        self._process: subprocess.Popen[str] | None = None

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(
            [sys.executable, "-m", __name__], stdout=subprocess.PIPE, text=True
        )
        assert self._process.stdout is not None
        ready, _, _ = select.select([self._process.stdout], [], [], _PATIENCE)
        assert ready, "the double does not listen"
        self.url = self._process.stdout.readline().strip()
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process is not None
        self._process.kill()
        self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()

    def ledger(self) -> dict[str, Any]:
        """Return its books."""
        answer: dict[str, Any] = httpx.get(
            f"{self.url}/_ledger", trust_env=False, timeout=_PATIENCE
        ).json()
        return answer

    def tell(self, url: str) -> None:
        """Have it deliver its events to this address from now on."""
        self._control("PUT", "/_webhooks", url)

    def set_clock(self, now: datetime) -> None:
        """Set the instant at which things are created from now on."""
        self._control("PUT", "/_clock", str(int(now.timestamp())))

    def act(self, intent_id: str) -> None:
        """Have the customer pass 3-D Secure."""
        self._control("POST", f"/_act/{intent_id}", "")

    def fail(self, intent_id: str) -> None:
        """Have the customer fail 3-D Secure."""
        self._control("POST", f"/_fail/{intent_id}", "")

    def cancel(self, intent_id: str) -> None:
        """Cancel an intent."""
        self._control("POST", f"/_cancel/{intent_id}", "")

    def end(self, refund_id: str, status: str) -> None:
        """Have a bank take a refund (`succeeded`), or send it back (`failed`)."""
        self._control("POST", f"/_end/{refund_id}/{status}", "")

    def _control(self, method: str, path: str, text: str) -> None:
        url = f"{self.url}{path}"
        httpx.request(
            method, url, content=text, trust_env=False, timeout=_PATIENCE
        ).raise_for_status()


def _new(prefix: str) -> str:
    return f"{prefix}_{next(_ids):08d}"


def _nested(form: dict[str, str], name: str) -> dict[str, str]:
    return {k[len(name) + 1 : -1]: v for k, v in form.items() if k.startswith(f"{name}[")}


def _error(kind: str, code: str | None) -> dict[str, Any]:
    return {"error": {"type": kind, "code": code, "message": "refused"}}


def _list(things: list[dict[str, Any]], limit: int = 100) -> dict[str, Any]:
    return {"object": "list", "data": things[:limit], "has_more": len(things) > limit, "url": "/"}


def _answer(
    status: int, document: dict[str, Any], headers: dict[str, str] | None = None
) -> Response:
    return JSONResponse(document, status, headers)


def _application(double: Double) -> Starlette:
    def at(path: str, method: str, deed: Callable[..., dict[str, Any]]) -> Route:
        async def endpoint(request: Request) -> Response:
            return await double.serve(request, deed)

        return Route(path, endpoint, methods=[method])

    async def ledger(_: Request) -> Response:
        names = ("intents", "charges", "refunds", "events", "calls", "refund_keys", "sdk")
        books = {name: getattr(double, name) for name in names}
        return JSONResponse(books | {"delivered": double.courier.delivered})

    async def webhooks(request: Request) -> Response:
        double.courier.url = (await request.body()).decode()
        return Response()

    async def clock(request: Request) -> Response:
        double.now = int(await request.body())
        return Response()

    async def act(request: Request) -> Response:
        return JSONResponse(double.act(**request.path_params))

    async def fail(request: Request) -> Response:
        return JSONResponse(double.fail(**request.path_params))

    async def cancel(request: Request) -> Response:
        return JSONResponse(double.cancel(**request.path_params))

    async def end(request: Request) -> Response:
        return JSONResponse(double.end(**request.path_params))

    return Starlette(
        routes=[
            at("/v1/payment_intents", "POST", double.create),
            at("/v1/payment_intents", "GET", double.listing),
            at("/v1/payment_intents/{intent}/confirm", "POST", double.confirm),
            at("/v1/payment_intents/{intent}", "GET", double.retrieve),
            at("/v1/charges/{charge}", "GET", double.charge),
            at("/v1/refunds", "POST", double.refund),
            at("/v1/refunds", "GET", double.refunds_of),
            at("/v1/refunds/{refund}", "GET", double.refund_of),
            at("/v1/balance_transactions", "GET", double.transactions),
            Route("/_ledger", ledger),
            Route("/_webhooks", webhooks, methods=["PUT"]),
            Route("/_clock", clock, methods=["PUT"]),
            Route("/_act/{intent_id}", act, methods=["POST"]),
            Route("/_fail/{intent_id}", fail, methods=["POST"]),
            Route("/_cancel/{intent_id}", cancel, methods=["POST"]),
            Route("/_end/{refund_id}/{status}", end, methods=["POST"]),
        ]
    )


def _main() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        sys.stdout.write(f"http://127.0.0.1:{listener.getsockname()[1]}\n")
        sys.stdout.flush()
        config = uvicorn.Config(_application(Double()), log_level="error", lifespan="off")
        asyncio.run(uvicorn.Server(config).serve(sockets=[listener]))


if __name__ == "__main__":
    _main()
