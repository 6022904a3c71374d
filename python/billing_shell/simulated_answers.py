"""What comes back from the simulated gateway, before it is a result: whole answers, read with care.

Only what is well-formed is taken over; everything else is left out, or makes the outcome UNKNOWN.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from typing import Any

from billing_shell.gateway import Outcome

_LONGEST_PAUSE = Decimal(86_400)

KEY = re.compile(r"[\x21-\x7e]{1,255}")
PAYMENT_ID = re.compile(r"[\x21-\x7e]{1,255}")
_CODE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:-]{0,63}")
CURRENCY = re.compile(r"[A-Z]{3}")
_SECONDS = re.compile(r"[0-9]{1,9}(\.[0-9]{1,6})?")
LARGEST_AMOUNT = 2**63 - 1

# What needs no body to be understood, and is the same whatever a proxy made of the body.
OF_STATUS_ALONE = {
    HTTPStatus.TOO_MANY_REQUESTS: (Outcome.NOT_ATTEMPTED, "rate_limited"),
    HTTPStatus.UNAUTHORIZED: (Outcome.NOT_ATTEMPTED, "unauthorized"),
    HTTPStatus.FORBIDDEN: (Outcome.NOT_ATTEMPTED, "forbidden"),
    HTTPStatus.CONFLICT: (Outcome.UNKNOWN, "idempotency_key_in_use"),
}


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back, whole, of one HTTP call."""

    status: int
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True, slots=True)
class Finding:
    """An outcome on its way into a result."""

    outcome: Outcome
    code: str | None = None
    payment_id: str | None = None
    amount: int | None = None
    currency: str | None = None
    retry_after: Decimal | None = None
    action_expires_at: datetime | None = None


def json_object(answer: Answer) -> dict[str, Any] | None:
    """Return the body as an object, None where it is none."""
    if answer.headers.get("content-encoding", "identity") != "identity":
        return None
    try:
        document = json.loads(answer.body)
    except (ValueError, RecursionError):
        return None
    return document if isinstance(document, dict) else None


def code_of(value: object) -> str | None:
    """Return a code of the gateway, None where it is no plain one."""
    return value if isinstance(value, str) and _CODE.fullmatch(value) else None


def retry_after_of(headers: Mapping[str, str]) -> Decimal | None:
    """Read Retry-After: seconds, or a date, which counts from the answer's own Date."""
    value = headers.get("retry-after", "").strip()
    if _SECONDS.fullmatch(value):
        return min(Decimal(value), _LONGEST_PAUSE)
    until, now = _http_date(value), _http_date(headers.get("date", ""))
    if until is None:
        return None
    seconds = (until - (now or datetime.now(UTC))).total_seconds()
    return min(max(Decimal(int(seconds)), Decimal(0)), _LONGEST_PAUSE)


def _http_date(value: str) -> datetime | None:
    try:
        instant = parsedate_to_datetime(value)
    except (ValueError, OverflowError):
        return None
    return instant if instant.tzinfo is not None else instant.replace(tzinfo=UTC)
