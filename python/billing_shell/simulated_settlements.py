"""What the simulated gateway has booked: how a page is asked for, and what an answer says.

A page counts as a whole or not at all: a line that is not understood could be money.
"""

from datetime import UTC, datetime
from http import HTTPStatus
from typing import Any

from billing_shell.gateway import SettledItem, SettledPage
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

_LISTED = 500
_KINDS = {"charge": "CHARGE", "refund": "REFUND"}


def settlement_query(start: datetime, end: datetime, cursor: str | None) -> dict[str, str]:
    """Return the query that asks for a page."""
    span = {"from": _text(start), "to": _text(end), "limit": str(_LISTED)}
    return span if cursor is None else {**span, "cursor": cursor}


def of_settlement(answer: Answer | Finding) -> SettledPage:
    """Read the answer."""
    if isinstance(answer, Finding):
        return SettledPage(code=answer.code or "unknown")
    if answer.status in OF_STATUS_ALONE:
        _, reason = OF_STATUS_ALONE[HTTPStatus(answer.status)]
        return SettledPage(code=reason, retry_after=retry_after_of(answer.headers))
    document = json_object(answer)
    if document is None:
        return SettledPage(code="unreadable_answer")
    if answer.status != HTTPStatus.OK:
        return SettledPage(code=code_of(document.get("code")) or f"http_{answer.status}")
    return _page(document) or SettledPage(code="unrecognised_answer")


def _page(document: dict[str, Any]) -> SettledPage | None:
    lines, cursor = document.get("data"), document.get("next_cursor")
    if not isinstance(lines, list) or not isinstance(cursor, str | None):
        return None
    items = [item for line in lines if (item := _item(line)) is not None]
    return SettledPage(tuple(items), cursor) if len(items) == len(lines) else None


def _text(instant: datetime) -> str:
    return f"{instant.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"


def _item(line: object) -> SettledItem | None:
    if not isinstance(line, dict):
        return None
    kind = _KINDS.get(str(line.get("kind")))
    gateway_id, reference, amount, currency = (
        line.get(name) for name in ("id", "reference", "amount", "currency")
    )
    if (
        kind is None
        or not isinstance(gateway_id, str)
        or PAYMENT_ID.fullmatch(gateway_id) is None
        or not isinstance(reference, str | None)
        or type(amount) is not int
        or not 0 < amount <= LARGEST_AMOUNT
        or not isinstance(currency, str)
        or CURRENCY.fullmatch(currency) is None
    ):
        return None
    return SettledItem(kind, gateway_id, reference, amount, currency)
