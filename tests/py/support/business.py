"""A little of everything that happens in billing, by the engine's own functions and no gateway."""

from collections.abc import Mapping
from typing import Any

import psycopg

ACCOUNT = "simulated"

_VIOLATIONS = "SELECT to_jsonb(v) FROM billing_ops.check_integrity() AS v"
_DUE = "SELECT interactive + backlog FROM billing_worker.count_due_invoices(%s, 100)"
_CANCEL = "SELECT billing_api.cancel_subscription(%s)"
_OUTCOMES = """
    SELECT billing_worker.settle_attempts(
        array_agg(
            ROW(
                q.customer_id, q.attempt_id, q.claim_epoch, o.outcome,
                CASE o.outcome WHEN 'SUCCEEDED' THEN 'pay_' || q.attempt_id END,
                q.amount, q.currency,
                CASE o.outcome WHEN 'DECLINED' THEN 'insufficient_funds' END, NULL, NULL, 'SEND'
            )::billing.charge_result
        )
    )
    FROM billing_worker.start_attempts(%(account)s, 1000, 'test') AS q
    CROSS JOIN LATERAL (
        SELECT CASE split_part(q.payment_method_token, '.', 1)
            WHEN 'tok_declined' THEN 'DECLINED' WHEN 'tok_unknown' THEN 'UNKNOWN' ELSE 'SUCCEEDED'
        END
    ) AS o (outcome)
    HAVING count(*) > 0
"""


class Business:
    """A test database and what is done in it, as a superuser.

    Attributes:
        connection: in autocommit mode.
        customers: ids by name.
        subscriptions: ids by the name of the customer.
    """

    def __init__(self, connection: psycopg.Connection) -> None:
        """Make plans and a gateway account, on 31 January 2027."""
        self.connection = connection
        self.customers: dict[str, int] = {}
        self.subscriptions: dict[str, int] = {}
        self.value("SELECT billing_ops.mark_test_database()")
        self.set_clock("2027-01-31T10:00:00Z")
        self.value("SELECT billing_ops.create_gateway_account(%s, 'simulated')", ACCOUNT)
        for code, amount, trial in (("BASIC", 3000, 0), ("PLUS", 9000, 0), ("TRY", 3000, 14)):
            self.value(
                "SELECT billing_api.create_plan(%s, initcap(%s), %s::bigint, 'USD', 'MONTH',"
                " p_trial_days => %s)",
                code,
                code,
                amount,
                trial,
            )

    def value(self, query: str, *parameters: object, **named: object) -> Any:  # noqa: ANN401
        """Run a query; return its first value, or None."""
        cursor = self.connection.execute(query.encode(), named or parameters or None)
        row = cursor.fetchone() if cursor.description else None
        return None if row is None else row[0]

    def set_clock(self, now: str) -> None:
        """Freeze the business clock."""
        self.value("SELECT billing_ops.set_clock(%s)", now)

    def sign_up(self, name: str, plan: str = "BASIC", token: str = "tok_ok") -> int:  # noqa: S107 - made up
        """Make a customer with a payment method and a subscription; return the latter's id."""
        customer = self.value(
            "SELECT customer_id FROM billing_api.create_customer(%s, 'USD')", name
        )
        self.customers[name] = customer
        self.value(
            "SELECT billing_api.add_payment_method(%s, %s, %s)",
            customer,
            ACCOUNT,
            f"{token}.{name}",
        )
        subscription: int = self.value(
            "SELECT subscription_id FROM billing_api.create_subscription(%s, %s, %s)",
            customer,
            plan,
            f"sign up {name}",
        )
        self.subscriptions[name] = subscription
        return subscription

    def collect(self) -> None:
        """Start an attempt for all that is due and settle it, as the token of each says."""
        while self.value(_DUE, ACCOUNT):
            self.value(_OUTCOMES, account=ACCOUNT)

    def pay_by(self, name: str, token: str) -> None:
        """Give a customer another default payment method."""
        self.value(
            "SELECT billing_api.add_payment_method(%s, %s, %s)",
            self.customers[name],
            ACCOUNT,
            f"{token}.{name}",
        )

    def renew(self) -> None:
        """Renew all that is due."""
        while self.value("SELECT billing_worker.renew_due(1000)"):
            continue

    def violations(self) -> list[Mapping[str, Any]]:
        """Run the integrity check."""
        cursor = self.connection.execute(_VIOLATIONS)
        return [row for (row,) in cursor.fetchall()]


def a_little_of_everything(connection: psycopg.Connection) -> Business:
    """Two months of six customers: paid, by credit, after a trial, past due, cancelled, unknown."""
    business = Business(connection)
    for name in ("paid", "past_due", "cancelled", "unknown"):
        business.sign_up(name)
    business.sign_up("tried", "TRY")
    business.sign_up("credited")
    business.value(
        "SELECT billing_api.grant_credit(%s, 1000, 'USD', 'goodwill', 'grant')",
        business.customers["credited"],
    )
    business.collect()
    business.pay_by("past_due", "tok_declined")
    business.pay_by("unknown", "tok_unknown")
    business.set_clock("2027-02-14T10:00:00Z")
    business.renew()
    business.collect()
    business.value(_CANCEL, business.subscriptions["cancelled"])
    business.set_clock("2027-02-28T10:00:00Z")
    business.renew()
    business.collect()
    return business
