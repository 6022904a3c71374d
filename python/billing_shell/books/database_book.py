"""The database's book: its tables, by SQL, in one snapshot.

What should have been renewed is computed here anew, from anchors and intervals, by PostgreSQL's own
calendar and none of the engine's functions.
"""

import json
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import psycopg
from psycopg import IsolationLevel
from psycopg.rows import class_row

# No more rights than a dashboard has.
_READER = "SET LOCAL ROLE billing_readonly"

# Boundary k is the local anchor and k intervals, in the subscription's zone. Every boundary from
# the end of the first period on, up to now and up to the end or the first decline, opens a period.
_RENEWALS = """
    WITH clock AS MATERIALIZED (SELECT billing.now() AS now_at),
    subject AS MATERIALIZED (
        SELECT
            s.customer_id, s.subscription_id, s.anchor_at, s.time_zone, f.period_end AS first_end,
            least(c.now_at, s.ended_at - interval '1 second', s.past_due_since) AS until,
            make_interval(
                years => CASE p.interval_unit WHEN 'YEAR' THEN p.interval_count ELSE 0 END,
                months => CASE p.interval_unit WHEN 'MONTH' THEN p.interval_count ELSE 0 END,
                days => CASE p.interval_unit WHEN 'WEEK' THEN 7 * p.interval_count
                                             WHEN 'DAY' THEN p.interval_count ELSE 0 END
            ) AS length
        FROM billing.subscription AS s
        CROSS JOIN clock AS c
        INNER JOIN billing.price AS p ON p.price_id = s.price_id
        INNER JOIN billing.subscription_period AS f
            ON f.customer_id = s.customer_id AND f.subscription_id = s.subscription_id
            AND f.prev_end IS NULL
    ),
    expected AS (
        SELECT
            t.customer_id, t.subscription_id, b.starts_at,
            (t.anchor_at + (n.k + 1) * t.length) AT TIME ZONE t.time_zone AS ends_at
        FROM subject AS t
        CROSS JOIN LATERAL (
            SELECT greatest(
                0,
                floor(
                    extract(epoch FROM t.first_end AT TIME ZONE t.time_zone - t.anchor_at)
                    / extract(epoch FROM t.length)
                )::integer - 2
            ) AS from_k
        ) AS l
        CROSS JOIN LATERAL generate_series(l.from_k, l.from_k + 40) AS n (k)
        CROSS JOIN LATERAL (
            SELECT (t.anchor_at + n.k * t.length) AT TIME ZONE t.time_zone AS starts_at
        ) AS b
        WHERE b.starts_at >= t.first_end AND b.starts_at <= t.until
    ),
    opened AS (
        SELECT p.customer_id, p.subscription_id, p.period_start, p.period_end, p.invoice_id
        FROM billing.subscription_period AS p
        WHERE p.prev_end IS NOT NULL
    ),
    billed AS (
        SELECT i.customer_id, i.subscription_id, i.period_start, count(*) AS invoices
        FROM billing.invoice AS i
        WHERE i.kind = 'RENEWAL' AND i.status <> 'VOID'
        GROUP BY i.customer_id, i.subscription_id, i.period_start
    ),
    compared AS (
        SELECT
            coalesce(e.subscription_id, o.subscription_id) AS subscription_id,
            coalesce(e.starts_at, o.period_start) AS starts_at,
            e.starts_at IS NOT NULL AS is_due,
            o.period_start IS NOT NULL AS is_opened,
            o.period_end IS DISTINCT FROM e.ends_at AS ends_elsewhere
        FROM expected AS e
        FULL JOIN opened AS o
            ON o.customer_id = e.customer_id AND o.subscription_id = e.subscription_id
            AND o.period_start = e.starts_at
    )
    SELECT
        (SELECT count(*) FROM compared AS c WHERE c.is_due),
        (SELECT count(*) FROM compared AS c WHERE c.is_due AND c.is_opened),
        (SELECT coalesce(sum(b.invoices), 0)::bigint FROM billed AS b),
        ARRAY(SELECT c.subscription_id FROM compared AS c WHERE c.is_due AND NOT c.is_opened
              ORDER BY c.subscription_id),
        ARRAY(SELECT c.subscription_id FROM compared AS c WHERE c.is_opened AND NOT c.is_due
              ORDER BY c.subscription_id),
        ARRAY(SELECT c.subscription_id FROM compared AS c
              WHERE c.is_due AND c.is_opened AND c.ends_elsewhere ORDER BY c.subscription_id),
        ARRAY(SELECT b.subscription_id FROM billed AS b WHERE b.invoices > 1
              ORDER BY b.subscription_id),
        ARRAY(
            SELECT e.subscription_id
            FROM expected AS e
            LEFT JOIN billed AS b
                ON b.customer_id = e.customer_id AND b.subscription_id = e.subscription_id
                AND b.period_start = e.starts_at
            WHERE b.invoices IS NULL
            ORDER BY e.subscription_id
        )
"""
# As the import files name things. What a void invoice billed is not billed.
_BILLED = """
    SELECT c.external_ref, r.external_ref, p.period_start, p.period_end, i.currency, i.total
    FROM billing.subscription_period AS p
    INNER JOIN billing.subscription AS s
        ON s.customer_id = p.customer_id AND s.subscription_id = p.subscription_id
    INNER JOIN billing.customer AS c ON c.customer_id = s.customer_id
    INNER JOIN billing.resource AS r
        ON r.customer_id = s.customer_id AND r.resource_id = s.resource_id
    INNER JOIN billing.invoice AS i
        ON i.customer_id = p.customer_id AND i.invoice_id = p.invoice_id AND i.status <> 'VOID'
    WHERE p.prev_end IS NOT NULL
"""
# The chain once more, without trusting the foreign key that holds it.
_CHAIN = """
    WITH chain AS (
        SELECT
            p.customer_id, p.subscription_id, p.period_start, p.period_end,
            lag(p.period_end) OVER w AS ended_before, lead(p.period_start) OVER w AS next_start
        FROM billing.subscription_period AS p
        WINDOW w AS (PARTITION BY p.customer_id, p.subscription_id ORDER BY p.period_start)
    )
    SELECT
        ARRAY(SELECT DISTINCT c.subscription_id FROM chain AS c
              WHERE c.ended_before <> c.period_start ORDER BY c.subscription_id),
        ARRAY(
            SELECT s.subscription_id
            FROM billing.subscription AS s
            INNER JOIN chain AS c
                ON c.customer_id = s.customer_id AND c.subscription_id = s.subscription_id
                AND c.next_start IS NULL
            WHERE (s.current_period_start, s.current_period_end)
                IS DISTINCT FROM (c.period_start, c.period_end)
            ORDER BY s.subscription_id
        ),
        ARRAY(SELECT s.subscription_id FROM billing.subscription AS s
              WHERE s.parked_at IS NOT NULL ORDER BY s.subscription_id)
"""
_INVOICES = """
    SELECT
        i.invoice_id, i.subscription_id, i.kind, i.status, i.currency, i.total, i.credit_applied,
        i.amount_paid, i.carried, i.amount_due
    FROM billing.invoice AS i
    ORDER BY i.invoice_id
"""
_ATTEMPTS = """
    SELECT
        a.attempt_id, a.invoice_id, a.idempotency_key AS reference, a.status, a.amount, a.currency,
        a.gateway_payment_id, a.gateway_account_id IS NOT NULL AS is_for_gateway
    FROM billing.payment_attempt AS a
    ORDER BY a.attempt_id
"""
_EVENTS = """
    SELECT
        e.outbox_event_id::text AS event_id, e.event_type, e.aggregate_type,
        e.aggregate_id::text AS aggregate_id, e.aggregate_seq AS sequence,
        e.payload::text AS payload, e.published_at IS NOT NULL AS is_published
    FROM billing.outbox_event AS e
    ORDER BY e.aggregate_type, e.aggregate_id, e.aggregate_seq
"""
_PAST_DUE = """
    SELECT
        i.subscription_id, i.invoice_id, s.status AS subscription_status, d.code AS policy,
        i.failure_count, i.last_failed_at, i.next_attempt_at,
        EXISTS (
            SELECT 1
            FROM billing.payment_attempt AS a
            WHERE a.customer_id = i.customer_id AND a.invoice_id = i.invoice_id
              AND a.status IN ('STARTED', 'UNKNOWN', 'REQUIRES_ACTION', 'PROCESSING')
        ) AS is_in_doubt
    FROM billing.invoice AS i
    INNER JOIN billing.subscription AS s
        ON s.customer_id = i.customer_id AND s.subscription_id = i.subscription_id
    INNER JOIN billing.dunning_policy AS d ON d.dunning_policy_id = s.dunning_policy_id
    WHERE i.status = 'OPEN' AND i.failure_count > 0
    ORDER BY i.invoice_id
"""
_LEFT_DUE = """
    SELECT
        (SELECT count(*) FROM billing.invoice AS i
         WHERE i.status = 'OPEN' AND i.next_attempt_at <= (SELECT billing.now())),
        (SELECT count(*) FROM billing.subscription AS s
         WHERE s.next_renewal_at <= (SELECT billing.now()))
"""
_EXPONENTS = "SELECT c.code, c.exponent FROM billing.currency AS c"
_CASES = """
    SELECT c.kind, count(*)
    FROM billing.reconciliation_case AS c
    WHERE c.resolved_at IS NULL
    GROUP BY c.kind
    ORDER BY c.kind
"""
# A report whose claim was given to somebody else before it came, and which was believed all the
# same. A success always is: money that moved is recorded whoever says so.
_STALE = """
    SELECT
        count(*) FILTER (WHERE r.verdict = 'STALE'),
        ARRAY(
            SELECT DISTINCT b.attempt_id
            FROM billing.payment_report AS b
            WHERE b.verdict = 'APPLIED' AND b.outcome <> 'SUCCEEDED'
              AND EXISTS (
                  SELECT 1
                  FROM billing.payment_report AS n
                  WHERE n.customer_id = b.customer_id AND n.attempt_id = b.attempt_id
                    AND n.claim_epoch > b.claim_epoch
                    AND n.payment_report_id < b.payment_report_id
              )
            ORDER BY b.attempt_id
        )
    FROM billing.payment_report AS r
"""
_STATUSES = "SELECT s.status, count(*) FROM billing.subscription AS s GROUP BY s.status"
_UNSETTLED = """
    SELECT count(*)
    FROM billing.payment_attempt AS a
    WHERE a.status IN ('STARTED', 'UNKNOWN')
      AND NOT EXISTS (
          SELECT 1
          FROM billing.reconciliation_case AS c
          WHERE c.customer_id = a.customer_id AND c.attempt_id = a.attempt_id
            AND c.resolved_at IS NULL
      )
"""
# The engine's own opinion, beside what is computed here.
_INTEGRITY = """
    SELECT format('%s: %s, %s', v.check_name, v.object, v.detail)
    FROM billing_ops.check_integrity() AS v
    WHERE v.severity <> 'WARNING'
"""
_DECLINES = """
    SELECT count(*)
    FROM billing.payment_attempt AS a
    WHERE a.status = 'DECLINED' AND a.gateway_account_id IS NOT NULL
"""
_RECOVERED = """
    SELECT count(*) FROM billing.invoice AS i WHERE i.status = 'PAID' AND i.failure_count > 0
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Renewals:
    """What should have been renewed, and what was; lists hold subscription ids.

    Attributes:
        due: boundaries that lie behind us.
        opened: of those, how many opened a period.
        invoices: renewal invoices, void ones apart.
        missing: due, but no period was opened.
        unasked: a period was opened that was not due.
        misplaced: a period ends at another instant than its next boundary.
        billed_twice: two invoices for one period.
        unbilled: due, but no invoice.
        broken: a period does not start where the one before ended.
        not_advanced: the subscription does not stand at its last period.
        parked: renewals set aside with an error.
    """

    due: int
    opened: int
    invoices: int
    missing: tuple[int, ...]
    unasked: tuple[int, ...]
    misplaced: tuple[int, ...]
    billed_twice: tuple[int, ...]
    unbilled: tuple[int, ...]
    broken: tuple[int, ...]
    not_advanced: tuple[int, ...]
    parked: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Invoice:
    """One invoice; amounts in minor units of `currency`."""

    invoice_id: int
    subscription_id: int
    kind: str
    status: str
    currency: str
    total: int
    credit_applied: int
    amount_paid: int
    carried: int
    amount_due: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One payment attempt; `reference` is what the gateway knows it by."""

    attempt_id: int
    invoice_id: int
    reference: str
    status: str
    amount: int
    currency: str
    gateway_payment_id: str | None
    is_for_gateway: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One row of the outbox; `payload` as JSON in a canonical form: members sorted, no spaces."""

    event_id: str
    event_type: str
    aggregate_type: str
    aggregate_id: str
    sequence: int
    payload: str
    is_published: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class UnpaidInvoice:
    """An open invoice that was declined at least once.

    Attributes:
        is_in_doubt: an attempt is under way or unknown, so that no next one is planned.
    """

    subscription_id: int
    invoice_id: int
    subscription_status: str
    policy: str
    failure_count: int
    last_failed_at: datetime
    next_attempt_at: datetime | None
    is_in_doubt: bool

    @property
    def waits(self) -> timedelta | None:
        """Time from the last failure to the next attempt; None where none is planned."""
        return None if self.next_attempt_at is None else self.next_attempt_at - self.last_failed_at


@dataclass(frozen=True, slots=True, kw_only=True)
class DatabaseBook:
    """Everything that the database holds and the report needs.

    Attributes:
        now: business time.
        exponents: digits of the minor unit by currency.
        billed: each period after the first, with customer and resource by their external names,
            start, end, currency and amount.
        unpaid: open invoices with a declined attempt.
        cases: open cases by kind.
        statuses: subscriptions by status.
        unsettled: attempts whose outcome is unknown and for which there is no case.
        declines: attempts that the gateway declined.
        recovered: invoices that were paid after a decline.
        left_due: open invoices that could be attempted now.
        left_renewable: subscriptions that could be renewed now.
        violations: what the engine's own integrity check finds.
        stale_reports: reports refused for their old claim or lower rank.
        stale_believed: attempts for which a report of an old claim was believed.
    """

    now: datetime
    exponents: dict[str, int]
    renewals: Renewals
    billed: tuple[tuple[str, str, datetime, datetime, str, int], ...]
    invoices: tuple[Invoice, ...]
    attempts: tuple[Attempt, ...]
    events: tuple[Event, ...]
    unpaid: tuple[UnpaidInvoice, ...]
    cases: dict[str, int]
    statuses: dict[str, int]
    unsettled: int
    declines: int
    recovered: int
    left_due: int
    left_renewable: int
    violations: tuple[str, ...]
    stale_reports: int
    stale_believed: tuple[int, ...]


def read_database_book(database_url: str) -> DatabaseBook:
    """Read it all in one snapshot, writing nothing.

    Args:
        database_url: as a member of billing_readonly.

    Raises:
        psycopg.Error: it cannot be read.
    """
    with psycopg.connect(database_url, application_name="billing report") as connection:
        connection.isolation_level = IsolationLevel.REPEATABLE_READ
        connection.read_only = True
        connection.execute(_READER)
        return _read(connection)


def read_unpaid(database_url: str) -> tuple[UnpaidInvoice, ...]:
    """Read only the open invoices with a declined attempt.

    Raises:
        psycopg.Error: they cannot be read.
    """
    with psycopg.connect(database_url, application_name="billing report") as connection:
        connection.read_only = True
        connection.execute(_READER)
        return _unpaid(connection)


def _read(connection: psycopg.Connection[Any]) -> DatabaseBook:
    due, opened, invoices, missing, unasked, misplaced, twice, unbilled = _row(
        connection, _RENEWALS
    )
    left_due, left_renewable = _row(connection, _LEFT_DUE)
    broken, not_advanced, parked = _row(connection, _CHAIN)
    stale_reports, stale_believed = _row(connection, _STALE)
    with connection.cursor(row_factory=class_row(Invoice)) as cursor:
        invoice_rows = tuple(cursor.execute(_INVOICES))
    with connection.cursor(row_factory=class_row(Attempt)) as cursor:
        attempt_rows = tuple(cursor.execute(_ATTEMPTS))
    with connection.cursor(row_factory=_event) as cursor:
        event_rows = tuple(cursor.execute(_EVENTS))
    return DatabaseBook(
        now=_row(connection, "SELECT billing.now()")[0],
        exponents=dict(connection.execute(_EXPONENTS).fetchall()),
        renewals=Renewals(
            due=due,
            opened=opened,
            invoices=invoices,
            missing=tuple(missing),
            unasked=tuple(unasked),
            misplaced=tuple(misplaced),
            billed_twice=tuple(twice),
            unbilled=tuple(unbilled),
            broken=tuple(broken),
            not_advanced=tuple(not_advanced),
            parked=tuple(parked),
        ),
        billed=tuple(connection.execute(_BILLED).fetchall()),
        invoices=invoice_rows,
        attempts=attempt_rows,
        events=event_rows,
        unpaid=_unpaid(connection),
        cases=dict(connection.execute(_CASES).fetchall()),
        statuses=dict(connection.execute(_STATUSES).fetchall()),
        unsettled=_row(connection, _UNSETTLED)[0],
        declines=_row(connection, _DECLINES)[0],
        recovered=_row(connection, _RECOVERED)[0],
        left_due=left_due,
        left_renewable=left_renewable,
        violations=tuple(text for (text,) in connection.execute(_INTEGRITY)),
        stale_reports=stale_reports,
        stale_believed=tuple(stale_believed),
    )


def _unpaid(connection: psycopg.Connection[Any]) -> tuple[UnpaidInvoice, ...]:
    with connection.cursor(row_factory=class_row(UnpaidInvoice)) as cursor:
        return tuple(cursor.execute(_PAST_DUE))


def _row(connection: psycopg.Connection[Any], statement: str) -> tuple[Any, ...]:
    row: tuple[Any, ...] | None = connection.execute(statement.encode()).fetchone()
    if row is None:
        raise psycopg.DataError("a question about all rows had no answer")
    return row


def _event(cursor: psycopg.Cursor[Any]) -> Any:  # noqa: ANN401  psycopg's RowMaker
    make = class_row(Event)(cursor)

    def canonical(values: Any) -> Event:  # noqa: ANN401  as above
        event = make(values)
        payload = json.dumps(json.loads(event.payload), sort_keys=True, separators=(",", ":"))
        return Event(
            event_id=event.event_id,
            event_type=event.event_type,
            aggregate_type=event.aggregate_type,
            aggregate_id=event.aggregate_id,
            sequence=event.sequence,
            payload=payload,
            is_published=event.is_published,
        )

    return canonical
