"""What the engine asks of a payment gateway, and what it may hear back.

`ChargeRequest` and `ChargeResult` mirror the composite types `charge_request` and `charge_result`
of the database field by field, in the same order: `start_attempts` and `attempts_to_look_up`
return the first, `settle_attempts` takes an array of the second. An adapter speaks one gateway's
protocol and translates between the two. It decides nothing: which outcome moves what is the
database's business.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from enum import StrEnum
from typing import Protocol


class Outcome(StrEnum):
    """What became of one attempt, as far as the gateway's answer tells."""

    SUCCEEDED = "SUCCEEDED"
    """The money moved."""
    DECLINED = "DECLINED"
    """A definite no, including an error that names the card, the method or the mandate."""
    REQUIRES_ACTION = "REQUIRES_ACTION"
    """The customer must act before `action_expires_at`."""
    PROCESSING = "PROCESSING"
    """Bank money is under way; the end is told later."""
    NOT_ATTEMPTED = "NOT_ATTEMPTED"
    """Definitely not executed: the same key may be sent again after `retry_after`."""
    UNKNOWN = "UNKNOWN"
    """It may have happened. Every answer that is not recognised means this."""
    NOT_FOUND = "NOT_FOUND"
    """Of a look-up only: the gateway definitely answered that it holds no such payment."""


class Source(StrEnum):
    """Who reported a result."""

    SEND = "SEND"
    LOOKUP = "LOOKUP"
    WEBHOOK = "WEBHOOK"


@dataclass(frozen=True, slots=True)
class ChargeRequest:
    """One stored request; `amount` is in the currency's minor unit, `send_no` counts from 1."""

    customer_id: int
    attempt_id: int
    claim_epoch: int
    idempotency_key: str
    amount: int
    currency: str
    payment_method_token: str
    description: str
    lane: str
    gateway_account: str
    gateway_payment_id: str | None
    send_no: int
    gateway_intent_id: str | None = None
    """Intent of an earlier try, to be confirmed again; None where this try makes one."""
    previous_payment_id: str | None = None
    """The last payment under that intent that is known: one after it is this try's own."""
    awaits_action: bool = False
    """Its customer had to act when it was last heard of: the intent was confirmed for this try."""


@dataclass(frozen=True, slots=True)
class ChargeResult:
    """What a send, a look-up or a webhook says about one attempt.

    `outcome` is an `Outcome` and `source` a `Source`. `amount` (minor units) and `currency` are the
    gateway's own figures, never the requested ones, so that the database can compare the two.
    `code` is the gateway's decline code, or the adapter's word for what went wrong.
    `retry_after` counts seconds from the answer.
    """

    customer_id: int
    attempt_id: int
    claim_epoch: int
    outcome: str
    gateway_payment_id: str | None
    amount: int | None
    currency: str | None
    code: str | None
    retry_after: Decimal | None
    action_expires_at: datetime | None
    source: str
    gateway_intent_id: str | None = None
    """What this try has made or confirmed, at gateways where one such thing has several tries."""


@dataclass(frozen=True, slots=True)
class RefundRequest:
    """One stored refund; `amount` is in the currency's minor unit, `send_no` counts from 1."""

    customer_id: int
    refund_id: int
    claim_epoch: int
    idempotency_key: str
    gateway_payment_id: str
    amount: int
    currency: str
    gateway_account: str
    gateway_refund_id: str | None
    send_no: int


@dataclass(frozen=True, slots=True)
class RefundResult:
    """What a send, a look-up or a webhook says about one refund; as `ChargeResult`.

    `outcome` is never REQUIRES_ACTION. DECLINED means that the gateway refuses it for good.
    """

    customer_id: int
    refund_id: int
    claim_epoch: int
    outcome: str
    gateway_refund_id: str | None
    amount: int | None
    currency: str | None
    code: str | None
    retry_after: Decimal | None
    source: str


@dataclass(frozen=True, slots=True)
class SettledItem:
    """Money that moved, as the gateway has booked it.

    `kind` is CHARGE or REFUND, `amount` in minor units and positive for both, `reference` ours
    where the gateway has it.
    """

    kind: str
    gateway_id: str
    reference: str | None
    amount: int
    currency: str


@dataclass(frozen=True, slots=True)
class SettledPage:
    """Some of what a gateway has booked.

    `cursor` leads to the next page; None where this is the last. With a `code` the page was not to
    be had, for that reason: nothing of it counts, and it may be asked for again, after
    `retry_after` seconds where the gateway says so.
    """

    items: tuple[SettledItem, ...] = ()
    cursor: str | None = None
    code: str | None = None
    retry_after: Decimal | None = None


@dataclass(frozen=True, slots=True)
class WebhookEvent:
    """One verified event of a gateway, in the words of `receive_webhook`.

    `payload` holds those of `paymentId`, `refundId` (of a refund), `intentId` (what all tries of an
    invoice share, where the gateway has such a thing), `reference`, `outcome` (an `Outcome`),
    `amount` (minor units), `currency` and `code` that the event says and that are well-formed.
    What is missing there makes the engine look the payment up; nothing else of the gateway's event
    is kept.
    """

    event_id: str
    event_type: str
    payload: dict[str, str | int]


class UnreadableWebhookError(Exception):
    """Signed by the gateway, and yet no event: to be refused, so that it is sent again."""


class WebhookReader(Protocol):
    """Verifies and reads one delivery; each gateway has a scheme and words of its own."""

    def __call__(
        self, raw_body: bytes, headers: Mapping[str, str], secrets: Iterable[str], now: datetime
    ) -> WebhookEvent:
        """Return the event, as of the wall clock `now`.

        Raises:
            WebhookSignatureError: not proven to come from the gateway.
            SecretError: our own secrets are unusable.
            UnreadableWebhookError: no event.
        """
        ...


class NotSentError(Exception):
    """A gate did not let a call through: nothing of it was sent.

    Attributes:
        reason: why, as a code.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


Gate = Callable[[], Awaitable[None]]
"""Awaited by an adapter once a connection stands, right before the first byte of the call is sent,
so that the call arrives when its slot is, however long connecting took."""


async def open_gate() -> None:
    """Lets a call through at once."""


class Gateway(Protocol):
    """One merchant account at one gateway.

    No call raises for anything that the network or the gateway does. What the gate raises
    passes through, and so does a cancellation of the calling task, which leaves the attempt to be
    looked up. No call is ever retried inside an adapter: each takes one slot of the throttle.
    """

    async def charge(
        self, request: ChargeRequest, *, timeout: float, gate: Gate = open_gate
    ) -> ChargeResult:
        """Send the stored request, byte by byte the same at every send.

        Waits for the answer for at most `timeout` seconds from the gate. Never answers NOT_FOUND.
        """
        ...

    async def look_up(
        self, request: ChargeRequest, *, timeout: float, gate: Gate = open_gate
    ) -> ChargeResult:
        """Ask what became of it, by the gateway's payment id if known, else by our reference.

        Never answers NOT_ATTEMPTED: a look-up that errs says nothing about the payment, and is
        UNKNOWN.
        """
        ...

    async def refund(
        self, request: RefundRequest, *, timeout: float, gate: Gate = open_gate
    ) -> RefundResult:
        """Send money back, byte by byte the same at every send; otherwise as `charge`."""
        ...

    async def look_up_refund(
        self, request: RefundRequest, *, timeout: float, gate: Gate = open_gate
    ) -> RefundResult:
        """Ask what became of a refund, by the gateway's id if known, else by our reference.

        Otherwise as `look_up`.
        """
        ...

    async def settled(
        self,
        start: datetime,
        end: datetime,
        *,
        timeout: float,
        cursor: str | None = None,
        gate: Gate = open_gate,
    ) -> SettledPage:
        """List the charges and refunds that moved money in `[start, end)`, one page a call."""
        ...

    async def aclose(self) -> None:
        """Close the connections; calls in flight end as UNKNOWN."""
        ...
