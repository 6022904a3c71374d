"""What the HTTP door answers: the views of `billing_api`, and what its functions return besides.

For the specification only: the JSON of an answer is made by the database and passed on as it is.
Descriptions are those of the views' columns; a test holds them together.
"""

from typing import Any, ClassVar

from pydantic import Field

from billing_shell.api_fields import Answer, BigInteger, Flag, Instant, Integer, Text


class CreditBalance(Answer):
    """Credit of a customer in one currency."""

    example: ClassVar[dict[str, Any]] = {
        "customerId": 64,
        "currency": "USD",
        "balance": 500,
    }

    customer_id: BigInteger = Field(description="Customer.")
    currency: Text = Field(description="Currency, ISO 4217.")
    balance: BigInteger = Field(description="Credit left, in minor units; the sum of the ledger.")


class Customer(Answer):
    """Who pays."""

    example: ClassVar[dict[str, Any]] = {
        "customerId": 64,
        "externalRef": "acme",
        "status": "ACTIVE",
        "currency": "USD",
        "timeZone": "Europe/Berlin",
        "createdAt": "2027-01-31T10:30:00+00:00",
    }

    customer_id: BigInteger = Field(description="Leads every key of the rows of this customer.")
    external_ref: Text = Field(description="Name of this customer in the calling system, unique.")
    status: Text = Field(
        description="ACTIVE, SUSPENDED (no access, no recovery of resources) or CLOSED (erased)."
    )
    currency: Text = Field(description="Currency of new subscriptions, ISO 4217.")
    time_zone: Text = Field(description="IANA zone, copied into each subscription at sign-up.")
    created_at: Instant = Field(description="Business time of creation.")


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
    lookup_count: Integer = Field(description="Claims for a look-up.")
    started_at: Instant = Field(
        description="Business time of the first commit, from which the life of the key counts."
    )
    ended_at: Instant | None = Field(description="Business time of the definite answer.")


class PaymentMethod(Answer):
    """A token of a gateway, never a card number."""

    example: ClassVar[dict[str, Any]] = {
        "paymentMethodId": 64,
        "customerId": 64,
        "gatewayAccount": "simulated",
        "brand": "visa",
        "last4": "4242",
        "expMonth": 12,
        "expYear": 2030,
        "isDefault": True,
        "blockedAt": None,
        "blockedCode": None,
        "removedAt": None,
        "createdAt": "2027-01-31T10:30:00+00:00",
    }

    payment_method_id: BigInteger = Field(description="Payment method.")
    customer_id: BigInteger = Field(description="Customer who owns it.")
    gateway_account: Text = Field(description="Code of the gateway account that knows the token.")
    brand: Text | None = Field(description="Card brand for display, or NULL.")
    last4: Text | None = Field(description="Last four digits for display, or NULL.")
    exp_month: Integer | None = Field(description="Expiry month 1 to 12, or NULL.")
    exp_year: Integer | None = Field(description="Expiry year, four digits, or NULL.")
    is_default: Flag = Field(
        description="Used where the subscription names no method. At most one per customer."
    )
    blocked_at: Instant | None = Field(
        description="Since when automatic attempts on it are stopped by a HARD or CUSTOMER "
        "decline; NULL = not."
    )
    blocked_code: Text | None = Field(description="Decline code that blocked it.")
    removed_at: Instant | None = Field(description="When it was removed; NULL = usable.")
    created_at: Instant = Field(description="Business time of creation.")


class Plan(Answer):
    """What is sold."""

    example: ClassVar[dict[str, Any]] = {
        "planId": 64,
        "planCode": "PRO_MONTHLY",
        "name": "Pro",
        "trialOncePer": "CUSTOMER",
        "grantFirstAllowed": False,
        "createdAt": "2027-01-31T10:30:00+00:00",
    }

    plan_id: BigInteger = Field(description="Plan.")
    plan_code: Text = Field(description="Code used by callers, unique.")
    name: Text = Field(description="Name for people, printed on invoice lines.")
    trial_once_per: Text = Field(
        description="A trial is given once per CUSTOMER, PLAN or RESOURCE."
    )
    grant_first_allowed: Flag = Field(
        description="True: any caller may sign up with GRANT_FIRST; false: only an operator may."
    )
    created_at: Instant = Field(description="Business time of creation.")


class Price(Answer):
    """One price version of a plan. Prices are never changed, only succeeded."""

    example: ClassVar[dict[str, Any]] = {
        "priceId": 64,
        "planCode": "PRO_MONTHLY",
        "amount": 4900,
        "currency": "USD",
        "intervalUnit": "MONTH",
        "intervalCount": 1,
        "trialDays": 0,
        "effectiveFrom": "2027-01-01T00:00:00+00:00",
        "createdAt": "2027-01-31T10:30:00+00:00",
    }

    price_id: BigInteger = Field(description="Price version.")
    plan_code: Text = Field(description="Plan.")
    amount: BigInteger = Field(
        description="Amount per unit and period in minor units of the currency."
    )
    currency: Text = Field(description="Currency, ISO 4217.")
    interval_unit: Text = Field(description="DAY, WEEK, MONTH or YEAR.")
    interval_count: Integer = Field(description="How many of the unit make one period.")
    trial_days: Integer = Field(description="Days of trial for a new subscription, 0 = none.")
    effective_from: Instant = Field(description="From when new subscriptions get this version.")
    created_at: Instant = Field(description="Business time of creation.")


class Resource(Answer):
    """What is sold and gets access: a store, a workspace, a licence."""

    example: ClassVar[dict[str, Any]] = {
        "resourceId": 64,
        "customerId": 64,
        "resourceRef": "store-1",
        "suspendedByBillingAt": None,
        "suspendedByAdminAt": None,
        "createdAt": "2027-01-31T10:30:00+00:00",
    }

    resource_id: BigInteger = Field(description="Resource.")
    customer_id: BigInteger = Field(description="Customer who pays for it.")
    resource_ref: Text = Field(
        description='Name in the calling system, unique per customer; "default" where the caller '
        "names none."
    )
    suspended_by_billing_at: Instant | None = Field(
        description="Since when billing has it suspended after unpaid invoices; lifted by "
        "payment. NULL = not."
    )
    suspended_by_admin_at: Instant | None = Field(
        description="Since when an administrator has it suspended; never lifted by billing. NULL "
        "= not."
    )
    created_at: Instant = Field(description="Business time of creation.")


class Subscription(Answer):
    """A subscription as it stands."""

    example: ClassVar[dict[str, Any]] = {
        "subscriptionId": 64,
        "customerId": 64,
        "resourceRef": "store-1",
        "planCode": "PRO_MONTHLY",
        "quantity": 1,
        "status": "ACTIVE",
        "currentPeriodStart": "2027-01-31T10:30:00+00:00",
        "currentPeriodEnd": "2027-02-28T10:30:00+00:00",
        "cancelAtPeriodEnd": False,
        "pendingPlanCode": None,
        "version": 3,
        "currentPeriodKind": "BILLED",
        "nextRenewalAt": "2027-02-28T10:30:00+00:00",
        "priceId": 64,
        "unitAmount": 4900,
        "currency": "USD",
        "autoRenew": True,
        "termPeriods": None,
        "termEndAt": None,
        "timeZone": "Europe/Berlin",
        "anchorDay": None,
        "paymentMethodId": 64,
        "dunningPolicy": "standard",
        "pastDueSince": None,
        "accessUntil": None,
        "endedAt": None,
        "endReason": None,
        "createdAt": "2027-01-31T10:30:00+00:00",
        "pauseAtPeriodEnd": False,
    }

    subscription_id: BigInteger = Field(description="Subscription.")
    customer_id: BigInteger = Field(description="Customer who pays.")
    resource_ref: Text = Field(description="Name of the resource in the calling system.")
    plan_code: Text = Field(description="Plan of the pinned price.")
    quantity: Integer = Field(description="Units, for example seats.")
    status: Text = Field(
        description="INCOMPLETE, TRIALING, ACTIVE, PAST_DUE, PAUSED, CANCELED or EXPIRED. The "
        "last two are final."
    )
    current_period_start: Instant | None = Field(
        description="Start of the last opened period, inclusive."
    )
    current_period_end: Instant | None = Field(
        description="End of the last opened period, exclusive; NULL before the first and while "
        "paused."
    )
    cancel_at_period_end: Flag = Field(
        description="True: it ends at current_period_end instead of renewing."
    )
    pending_plan_code: Text | None = Field(
        description="Plan of a change that waits for its payment or its date; NULL = none."
    )
    version: BigInteger = Field(description="Number of the row version, for p_expected_version.")
    current_period_kind: Text | None = Field(
        description="TRIAL, BILLED or PAUSED; NULL before the first period."
    )
    next_renewal_at: Instant | None = Field(
        description="When the renewal run takes it up; NULL = not renewable now: incomplete, "
        "paused, held while past due, parked, ended."
    )
    price_id: BigInteger = Field(description="Pinned price version.")
    unit_amount: BigInteger = Field(description="Price per unit and period in minor units.")
    currency: Text = Field(description="Currency, ISO 4217.")
    auto_renew: Flag = Field(description="False: it ends with its term.")
    term_periods: Integer | None = Field(
        description="Billed periods of a fixed term; NULL where it renews by itself."
    )
    term_end_at: Instant | None = Field(
        description="End of the fixed term, known once the first period is."
    )
    time_zone: Text = Field(description="IANA zone, copied from the customer at sign-up.")
    anchor_day: Integer | None = Field(
        description="Calendar billing: day of the month on which periods start at local midnight. "
        "NULL = anniversary of sign-up."
    )
    payment_method_id: BigInteger | None = Field(
        description="Chosen payment method; NULL = the default of the customer."
    )
    dunning_policy: Text = Field(
        description="Code of the policy that decides what follows a declined payment."
    )
    past_due_since: Instant | None = Field(
        description="Business time of the first decline that is not recovered."
    )
    access_until: Instant | None = Field(
        description="End of access while PAST_DUE; NULL = as long as it is PAST_DUE."
    )
    ended_at: Instant | None = Field(
        description="Effective end, for a cancellation at period end the boundary itself."
    )
    end_reason: Text | None = Field(
        description="requested, period_end, term_end, payment_failed, no_payment_method, "
        "checkout_restarted, checkout_abandoned."
    )
    created_at: Instant = Field(description="Business time of sign-up.")
    pause_at_period_end: Flag = Field(
        description="True: it pauses at current_period_end instead of renewing."
    )
