"""What callers send: read within bounds, checked for form, never trusted further."""

import hashlib
import json
import re
from dataclasses import dataclass
from typing import Any, Self

from starlette.requests import ClientDisconnect, Request

from billing_shell.simulator.problems import Problem

IDEMPOTENCY_KEY_HEADER = "idempotency-key"

_LARGEST_BODY = 64 * 1024
_LARGEST_AMOUNT = 10**15
_LONGEST_NAME = 255
_LONGEST_DESCRIPTION = 1_000
_CURRENCY = re.compile(r"[A-Z]{3}")
_KEY = re.compile(r"[\x21-\x7e]{1,255}")


@dataclass(frozen=True, slots=True)
class ChargeParameters:
    """Body of `POST /v1/charges`; `source` is a token, `amount` counts minor units."""

    amount: int
    currency: str
    source: str
    reference: str
    description: str

    @classmethod
    def from_document(cls, document: dict[str, Any]) -> Self:
        """Check the members' forms; raises Problem 400."""
        _refuse_others(document, {"amount", "currency", "source", "reference", "description"})
        return cls(
            amount=_amount(document, "amount"),
            currency=_currency(document),
            source=_text(document, "source", _LONGEST_NAME),
            reference=_text(document, "reference", _LONGEST_NAME),
            description=_text(document, "description", _LONGEST_DESCRIPTION, shortest=0),
        )

    def fingerprint(self) -> str:
        """Return what two sends must share to be the same request."""
        return _fingerprint(
            [self.amount, self.currency, self.source, self.reference, self.description]
        )


@dataclass(frozen=True, slots=True)
class RefundParameters:
    """Body of `POST /v1/refunds`; without an amount, everything that is left is refunded."""

    charge: str
    amount: int | None
    reference: str

    @classmethod
    def from_document(cls, document: dict[str, Any]) -> Self:
        """Check the members' forms; raises Problem 400."""
        _refuse_others(document, {"charge", "amount", "reference"})
        return cls(
            charge=_text(document, "charge", _LONGEST_NAME),
            amount=_amount(document, "amount") if "amount" in document else None,
            reference=_text(document, "reference", _LONGEST_NAME),
        )

    def fingerprint(self) -> str:
        """Return what two sends must share to be the same request."""
        return _fingerprint([self.charge, self.amount, self.reference])


def idempotency_key(request: Request) -> str | None:
    """Return the caller's key, None where it sent none; raises Problem 400."""
    key = request.headers.get(IDEMPOTENCY_KEY_HEADER)
    if key is not None and _KEY.fullmatch(key) is None:
        raise Problem(
            400,
            "parameter_invalid",
            "Idempotency-Key must be 1 to 255 visible ASCII characters.",
            parameter="Idempotency-Key",
        )
    return key


async def read_document(request: Request) -> dict[str, Any]:
    """Read a JSON object of at most 64 kB; raises Problem 400."""
    body = bytearray()
    try:
        async for chunk in request.stream():
            body += chunk
            if len(body) > _LARGEST_BODY:
                raise Problem(
                    400,
                    "body_too_large",
                    f"The body must not exceed {_LARGEST_BODY} bytes.",
                    headers={"Connection": "close"},
                )
    except ClientDisconnect as error:
        raise Problem(400, "body_incomplete", "The connection ended within the body.") from error
    try:
        document = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise Problem(400, "body_invalid", "The body is not JSON.") from error
    if not isinstance(document, dict):
        raise Problem(400, "body_invalid", "The body is not a JSON object.")
    return document


def invalid(parameter: str, rule: str) -> Problem:
    """Return the refusal of one parameter: `rule` says what it must be."""
    return Problem(400, "parameter_invalid", f"{parameter} must be {rule}.", parameter=parameter)


def _refuse_others(document: dict[str, Any], known: set[str]) -> None:
    for name in document:
        if name not in known:
            raise Problem(400, "parameter_unknown", f"There is no parameter {name[:64]!r}.")


def _amount(document: dict[str, Any], name: str) -> int:
    amount = document.get(name)
    if type(amount) is not int or not 0 < amount <= _LARGEST_AMOUNT:
        raise invalid(name, f"a whole number of minor units from 1 to {_LARGEST_AMOUNT}")
    return amount


def _currency(document: dict[str, Any]) -> str:
    currency = document.get("currency")
    if not isinstance(currency, str) or _CURRENCY.fullmatch(currency) is None:
        raise invalid("currency", "three capital letters")
    return currency


def _text(document: dict[str, Any], name: str, longest: int, *, shortest: int = 1) -> str:
    text = document.get(name, "" if shortest == 0 else None)
    if not isinstance(text, str) or not shortest <= len(text) <= longest or not _storable(text):
        raise invalid(name, f"a text of {shortest} to {longest} characters without NUL")
    return text


def _storable(text: str) -> bool:
    return "\0" not in text and not any("\ud800" <= character <= "\udfff" for character in text)


def _fingerprint(parameters: list[Any]) -> str:
    return hashlib.sha256(json.dumps(parameters).encode("ascii")).hexdigest()
