"""What a simulation ends with: ledger, topic and timelines against the database, and a digest.

The ledger is read by sqlite3 alone, and by none of the gateway's code; the topic by a consumer that
has never met the relay.
"""

import hashlib
import json
import sqlite3
from collections import Counter, defaultdict
from contextlib import closing
from pathlib import Path
from typing import Any, LiteralString

import psycopg

from billing_shell.books.topic_book import TopicBook

_ATTEMPTS: LiteralString = """
    SELECT
        a.idempotency_key, a.invoice_id, a.status,
        (SELECT sum(r.amount)::bigint
         FROM billing.payment_report AS r
         WHERE r.customer_id = a.customer_id AND r.attempt_id = a.attempt_id
           AND r.outcome = 'SUCCEEDED' AND r.verdict = 'APPLIED')
    FROM billing.payment_attempt AS a
"""
_REFUNDS: LiteralString = """
    SELECT f.idempotency_key, f.gateway_payment_id, f.amount, f.status FROM billing.refund AS f
"""
_EVENTS: LiteralString = """
    SELECT
        o.outbox_event_id::text, o.event_type, o.aggregate_type || '/' || o.aggregate_id,
        o.aggregate_id::text, o.aggregate_seq, o.payload
    FROM billing.outbox_event AS o
    ORDER BY o.outbox_event_id
"""
_STATUSES: LiteralString = """
    SELECT 'subscription/' || s.subscription_id, s.status FROM billing.subscription AS s
"""
_PERIODS: LiteralString = """
    SELECT
        s.subscription_id, s.status, p.kind, extract(epoch FROM p.period_start)::bigint,
        nullif(extract(epoch FROM p.period_end), 'infinity')::bigint, i.status
    FROM billing.subscription AS s
    INNER JOIN billing.subscription_period AS p
        ON p.customer_id = s.customer_id AND p.subscription_id = s.subscription_id
    LEFT JOIN billing.invoice AS i ON i.customer_id = p.customer_id AND i.invoice_id = p.invoice_id
    ORDER BY s.subscription_id, p.period_start
"""
_NOW: LiteralString = "SELECT extract(epoch FROM billing.now())::bigint"
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
    SELECT f.refund_id, f.status, f.amount, f.send_count, f.requested_at, f.ended_at
    FROM billing.refund AS f ORDER BY 1
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
_RENEWED = frozenset({"TRIALING", "ACTIVE"})


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
    paid_under: dict[int, set[str]] = defaultdict(set)
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
        invoice, status, captured = attempts[reference]
        if moved:
            paid_under[invoice].add(reference)
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
    findings.extend(
        f"double charge: invoice {invoice} was paid under {len(keys)} keys"
        for invoice, keys in paid_under.items()
        if len(keys) > 1
    )
    return figures, findings


def compare_refunds(
    connection: psycopg.Connection[Any], ledger: Path
) -> tuple[Counter[str], list[str]]:
    """Compare all money that the gateway sent back with the refund that asked for it.

    Returns:
        figures, and what does not agree.
    """
    with closing(sqlite3.connect(ledger)) as books:
        made = books.execute("SELECT reference, payment_id, amount FROM refunds").fetchall()
    findings: list[str] = []
    figures: Counter[str] = Counter(refunds=len(made))
    asked = {key: rest for key, *rest in connection.execute(_REFUNDS).fetchall()}
    times = Counter(reference for reference, _, _ in made)
    findings.extend(f"sent back {n} times: {key}" for key, n in times.items() if n > 1)
    for reference, payment, amount in made:
        figures["minor_units_sent_back"] += amount
        if reference not in asked or asked[reference][:2] != [payment, amount]:
            findings.append(f"{reference}: {amount} of {payment} went back, and nobody asked so")
        elif asked[reference][2] == "FAILED":
            findings.append(f"{reference} is FAILED, and the money went back")
    findings.extend(
        f"{key} is SUCCEEDED, and the gateway sent nothing back"
        for key, (_, _, status) in asked.items()
        if status == "SUCCEEDED" and key not in times
    )
    return figures, findings


def compare_events(
    connection: psycopg.Connection[Any], book: TopicBook
) -> tuple[Counter[str], list[str]]:
    """Compare what a consumer finds on the topic with what was to be told.

    A consumer drops repeated ids. What is left must be every event of the outbox, as it was
    written, with ascending numbers per subscription (and per customer); and the last status that a
    subscription was told to have is the one that it has.

    Returns:
        figures, and what does not agree.
    """
    findings: list[str] = []
    written = {row[0]: row[1:] for row in connection.execute(_EVENTS).fetchall()}
    last: dict[str, int] = {}
    told: dict[str, str] = {}
    seen: set[str] = set()
    for message in book.appearances:
        if message.event_id in seen:
            continue
        seen.add(message.event_id)
        if message.event_id not in written:
            findings.append(f"event {message.event_id} is on the topic, and nobody wrote it")
            continue
        event_type, subject, key, sequence, payload = written[message.event_id]
        stands = json.dumps(payload, sort_keys=True, separators=(",", ":"))
        if (message.event_type, message.subject, message.key, message.sequence) != (
            event_type,
            subject,
            key,
            sequence,
        ) or message.payload != stands:
            findings.append(f"event {message.event_id} is not on the topic as it was written")
        if sequence <= last.get(subject, 0):
            findings.append(f"event {sequence} of {subject} came after {last[subject]}")
        last[subject] = sequence
        if event_type.startswith("Subscription") and "status" in payload:
            told[subject] = payload["status"]
    findings.extend(
        f"event {event_id} of {written[event_id][1]} is lost" for event_id in written.keys() - seen
    )
    findings.extend(
        f"{subject} was told to be {told[subject]} and is {status}"
        for subject, status in connection.execute(_STATUSES).fetchall()
        if told.get(subject, status) != status
    )
    figures = Counter(
        events=len(written),
        events_on_the_topic=len(book.appearances),
        events_repeated=len(book.appearances) - len(seen),
    )
    return figures, findings


def compare_periods(connection: psycopg.Connection[Any]) -> list[str]:
    """Walk through every timeline: nothing is missing, nothing twice, nothing without its bill."""
    findings: list[str] = []
    before: tuple[int, int | None] | None = None
    open_until: dict[int, int | None] = {}
    for subscription, status, kind, start, end, invoice in connection.execute(_PERIODS).fetchall():
        if before is not None and before[0] == subscription and before[1] != start:
            findings.append(f"subscription {subscription}: {start} does not follow {before[1]}")
        if kind == "BILLED" and invoice is None:
            findings.append(f"subscription {subscription}: the period from {start} has no invoice")
        before = (subscription, end)
        open_until.pop(subscription, None)
        if status in _RENEWED:
            open_until[subscription] = end
    ((now,),) = connection.execute(_NOW).fetchall()
    findings.extend(
        f"subscription {subscription} has no period since {end}"
        for subscription, end in open_until.items()
        if end is not None and end <= now
    )
    return findings


def digest(connection: psycopg.Connection[Any]) -> str:
    """Return 16 hexadecimal digits that stand for the end state."""
    state = hashlib.sha256()
    for query in _STATE:
        for (row,) in connection.execute(_AS_TEXT[0] + query + _AS_TEXT[1]):
            state.update(row.encode())
    return state.hexdigest()[:16]
