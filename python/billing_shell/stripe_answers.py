"""What Stripe answers, before it is a result: intents, charges, refunds and errors."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

import stripe

from billing_shell.gateway import ChargeRequest, Outcome, RefundRequest, SettledItem

REFERENCE = "billing_reference"
"""Metadata under which Stripe keeps our reference."""

_LONGEST_PAUSE = Decimal(86_400)

_SECONDS = re.compile(r"[0-9]{1,9}(\.[0-9]{1,6})?")
_ADVICE = frozenset({"do_not_try_again", "confirm_card_data"})
_METHOD_PARAMETERS = ("payment_method", "customer", "mandate", "source")
OUTCOME_OF_CHARGE: Mapping[str, Outcome] = {
    "succeeded": Outcome.SUCCEEDED,
    "pending": Outcome.PROCESSING,
    "failed": Outcome.DECLINED,
}
OUTCOME_OF_REFUND: Mapping[str, Outcome] = {
    "succeeded": Outcome.SUCCEEDED,
    "pending": Outcome.PROCESSING,
    "requires_action": Outcome.PROCESSING,
    "failed": Outcome.DECLINED,
    "canceled": Outcome.DECLINED,
}

_KIND_OF_TRANSACTION: Mapping[str, str] = {
    "charge": "CHARGE",
    "payment": "CHARGE",
    "refund": "REFUND",
    "payment_refund": "REFUND",
}


@dataclass(frozen=True, slots=True)
class Finding:
    """An outcome on its way into a result."""

    outcome: Outcome
    code: str | None = None
    payment_id: str | None = None
    amount: int | None = None
    currency: str | None = None
    retry_after: Decimal | None = None
    intent_id: str | None = None


def of_error(error: stripe.StripeError) -> Finding:
    """Read what the SDK raises."""
    match error:
        case stripe.CardError():
            finding = _of_card_error(error)
        case stripe.RateLimitError():
            pause = str((error.headers or {}).get("retry-after", ""))
            seconds = min(Decimal(pause), _LONGEST_PAUSE) if _SECONDS.fullmatch(pause) else None
            finding = Finding(Outcome.NOT_ATTEMPTED, "rate_limited", retry_after=seconds)
        case stripe.AuthenticationError():
            finding = Finding(Outcome.NOT_ATTEMPTED, "unauthorized")
        case stripe.PermissionError():
            finding = Finding(Outcome.NOT_ATTEMPTED, "forbidden")
        case stripe.IdempotencyError():
            finding = Finding(Outcome.UNKNOWN, "idempotency_mismatch")
        case stripe.InvalidRequestError() if str(error.param).startswith(_METHOD_PARAMETERS):
            finding = Finding(Outcome.DECLINED, error.code or "payment_method_invalid")
        case _:
            finding = Finding(Outcome.UNKNOWN, error.code or f"http_{error.http_status}")
    return finding


def _of_card_error(error: stripe.CardError) -> Finding:
    document = error.json_body if isinstance(error.json_body, dict) else {}
    body = document.get("error") or {}
    intent = body.get("payment_intent") or {}
    advice = body.get("advice_code")
    code = advice if advice in _ADVICE else body.get("decline_code") or error.code
    charge = body.get("charge") or intent.get("latest_charge")
    return Finding(
        Outcome.DECLINED,
        str(code or "unrecognised_code"),
        payment_id=charge if isinstance(charge, str) else None,
        intent_id=intent.get("id"),
    )


def of_intent(request: ChargeRequest, intent: dict[str, Any]) -> Finding:
    """Read an intent for one of its tries, `latest_charge` expanded."""
    charge, status, intent_id = (intent.get(k) for k in ("latest_charge", "status", "id"))
    if not isinstance(charge, dict | None):
        return Finding(Outcome.UNKNOWN, "unrecognised_answer", intent_id=intent_id)
    own = charge if charge and charge.get("id") != request.previous_payment_id else None
    match status:
        case "requires_action":
            finding = Finding(Outcome.REQUIRES_ACTION)
        case "processing":
            finding = Finding(Outcome.PROCESSING, payment_id=own and own.get("id"))
        case _ if own:
            finding = of_charge(own)
        case "canceled":
            # By hand, or confirmed too often: the database lets the next try make a new one.
            finding = Finding(Outcome.DECLINED, "intent_canceled")
        case "requires_payment_method" if request.awaits_action or not request.gateway_intent_id:
            # Refused before there was a Charge, and it can have been no other try: the only one,
            # or the one that waited for its customer, since nobody confirms an intent meanwhile.
            error = intent.get("last_payment_error") or {}
            finding = Finding(Outcome.DECLINED, error.get("code") or "unrecognised_code")
        case "requires_payment_method":
            finding = Finding(Outcome.NOT_FOUND)
        case _:
            finding = Finding(Outcome.UNKNOWN, f"intent_{status}")
    return replace(finding, intent_id=intent_id)


def of_charge(charge: dict[str, Any]) -> Finding:
    """Read a Charge."""
    outcome = OUTCOME_OF_CHARGE.get(str(charge.get("status")))
    amount = charge.get("amount_captured" if outcome is Outcome.SUCCEEDED else "amount")
    if outcome is None or type(amount) is not int or not isinstance(charge.get("id"), str):
        return Finding(Outcome.UNKNOWN, "unrecognised_answer")
    return Finding(
        outcome,
        code_of_charge(charge) if outcome is Outcome.DECLINED else None,
        payment_id=charge["id"],
        amount=amount,
        currency=str(charge.get("currency")).upper(),
    )


def code_of_charge(charge: dict[str, Any]) -> str:
    """Return why a Charge failed: Stripe's advice, else the reason of the issuer."""
    told = charge.get("outcome") or {}
    advice = told.get("advice_code")
    if advice in _ADVICE:
        return str(advice)
    return str(told.get("reason") or charge.get("failure_code") or "unrecognised_code")


def of_refund(request: RefundRequest, refund: dict[str, Any]) -> Finding:
    """Read a refund."""
    outcome = OUTCOME_OF_REFUND.get(str(refund.get("status")))
    refund_id, amount = refund.get("id"), refund.get("amount")
    if (
        outcome is None
        or refund.get("charge") != request.gateway_payment_id
        or not isinstance(refund_id, str)
        or type(amount) is not int
    ):
        return Finding(Outcome.UNKNOWN, "unrecognised_answer")
    code = str(refund.get("failure_reason") or "refund_failed")
    return Finding(
        outcome,
        code if outcome is Outcome.DECLINED else None,
        payment_id=refund_id,
        amount=amount,
        currency=str(refund.get("currency")).upper(),
    )


def of_transaction(transaction: dict[str, Any]) -> SettledItem | None:
    """Read one entry of Stripe's balance, `source` expanded; None where it is no payment of ours.

    The amounts are those of the Charge or refund, in its own currency: the balance may be kept in
    another one. Fees, payouts and disputes are no payments, and a refund that has failed since has
    moved no money.
    """
    kind = _KIND_OF_TRANSACTION.get(str(transaction.get("type")))
    source = transaction.get("source")
    if kind is None or not isinstance(source, dict):
        return None
    if kind == "REFUND" and OUTCOME_OF_REFUND.get(str(source.get("status"))) is Outcome.DECLINED:
        return None
    return SettledItem(
        kind,
        str(source["id"]),
        reference_of(source),
        int(source["amount_captured" if kind == "CHARGE" else "amount"]),
        str(source["currency"]).upper(),
    )


def plain(thing: stripe.StripeObject) -> dict[str, Any]:
    """Return what came, as it came: what the SDK makes of it changes from version to version."""
    document: dict[str, Any] = thing.to_dict()
    return document


def reference_of(document: dict[str, Any]) -> str | None:
    """Return our reference, where the thing has it."""
    reference = (document.get("metadata") or {}).get(REFERENCE)
    return reference if isinstance(reference, str) else None
