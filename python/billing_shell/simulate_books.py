"""What a simulation ends with: the gateway's ledger against the database, the events, a digest.

The ledger is read by sqlite3 alone, and by none of the gateway's code.
"""

import hashlib
import sqlite3
from collections import Counter, defaultdict
from contextlib import closing
from pathlib import Path
from typing import Any, LiteralString

import psycopg

_ATTEMPTS: LiteralString = """
    SELECT
        a.idempotency_key, a.invoice_id, a.status,
        (SELECT sum(r.amount)::bigint
         FROM billing.payment_report AS r
         WHERE r.customer_id = a.customer_id AND r.attempt_id = a.attempt_id
           AND r.outcome = 'SUCCEEDED' AND r.verdict = 'APPLIED')
    FROM billing.payment_attempt AS a
"""
_EVENTS: LiteralString = """
    SELECT o.aggregate_type, o.aggregate_id, o.aggregate_seq, o.payload ->> 'status', s.status
    FROM billing.outbox_event AS o
    LEFT JOIN billing.subscription AS s
        ON o.aggregate_type = 'subscription' AND s.customer_id = o.customer_id
        AND s.subscription_id = o.aggregate_id
        AND o.event_type LIKE 'Subscription%%'
    ORDER BY o.outbox_event_id
"""
_AS_TEXT: tuple[LiteralString, LiteralString] = ("SELECT to_jsonb(q)::text FROM (", ") AS q")
# Everything but what another run must have different: ids that a gateway makes up, the wall clock.
_STATE: tuple[LiteralString, ...] = (
    """
    SELECT s.subscription_id, s.status, s.price_id, s.quantity, s.current_period_end, s.version,
        s.event_seq, s.ended_at, s.end_reason
    FROM billing.subscription AS s ORDER BY 1
    """,
    """
    SELECT p.subscription_id, p.period_start, p.period_end, p.kind, p.invoice_id
    FROM billing.subscription_period AS p ORDER BY 1, 2
    """,
    """
    SELECT i.invoice_id, i.kind, i.status, i.total, i.credit_applied, i.amount_paid, i.carried,
        i.issued_at, i.paid_at, i.failure_count, i.attempt_count
    FROM billing.invoice AS i ORDER BY 1
    """,
    """
    SELECT a.attempt_id, a.status, a.amount, a.decline_code, a.send_count, a.started_at, a.ended_at
    FROM billing.payment_attempt AS a ORDER BY 1
    """,
    """
    SELECT c.customer_id, c.entry_seq, c.kind, c.amount, c.as_of
    FROM billing.credit_entry AS c ORDER BY 1, 2
    """,
    """
    SELECT e.subscription_id, e.event_seq, e.event_type, e.as_of
    FROM billing.subscription_event AS e ORDER BY 1, 2
    """,
)
_OPEN = frozenset({"STARTED", "UNKNOWN", "REQUIRES_ACTION", "PROCESSING"})


def read_charges(ledger: Path) -> dict[str, list[tuple[str, int]]]:
    """Return (status, amount) of every payment in the ledger by its reference."""
    charges: dict[str, list[tuple[str, int]]] = defaultdict(list)
    with closing(sqlite3.connect(ledger)) as connection:
        for reference, status, amount in connection.execute(
            "SELECT reference, status, amount FROM charges ORDER BY charge_no"
        ):
            charges[reference].append((status, amount))
    return charges


def read_faults(ledger: Path) -> dict[str, int]:
    """Return how often each fault happened at the gateway."""
    with closing(sqlite3.connect(ledger)) as connection:
        return dict(
            connection.execute(
                "SELECT fault, count(*) FROM calls WHERE fault IS NOT NULL GROUP BY 1 ORDER BY 1"
            ).fetchall()
        )


def compare_money(
    connection: psycopg.Connection[Any], ledger: Path
) -> tuple[Counter[str], list[str]]:
    """Compare every payment of the gateway with the attempt that asked for it.

    Returns:
        figures, and what does not agree.
    """
    charges = read_charges(ledger)
    findings: list[str] = []
    figures: Counter[str] = Counter()
    attempts = {key: rest for key, *rest in connection.execute(_ATTEMPTS).fetchall()}
    for reference, made in charges.items():
        moved = [amount for status, amount in made if status == "succeeded"]
        figures["charges"] += len(moved)
        figures["minor_units_moved"] += sum(moved)
        if len(moved) > 1:
            findings.append(f"double charge: {reference} moved money {len(moved)} times")
        if reference not in attempts:
            findings.append(f"{reference} is known to the gateway only")
            continue
        _, status, captured = attempts[reference]
        if moved and status in _OPEN:
            figures["moved_and_still_asked_about"] += 1
        elif sum(moved) != (captured or 0):
            findings.append(
                f"{reference}, {status}: the gateway moved {sum(moved)}, the database {captured}"
            )
    findings.extend(
        f"{key} is SUCCEEDED, and the gateway knows nothing of it"
        for key, (_, status, _) in attempts.items()
        if status == "SUCCEEDED" and key not in charges
    )
    return figures, findings


def compare_events(connection: psycopg.Connection[Any]) -> tuple[int, list[str]]:
    """Read the outbox as a consumer does: numbers ascend, and what was told last is so.

    Returns:
        the number of events, and what does not agree.
    """
    findings: list[str] = []
    last: dict[tuple[str, int], int] = {}
    told: dict[int, tuple[str, str]] = {}
    events = connection.execute(_EVENTS).fetchall()
    for kind, aggregate, seq, status, is_status in events:
        if seq <= last.get((kind, aggregate), 0):
            findings.append(f"event {seq} of {kind} {aggregate} came after a later one")
        last[kind, aggregate] = seq
        if status is not None and is_status is not None:
            told[aggregate] = (status, is_status)
    findings.extend(
        f"subscription {aggregate} was told to be {status} and is {is_status}"
        for aggregate, (status, is_status) in told.items()
        if status != is_status
    )
    return len(events), findings


def digest(connection: psycopg.Connection[Any]) -> str:
    """Return 16 hexadecimal digits that stand for the end state."""
    state = hashlib.sha256()
    for query in _STATE:
        for (row,) in connection.execute(_AS_TEXT[0] + query + _AS_TEXT[1]):
            state.update(row.encode())
    return state.hexdigest()[:16]
