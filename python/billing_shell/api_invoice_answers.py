"""What the HTTP door answers about invoices and money: views, as in `api_answers`."""

from typing import Any, ClassVar

from pydantic import Field

from billing_shell.api_fields import Answer, BigInteger, Instant, Integer, Text


class Invoice(Answer):
    """What is owed; total = creditApplied + amountPaid + carried + amountDue."""

    example: ClassVar[dict[str, Any]] = {
        "invoiceId": 64,
        "customerId": 64,
        "subscriptionId": 64,
        "kind": "INITIAL",
        "status": "PAID",
        "currency": "USD",
        "total": 4900,
        "creditApplied": 0,
        "amountPaid": 4900,
        "carried": 0,
        "amountDue": 0,
        "periodStart": "2027-01-31T10:30:00+00:00",
        "periodEnd": "2027-02-28T10:30:00+00:00",
        "attemptCount": 1,
        "failureCount": 0,
        "nextAttemptAt": None,
        "paidAt": "2027-01-31T10:30:02+00:00",
        "planCode": "PRO_MONTHLY",
        "unitAmount": 4900,
        "quantity": 1,
        "gatewayAccount": "simulated",
        "issuedAt": "2027-01-31T10:30:00+00:00",
        "failedAt": None,
        "voidedAt": None,
    }

    invoice_id: BigInteger = Field(description="Invoice.")
    customer_id: BigInteger = Field(description="Customer who owes it.")
    subscription_id: BigInteger | None = Field(
        description="Subscription; NULL for a MANUAL invoice."
    )
    kind: Text = Field(description="INITIAL, RENEWAL, CHANGE or MANUAL.")
    status: Text = Field(description="DRAFT, OPEN, PAID, FAILED (given up) or VOID.")
    currency: Text = Field(description="Currency, ISO 4217.")
    total: BigInteger = Field(description="Sum of the lines in minor units, never negative.")
    credit_applied: BigInteger = Field(
        description="Paid from the credit of the customer, in minor units."
    )
    amount_paid: BigInteger = Field(description="Paid through a gateway, in minor units.")
    carried: BigInteger = Field(
        description="Below the minimum of the gateway and carried to the next invoice, in minor "
        "units."
    )
    amount_due: BigInteger = Field(description="What remains, in minor units.")
    period_start: Instant | None = Field(
        description="Start of the service period; provisional while the subscription is INCOMPLETE."
    )
    period_end: Instant | None = Field(description="End of the service period, exclusive.")
    attempt_count: Integer = Field(
        description="Number of attempts, and the number of the last one."
    )
    failure_count: Integer = Field(
        description="Steps of the retry ladder taken: declines and rungs that passed untried."
    )
    next_attempt_at: Instant | None = Field(
        description="Business time from which it may be attempted (or its open attempt sent "
        "again); NULL = not now."
    )
    paid_at: Instant | None = Field(description="Business time of payment.")
    plan_code: Text | None = Field(description="Plan at issue.")
    unit_amount: BigInteger | None = Field(description="Price per unit at issue, in minor units.")
    quantity: Integer | None = Field(description="Quantity at issue.")
    gateway_account: Text | None = Field(
        description="Code of the gateway account that collects it; NULL = no payment method."
    )
    issued_at: Instant = Field(description="Business time of issue.")
    failed_at: Instant | None = Field(
        description="Business time of giving up; kept when it is paid late."
    )
    voided_at: Instant | None = Field(description="Business time of voiding.")


class InvoiceLine(Answer):
    """One line of an invoice, with how it was computed."""

    example: ClassVar[dict[str, Any]] = {
        "invoiceId": 64,
        "customerId": 64,
        "lineNo": 1,
        "kind": "PERIOD",
        "description": "Pro",
        "amount": 4900,
        "unitAmount": 4900,
        "quantity": 1,
        "secondsBilled": None,
        "secondsTotal": None,
        "periodStart": "2027-01-31T10:30:00+00:00",
        "periodEnd": "2027-02-28T10:30:00+00:00",
        "priceId": 64,
        "atMost": None,
    }

    invoice_id: BigInteger = Field(description="Invoice.")
    customer_id: BigInteger = Field(description="Customer.")
    line_no: Integer = Field(description="Number within the invoice, from 1.")
    kind: Text = Field(
        description="PERIOD (a full period), PRORATION (part of one), CREDIT (balances a negative "
        "net), CARRIED (from an earlier invoice) or MANUAL."
    )
    description: Text = Field(description="Text for people.")
    amount: BigInteger = Field(
        description="Minor units, negative for a credit: floor(unit_amount x quantity x "
        "seconds_billed / seconds_total)."
    )
    unit_amount: BigInteger | None = Field(description="Price per unit in minor units.")
    quantity: Integer | None = Field(description="Quantity.")
    seconds_billed: BigInteger | None = Field(
        description="Numerator of the proration in seconds; NULL = a full period."
    )
    seconds_total: BigInteger | None = Field(
        description="Denominator: length of the full period as priced, in seconds."
    )
    period_start: Instant | None = Field(description="Start of the time paid for.")
    period_end: Instant | None = Field(description="End of the time paid for, exclusive.")
    price_id: BigInteger | None = Field(description="Price version.")
    at_most: BigInteger | None = Field(
        description="Limit of a credit in minor units, where it was less than the formula gives: "
        "what had been paid for the period and not given back. NULL = none."
    )


class PaymentAttempt(Answer):
    """One effort to collect one invoice."""

    example: ClassVar[dict[str, Any]] = {
        "attemptId": 64,
        "customerId": 64,
        "invoiceId": 64,
        "attemptNo": 1,
        "idempotencyKey": "b35a50c8-inv-64-try-1",
        "status": "SUCCEEDED",
        "amount": 4900,
        "currency": "USD",
        "gatewayPaymentId": "pay_8f3b",
        "declineCode": None,
        "declineClass": None,
        "gatewayAccount": "simulated",
        "paymentMethodId": 64,
        "actionExpiresAt": None,
        "sendCount": 1,
        "lookupCount": 0,
        "startedAt": "2027-01-31T10:30:00+00:00",
        "endedAt": "2027-01-31T10:30:02+00:00",
    }

    attempt_id: BigInteger = Field(description="Payment attempt.")
    customer_id: BigInteger = Field(description="Customer.")
    invoice_id: BigInteger = Field(description="Invoice to collect.")
    attempt_no: Integer = Field(
        description="Number of the try within the invoice, from 1; moves only after a definite "
        "answer."
    )
    idempotency_key: Text = Field(
        description="<prefix>-inv-<invoice id>-try-<n>: key and reference at the gateway, unique "
        "in the world."
    )
    status: Text = Field(
        description="Rank: STARTED < UNKNOWN < REQUIRES_ACTION < PROCESSING < DECLINED < "
        "SUCCEEDED; ABANDONED ends an attempt that was never charged."
    )
    amount: BigInteger = Field(description="Amount sent, in minor units.")
    currency: Text = Field(description="Currency sent, ISO 4217.")
    gateway_payment_id: Text | None = Field(
        description="Payment at the gateway, once known; unique per account."
    )
    decline_code: Text | None = Field(description="Code of the decline.")
    decline_class: Text | None = Field(description="SOFT, HARD or CUSTOMER.")
    gateway_account: Text | None = Field(
        description="Code of the gateway account; NULL where there was no payment method."
    )
    payment_method_id: BigInteger | None = Field(
        description="Payment method; NULL where there was none."
    )
    action_expires_at: Instant | None = Field(
        description="Until when the customer may complete the required action."
    )
    send_count: Integer = Field(description="Claims for a send, the first included.")
    lookup_count: Integer = Field(description="Claims for a look-up since the last send.")
    started_at: Instant = Field(
        description="Business time of the first commit, from which the life of the key counts."
    )
    ended_at: Instant | None = Field(description="Business time of the definite answer.")


class Refund(Answer):
    """Money going back."""

    example: ClassVar[dict[str, Any]] = {
        "refundId": 64,
        "customerId": 64,
        "invoiceId": 64,
        "attemptId": 64,
        "refundNo": 1,
        "purpose": "REQUESTED",
        "status": "REQUESTED",
        "amount": 4900,
        "currency": "USD",
        "idempotencyKey": "b35a50c8-inv-64-try-1",
        "gatewayAccount": "simulated",
        "gatewayPaymentId": "pay_8f3b",
        "gatewayRefundId": None,
        "failureCode": None,
        "requestedAt": "2027-02-01T09:00:00+00:00",
        "endedAt": None,
    }

    refund_id: BigInteger = Field(description="Refund.")
    customer_id: BigInteger = Field(description="Customer.")
    invoice_id: BigInteger = Field(description="Invoice that the money was paid for.")
    attempt_id: BigInteger = Field(description="Attempt that captured it.")
    refund_no: Integer = Field(description="Number within the invoice, from 1.")
    purpose: Text = Field(
        description="REQUESTED by a caller, UNUSED_TIME of a cancelled subscription, or "
        "LATE_PAYMENT: money that never paid the invoice."
    )
    status: Text = Field(
        description="REQUESTED (to be sent), STARTED (claimed for a send), UNKNOWN, PROCESSING "
        "(accepted by the gateway), SUCCEEDED or FAILED."
    )
    amount: BigInteger = Field(description="Amount to send back, in minor units.")
    currency: Text = Field(description="Currency, ISO 4217.")
    idempotency_key: Text = Field(
        description="<prefix>-inv-<invoice id>-refund-<n>: key and reference at the gateway, "
        "unique in the world."
    )
    gateway_account: Text = Field(
        description="Code of the gateway account that captured the payment."
    )
    gateway_payment_id: Text = Field(description="Payment at the gateway.")
    gateway_refund_id: Text | None = Field(
        description="Refund at the gateway, once known; unique per account."
    )
    failure_code: Text | None = Field(description="Why the gateway refused it for good.")
    requested_at: Instant = Field(description="Business time of the request.")
    ended_at: Instant | None = Field(description="Business time of the definite answer.")
