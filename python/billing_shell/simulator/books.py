"""What is written into the ledger: payments, refunds, calls, kept answers, events.

The functions that take a connection run inside one transaction of `Ledger.write`.
"""

import json
import secrets
import sqlite3
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from enum import StrEnum
from typing import Any, Self

from billing_shell.simulator.clocks import to_text
from billing_shell.simulator.ledger import Row


class Operation(StrEnum):
    """What a call below `/v1` asks for; each has a limit of its own."""

    CHARGE = "charge"
    LOOK_UP = "look_up"
    REFUND = "refund"


@dataclass(slots=True)
class Call:
    """One arrival, filled in as it is served; a row of `calls`."""

    call_no: int
    run_no: int
    arrived_us: int
    operation: Operation
    path: str
    idempotency_key: str | None
    subject: str | None
    reference: str | None = None
    http_status: int | None = None
    limited: bool = False
    replayed: bool = False
    send_no: int | None = None
    fault: str | None = None
    fault_cause: str | None = None
    payment_id: str | None = None


@dataclass(frozen=True, slots=True)
class Charge:
    """One payment; a row of `charges`. Instants are texts as the ledger keeps them."""

    payment_id: str
    idempotency_key: str | None
    reference: str
    amount: int
    currency: str
    status: str
    code: str | None
    token: str
    description: str
    requested_amount: int
    created_at: str
    captured_at: str | None
    expires_at: str | None
    booked_us: int

    @classmethod
    def from_row(cls, row: Row) -> Self:
        """Read a row of `charges`."""
        return cls(**{name: row[name] for name in cls.__dataclass_fields__})

    def document(self) -> dict[str, Any]:
        """Return the payment as callers see it."""
        return {
            "object": "charge",
            "id": self.payment_id,
            "status": self.status,
            "code": self.code,
            "amount": self.amount,
            "currency": self.currency,
            "reference": self.reference,
            "source": self.token,
            "description": self.description,
            "created_at": self.created_at,
            "expires_at": self.expires_at,
        }

    def completed(self, now: datetime) -> Self:
        """Return it with its money moved."""
        return replace(self, status="succeeded", captured_at=to_text(now), expires_at=None)

    def failed(self, code: str) -> Self:
        """Return it with no money moved, for good."""
        return replace(self, status="declined", code=code, expires_at=None)


@dataclass(frozen=True, slots=True)
class Refund:
    """Money that went back; a row of `refunds`."""

    refund_id: str
    payment_id: str
    idempotency_key: str | None
    reference: str
    amount: int
    currency: str
    created_at: str
    booked_us: int

    @classmethod
    def from_row(cls, row: Row) -> Self:
        """Read a row of `refunds`."""
        return cls(**{name: row[name] for name in cls.__dataclass_fields__})

    def document(self) -> dict[str, Any]:
        """Return the refund as callers see it."""
        return {
            "object": "refund",
            "id": self.refund_id,
            "status": "succeeded",
            "charge": self.payment_id,
            "amount": self.amount,
            "currency": self.currency,
            "reference": self.reference,
            "created_at": self.created_at,
        }


@dataclass(frozen=True, slots=True)
class Event:
    """Something to tell by webhook: its type, the payment concerned, and the data to carry."""

    event_type: str
    payment_id: str
    data: dict[str, Any]

    @classmethod
    def of_charge(cls, charge: Charge) -> Self:
        """Tell a payment's present status."""
        data = {
            "payment_id": charge.payment_id,
            "reference": charge.reference,
            "amount": charge.amount,
            "currency": charge.currency,
            "status": charge.status,
            "code": charge.code,
            "expires_at": charge.expires_at,
        }
        return cls(f"charge.{charge.status}", charge.payment_id, data)

    @classmethod
    def of_refund(cls, refund: Refund) -> Self:
        """Tell of money that went back."""
        data = {
            "payment_id": refund.payment_id,
            "refund_id": refund.refund_id,
            "reference": refund.reference,
            "amount": refund.amount,
            "currency": refund.currency,
            "status": "succeeded",
            "code": None,
        }
        return cls("refund.succeeded", refund.payment_id, data)


def new_id(prefix: str) -> str:
    """Return an identifier that no other ledger will hand out either."""
    return f"{prefix}_{secrets.token_hex(12)}"


def insert_call(connection: sqlite3.Connection, call: Call) -> None:
    """Keep an arrival."""
    _insert(connection, "calls", asdict(call))


def update_call(connection: sqlite3.Connection, call: Call) -> None:
    """Keep what became of it."""
    connection.execute(
        """
        UPDATE calls
        SET subject = :subject, reference = :reference, http_status = :http_status,
            replayed = :replayed, send_no = :send_no, fault = :fault,
            fault_cause = :fault_cause, payment_id = :payment_id
        WHERE call_no = :call_no
        """,
        asdict(call),
    )


def insert_charge(connection: sqlite3.Connection, charge: Charge) -> None:
    """Book a payment."""
    _insert(connection, "charges", asdict(charge))


def update_charge(connection: sqlite3.Connection, charge: Charge) -> None:
    """Book what became of a payment that was under way."""
    connection.execute(
        """
        UPDATE charges
        SET status = :status, code = :code, captured_at = :captured_at, expires_at = :expires_at
        WHERE payment_id = :payment_id
        """,
        asdict(charge),
    )


def select_charge(connection: sqlite3.Connection, payment_id: str) -> Charge | None:
    """Return a payment as this transaction sees it."""
    statement = "SELECT * FROM charges WHERE payment_id = ?"
    row = connection.execute(statement, (payment_id,)).fetchone()
    return None if row is None else Charge.from_row(row)


def count_payments(connection: sqlite3.Connection, token: str) -> int:
    """Return how many payments a token has made, refused ones as well."""
    statement = "SELECT count(*) FROM charges WHERE token = ?"
    (payments,) = connection.execute(statement, (token,)).fetchone()
    return int(payments)


def insert_refund(connection: sqlite3.Connection, refund: Refund) -> None:
    """Book money that went back."""
    _insert(connection, "refunds", asdict(refund))


def refunded_amount(connection: sqlite3.Connection, payment_id: str) -> int:
    """Return what of a payment has gone back so far."""
    statement = "SELECT coalesce(sum(amount), 0) FROM refunds WHERE payment_id = ?"
    (amount,) = connection.execute(statement, (payment_id,)).fetchone()
    return int(amount)


def insert_event(
    connection: sqlite3.Connection, event: Event, created_us: int, business_now: str, copies: int
) -> list[int]:
    """Keep an event and as many deliveries as copies; return the deliveries' numbers."""
    event_id = new_id("evt")
    payload = {
        "id": event_id,
        "type": event.event_type,
        "timestamp": business_now,
        "data": event.data,
    }
    row = {
        "event_id": event_id,
        "event_type": event.event_type,
        "payment_id": event.payment_id,
        "payload": json.dumps(payload),
        "created_us": created_us,
    }
    event_no = _insert(connection, "webhook_events", row)
    return [
        _insert(connection, "webhook_deliveries", {"event_no": event_no}) for _ in range(copies)
    ]


def insert_kept_answer(connection: sqlite3.Connection, row: dict[str, Any]) -> None:
    """Keep an answer under its key; `row` holds the columns of `stored_answers`."""
    _insert(connection, "stored_answers", row)


def use_up_outcome(connection: sqlite3.Connection, outcome_no: int, call_no: int) -> None:
    """Mark one outcome of a script as used by a call."""
    statement = "UPDATE script_outcomes SET used_by_call = ? WHERE outcome_no = ?"
    connection.execute(statement, (call_no, outcome_no))


def replace_script(connection: sqlite3.Connection, token: str, outcomes: list[str]) -> list[int]:
    """Drop what a token's script still holds, line up others; return their numbers."""
    connection.execute(
        "DELETE FROM script_outcomes WHERE token = ? AND used_by_call IS NULL", (token,)
    )
    return [
        _insert(connection, "script_outcomes", {"token": token, "outcome": outcome})
        for outcome in outcomes
    ]


def put_control(connection: sqlite3.Connection, name: str, value: object) -> None:
    """Keep a setting of the control interface."""
    connection.execute(
        "INSERT INTO controls (name, value) VALUES (?, ?)"
        " ON CONFLICT (name) DO UPDATE SET value = excluded.value",
        (name, json.dumps(value)),
    )


def _insert(connection: sqlite3.Connection, table: str, row: dict[str, Any]) -> int:
    """Insert one row; table and column names come from this module, values are bound."""
    columns = ", ".join(row)
    values = ", ".join(f":{name}" for name in row)
    statement = f"INSERT INTO {table} ({columns}) VALUES ({values})"  # noqa: S608
    number = connection.execute(statement, row).lastrowid
    if number is None:
        raise RuntimeError(f"{table} took no row")
    return number
