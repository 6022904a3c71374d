"""Watches a demo run in the database: what is due, what is in flight, and until when nothing is."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Self

import psycopg
from psycopg.rows import class_row

_LOOK_EVERY = 0.2

_COUNTS = """
    SELECT
        (SELECT count(*) FROM billing.subscription AS s WHERE s.next_renewal_at <= c.now_at)
            AS due_renewals,
        (SELECT count(*) FROM billing.invoice AS i
         WHERE i.status = 'OPEN' AND i.next_attempt_at <= c.now_at) AS due_invoices,
        (SELECT count(*) FROM billing.payment_attempt AS a
         WHERE a.status = 'STARTED' OR a.lease_until > clock_timestamp()) AS in_flight,
        (SELECT count(*) FROM billing.payment_attempt AS a
         WHERE a.next_lookup_at <= c.now_at
           AND a.status IN ('STARTED', 'UNKNOWN', 'REQUIRES_ACTION', 'PROCESSING')
        ) AS due_look_ups,
        (SELECT count(*) FROM billing.invoice AS i
         WHERE i.kind = 'RENEWAL' AND (i.status <> 'OPEN' OR i.failure_count > 0)) AS decided,
        (SELECT count(*) FROM billing.invoice AS i WHERE i.kind = 'RENEWAL') AS renewed
    FROM (SELECT billing.now() AS now_at) AS c
"""
_UNSETTLED = """
    SELECT count(*)
    FROM billing.payment_attempt AS a
    WHERE a.status IN ('STARTED', 'UNKNOWN', 'REQUIRES_ACTION', 'PROCESSING')
      AND NOT EXISTS (
          SELECT 1
          FROM billing.reconciliation_case AS k
          WHERE k.customer_id = a.customer_id AND k.attempt_id = a.attempt_id
            AND k.resolved_at IS NULL
      )
"""
_FIRST_RUNG = """
    SELECT max(i.next_attempt_at)
    FROM billing.invoice AS i
    WHERE i.status = 'OPEN' AND i.failure_count = 1
"""
_UNPUBLISHED = "SELECT count(*) FROM billing.outbox_event AS e WHERE e.published_at IS NULL"


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """What is going on at the present business instant.

    Attributes:
        due_renewals: subscriptions to renew.
        due_invoices: invoices to collect, those included that the gateway asked to hold back.
        in_flight: claimed attempts.
        due_look_ups: attempts to ask about.
        decided: renewal invoices that were paid or declined at least once.
        renewed: renewal invoices.
    """

    due_renewals: int
    due_invoices: int
    in_flight: int
    due_look_ups: int
    decided: int
    renewed: int

    @property
    def left(self) -> int:
        """How much is left to do before the clock moves."""
        return self.due_renewals + self.due_invoices + self.in_flight + self.due_look_ups


class Watch:
    """One connection that only looks."""

    def __init__(self, database_url: str) -> None:
        """Connect.

        Args:
            database_url: as a member of billing_readonly.
        """
        self._connection: psycopg.Connection[Any] = psycopg.connect(
            database_url, autocommit=True, application_name="billing demo"
        )
        self._connection.execute("SET ROLE billing_readonly")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()

    def counts(self) -> Counts:
        """Look."""
        with self._connection.cursor(row_factory=class_row(Counts)) as cursor:
            found = cursor.execute(_COUNTS).fetchone()
        if found is None:
            raise psycopg.DataError("the counts had no answer")
        return found

    def unsettled(self) -> int:
        """Count open attempts that no person has been asked about."""
        count: int = self._value(_UNSETTLED)
        return count

    def first_rung(self) -> datetime | None:
        """Return the latest instant at which a first retry is due; None where none is planned."""
        rung: datetime | None = self._value(_FIRST_RUNG)
        return rung

    def unpublished(self) -> int:
        """Count events that are not marked as published."""
        count: int = self._value(_UNPUBLISHED)
        return count

    def wait_until_quiet(
        self, on_look: Callable[[Counts], None], *, patience: float
    ) -> Counts | None:
        """Wait until nothing is due and nothing is in flight.

        Args:
            on_look: told of every look; may raise to end the waiting.
            patience: seconds without any progress after which it gives up. Progress is less left to
                do than ever in this wait, or more invoices decided.

        Returns:
            None, or the last counts if there was no progress for so long.
        """
        best: tuple[int, int] | None = None
        progress_at = time.monotonic()
        while True:
            counts = self.counts()
            on_look(counts)
            if counts.left == 0:
                return None
            now = time.monotonic()
            if best is None or counts.left < best[0] or counts.decided > best[1]:
                best = (min(counts.left, best[0] if best else counts.left), counts.decided)
                progress_at = now
            elif now - progress_at > patience:
                return counts
            time.sleep(_LOOK_EVERY)

    def wait_until_published(self, on_look: Callable[[int], None], *, patience: float) -> int:
        """Wait until every event is published; return how many are not if it gives up."""
        fewest, changed_at = self.unpublished(), time.monotonic()
        while (left := self.unpublished()) > 0:
            on_look(left)
            now = time.monotonic()
            if left < fewest:
                fewest, changed_at = left, now
            elif now - changed_at > patience:
                return left
            time.sleep(_LOOK_EVERY)
        return 0

    def _value(self, statement: str) -> Any:  # noqa: ANN401  one column of any type
        row = self._connection.execute(statement.encode()).fetchone()
        return None if row is None else row[0]
