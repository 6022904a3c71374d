"""The customers of a simulation: who they are, what they do and when, all by chance of one seed."""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from random import Random
from typing import Any, LiteralString

import psycopg
from psycopg.rows import dict_row

from billing_shell.errors import BillingError, translate
from billing_shell.simulate_engine import ACCOUNT

PLANS = (
    # code, amount in minor units, currency, unit, count, trial days
    ("BASIC", 3000, "USD", "MONTH", 1, 0),
    ("PRO", 9900, "USD", "MONTH", 1, 0),
    ("WEEKLY", 700, "USD", "WEEK", 1, 0),
    ("TRIAL", 4900, "USD", "MONTH", 1, 14),
    ("TINY", 30, "USD", "MONTH", 1, 0),
    ("KURZ", 1900, "EUR", "MONTH", 1, 0),
    ("LANG", 19000, "EUR", "YEAR", 1, 0),
)
MINIMUM = 50
"""Smallest amount that the gateway charges, minor units of either currency."""

_ZONES = ("UTC", "Europe/Berlin", "America/New_York", "Asia/Kathmandu", "Pacific/Auckland")
_TOKENS = {
    "tok_ok": 60,
    "tok_decline_insufficient_funds_then_ok_1": 8,
    "tok_decline_insufficient_funds_then_ok_3": 5,
    "tok_decline_insufficient_funds": 4,
    "tok_decline_stolen_card": 3,
    "tok_decline_expired_card": 3,
    "tok_action": 6,
    "tok_processing": 5,
    "tok_timeout_lost": 3,
    "tok_timeout_charged": 3,
}
_POLICIES = ("standard", "fixed_1357", "store_grace", "exponential")
_ACTS_A_MONTH = 1.2
_LIVE = frozenset({"INCOMPLETE", "TRIALING", "ACTIVE", "PAST_DUE", "PAUSED"})

_STATE: LiteralString = """
    SELECT s.subscription_id, s.status, s.quantity,
        nullif(s.current_period_end, 'infinity') AS current_period_end
    FROM billing_api.subscription AS s
    WHERE s.customer_id = %(customer)s
    ORDER BY s.subscription_id DESC
    LIMIT 1
"""


_OWED: LiteralString = """
    SELECT i.invoice_id, i.amount_paid
    FROM billing_api.invoice AS i
    WHERE i.customer_id = %(customer)s AND i.status IN ('OPEN', 'FAILED')
    ORDER BY i.invoice_id
    LIMIT 1
"""
_PAID: LiteralString = """
    SELECT i.invoice_id, i.amount_paid
    FROM billing_api.invoice AS i
    WHERE i.customer_id = %(customer)s AND i.amount_paid > 0
    ORDER BY i.invoice_id DESC
    LIMIT 1
"""


@dataclass(slots=True)
class Customer:
    """One customer.

    Attributes:
        no: from 1.
        chance: all that this customer does by chance.
        arrives: when to sign up.
        customer_id: once arrived.
    """

    no: int
    chance: Random = field(repr=False)
    currency: str
    zone: str
    arrives: datetime
    customer_id: int = 0
    methods: int = 0


class Customers:
    """All customers of one run, as callers of `billing_api`."""

    def __init__(
        self, database_url: str, *, seed: int, number: int, days: int, start: datetime
    ) -> None:
        """Nobody has arrived yet.

        Args:
            database_url: as a member of billing_app and billing_operator.
            seed: makes them.
            number: how many.
            days: how long the run is; they arrive in its first 40 %.
            start: the first instant.
        """
        self.counts: Counter[str] = Counter()
        self._connection = psycopg.connect(
            database_url, autocommit=True, row_factory=dict_row, application_name="billing simulate"
        )
        self._connection.execute("SET ROLE billing_operator")
        self._people = [self._person(seed, no, days, start) for no in range(1, number + 1)]
        self._calls = 0

    def close(self) -> None:
        """Disconnect."""
        self._connection.close()

    def open_shop(self) -> None:
        """Make the account, its limits and the plans."""
        self._call(
            "SELECT billing_ops.create_gateway_account(%(code)s, p_adapter => 'simulated')",
            code=ACCOUNT,
        )
        for currency in ("USD", "EUR"):
            self._call(
                "SELECT billing_ops.set_gateway_minimum(%(code)s, %(currency)s, %(amount)s)",
                code=ACCOUNT,
                currency=currency,
                amount=MINIMUM,
            )
        for code, amount, currency, unit, count, trial in PLANS:
            self._call(
                "SELECT billing_api.create_plan(p_code => %(code)s, p_name => %(code)s,"
                " p_amount => %(amount)s, p_currency => %(currency)s, p_interval_unit => %(unit)s,"
                " p_interval_count => %(count)s, p_trial_days => %(trial)s)",
                code=code,
                amount=amount,
                currency=currency,
                unit=unit,
                count=count,
                trial=trial,
            )

    def act(self, now: datetime, step: timedelta) -> None:
        """Let everybody do what they do within one step.

        Raises:
            DatabaseError: the database refused what it must not refuse.
        """
        for person in self._people:
            if person.customer_id == 0:
                if person.arrives <= now:
                    self._arrive(person)
            elif person.chance.random() < _ACTS_A_MONTH * (step / timedelta(days=30)):
                self._do_something(person, now)

    def _person(self, seed: int, no: int, days: int, start: datetime) -> Customer:
        chance = Random(f"{seed}/customer/{no}")  # noqa: S311 - to be repeated
        return Customer(
            no=no,
            chance=chance,
            currency=chance.choice(("USD", "USD", "EUR")),
            zone=chance.choice(_ZONES),
            arrives=start + timedelta(seconds=int(chance.random() * days * 0.4 * 86_400)),
        )

    def _arrive(self, person: Customer) -> None:
        found = self._call(
            "SELECT customer_id FROM billing_api.create_customer(%(ref)s, %(currency)s, %(zone)s)",
            ref=f"customer {person.no}",
            currency=person.currency,
            zone=person.zone,
        )
        person.customer_id = found["customer_id"]
        if person.chance.random() < 0.15:  # noqa: PLR2004 - some have credit from the first day on
            self._grant(person)
        self._add_method(person)
        self._sign_up(person)

    def _do_something(self, person: Customer, now: datetime) -> None:
        rows = self._connection.execute(_STATE, {"customer": person.customer_id}).fetchall()
        state = rows[0] if rows else None
        if state is None or state["status"] not in _LIVE:
            (act_of_the_gone,) = person.chance.choices(
                (self._sign_up, self._retry, self._ask_money_back, None), (5, 2, 1, 2)
            )
            if act_of_the_gone is not None:
                act_of_the_gone(person)
            return
        acts: tuple[tuple[int, Callable[[Customer, Mapping[str, Any], datetime], None]], ...] = (
            (8, self._change),
            (3, self._cancel),
            (3, self._cancel_at_period_end),
            (2, self._undo),
            (4, self._pause),
            (6, self._resume),
            (5, self._pay_otherwise),
            (2, self._be_given_credit),
            (1, self._renew_early),
            (1, self._stretch_trial),
            (3, lambda person, _, __: self._retry(person)),
            (2, lambda person, _, __: self._ask_money_back(person)),
            (1, lambda person, _, __: self._be_billed_by_hand(person)),
        )
        (act,) = person.chance.choices([a for _, a in acts], [weight for weight, _ in acts])
        act(person, state, now)

    def _sign_up(self, person: Customer) -> None:
        chance = person.chance
        plans = [plan[0] for plan in PLANS if plan[2] == person.currency]
        self._calls += 1
        arguments = {
            "customer": person.customer_id,
            "plan": chance.choice(plans),
            "key": f"sign up {person.no}/{self._calls}",
            "quantity": chance.choice((1, 1, 1, 2, 5)),
            "behavior": chance.choice(("PAY_FIRST", "PAY_FIRST", "GRANT_FIRST")),
            "anchor": chance.choice((None, None, None, 1, 15, 31)),
            "policy": chance.choice(_POLICIES),
            "terms": chance.choice((None,) * 6 + (2,)),
        }
        query: LiteralString = (
            "SELECT subscription_id FROM billing_api.create_subscription("
            "p_customer_id => %(customer)s, p_plan_code => %(plan)s, p_idempotency_key => %(key)s,"
            " p_quantity => %(quantity)s, p_payment_behavior => %(behavior)s,"
            " p_anchor_day => %(anchor)s, p_dunning_policy => %(policy)s,"
            " p_auto_renew => %(terms)s::integer IS NULL, p_term_periods => %(terms)s)"
        )
        first = self._try("create_subscription", query, **arguments)
        if first is not None and chance.random() < 0.2:  # noqa: PLR2004 - some click twice
            second = self._try("create_subscription", query, **arguments)
            if second != first:
                raise AssertionError(f"a repeated call got {second}, the first one {first}")
            self.counts["repeated_calls"] += 1

    def _change(self, person: Customer, state: Mapping[str, Any], _: datetime) -> None:
        chance = person.chance
        self._try(
            "change_plan",
            "SELECT version FROM billing_api.change_plan(p_subscription_id => %(id)s,"
            " p_plan_code => %(plan)s, p_quantity => %(quantity)s, p_timing => %(timing)s,"
            " p_payment_behavior => %(behavior)s)",
            id=state["subscription_id"],
            plan=chance.choice([plan[0] for plan in PLANS if plan[2] == person.currency]),
            quantity=chance.choice((None, 1, 2, 3)),
            timing=chance.choice(("IMMEDIATE", "IMMEDIATE", "NEXT_INVOICE", "AT_PERIOD_END")),
            behavior=chance.choice(("PAY_FIRST", "GRANT_FIRST")),
        )

    def _cancel(self, person: Customer, state: Mapping[str, Any], _: datetime) -> None:
        self._try(
            "cancel_subscription",
            "SELECT version FROM billing_api.cancel_subscription(%(id)s, false, %(unused)s)",
            id=state["subscription_id"],
            unused=person.chance.choice(("NONE", "CREDIT", "REFUND")),
        )

    def _cancel_at_period_end(self, _: Customer, state: Mapping[str, Any], __: datetime) -> None:
        self._try(
            "cancel_at_period_end",
            "SELECT version FROM billing_api.cancel_subscription(%(id)s, true)",
            id=state["subscription_id"],
        )

    def _undo(self, person: Customer, state: Mapping[str, Any], _: datetime) -> None:
        if person.chance.random() < 0.5:  # noqa: PLR2004 - either
            self._try(
                "undo_cancel",
                "SELECT version FROM billing_api.undo_cancel(%(id)s)",
                id=state["subscription_id"],
            )
        else:
            self._try(
                "undo_change",
                "SELECT version FROM billing_api.undo_change(%(id)s)",
                id=state["subscription_id"],
            )

    def _pause(self, person: Customer, state: Mapping[str, Any], _: datetime) -> None:
        self._try(
            "pause_subscription",
            "SELECT version FROM billing_api.pause_subscription(%(id)s, %(end)s)",
            id=state["subscription_id"],
            end=person.chance.random() < 0.5,  # noqa: PLR2004 - either
        )

    def _resume(self, _: Customer, state: Mapping[str, Any], __: datetime) -> None:
        self._try(
            "resume_subscription",
            "SELECT version FROM billing_api.resume_subscription(%(id)s)",
            id=state["subscription_id"],
        )

    def _pay_otherwise(self, person: Customer, _: Mapping[str, Any], __: datetime) -> None:
        self._add_method(person)

    def _be_given_credit(self, person: Customer, _: Mapping[str, Any], __: datetime) -> None:
        self._grant(person)

    def _renew_early(self, _: Customer, state: Mapping[str, Any], __: datetime) -> None:
        self._try(
            "renew_now",
            "SELECT version FROM billing_api.renew_now(%(id)s)",
            id=state["subscription_id"],
        )

    def _stretch_trial(self, _: Customer, state: Mapping[str, Any], now: datetime) -> None:
        self._try(
            "extend_trial",
            "SELECT version FROM billing_api.extend_trial(%(id)s, %(end)s)",
            id=state["subscription_id"],
            end=(state["current_period_end"] or now) + timedelta(days=3),
        )

    def _retry(self, person: Customer) -> None:
        for invoice in self._connection.execute(_OWED, {"customer": person.customer_id}).fetchall():
            self._try(
                "retry_invoice",
                "SELECT invoice_id FROM billing_api.retry_invoice(%(id)s)",
                id=invoice["invoice_id"],
            )

    def _ask_money_back(self, person: Customer) -> None:
        for invoice in self._connection.execute(_PAID, {"customer": person.customer_id}).fetchall():
            self._calls += 1
            self._try(
                "refund_invoice",
                "SELECT refund_id FROM billing_api.refund_invoice(%(id)s, %(amount)s, %(key)s)",
                id=invoice["invoice_id"],
                amount=person.chance.choice((None, 1 + invoice["amount_paid"] // 3)),
                key=f"refund {self._calls}",
            )

    def _be_billed_by_hand(self, person: Customer) -> None:
        self._calls += 1
        self._try(
            "create_manual_invoice",
            "SELECT invoice_id FROM billing_api.create_manual_invoice(%(customer)s, %(amount)s,"
            " %(currency)s, 'set-up', %(policy)s, %(key)s)",
            customer=person.customer_id,
            amount=person.chance.randrange(MINIMUM, 20_000),
            currency=person.currency,
            policy=person.chance.choice(_POLICIES),
            key=f"by hand {self._calls}",
        )

    def _grant(self, person: Customer) -> None:
        self._calls += 1
        self._try(
            "grant_credit",
            "SELECT balance FROM billing_api.grant_credit(%(customer)s, %(amount)s, %(currency)s,"
            " 'goodwill', %(key)s)",
            customer=person.customer_id,
            amount=person.chance.randrange(100, 8000),
            currency=person.currency,
            key=f"grant {self._calls}",
        )

    def _add_method(self, person: Customer) -> None:
        person.methods += 1
        (token,) = person.chance.choices(list(_TOKENS), list(_TOKENS.values()))
        self._try(
            "add_payment_method",
            "SELECT payment_method_id FROM billing_api.add_payment_method(%(customer)s,"
            " %(account)s, %(token)s)",
            customer=person.customer_id,
            account=ACCOUNT,
            token=f"{token}.c{person.no}m{person.methods}",
        )

    def _try(self, what: str, query: LiteralString, **arguments: object) -> Any:  # noqa: ANN401
        try:
            found = self._call(query, **arguments)
        except BillingError as error:
            if error.code.startswith("SB9"):
                raise
            self.counts[f"refused_{error.code}"] += 1
            return None
        self.counts[what] += 1
        return found

    def _call(self, query: LiteralString, **arguments: object) -> Any:  # noqa: ANN401
        try:
            return self._connection.execute(query, arguments).fetchone()
        except psycopg.Error as error:
            raise translate(error) from error
