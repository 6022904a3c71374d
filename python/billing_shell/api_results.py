"""What calls return that is no row of a view. As in `api_answers`, for the specification only."""

from decimal import Decimal
from typing import Annotated, Any, ClassVar

from pydantic import Field, WithJsonSchema

from billing_shell.api_answers import Subscription
from billing_shell.api_fields import Answer, BigInteger, Flag, Instant, Integer, Text
from billing_shell.api_invoice_answers import Invoice, InvoiceLine

# Sums of 64-bit numbers have more digits than those.
_Sum = Annotated[Decimal, WithJsonSchema({"type": "integer"})]


class Access(Answer):
    """Whether a customer may use a resource."""

    example: ClassVar[dict[str, Any]] = {"hasAccess": True}

    has_access: Flag = Field(description="False also for a customer or resource that is unknown.")


class WaitingLine(Answer):
    """A line that waits for the next invoice."""

    example: ClassVar[dict[str, Any]] = {"description": "Pro, unused time", "amount": -2450}

    description: Text = Field(description="Text for people.")
    amount: BigInteger = Field(description="Minor units, negative for a credit.")


class PreviewedInvoice(Invoice):
    """An invoice with its lines, that was not issued."""

    example: ClassVar[dict[str, Any]] = {**Invoice.example, "lines": [InvoiceLine.example]}

    lines: list[InvoiceLine] = Field(description="Its lines.")


class ChangePreview(Answer):
    """What a change would do; ids in it are not kept."""

    example: ClassVar[dict[str, Any]] = {
        "subscription": Subscription.example,
        "invoice": PreviewedInvoice.example,
        "nextInvoiceLines": None,
        "creditBalance": 0,
    }

    subscription: Subscription = Field(description="As it would be.")
    invoice: PreviewedInvoice | None = Field(description="What would be invoiced; null = nothing.")
    next_invoice_lines: list[WaitingLine] | None = Field(
        description="What would wait for the next invoice; null = nothing."
    )
    credit_balance: BigInteger = Field(description="Credit left afterwards, in minor units.")


class PriceMigration(Answer):
    """Who moves to a new price, in one currency."""

    example: ClassVar[dict[str, Any]] = {
        "currency": "USD",
        "subscriptions": 1200,
        "amountBefore": 5880000,
        "amountAfter": 7080000,
        "difference": 1200000,
    }

    currency: Text = Field(description="Currency, ISO 4217.")
    subscriptions: BigInteger = Field(description="How many.")
    amount_before: _Sum = Field(description="Sum per period before, in minor units.")
    amount_after: _Sum = Field(description="Sum per period after, in minor units.")
    difference: _Sum = Field(description="Sum after less sum before.")


class ExplainedLine(Answer):
    """One line of an invoice and the sum behind it."""

    example: ClassVar[dict[str, Any]] = {
        "lineNo": 1,
        "description": "Pro",
        "amount": 4900,
        "formula": "4900 x 1",
        "recomputed": 4900,
    }

    line_no: Integer = Field(description="Number within the invoice, from 1.")
    description: Text = Field(description="Text for people.")
    amount: BigInteger = Field(description="What the line says, in minor units.")
    formula: Text = Field(description="How it was computed.")
    recomputed: BigInteger = Field(description="The result of computing it again.")


class TimelineEntry(Answer):
    """Something that happened to a subscription."""

    example: ClassVar[dict[str, Any]] = {
        "at": "2027-01-31T10:30:00+00:00",
        "eventSeq": 1,
        "what": "SubscriptionCreated",
        "actor": "4f9c2a shop",
        "invoiceId": None,
        "attemptId": None,
        "amount": None,
        "currency": None,
        "detail": {"toStatus": "INCOMPLETE"},
    }

    at: Instant = Field(description="Business time.")
    event_seq: BigInteger | None = Field(description="Number of the event, where it has one.")
    what: Text = Field(description="What happened.")
    actor: Text | None = Field(description="Who did it: the request and the key, or a role.")
    invoice_id: BigInteger | None = Field(description="Invoice concerned.")
    attempt_id: BigInteger | None = Field(description="Attempt concerned.")
    amount: BigInteger | None = Field(description="Amount concerned, in minor units.")
    currency: Text | None = Field(description="Currency of the amount.")
    detail: dict[str, Any] | None = Field(description="Whatever else is known.")


class WebhookReceipt(Answer):
    """What became of a gateway's event."""

    example: ClassVar[dict[str, Any]] = {"status": "STORED"}

    status: Text = Field(description="STORED, or DUPLICATE where its id was known.")
