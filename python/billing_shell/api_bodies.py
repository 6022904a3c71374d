"""What requests carry: the arguments of each function of `billing_api`, under its names for them.

Defaults stand here for the reader only. What a caller leaves out is left out of the call, so that
the function's own default counts; a test holds the two together.
"""

from typing import Any, ClassVar

from pydantic import Field

from billing_shell.api_fields import BigInteger, Body, Flag, Instant, Integer, Text

_MINOR_UNITS = "Whole minor units of the currency: 4900 is USD 49.00."
_QUANTITY = "Units, for example seats."


class CreateCustomer(Body):
    """Who pays."""

    examples: ClassVar[tuple[dict[str, Any], ...]] = (
        {"externalRef": "acme", "currency": "USD", "timeZone": "Europe/Berlin"},
    )

    external_ref: Text = Field(description="Name of this customer in the calling system, unique.")
    currency: Text = Field(description="Currency of new subscriptions, ISO 4217.")
    time_zone: Text = Field("UTC", description="IANA zone of new subscriptions' boundaries.")
    email: Text | None = Field(None, description="Kept apart, so that it can be erased.")


class AddPaymentMethod(Body):
    """A token of a gateway, never a card number."""

    examples: ClassVar[tuple[dict[str, Any], ...]] = (
        {"gatewayAccount": "simulated", "token": "tok_ok", "brand": "visa", "last4": "4242"},
    )

    gateway_account: Text = Field(description="Code of the account that knows the token.")
    token: Text = Field(description="What the gateway calls the method. Card numbers are refused.")
    brand: Text | None = Field(None, description="Card brand, for display.")
    last4: Text | None = Field(None, description="Last four digits, for display.")
    exp_month: Integer | None = Field(None, description="Expiry month, 1 to 12.")
    exp_year: Integer | None = Field(None, description="Expiry year, four digits.")
    fingerprint: Text | None = Field(
        None, description="The gateway's name for the card itself: the same means the same method."
    )
    make_default: Flag = Field(True, description="Make it the customer's default.")  # noqa: FBT003


class CreatePlan(Body):
    """A plan with its first price, effective at once."""

    examples: ClassVar[tuple[dict[str, Any], ...]] = (
        {
            "code": "PRO_MONTHLY",
            "name": "Pro",
            "amount": 4900,
            "currency": "USD",
            "intervalUnit": "MONTH",
        },
    )

    code: Text = Field(description="Code used by callers, unique.")
    name: Text = Field(description="Name for people, printed on invoice lines.")
    amount: BigInteger = Field(description=f"Per unit and period. {_MINOR_UNITS}")
    currency: Text = Field(description="Currency, ISO 4217.")
    interval_unit: Text = Field(description="DAY, WEEK, MONTH or YEAR.")
    interval_count: Integer = Field(1, description="How many of the unit make one period.")
    trial_days: Integer = Field(0, description="Days of trial for a new subscription, 0 = none.")
    grant_first_allowed: Flag = Field(
        False,  # noqa: FBT003
        description="True: any caller may sign up with GRANT_FIRST; false: only an operator may.",
    )
    trial_once_per: Text = Field("CUSTOMER", description="CUSTOMER, PLAN or RESOURCE.")


class AddPrice(Body):
    """A price version for subscriptions that begin from an instant on."""

    examples: ClassVar[tuple[dict[str, Any], ...]] = (
        {"amount": 5900, "currency": "USD", "effectiveFrom": "2030-01-01T00:00:00Z"},
    )

    amount: BigInteger = Field(description=f"Per unit and period. {_MINOR_UNITS}")
    currency: Text = Field(description="Currency, ISO 4217.")
    effective_from: Instant = Field(description="From when new subscriptions get it.")


class MigratePrice(Body):
    """The move of a plan's subscribers to its newest price."""

    examples: ClassVar[tuple[dict[str, Any], ...]] = (
        {"effectiveFrom": "2030-03-01T00:00:00Z", "noticeDays": 30, "dryRun": True},
    )

    effective_from: Instant = Field(
        description="Each moves at the first renewal at or after this instant."
    )
    notice_days: Integer = Field(description="Days between now and then, at least.")
    dry_run: Flag = Field(True, description="Only count, and change nothing.")  # noqa: FBT003


class CreateSubscription(Body):
    """A sign-up."""

    examples: ClassVar[tuple[dict[str, Any], ...]] = (
        {"customerId": 64, "planCode": "PRO_MONTHLY"},
        {"customerId": 64, "planCode": "PRO_MONTHLY", "resourceRef": "store-1", "quantity": 3},
    )

    customer_id: BigInteger = Field(description="Who pays.")
    plan_code: Text = Field(description="Plan.")
    resource_ref: Text | None = Field(
        None, description="What gets access, in the calling system's words; null = default."
    )
    quantity: Integer = Field(1, description=_QUANTITY)
    trial_days: Integer | None = Field(None, description="Days of trial; null = as the plan says.")
    payment_behavior: Text = Field("PAY_FIRST", description="PAY_FIRST or GRANT_FIRST.")
    anchor_day: Integer | None = Field(
        None, description="Calendar billing on this day of the month; null = anniversary."
    )
    auto_renew: Flag = Field(True, description="False: it ends with its term.")  # noqa: FBT003
    term_periods: Integer | None = Field(None, description="Billed periods of a fixed term.")
    dunning_policy: Text = Field("standard", description="What follows a declined payment.")
    payment_method_id: BigInteger | None = Field(
        None, description="Method to charge; null = the customer's default."
    )
    currency: Text | None = Field(None, description="ISO 4217; null = the customer's.")


class ImportSubscription(Body):
    """A subscription whose current period was billed elsewhere."""

    examples: ClassVar[tuple[dict[str, Any], ...]] = (
        {
            "customerId": 64,
            "planCode": "PRO_MONTHLY",
            "currentPeriodStart": "2027-01-31T10:30:00Z",
        },
    )

    customer_id: BigInteger = Field(description="Who pays.")
    plan_code: Text = Field(description="Plan.")
    current_period_start: Instant = Field(description="Start of the period that runs.")
    resource_ref: Text | None = Field(None, description="What gets access; null = default.")
    quantity: Integer = Field(1, description=_QUANTITY)
    anchor_at: Instant | None = Field(
        None, description="First boundary, from which all are counted; null = the start."
    )
    dunning_policy: Text = Field("standard", description="What follows a declined payment.")
    payment_method_id: BigInteger | None = Field(
        None, description="Method to charge; null = the customer's default."
    )
    auto_renew: Flag = Field(True, description="False: it ends with its term.")  # noqa: FBT003
    term_periods: Integer | None = Field(None, description="Billed periods of a fixed term.")


class CancelSubscription(Body):
    """When it ends, and what becomes of paid time that is left."""

    examples: ClassVar[tuple[dict[str, Any], ...]] = ({"atPeriodEnd": True},)

    at_period_end: Flag = Field(
        False,  # noqa: FBT003
        description="True: at the end of the period that runs; false: now.",
    )
    unused_time: Text = Field(
        "NONE", description="Of paid time when it ends now: NONE, CREDIT or REFUND."
    )


class ChangePlan(Body):
    """Another plan or quantity."""

    examples: ClassVar[tuple[dict[str, Any], ...]] = (
        {"planCode": "PRO_MONTHLY"},
        {"planCode": "PRO_YEARLY", "quantity": 5, "timing": "AT_PERIOD_END"},
    )

    plan_code: Text = Field(description="Plan, or the present one where only the quantity changes.")
    quantity: Integer | None = Field(None, description=f"{_QUANTITY} null = as it is.")
    timing: Text = Field("IMMEDIATE", description="IMMEDIATE, NEXT_INVOICE or AT_PERIOD_END.")
    payment_behavior: Text = Field("PAY_FIRST", description="PAY_FIRST or GRANT_FIRST.")


class PauseSubscription(Body):
    """When it pauses."""

    examples: ClassVar[tuple[dict[str, Any], ...]] = ({"atPeriodEnd": True},)

    at_period_end: Flag = Field(
        False,  # noqa: FBT003
        description="True: at the end of the period that runs; false: now.",
    )


class ExtendTrial(Body):
    """A later end of the trial."""

    examples: ClassVar[tuple[dict[str, Any], ...]] = ({"trialEnd": "2027-03-01T00:00:00Z"},)

    trial_end: Instant = Field(description="When the trial ends.")


class ChoosePaymentMethod(Body):
    """The method that a subscription is charged on."""

    examples: ClassVar[tuple[dict[str, Any], ...]] = ({"paymentMethodId": 64},)

    payment_method_id: BigInteger | None = Field(
        description="One of the customer's; null = the customer's default."
    )


class GrantCredit(Body):
    """Credit, which pays invoices from then on when they are issued."""

    examples: ClassVar[tuple[dict[str, Any], ...]] = (
        {"amount": 500, "currency": "USD", "reason": "sorry for the outage"},
    )

    amount: BigInteger = Field(description=_MINOR_UNITS)
    currency: Text = Field(description="Currency, ISO 4217.")
    reason: Text = Field(description="Why. It is published: no personal data in it.")


class RetryInvoice(Body):
    """How to try again."""

    examples: ClassVar[tuple[dict[str, Any], ...]] = ({}, {"paymentMethodId": 64})

    payment_method_id: BigInteger | None = Field(
        None, description="One of the customer's methods; null = the one that is set."
    )


class RefundInvoice(Body):
    """How much goes back."""

    examples: ClassVar[tuple[dict[str, Any], ...]] = ({}, {"amount": 1000})

    amount: BigInteger | None = Field(None, description=f"{_MINOR_UNITS} null = all that is left.")


class CreateManualInvoice(Body):
    """An invoice over one amount, without a subscription."""

    examples: ClassVar[tuple[dict[str, Any], ...]] = (
        {"amount": 15000, "currency": "USD", "description": "Setup"},
    )

    amount: BigInteger = Field(description=_MINOR_UNITS)
    currency: Text = Field(description="Currency, ISO 4217.")
    description: Text = Field(description="Printed on the invoice.")
    dunning_policy: Text = Field("standard", description="What follows a declined payment.")


class NameResource(Body):
    """Which resource."""

    examples: ClassVar[tuple[dict[str, Any], ...]] = ({"resourceRef": "default"},)

    resource_ref: Text = Field(description="In the calling system's words.")
