"""Adapter for the simulated gateway: its HTTP on one side, `ChargeResult` on the other.

Only a definite answer becomes a definite outcome. Whatever is not recognised, be it a status, a
body, a member or a broken connection, is UNKNOWN: the payment may have been made. Codes that do not
come from the gateway:

| code | outcome of a charge | meaning |
|---|---|---|
| `connection_refused` | NOT_ATTEMPTED | no connection came about, so nothing was sent |
| `no_free_connection` | NOT_ATTEMPTED | the pool was exhausted, so nothing was sent |
| `unsendable_request` | NOT_ATTEMPTED | the stored key cannot stand in an HTTP header |
| `rate_limited` | NOT_ATTEMPTED | 429, ahead of the gateway's idempotency layer |
| `unauthorized`, `forbidden` | NOT_ATTEMPTED | 401, 403: our credentials; open the breaker, alert |
| `timeout`, `connection_lost` | UNKNOWN | no answer, or half of one |
| `unreadable_answer` | UNKNOWN | too long, encoded, or not a JSON object |
| `unrecognised_answer` | UNKNOWN | a JSON object that does not say what became of the payment |
| `reference_mismatch` | UNKNOWN | the answer is about another payment than ours |
| `idempotency_key_in_use` | UNKNOWN | 409: an earlier send is still being executed |
| `idempotency_mismatch` | UNKNOWN | the key was used with other parameters: a person must look |
| `unrecognised_code` | DECLINED | a definite no, whose reason is no code |
| `http_<status>` | UNKNOWN | any other status, where the body names no code |

A look-up has the same codes, and UNKNOWN in place of NOT_ATTEMPTED. Where it finds several payments
under one reference, the one that went furthest is reported, with the code `several_payments` if
more than one of them succeeded.
"""

import asyncio
import json
import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Any
from urllib.parse import quote

import httpx

from billing_shell.connection_lanes import ConnectionLanes
from billing_shell.gateway import (
    ChargeRequest,
    ChargeResult,
    Gate,
    Outcome,
    RefundRequest,
    RefundResult,
    SettledPage,
    Source,
    UnreadableWebhookError,
    WebhookEvent,
    open_gate,
)
from billing_shell.passage import Passage
from billing_shell.simulated_answers import (
    CURRENCY,
    KEY,
    LARGEST_AMOUNT,
    OF_STATUS_ALONE,
    PAYMENT_ID,
    Answer,
    Finding,
    code_of,
    json_object,
    retry_after_of,
)
from billing_shell.simulated_refunds import of_refund, of_refund_look_up, refund_body
from billing_shell.simulated_settlements import of_settlement, settlement_query
from billing_shell.webhook_signature import verify

_CONNECTIONS = 512
# Shorter than the server's, so that a connection is never used while the server closes it.
_IDLE_SECONDS = 30.0
# The share of a call's time that connecting may take; it must end before the whole call does, or
# "nothing was sent" could not be told from "no answer".
_CONNECT_SHARE = 0.4
_LONGEST_ANSWER = 256 * 1024

_EVENT_TYPE = re.compile(r"[a-z_.]{1,100}")

_MADE = frozenset({HTTPStatus.OK, HTTPStatus.CREATED, HTTPStatus.ACCEPTED})
_REFUSED = frozenset(
    {HTTPStatus.BAD_REQUEST, HTTPStatus.NOT_FOUND, HTTPStatus.UNPROCESSABLE_ENTITY}
)
_METHOD_PARAMETERS = frozenset({"source", "payment_method", "card", "mandate"})
_OUTCOME_OF_STATUS = {
    "succeeded": Outcome.SUCCEEDED,
    "declined": Outcome.DECLINED,
    "requires_action": Outcome.REQUIRES_ACTION,
    "processing": Outcome.PROCESSING,
}
_RANK = (Outcome.REQUIRES_ACTION, Outcome.PROCESSING, Outcome.DECLINED, Outcome.SUCCEEDED)


class SimulatedGateway:
    """One merchant account at a simulated gateway; a `Gateway`.

    `base_url` is its address without a path, `api_key` the bearer token, if it asks for one. Keeps
    up to 512 connections; the caller bounds how many calls are in flight.
    """

    def __init__(self, base_url: str, *, api_key: str | None = None) -> None:
        self._client = httpx.AsyncClient(
            base_url=base_url,
            # No proxy and no credentials from the environment, no redirects, no retries.
            trust_env=False,
            headers={
                "Accept": "application/json",
                "Accept-Encoding": "identity",
                **({} if api_key is None else {"Authorization": f"Bearer {api_key}"}),
            },
            transport=ConnectionLanes(_CONNECTIONS, _IDLE_SECONDS),
        )

    async def charge(
        self, request: ChargeRequest, *, timeout: float, gate: Gate = open_gate
    ) -> ChargeResult:
        """Send the stored request; see `Gateway.charge`."""
        if KEY.fullmatch(request.idempotency_key) is None:
            finding = Finding(Outcome.NOT_ATTEMPTED, "unsendable_request")
            return _result(request, finding, Source.SEND)
        sent = self._client.build_request(
            "POST",
            "/v1/charges",
            content=charge_body(request),
            headers={
                "Content-Type": "application/json",
                "Idempotency-Key": request.idempotency_key,
            },
            timeout=_time_limits(timeout),
        )
        answer = await self._exchange(sent, timeout, gate)
        finding = answer if isinstance(answer, Finding) else _of_charge(request, answer)
        return _result(request, finding, Source.SEND)

    async def look_up(
        self, request: ChargeRequest, *, timeout: float, gate: Gate = open_gate
    ) -> ChargeResult:
        """Ask what became of it; see `Gateway.look_up`."""
        if not _can_be_looked_up(request):
            finding = Finding(Outcome.UNKNOWN, "unsendable_request")
            return _result(request, finding, Source.LOOKUP)
        if request.gateway_payment_id is not None:
            path = f"/v1/charges/{quote(request.gateway_payment_id, safe='')}"
        else:
            path = f"/v1/charges?reference={quote(request.idempotency_key, safe='')}"
        sent = self._client.build_request("GET", path, timeout=_time_limits(timeout))
        answer = await self._exchange(sent, timeout, gate)
        finding = answer if isinstance(answer, Finding) else _of_look_up(request, answer)
        return _result(request, finding, Source.LOOKUP)

    async def refund(
        self, request: RefundRequest, *, timeout: float, gate: Gate = open_gate
    ) -> RefundResult:
        """Send the stored refund; see `Gateway.refund`."""
        sent = self._client.build_request(
            "POST",
            "/v1/refunds",
            content=refund_body(request),
            headers={
                "Content-Type": "application/json",
                "Idempotency-Key": request.idempotency_key,
            },
            timeout=_time_limits(timeout),
        )
        return of_refund(request, await self._exchange(sent, timeout, gate))

    async def look_up_refund(
        self, request: RefundRequest, *, timeout: float, gate: Gate = open_gate
    ) -> RefundResult:
        """Ask what became of a refund; see `Gateway.look_up_refund`."""
        if request.gateway_refund_id is not None:
            path = f"/v1/refunds/{quote(request.gateway_refund_id, safe='')}"
        else:
            path = f"/v1/refunds?reference={quote(request.idempotency_key, safe='')}"
        sent = self._client.build_request("GET", path, timeout=_time_limits(timeout))
        return of_refund_look_up(request, await self._exchange(sent, timeout, gate))

    async def settled(
        self,
        start: datetime,
        end: datetime,
        *,
        timeout: float,
        cursor: str | None = None,
        gate: Gate = open_gate,
    ) -> SettledPage:
        """List what moved money; see `Gateway.settled`."""
        sent = self._client.build_request(
            "GET",
            "/v1/settlements",
            params=settlement_query(start, end, cursor),
            timeout=_time_limits(timeout),
        )
        return of_settlement(await self._exchange(sent, timeout, gate))

    async def aclose(self) -> None:
        """Close the connections."""
        await self._client.aclose()

    async def _exchange(
        self, request: httpx.Request, timeout: float, gate: Gate
    ) -> Answer | Finding:
        try:
            async with asyncio.timeout(timeout) as limit:
                request.extensions["trace"] = Passage(gate, limit, timeout)
                return await self._send(request)
        except (httpx.ConnectError, httpx.ConnectTimeout):
            return Finding(Outcome.NOT_ATTEMPTED, "connection_refused")
        except httpx.PoolTimeout:
            return Finding(Outcome.NOT_ATTEMPTED, "no_free_connection")
        except (TimeoutError, httpx.TimeoutException):
            return Finding(Outcome.UNKNOWN, "timeout")
        except (httpx.HTTPError, OSError):
            return Finding(Outcome.UNKNOWN, "connection_lost")

    async def _send(self, request: httpx.Request) -> Answer | Finding:
        response = await self._client.send(request, stream=True)
        try:
            body = bytearray()
            async for chunk in response.aiter_raw():
                body += chunk
                if len(body) > _LONGEST_ANSWER:
                    return Finding(Outcome.UNKNOWN, "unreadable_answer")
        finally:
            await response.aclose()
        return Answer(response.status_code, response.headers, bytes(body))


def read_webhook(
    raw_body: bytes, headers: Mapping[str, str], secrets: Iterable[str], now: datetime
) -> WebhookEvent:
    """Verify and read one delivery; a `WebhookReader`."""
    verified = verify(raw_body, headers, secrets, now)
    try:
        event = json.loads(raw_body)
    except (ValueError, RecursionError) as error:
        raise UnreadableWebhookError("the body is not JSON") from error
    if not isinstance(event, dict) or not isinstance(data := event.get("data"), dict):
        raise UnreadableWebhookError("the body is not an event")
    event_type = event.get("type")
    if not isinstance(event_type, str) or _EVENT_TYPE.fullmatch(event_type) is None:
        raise UnreadableWebhookError("the event has no type")
    return WebhookEvent(verified.event_id, event_type, _payload(event_type, data))


def _payload(event_type: str, data: dict[str, Any]) -> dict[str, str | int]:
    payload: dict[str, str | int] = {}
    if isinstance(payment_id := data.get("payment_id"), str) and PAYMENT_ID.fullmatch(payment_id):
        payload["paymentId"] = payment_id
    if event_type.startswith("refund."):
        if not isinstance(refund_id := data.get("refund_id"), str) or not PAYMENT_ID.fullmatch(
            refund_id
        ):
            return payload
        payload["refundId"] = refund_id
    elif not event_type.startswith("charge."):
        # Not about a payment's own end: its reference and its amount are somebody else's.
        return payload
    if isinstance(reference := data.get("reference"), str) and KEY.fullmatch(reference):
        payload["reference"] = reference
    outcome = _OUTCOME_OF_STATUS.get(str(data.get("status")))
    if outcome is not None:
        payload["outcome"] = outcome.value
    if type(amount := data.get("amount")) is int and 0 < amount <= LARGEST_AMOUNT:
        payload["amount"] = amount
    if isinstance(currency := data.get("currency"), str) and CURRENCY.fullmatch(currency):
        payload["currency"] = currency
    if outcome is Outcome.DECLINED:
        payload["code"] = code_of(data.get("code")) or "unrecognised_code"
    return payload


def _can_be_looked_up(request: ChargeRequest) -> bool:
    if request.gateway_payment_id is not None:
        return PAYMENT_ID.fullmatch(request.gateway_payment_id) is not None
    return KEY.fullmatch(request.idempotency_key) is not None


def charge_body(request: ChargeRequest) -> bytes:
    """Return the body of the stored request: the same bytes at every send."""
    document = {
        "amount": request.amount,
        "currency": request.currency,
        "source": request.payment_method_token,
        "reference": request.idempotency_key,
        "description": request.description,
    }
    return json.dumps(document, separators=(",", ":")).encode("ascii")


def _time_limits(timeout: float) -> httpx.Timeout:
    return httpx.Timeout(timeout, connect=timeout * _CONNECT_SHARE, pool=timeout * _CONNECT_SHARE)


def _of_charge(request: ChargeRequest, answer: Answer) -> Finding:
    if answer.status in OF_STATUS_ALONE:
        outcome, code = OF_STATUS_ALONE[HTTPStatus(answer.status)]
        return Finding(outcome, code, retry_after=retry_after_of(answer.headers))
    document = json_object(answer)
    if document is None:
        return _unreadable(answer)
    if answer.status in _MADE:
        return _of_payment(request, document)
    if answer.status == HTTPStatus.PAYMENT_REQUIRED:
        return _of_refused_payment(request, document)
    return _of_error(answer, document)


def _of_error(answer: Answer, document: dict[str, Any]) -> Finding:
    code = code_of(document.get("code"))
    if answer.status in _REFUSED and document.get("param") in _METHOD_PARAMETERS:
        return Finding(Outcome.DECLINED, code or "payment_method_invalid")
    if code == "idempotency_key_reused":
        return Finding(Outcome.UNKNOWN, "idempotency_mismatch")
    return Finding(Outcome.UNKNOWN, code or f"http_{answer.status}")


def _of_look_up(request: ChargeRequest, answer: Answer) -> Finding:
    if answer.status in OF_STATUS_ALONE:
        _, reason = OF_STATUS_ALONE[HTTPStatus(answer.status)]
        return Finding(Outcome.UNKNOWN, reason, retry_after=retry_after_of(answer.headers))
    document = json_object(answer)
    if document is None:
        return _unreadable(answer)
    if request.gateway_payment_id is not None:
        return _of_one(request, answer.status, document)
    if answer.status == HTTPStatus.OK:
        return _of_listing(request, document)
    return Finding(Outcome.UNKNOWN, code_of(document.get("code")) or f"http_{answer.status}")


def _of_one(request: ChargeRequest, status: int, document: dict[str, Any]) -> Finding:
    if status == HTTPStatus.OK:
        finding = _of_payment(request, document)
        if finding.payment_id not in {None, request.gateway_payment_id}:
            return Finding(Outcome.UNKNOWN, "reference_mismatch")
        return finding
    code = code_of(document.get("code"))
    if status == HTTPStatus.NOT_FOUND and code == "charge_not_found":
        return Finding(Outcome.NOT_FOUND, code)
    return Finding(Outcome.UNKNOWN, code or f"http_{status}")


def _of_listing(request: ChargeRequest, document: dict[str, Any]) -> Finding:
    payments = document.get("data")
    if not isinstance(payments, list) or document.get("has_more") is not False:
        return Finding(Outcome.UNKNOWN, "unrecognised_answer")
    if not payments:
        return Finding(Outcome.NOT_FOUND)
    findings = [
        _of_payment(request, payment)
        if isinstance(payment, dict)
        else Finding(Outcome.UNKNOWN, "unrecognised_answer")
        for payment in payments
    ]
    for finding in findings:
        if finding.outcome is Outcome.UNKNOWN:
            return finding
    furthest = max(findings, key=lambda finding: _RANK.index(finding.outcome))
    succeeded = [finding for finding in findings if finding.outcome is Outcome.SUCCEEDED]
    if len(succeeded) > 1:
        return Finding(
            Outcome.SUCCEEDED,
            "several_payments",
            payment_id=furthest.payment_id,
            amount=furthest.amount,
            currency=furthest.currency,
        )
    return furthest


def _of_payment(request: ChargeRequest, payment: dict[str, Any]) -> Finding:
    outcome = _OUTCOME_OF_STATUS.get(str(payment.get("status")))
    payment_id, amount, currency = (payment.get(name) for name in ("id", "amount", "currency"))
    if (
        outcome is None
        or not isinstance(payment_id, str)
        or PAYMENT_ID.fullmatch(payment_id) is None
        or type(amount) is not int
        or not 0 < amount <= LARGEST_AMOUNT
        or not isinstance(currency, str)
        or CURRENCY.fullmatch(currency) is None
    ):
        return Finding(Outcome.UNKNOWN, "unrecognised_answer")
    if payment.get("reference") != request.idempotency_key:
        return Finding(Outcome.UNKNOWN, "reference_mismatch")
    expires_at = None
    if outcome is Outcome.REQUIRES_ACTION:
        expires_at = _instant(payment.get("expires_at"))
        if expires_at is None:
            return Finding(Outcome.UNKNOWN, "unrecognised_answer")
    declined = outcome is Outcome.DECLINED
    return Finding(
        outcome,
        (code_of(payment.get("code")) or "unrecognised_code") if declined else None,
        payment_id=payment_id,
        amount=amount,
        currency=currency,
        action_expires_at=expires_at,
    )


def _of_refused_payment(request: ChargeRequest, document: dict[str, Any]) -> Finding:
    payment = document.get("charge")
    if isinstance(payment, dict):
        finding = _of_payment(request, payment)
        if finding.outcome in {Outcome.DECLINED, Outcome.UNKNOWN}:
            return finding
        return Finding(Outcome.UNKNOWN, "unrecognised_answer")
    code = code_of(document.get("code"))
    if code is None:
        return Finding(Outcome.UNKNOWN, "unrecognised_answer")
    return Finding(Outcome.DECLINED, code)


def _unreadable(answer: Answer) -> Finding:
    if answer.status in _MADE:
        return Finding(Outcome.UNKNOWN, "unreadable_answer")
    return Finding(Outcome.UNKNOWN, f"http_{answer.status}")


def _instant(value: object) -> datetime | None:
    if not isinstance(value, str):
        return None
    try:
        instant = datetime.fromisoformat(value)
        return None if instant.tzinfo is None else instant.astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def _result(request: ChargeRequest, finding: Finding, source: Source) -> ChargeResult:
    outcome = finding.outcome
    if source is Source.LOOKUP and outcome is Outcome.NOT_ATTEMPTED:
        outcome = Outcome.UNKNOWN
    return ChargeResult(
        customer_id=request.customer_id,
        attempt_id=request.attempt_id,
        claim_epoch=request.claim_epoch,
        outcome=outcome,
        gateway_payment_id=finding.payment_id,
        amount=finding.amount,
        currency=finding.currency,
        code=finding.code,
        retry_after=finding.retry_after,
        action_expires_at=finding.action_expires_at,
        source=source,
    )
