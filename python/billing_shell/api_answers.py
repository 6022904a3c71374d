"""What the HTTP door answers about customers, plans and subscriptions: views of `billing_api`.

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
