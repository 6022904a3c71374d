"""Refunds at the simulated gateway: the body that is sent, and what an answer says.

As with charges, only a definite answer becomes a definite outcome; the codes are those of
`simulated_gateway`. A refusal is DECLINED only for reasons that say that nothing went and nothing
will: whatever else the gateway objects to is UNKNOWN, and looked up.
"""

import json
from http import HTTPStatus
from typing import Any

from billing_shell.gateway import Outcome, RefundRequest, RefundResult, Source
from billing_shell.simulated_answers import (
    CURRENCY,
    LARGEST_AMOUNT,
    OF_STATUS_ALONE,
    PAYMENT_ID,
    Answer,
    Finding,
    code_of,
    json_object,
    retry_after_of,
)

_REFUSALS = frozenset(
    {"charge_not_found", "charge_not_captured", "amount_exceeds_remaining", "refund_refused"}
)
_OUTCOME_OF_STATUS = {
    "succeeded": Outcome.SUCCEEDED,
    "failed": Outcome.DECLINED,
    "pending": Outcome.PROCESSING,
}


def refund_body(request: RefundRequest) -> bytes:
    """Return the body of the stored refund: the same bytes at every send."""
    document = {
        "charge": request.gateway_payment_id,
        "amount": request.amount,
        "reference": request.idempotency_key,
    }
    return json.dumps(document, separators=(",", ":")).encode("ascii")


def of_refund(request: RefundRequest, answer: Answer | Finding) -> RefundResult:
    """Read the answer to a send."""
    finding = answer if isinstance(answer, Finding) else _of_send(request, answer)
    return _result(request, finding, Source.SEND)


def of_refund_look_up(request: RefundRequest, answer: Answer | Finding) -> RefundResult:
    """Read the answer to a look-up."""
    finding = answer if isinstance(answer, Finding) else _of_look_up(request, answer)
    return _result(request, finding, Source.LOOKUP)


def _of_send(request: RefundRequest, answer: Answer) -> Finding:
    if answer.status in OF_STATUS_ALONE:
        outcome, reason = OF_STATUS_ALONE[HTTPStatus(answer.status)]
        return Finding(outcome, reason, retry_after=retry_after_of(answer.headers))
    document = json_object(answer)
    if document is None:
        return Finding(Outcome.UNKNOWN, "unreadable_answer")
    if answer.status == HTTPStatus.OK:
        return _of_document(request, document)
    code = code_of(document.get("code"))
    if code in _REFUSALS and answer.status in {HTTPStatus.BAD_REQUEST, HTTPStatus.NOT_FOUND}:
        return Finding(Outcome.DECLINED, code)
    if code == "idempotency_key_reused":
        return Finding(Outcome.UNKNOWN, "idempotency_mismatch")
    return Finding(Outcome.UNKNOWN, code or f"http_{answer.status}")


def _of_look_up(request: RefundRequest, answer: Answer) -> Finding:
    document = json_object(answer)
    if document is None or answer.status in OF_STATUS_ALONE:
        pause = retry_after_of(answer.headers)
        return Finding(Outcome.UNKNOWN, f"http_{answer.status}", retry_after=pause)
    if answer.status == HTTPStatus.OK:
        return _of_found(request, document)
    code = code_of(document.get("code"))
    if request.gateway_refund_id is not None and code == "refund_not_found":
        return Finding(Outcome.NOT_FOUND, code)
    return Finding(Outcome.UNKNOWN, code or f"http_{answer.status}")


def _of_found(request: RefundRequest, document: dict[str, Any]) -> Finding:
    if request.gateway_refund_id is not None:
        return _of_document(request, document)
    refunds = document.get("data")
    if not isinstance(refunds, list) or document.get("has_more") is not False:
        return Finding(Outcome.UNKNOWN, "unrecognised_answer")
    if not refunds:
        return Finding(Outcome.NOT_FOUND)
    if len(refunds) > 1 or not isinstance(refunds[0], dict):
        # One key, several refunds: a person must look.
        return Finding(Outcome.UNKNOWN, "several_refunds")
    return _of_document(request, refunds[0])


def _of_document(request: RefundRequest, refund: dict[str, Any]) -> Finding:
    outcome = _OUTCOME_OF_STATUS.get(str(refund.get("status")))
    refund_id, amount, currency = (refund.get(name) for name in ("id", "amount", "currency"))
    if (
        outcome is None
        or not isinstance(refund_id, str)
        or PAYMENT_ID.fullmatch(refund_id) is None
        or type(amount) is not int
        or not 0 < amount <= LARGEST_AMOUNT
        or not isinstance(currency, str)
        or CURRENCY.fullmatch(currency) is None
    ):
        return Finding(Outcome.UNKNOWN, "unrecognised_answer")
    if (refund.get("reference"), refund.get("charge")) != (
        request.idempotency_key,
        request.gateway_payment_id,
    ):
        return Finding(Outcome.UNKNOWN, "reference_mismatch")
    code = (
        (code_of(refund.get("code")) or "unrecognised_code")
        if outcome is Outcome.DECLINED
        else None
    )
    return Finding(outcome, code, payment_id=refund_id, amount=amount, currency=currency)


def _result(request: RefundRequest, finding: Finding, source: Source) -> RefundResult:
    outcome = finding.outcome
    if source is Source.LOOKUP and outcome is Outcome.NOT_ATTEMPTED:
        outcome = Outcome.UNKNOWN
    return RefundResult(
        customer_id=request.customer_id,
        refund_id=request.refund_id,
        claim_epoch=request.claim_epoch,
        outcome=outcome,
        gateway_refund_id=finding.payment_id,
        amount=finding.amount,
        currency=finding.currency,
        code=finding.code,
        retry_after=finding.retry_after,
        source=source,
    )
