"""Webhooks of Stripe: verified over the raw body, and read into the words of the engine."""

import json
import re
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

import stripe

from billing_shell.gateway import Outcome, UnreadableWebhookError, WebhookEvent
from billing_shell.stripe_answers import (
    OUTCOME_OF_CHARGE,
    OUTCOME_OF_REFUND,
    code_of_charge,
    reference_of,
)
from billing_shell.webhook_signature import WebhookSignatureError

_TOLERANCE_SECONDS = 300
_OUR_KEY = re.compile(r"[a-z0-9]{4,16}-inv-[0-9]+-(?:try|refund)-[0-9]+")


def read_webhook(
    raw_body: bytes, headers: Mapping[str, str], secrets: Iterable[str], now: datetime
) -> WebhookEvent:
    """Verify and read one delivery of Stripe; a `WebhookReader`."""
    _verify(raw_body, headers.get("stripe-signature", ""), secrets, now)
    try:
        event = json.loads(raw_body)
    except (ValueError, RecursionError) as error:
        raise UnreadableWebhookError("the body is not JSON") from error
    thing = event.get("data", {}).get("object") if isinstance(event, dict) else None
    event_id, event_type = (event.get("id"), event.get("type")) if thing else (None, None)
    if (
        not isinstance(thing, dict)
        or not isinstance(event_id, str)
        or not isinstance(event_type, str)
    ):
        raise UnreadableWebhookError("the body is not an event")
    caused_by = event.get("request")
    key = caused_by.get("idempotency_key") if isinstance(caused_by, dict) else None
    return WebhookEvent(event_id, event_type, _payload(thing, key))


def _payload(thing: dict[str, Any], key: object) -> dict[str, str | int]:
    payload: dict[str, str | int] = {}
    if isinstance(key, str) and _OUR_KEY.fullmatch(key):
        payload["reference"] = key
    if isinstance(intent := _intent_of(thing), str):
        payload["intentId"] = intent
    if thing.get("object") == "charge":
        payload |= _told_of(thing, OUTCOME_OF_CHARGE, "paymentId")
        if payload.get("outcome") == Outcome.DECLINED:
            payload["code"] = code_of_charge(thing)
    elif thing.get("object") == "refund":
        payload |= _told_of(thing, OUTCOME_OF_REFUND, "refundId")
        if (reference := reference_of(thing)) is not None and _OUR_KEY.fullmatch(reference):
            payload["reference"] = reference
        if payload.get("outcome") == Outcome.DECLINED:
            payload["code"] = str(thing.get("failure_reason") or "refund_failed")
    elif thing.get("object") == "dispute" and isinstance(thing.get("charge"), str):
        payload = {"paymentId": thing["charge"]}
    return payload


def _verify(raw_body: bytes, signature: str, secrets: Iterable[str], now: datetime) -> None:
    stamp = re.search(r"(?:^|,)t=([0-9]{1,12})(?:,|$)", signature)
    if stamp is None or abs(now.timestamp() - int(stamp[1])) > _TOLERANCE_SECONDS:
        raise WebhookSignatureError("no Stripe-Signature, or one of another time")
    body = raw_body.decode("utf-8", errors="replace")
    for secret in secrets:
        try:
            stripe.WebhookSignature.verify_header(body, signature, secret, None)
        except stripe.SignatureVerificationError:
            continue
        return
    raise WebhookSignatureError("signed by none of the secrets")


def _intent_of(thing: dict[str, Any]) -> object:
    match thing.get("object"):
        case "payment_intent":
            return thing.get("id")
        case "charge":
            return thing.get("payment_intent")
    return None


def _told_of(
    thing: dict[str, Any], outcomes: Mapping[str, Outcome], id_name: str
) -> dict[str, str | int]:
    told: dict[str, str | int] = {}
    if isinstance(thing.get("id"), str):
        told[id_name] = thing["id"]
    outcome = outcomes.get(str(thing.get("status")))
    if outcome is not None:
        told["outcome"] = outcome.value
    if type(amount := thing.get("amount")) is int and amount > 0:
        told["amount"] = amount
    if isinstance(currency := thing.get("currency"), str):
        told["currency"] = currency.upper()
    return told
