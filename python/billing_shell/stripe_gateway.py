"""Adapter for Stripe, through its official SDK; an optional extra (`billing-shell[stripe]`).

One PaymentIntent per invoice: the first try creates and confirms it, each later one confirms it
again, and every try is a Charge of its own, whose id is our payment id. A token names customer and
payment method as `cus_…/pm_…`. The SDK's retries and telemetry are off; its HTTP runs over our
connections, so that a call leaves at its slot and ends within its time.

Which Charge belongs to which try: a created intent carries our reference as metadata and is found
by listing, never by search, which lags. A later try knows the intent, and its Charge is the one
after the last that is known. Events are matched by Charge, by the key of the request that caused
them, or, where the customer caused them, by the intent.

Codes are Stripe's decline codes; where its advice is `do_not_try_again` or `confirm_card_data`,
that is the code. Others are those of `simulated_gateway`.
"""

import asyncio
import math
import re
from collections.abc import Awaitable, Callable, Mapping
from contextvars import ContextVar
from datetime import datetime

import httpx
import stripe
from stripe.params import BalanceTransactionListParams

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
    open_gate,
)
from billing_shell.passage import Passage
from billing_shell.stripe_answers import (
    REFERENCE,
    Finding,
    of_charge,
    of_error,
    of_intent,
    of_refund,
    of_transaction,
    plain,
    reference_of,
)

_CONNECTIONS = 512
_IDLE_SECONDS = 30.0
_CONNECT_SHARE = 0.4
_LISTED = 100

_TOKEN = re.compile(r"(?P<customer>cus_[A-Za-z0-9]+)/(?P<method>[a-z]+_[A-Za-z0-9_]+)")
_REFUSED_REFUNDS = frozenset(
    {"charge_already_refunded", "charge_disputed", "refund_disputed_payment", "resource_missing"}
)
_passage: ContextVar[tuple[Passage, float] | None] = ContextVar("passage", default=None)


class _Http(stripe.HTTPXClient):
    """The SDK's HTTP over our connections. What goes wrong on the network is not wrapped."""

    def __init__(self) -> None:
        super().__init__()
        self._ours = httpx.AsyncClient(
            trust_env=False, transport=ConnectionLanes(_CONNECTIONS, _IDLE_SECONDS)
        )

    async def request_async(
        self, method: str, url: str, headers: Mapping[str, str], post_data: str | None = None
    ) -> tuple[bytes, int, Mapping[str, str]]:
        """Send one request through the gate of the call that it belongs to."""
        passage, seconds = _passage.get() or (None, 80.0)
        response = await self._ours.request(
            method,
            url,
            headers=dict(headers),
            content=post_data or None,
            timeout=httpx.Timeout(
                seconds, connect=seconds * _CONNECT_SHARE, pool=seconds * _CONNECT_SHARE
            ),
            extensions={} if passage is None else {"trace": passage},
        )
        return response.content, response.status_code, response.headers

    async def close_async(self) -> None:
        """Close both clients: the SDK makes one of its own that is never used."""
        await self._ours.aclose()
        await super().close_async()  # type: ignore[no-untyped-call]


class StripeGateway:
    """One Stripe account; a `Gateway`. `base_url` is that of its API, `api_key` a secret key."""

    def __init__(self, base_url: str, *, api_key: str) -> None:
        # Telemetry would report each call's latency with the next one.
        stripe.enable_telemetry = False
        self._http = _Http()
        self._client = stripe.StripeClient(
            api_key,
            base_addresses={"api": base_url},
            http_client=self._http,
            max_network_retries=0,
        )

    async def charge(
        self, request: ChargeRequest, *, timeout: float, gate: Gate = open_gate
    ) -> ChargeResult:
        """Create the intent, or confirm it again; see `Gateway.charge`."""
        token = _TOKEN.fullmatch(request.payment_method_token)
        if token is None:
            return _charge_result(
                request, Finding(Outcome.DECLINED, "payment_method_invalid"), Source.SEND
            )
        finding = await _asked(
            lambda: self._confirm(request, token["customer"], token["method"]), timeout, gate
        )
        return _charge_result(request, finding, Source.SEND)

    async def look_up(
        self, request: ChargeRequest, *, timeout: float, gate: Gate = open_gate
    ) -> ChargeResult:
        """Ask for the Charge, the intent, or the customer's intents; see `Gateway.look_up`."""
        finding = await _asked(lambda: self._find(request), timeout, gate)
        return _charge_result(request, finding, Source.LOOKUP)

    async def refund(
        self, request: RefundRequest, *, timeout: float, gate: Gate = open_gate
    ) -> RefundResult:
        """Refund the Charge; see `Gateway.refund`."""
        finding = await _asked(lambda: self._refund(request), timeout, gate)
        return _refund_result(request, finding, Source.SEND)

    async def look_up_refund(
        self, request: RefundRequest, *, timeout: float, gate: Gate = open_gate
    ) -> RefundResult:
        """Ask for the refund, or for those of the Charge; see `Gateway.look_up_refund`."""
        finding = await _asked(lambda: self._find_refund(request), timeout, gate)
        return _refund_result(request, finding, Source.LOOKUP)

    async def settled(
        self,
        start: datetime,
        end: datetime,
        *,
        timeout: float,
        cursor: str | None = None,
        gate: Gate = open_gate,
    ) -> SettledPage:
        """List the entries of the balance; see `Gateway.settled`."""
        pages: list[SettledPage] = []

        async def ask() -> Finding:
            pages.append(await self._list_settled(start, end, cursor))
            return Finding(Outcome.SUCCEEDED)

        finding = await _asked(ask, timeout, gate)
        if pages:
            return pages[0]
        return SettledPage(code=finding.code or "unknown", retry_after=finding.retry_after)

    async def aclose(self) -> None:
        """Close the connections."""
        await self._http.close_async()

    async def _confirm(self, request: ChargeRequest, customer: str, method: str) -> Finding:
        off_session = request.lane != "INTERACTIVE"
        if request.gateway_intent_id is not None:
            intent = await self._client.v1.payment_intents.confirm_async(
                request.gateway_intent_id,
                {
                    "payment_method": method,
                    "off_session": off_session,
                    "expand": ["latest_charge"],
                },
                {"idempotency_key": request.idempotency_key},
            )
        else:
            intent = await self._client.v1.payment_intents.create_async(
                {
                    "amount": request.amount,
                    "currency": request.currency.lower(),
                    "customer": customer,
                    "payment_method": method,
                    "confirm": True,
                    "off_session": off_session,
                    "automatic_payment_methods": {"enabled": True, "allow_redirects": "never"},
                    "description": request.description,
                    "metadata": {REFERENCE: request.idempotency_key},
                    "expand": ["latest_charge"],
                },
                {"idempotency_key": request.idempotency_key},
            )
        return of_intent(request, plain(intent))

    async def _find(self, request: ChargeRequest) -> Finding:
        if request.gateway_payment_id is not None:
            charge = await self._client.v1.charges.retrieve_async(request.gateway_payment_id)
            return of_charge(plain(charge))
        if request.gateway_intent_id is not None:
            intent = await self._client.v1.payment_intents.retrieve_async(
                request.gateway_intent_id, {"expand": ["latest_charge"]}
            )
            return of_intent(request, plain(intent))
        token = _TOKEN.fullmatch(request.payment_method_token)
        if token is None:
            return Finding(Outcome.NOT_FOUND)
        listed = await self._client.v1.payment_intents.list_async(
            {
                "customer": token["customer"],
                "limit": _LISTED,
                "expand": ["data.latest_charge"],
            }
        )
        for document in map(plain, listed.data):
            if reference_of(document) == request.idempotency_key:
                return of_intent(request, document)
        if listed.has_more:
            return Finding(Outcome.UNKNOWN, "too_many_intents")
        return Finding(Outcome.NOT_FOUND)

    async def _refund(self, request: RefundRequest) -> Finding:
        try:
            refund = await self._client.v1.refunds.create_async(
                {
                    "charge": request.gateway_payment_id,
                    "amount": request.amount,
                    "metadata": {REFERENCE: request.idempotency_key},
                },
                {"idempotency_key": request.idempotency_key},
            )
        except stripe.IdempotencyError:
            raise
        except stripe.InvalidRequestError as error:
            if error.code in _REFUSED_REFUNDS or error.param == "amount":
                return Finding(Outcome.DECLINED, error.code or "amount_exceeds_remaining")
            raise
        return of_refund(request, plain(refund))

    async def _find_refund(self, request: RefundRequest) -> Finding:
        if request.gateway_refund_id is not None:
            refund = await self._client.v1.refunds.retrieve_async(request.gateway_refund_id)
            return of_refund(request, plain(refund))
        listed = await self._client.v1.refunds.list_async(
            {"charge": request.gateway_payment_id, "limit": _LISTED}
        )
        for document in map(plain, listed.data):
            if reference_of(document) == request.idempotency_key:
                return of_refund(request, document)
        if listed.has_more:
            return Finding(Outcome.UNKNOWN, "too_many_refunds")
        return Finding(Outcome.NOT_FOUND)

    async def _list_settled(
        self, start: datetime, end: datetime, cursor: str | None
    ) -> SettledPage:
        asked: BalanceTransactionListParams = {
            "created": {"gte": math.ceil(start.timestamp()), "lt": math.ceil(end.timestamp())},
            "limit": _LISTED,
            "expand": ["data.source"],
        }
        if cursor is not None:
            asked["starting_after"] = cursor
        listed = await self._client.v1.balance_transactions.list_async(asked)
        transactions = [plain(each) for each in listed.data]
        try:
            items = [item for each in transactions if (item := of_transaction(each)) is not None]
        except (KeyError, TypeError, ValueError):
            return SettledPage(code="unrecognised_answer")
        last = transactions[-1]["id"] if listed.has_more and transactions else None
        return SettledPage(tuple(items), last)


async def _asked(call: Callable[[], Awaitable[Finding]], seconds: float, gate: Gate) -> Finding:
    """Make one call of the SDK; whatever comes of it is a finding."""
    try:
        async with asyncio.timeout(seconds) as limit:
            token = _passage.set((Passage(gate, limit, seconds), seconds))
            try:
                return await call()
            finally:
                _passage.reset(token)
    except (httpx.ConnectError, httpx.ConnectTimeout):
        return Finding(Outcome.NOT_ATTEMPTED, "connection_refused")
    except httpx.PoolTimeout:
        return Finding(Outcome.NOT_ATTEMPTED, "no_free_connection")
    except (TimeoutError, httpx.TimeoutException):
        return Finding(Outcome.UNKNOWN, "timeout")
    except (httpx.HTTPError, OSError):
        return Finding(Outcome.UNKNOWN, "connection_lost")
    except stripe.StripeError as error:
        return of_error(error)


def _outcome(finding: Finding, source: Source) -> Outcome:
    if source is Source.LOOKUP and finding.outcome is Outcome.NOT_ATTEMPTED:
        return Outcome.UNKNOWN
    if source is Source.SEND and finding.outcome is Outcome.NOT_FOUND:
        return Outcome.UNKNOWN
    return finding.outcome


def _charge_result(request: ChargeRequest, finding: Finding, source: Source) -> ChargeResult:
    return ChargeResult(
        customer_id=request.customer_id,
        attempt_id=request.attempt_id,
        claim_epoch=request.claim_epoch,
        outcome=_outcome(finding, source),
        gateway_payment_id=finding.payment_id,
        amount=finding.amount,
        currency=finding.currency,
        code=finding.code,
        retry_after=finding.retry_after,
        action_expires_at=None,
        source=source,
        gateway_intent_id=finding.intent_id,
    )


def _refund_result(request: RefundRequest, finding: Finding, source: Source) -> RefundResult:
    return RefundResult(
        customer_id=request.customer_id,
        refund_id=request.refund_id,
        claim_epoch=request.claim_epoch,
        outcome=_outcome(finding, source),
        gateway_refund_id=finding.payment_id,
        amount=finding.amount,
        currency=finding.currency,
        code=finding.code,
        retry_after=finding.retry_after,
        source=source,
    )
