"""Drives the lifecycle of one subscription through the engine's own functions, at given instants.

Each world is a customer and a gateway account of its own, so that many fit into one database.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import psycopg

_SETTLE = """
    SELECT count(*)
    FROM (
        SELECT billing_worker.settle_attempts(
            array_agg(
                ROW(
                    q.customer_id, q.attempt_id, q.claim_epoch, %(outcome)s,
                    CASE WHEN %(outcome)s = 'SUCCEEDED' THEN 'pay_' || q.attempt_id END,
                    q.amount, q.currency,
                    CASE WHEN %(outcome)s = 'DECLINED' THEN 'insufficient_funds' END,
                    NULL, NULL, 'SEND'
                )::billing.charge_result
            ),
            %(at)s
        )
        FROM billing_worker.start_attempts(%(account)s, 1000, 'test', %(at)s) AS q
        HAVING count(*) > 0
    ) AS settled
"""
_IS_DUE = """
    SELECT EXISTS (
        SELECT 1
        FROM billing.invoice AS i
        WHERE i.customer_id = %(customer)s AND i.status = 'OPEN' AND i.next_attempt_at <= %(at)s
    )
"""
_SNAPSHOT = """
    SELECT jsonb_build_object(
        'status', s.status,
        'plan', s.plan_code,
        'quantity', s.quantity,
        'pending', s.pending_plan_code,
        'cancels', s.cancel_at_period_end,
        'pauses', s.pause_at_period_end,
        'ended', extract(epoch FROM s.ended_at),
        'reason', s.end_reason,
        'term_end', extract(epoch FROM s.term_end_at),
        'periods', (
            SELECT coalesce(jsonb_agg(jsonb_build_array(
                p.kind, extract(epoch FROM p.period_start),
                CASE WHEN isfinite(p.period_end) THEN extract(epoch FROM p.period_end) END
            ) ORDER BY p.period_start), '[]')
            FROM billing.subscription_period AS p
            WHERE p.customer_id = s.customer_id AND p.subscription_id = s.subscription_id
        ),
        'invoices', (
            SELECT coalesce(jsonb_agg(jsonb_build_array(
                i.kind, i.status, i.total, i.credit_applied, i.amount_paid, i.carried,
                extract(epoch FROM i.period_start), extract(epoch FROM i.period_end),
                extract(epoch FROM i.next_attempt_at),
                (
                    SELECT coalesce(
                        jsonb_agg(jsonb_build_array(l.kind, l.amount) ORDER BY l.line_no), '[]'
                    )
                    FROM billing.invoice_line AS l
                    WHERE l.customer_id = i.customer_id AND l.invoice_id = i.invoice_id
                )
            ) ORDER BY i.invoice_id), '[]')
            FROM billing.invoice AS i
            WHERE i.customer_id = s.customer_id AND i.subscription_id = s.subscription_id
        ),
        'waiting', (
            SELECT coalesce(jsonb_agg(l.amount ORDER BY l.pending_line_id), '[]')
            FROM billing.pending_line AS l
            WHERE l.customer_id = s.customer_id AND l.subscription_id = s.subscription_id
              AND l.billed_on_invoice_id IS NULL AND l.dropped_at IS NULL
        ),
        'credit', coalesce((
            SELECT b.balance FROM billing.credit_balance AS b WHERE b.customer_id = s.customer_id
        ), 0),
        'access', (
            SELECT jsonb_agg(
                billing_api.has_access(s.customer_id, NULL, a.at::timestamptz) ORDER BY a.no
            )
            FROM unnest(%(instants)s::timestamptz[]) WITH ORDINALITY AS a (at, no)
        )
    )
    FROM billing_api.subscription AS s
    WHERE s.subscription_id = %(subscription)s
"""

_IS_LIVE = """
    SELECT ended_at IS NULL FROM billing.subscription WHERE subscription_id = %(subscription)s
"""
_CHECKS = """
    SELECT proname
    FROM pg_catalog.pg_proc
    WHERE pronamespace = 'billing'::regnamespace AND proname LIKE 'check\\_%'
      AND proargnames[1] = 'p_customers' AND proname <> 'check_stuck'
"""
_CHECK = "SELECT jsonb_agg(v.detail) FROM billing.{}(ARRAY[%(customer)s::bigint]) AS v"


class Driver:
    """A customer with a payment method, and one subscription after another.

    Attributes:
        connection: in autocommit mode, as a superuser: an operator, who may grant first.
        name: of the customer and of the gateway account.
        customer: its id.
        subscription: id of the last one.
    """

    def __init__(
        self,
        connection: psycopg.Connection,
        name: str,
        zone: str,
        at: datetime,
        *,
        has_method: bool = True,
        minimum: int = 0,
    ) -> None:
        self.connection = connection
        self.name = name
        self.value(
            "SELECT billing_ops.create_gateway_account(p_code => %(name)s,"
            " p_adapter => 'simulated')"
        )
        self.value("SELECT billing_ops.set_gateway_rate(%(name)s, 'charge', 200)")
        if minimum:
            self.value(
                "SELECT billing_ops.set_gateway_minimum(%(name)s, 'USD', %(minimum)s)",
                minimum=minimum,
            )
        self.customer: int = self.value(
            "SELECT customer_id FROM billing_api.create_customer(%(name)s, 'USD', %(zone)s,"
            " p_as_of => %(at)s)",
            zone=zone,
            at=at,
        )
        if has_method:
            self.value(
                "SELECT billing_api.add_payment_method(%(customer)s, %(name)s, 'tok_ok',"
                " p_as_of => %(at)s)",
                at=at,
            )
        self.subscription: int | None = None

    def value(self, query: str, **parameters: object) -> Any:  # noqa: ANN401 - any column
        """Run a query; return its first value, or None."""
        known = vars(self)
        cursor = self.connection.execute(query.encode(), known | parameters)
        row = cursor.fetchone() if cursor.description else None
        return None if row is None else row[0]

    def call(self, function: str, at: datetime, **arguments: object) -> int:
        """Call a function of billing_api on the subscription; return its id.

        Raises:
            psycopg.Error: the engine refuses.
        """
        names = ("subscription_id", *arguments) if "customer_id" not in arguments else arguments
        listed = ", ".join(f"p_{name} => %({name})s" for name in names)
        query = f"SELECT subscription_id FROM billing_api.{function}({listed}, p_as_of => %(at)s)"  # noqa: S608 - names of ours
        return int(self.value(query, subscription_id=self.subscription, at=at, **arguments))

    def grant_credit(self, amount: int, key: str, at: datetime) -> None:
        """Give the customer credit."""
        self.value(
            "SELECT billing_api.grant_credit(%(customer)s, %(amount)s::bigint, 'USD', 'gift',"
            " %(key)s, p_as_of => %(at)s)",
            amount=amount,
            key=key,
            at=at,
        )

    def renew(self, at: datetime) -> None:
        """Renew all that is due."""
        while self.value("SELECT billing_worker.renew_due(1000, %(at)s)", at=at):
            continue

    def collect(self, at: datetime, *, succeeds: bool) -> None:
        """Attempt what is due until nothing is, always with the same answer."""
        while self.value(_IS_DUE, at=at):
            self.attempt(at, succeeds=succeeds)

    def attempt(self, at: datetime, *, succeeds: bool) -> None:
        """Attempt once what is due."""
        outcome = "SUCCEEDED" if succeeds else "DECLINED"
        self.value(_SETTLE, at=at, account=self.name, outcome=outcome)

    def sweep(self, at: datetime) -> None:
        """End what dunning and checkouts have to end."""
        self.value("SELECT billing_worker.end_dunning(1000, %(at)s)", at=at)
        self.value("SELECT billing_worker.expire_checkouts(1000, %(at)s)", at=at)

    def close(self, at: datetime) -> None:
        """End the subscription if nothing else has."""
        if self.value(_IS_LIVE):
            self.call("cancel_subscription", at)

    def violations(self) -> list[str]:
        """Return what the integrity checks find about this customer."""
        checks = self.connection.execute(_CHECKS).fetchall()
        return [
            f"{name}: {found}"
            for (name,) in checks
            if (found := self.value(_CHECK.format(name))) is not None
        ]

    def snapshot(self, instants: Sequence[datetime]) -> dict[str, Any]:
        """Return what can be seen of the subscription, amounts in minor units.

        Args:
            instants: at which to ask for access.
        """
        seen: dict[str, Any] = self.value(_SNAPSHOT, instants=list(instants))
        return seen
