"""Bugs on purpose: one core function each, rewritten in a database of its own."""

from dataclasses import dataclass
from typing import Any

import psycopg

_DEFINITION = "SELECT pg_catalog.pg_get_functiondef(%s::regproc)"


@dataclass(frozen=True)
class Mutation:
    """One bug.

    Attributes:
        function: which function has it.
        text: what stands there, once.
        other: what stands there instead.
    """

    function: str
    text: str
    other: str

    def apply(self, connection: psycopg.Connection[Any]) -> None:
        """Rewrite the function; fails where its text is not what it was."""
        row = connection.execute(_DEFINITION, (self.function,)).fetchone()
        assert row is not None
        definition: str = row[0]
        assert definition.count(self.text) == 1, f"{self.function} has changed: follow it"
        connection.execute(definition.replace(self.text, self.other).encode())


MUTATIONS = {
    "a claim takes no lock": Mutation(
        "billing.claim_due_subscriptions",
        "LIMIT p_limit\n        FOR NO KEY UPDATE SKIP LOCKED",
        "LIMIT p_limit",
    ),
    "an old claim is believed": Mutation(
        "billing.judge_results", "r.claim_epoch IS DISTINCT FROM a.claim_epoch", "false"
    ),
    "each send has a key of its own": Mutation(
        "billing.send_attempts",
        "SET claim_epoch = a.claim_epoch + 1,",
        "SET claim_epoch = a.claim_epoch + 1, idempotency_key = 'key-' || clock_timestamp(),",
    ),
    "a time-out counts as a decline": Mutation(
        "billing.judge_results",
        "ELSE r.outcome\n            END AS status",
        "ELSE replace(r.outcome, 'UNKNOWN', 'DECLINED')\n            END AS status",
    ),
    "the period is not opened": Mutation(
        "billing.renew_claimed", "PERFORM billing.open_periods(v_renewals);", ""
    ),
    "the subscription is not advanced": Mutation(
        "billing.renew_claimed", "PERFORM billing.advance_subscriptions(v_renewals, p_run_id);", ""
    ),
    "the count of periods stands still": Mutation(
        "billing.advance_subscriptions",
        "period_no = CASE r.verdict WHEN 'RENEW' THEN r.period_no ELSE s.period_no END,",
        "",
    ),
    "credit is drawn and not deducted": Mutation(
        "billing.add_credit", "balance = b.balance + p_amount", "balance = b.balance"
    ),
    "a payment is booked short": Mutation(
        "billing.capture_payments",
        "SET amount_paid = i.amount_paid + j.captured,",
        "SET amount_paid = i.amount_paid + j.captured, carried = i.carried - 1,",
    ),
    "an event is kept from the world": Mutation(
        "billing.record_happenings",
        "WHERE h.published\n",
        "WHERE h.published AND h.event_seq <> 3\n",
    ),
    "a number is left out": Mutation(
        "billing.advance_subscriptions",
        "event_seq = s.event_seq + r.event_count",
        "event_seq = s.event_seq + r.event_count + 1",
    ),
    "an end leaves its invoice open": Mutation(
        "billing.close_open_invoices",
        "SET status = CASE WHEN f.stands THEN 'FAILED' ELSE 'VOID' END,",
        "SET status = i.status,",
    ),
}
