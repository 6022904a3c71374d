"""The person on call of a simulation: decides what stayed unknown, by the gateway's own books."""

import sqlite3
from collections import Counter
from datetime import datetime, timedelta
from typing import LiteralString

import psycopg

from billing_shell.simulate_gateway import MortalGateway

_WAITS = timedelta(days=2)
_OPEN_CASES: LiteralString = """
    SELECT k.case_id, coalesce(f.idempotency_key, a.idempotency_key), k.refund_id IS NOT NULL
    FROM billing.reconciliation_case AS k
    LEFT JOIN billing.payment_attempt AS a
        ON a.customer_id = k.customer_id AND a.attempt_id = k.attempt_id AND a.ended_at IS NULL
    LEFT JOIN billing.refund AS f
        ON f.customer_id = k.customer_id AND f.refund_id = k.refund_id AND f.ended_at IS NULL
    WHERE k.kind = 'UNKNOWN_OUTCOME' AND k.resolved_at IS NULL AND k.opened_at <= %(before)s
      AND (a.attempt_id IS NOT NULL OR f.refund_id IS NOT NULL)
    ORDER BY k.case_id
"""
_RESOLVE: LiteralString = """
    SELECT billing_ops.resolve_case(%(case)s, 'by the books of the gateway', %(outcome)s, %(id)s,
        %(amount)s)
"""
_CHARGE = "SELECT payment_id, status, amount FROM charges WHERE reference = ?"
_REFUND = "SELECT refund_id, amount FROM refunds WHERE reference = ?"


class Person:
    """Looks at cases two days after they were opened.

    Attributes:
        counts: what was decided.
    """

    def __init__(self, gateway: MortalGateway, connection: psycopg.Connection) -> None:
        """Nothing is decided yet.

        Args:
            gateway: whose ledger is read, and whom the person may have ask a bank.
            connection: a session that may resolve cases.
        """
        self.counts: Counter[str] = Counter()
        self._gateway = gateway
        self._connection = connection
        self._ledger = sqlite3.connect(gateway.ledger)

    def close(self) -> None:
        """Close the ledger."""
        self._ledger.close()

    def work(self, now: datetime) -> None:
        """Decide every case that has waited long enough."""
        cases = self._connection.execute(_OPEN_CASES, {"before": now - _WAITS}).fetchall()
        for case, reference, is_refund in cases:
            if is_refund:
                self._decide_refund(case, reference)
            else:
                self._decide_charge(case, reference)

    def _decide_charge(self, case: int, reference: str) -> None:
        found = self._ledger.execute(_CHARGE, (reference,)).fetchone()
        if found is None:
            self._resolve(case, "NOT_CHARGED")
            return
        payment_id, status, amount = found
        if status == "succeeded":
            self._resolve(case, "CHARGED", payment_id, amount)
        elif status == "processing":
            # The bank is asked, and says no; the next look-up finds it.
            self._gateway.end(payment_id, "fail")
            self.counts["banks_asked"] += 1

    def _decide_refund(self, case: int, reference: str) -> None:
        found = self._ledger.execute(_REFUND, (reference,)).fetchone()
        if found is None:
            self._resolve(case, "NOT_REFUNDED")
        else:
            self._resolve(case, "REFUNDED", *found)

    def _resolve(
        self, case: int, outcome: str, gateway_id: str | None = None, amount: int | None = None
    ) -> None:
        self.counts[f"cases_{outcome.lower()}"] += 1
        self._connection.execute(
            _RESOLVE, {"case": case, "outcome": outcome, "id": gateway_id, "amount": amount}
        )
