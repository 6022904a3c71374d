"""Real sessions at once: whatever the order, everything happens once and ends clean."""

import random
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import chain, count
from threading import Barrier
from typing import Any, TypeVar

import psycopg
import pytest

from tests.py.support.business import ACCOUNT, Business

T = TypeVar("T")

SESSIONS = 8
LONGEST_WAIT = 240.0

_SIGN_UP = """
    SELECT s.subscription_id
    FROM generate_series(1, %(customers)s) AS n
    CROSS JOIN LATERAL billing_api.create_customer('customer ' || n, 'USD') AS c
    CROSS JOIN LATERAL billing_api.add_payment_method(c.customer_id, %(account)s, 'tok_ok') AS m
    CROSS JOIN generate_series(1, %(each)s) AS r
    CROSS JOIN LATERAL billing_api.create_subscription(
        m.customer_id, 'BASIC', format('key %%s', r), format('resource %%s', r)
    ) AS s
    ORDER BY 1
"""
_SIGN_UP_AT = """
    SELECT subscription_id
    FROM billing_api.create_customer(%s, 'USD') AS c
    CROSS JOIN LATERAL billing_api.add_payment_method(c.customer_id, %s, 'tok_ok') AS m
    CROSS JOIN LATERAL billing_api.create_subscription(
        m.customer_id, 'BASIC', 'key', p_payment_behavior => 'GRANT_FIRST', p_as_of => %s
    )
"""
_RENEW = "SELECT billing_worker.renew_due(%s)"
_RENEW_AT = "SELECT billing_worker.renew_due(%s, %s)"
_RENEWED = """
    SELECT count(*), count(DISTINCT (subscription_id, period_start)) FROM billing.invoice
    WHERE kind = 'RENEWAL'
"""
_PAID_BY_RENEWALS = "SELECT sum(amount_paid) FROM billing.invoice WHERE kind = 'RENEWAL'"
_SECOND_BILLS = {
    "one_period_is_billed_once": """
        INSERT INTO billing.invoice (
            customer_id, subscription_id, resource_id, kind, currency, total, period_start,
            period_end, opens_period, drives_status, lane, issued_at
        )
        SELECT
            customer_id, subscription_id, resource_id, 'RENEWAL', currency, total, period_start,
            period_end, true, true, lane, issued_at
        FROM billing.invoice WHERE kind = 'RENEWAL'
    """,
    "subscription_period_pkey": """
        INSERT INTO billing.subscription_period (
            customer_id, subscription_id, period_start, period_end, prev_end, kind, invoice_id,
            opened_seq
        )
        SELECT
            customer_id, subscription_id, period_start, period_end, prev_end, kind, invoice_id, 99
        FROM billing.subscription_period WHERE prev_end IS NOT NULL
    """,
}
_START = "SELECT attempt_id FROM billing_worker.start_attempts(%s, %s, 'worker')"
_STARTED = "SELECT attempt_id FROM billing.payment_attempt WHERE status = 'STARTED'"
_SETTLE = """
    SELECT s.verdict
    FROM billing_worker.settle_attempts(
        ARRAY(
            SELECT ROW(
                a.customer_id, a.attempt_id, a.claim_epoch, %(outcome)s,
                CASE %(outcome)s WHEN 'SUCCEEDED' THEN 'pay_' || a.attempt_id END,
                a.amount, a.currency,
                CASE %(outcome)s WHEN 'DECLINED' THEN 'do_not_honor' END, NULL, NULL, 'SEND'
            )::billing.charge_result
            FROM unnest(%(attempts)s::bigint[]) AS t (attempt_id)
            INNER JOIN billing.payment_attempt AS a USING (attempt_id)
        )
    ) AS s
"""
_CANCEL = "SELECT status FROM billing_api.cancel_subscription(%s, %s)"
_FLAG_AT = """
    SELECT current_period_end
    FROM billing_api.cancel_subscription(%s, true, p_as_of => %s)
"""
_LIVE = "SELECT subscription_id FROM billing.subscription WHERE ended_at IS NULL"
_GRANT = """
    SELECT balance
    FROM (SELECT customer_id FROM billing.customer ORDER BY 1 OFFSET %s LIMIT 1) AS c
    CROSS JOIN LATERAL billing_api.grant_credit(c.customer_id, %s, 'USD', 'race', %s)
"""
_SUBSCRIBE = "SELECT subscription_id FROM billing_api.create_subscription(%s, 'BASIC', %s)"
_SUBSCRIBE_MANY = """
    SELECT row_to_json(s)::text
    FROM billing_api.create_subscription(%s, 'BASIC', 'K', p_quantity => %s) AS s
"""
_HOW_IT_ENDED = """
    SELECT s.status, s.current_period_end, s.ended_at, s.cancel_at_period_end, count(i.invoice_id)
    FROM billing.subscription AS s
    LEFT JOIN billing.invoice AS i
        ON i.customer_id = s.customer_id AND i.subscription_id = s.subscription_id
        AND i.kind = 'RENEWAL'
    WHERE s.subscription_id = %s
    GROUP BY s.customer_id, s.subscription_id
"""
_RENEWALS_CHARGED = """
    SELECT count(*)
    FROM billing.payment_attempt AS a
    INNER JOIN billing.invoice AS i USING (customer_id, invoice_id)
    WHERE i.kind = 'RENEWAL' AND a.status = 'SUCCEEDED' AND a.amount = 3000
"""
_BILL_BY_HAND = """
    SELECT invoice_id
    FROM billing_api.create_manual_invoice(%s, 3000, 'USD', 'a fee', p_idempotency_key => 'fee')
"""
_REFUND = "SELECT billing_api.refund_invoice(%(invoice)s, %(amount)s, %(key)s)"
_CANCEL_FOR = "SELECT billing_api.cancel_subscription(%(subscription)s, false, %(kind)s)"
_STALE_CALLS: dict[str, tuple[str, dict[str, object], int]] = {
    "credit for unused time": (_CANCEL_FOR, {"kind": "CREDIT"}, 3000),
    "refund of unused time": (_CANCEL_FOR, {"kind": "REFUND"}, 3000),
    "refund": (_REFUND, {"amount": 500, "key": "stale"}, 2500),
    "refund of a manual invoice": (_REFUND, {"amount": 500, "key": "stale"}, 2500),
}
"""What is called, with what, and how much of 3000 has gone back after it and a refund of 2000."""
_GIVEN_BACK = """
    SELECT
        (SELECT sum(amount) FROM billing.refund)
        + (SELECT coalesce(sum(amount), 0) FROM billing.credit_entry)
"""


@pytest.fixture
def business(connection: psycopg.Connection) -> Business:
    return Business(connection)


@contextmanager
def sessions(database_url: str, number: int = SESSIONS) -> Iterator[list[psycopg.Connection]]:
    with ExitStack() as stack:
        yield [
            stack.enter_context(psycopg.connect(database_url, autocommit=True))
            for _ in range(number)
        ]


def at_once(calls: list[Callable[[], T]]) -> list[T]:
    """Make all calls at the same instant, each in a thread of its own; return their results."""
    barrier = Barrier(len(calls), timeout=LONGEST_WAIT)

    def call(number: int) -> T:
        barrier.wait()
        return calls[number]()

    with ThreadPoolExecutor(len(calls)) as pool:
        return list(pool.map(call, range(len(calls))))


def value(session: psycopg.Connection, query: str, *parameters: object) -> Any:  # noqa: ANN401
    row = session.execute(query.encode(), parameters or None).fetchone()
    return None if row is None else row[0]


def values(session: psycopg.Connection, query: str, *parameters: object) -> list[Any]:
    return [row[0] for row in session.execute(query.encode(), parameters or None)]


def sign_up(business: Business, customers: int, each: int = 1) -> list[int]:
    """That many customers with so many BASIC each, paid since now; their subscriptions."""
    cursor = business.connection.execute(
        _SIGN_UP.encode(), {"customers": customers, "each": each, "account": ACCOUNT}
    )
    subscriptions = [row[0] for row in cursor]
    business.collect()
    return subscriptions


def renew_all(session: psycopg.Connection, limit: int) -> int:
    """What a worker does; how many it took up. It stops early where others hold the rest."""
    taken = 0
    while batch := value(session, _RENEW, limit):
        taken += batch
    return taken


def renew_in_turmoil(session: psycopg.Connection, limit: int, all_hold_one: Barrier) -> int:
    """The same, but no first batch is committed before everybody holds one."""
    with session.transaction():
        taken: int = value(session, _RENEW, limit)
        all_hold_one.wait()
    return taken + renew_all(session, limit)


def start_in_turmoil(session: psycopg.Connection, limit: int, all_hold_one: Barrier) -> list[int]:
    """As `start_all`, but no first batch is committed before everybody holds one."""
    with session.transaction():
        attempts = values(session, _START, ACCOUNT, limit)
        all_hold_one.wait()
    return attempts + start_all(session, limit)


def start_all(session: psycopg.Connection, limit: int) -> list[int]:
    """What a worker does; the attempts that it got."""
    attempts: list[int] = []
    while batch := values(session, _START, ACCOUNT, limit):
        attempts += batch
    return attempts


def settle(session: psycopg.Connection, attempts: list[int], outcome: str) -> list[str]:
    """The verdicts on one outcome for all of these attempts."""
    cursor = session.execute(_SETTLE, {"attempts": attempts, "outcome": outcome})
    return [row[0] for row in cursor]


def test_a08_eight_sessions_renew_and_charge_one_subscription_once(
    business: Business, database_url: str
) -> None:
    sign_up(business, 1)
    business.set_clock("2027-02-28T10:00:00Z")
    with sessions(database_url) as many:
        renewed = at_once([partial(value, session, _RENEW, 10) for session in many])
        assert sorted(renewed) == [0] * (SESSIONS - 1) + [1]
        assert business.connection.execute(_RENEWED).fetchone() == (1, 1)

        started = at_once([partial(values, session, _START, ACCOUNT, 10) for session in many])
        (attempt,) = chain.from_iterable(started)

        verdicts = at_once([partial(settle, session, [attempt], "SUCCEEDED") for session in many])
        assert Counter(chain.from_iterable(verdicts)) == {"APPLIED": 1, "DUPLICATE": SESSIONS - 1}
    assert business.value(_PAID_BY_RENEWALS) == 3000
    assert business.violations() == []


@pytest.mark.parametrize("promise", _SECOND_BILLS)
def test_a08_the_database_itself_refuses_a_second_bill_for_a_period(
    business: Business, promise: str
) -> None:
    """Without any lock of ours: a copy of the invoice, and a copy of its period."""
    sign_up(business, 1)
    business.set_clock("2027-02-28T10:00:00Z")
    business.renew()
    with pytest.raises(psycopg.errors.UniqueViolation) as refused:
        business.value(_SECOND_BILLS[promise])
    assert refused.value.diag.constraint_name == promise


def test_sessions_that_renew_at_once_make_as_many_invoices_as_were_due(
    business: Business, database_url: str
) -> None:
    sign_up(business, 400)
    business.set_clock("2027-02-28T10:00:00Z")
    with sessions(database_url) as many:
        all_hold_one = Barrier(SESSIONS, timeout=LONGEST_WAIT)
        taken = at_once([partial(renew_in_turmoil, session, 7, all_hold_one) for session in many])
    rest = renew_all(business.connection, 1000)
    assert sum(taken) + rest == 400
    assert min(taken) >= 7, "each session has renewed some while all others did"
    assert business.connection.execute(_RENEWED).fetchone() == (400, 400)
    assert business.violations() == []


def test_sessions_that_start_at_once_start_each_invoice_once(
    business: Business, database_url: str
) -> None:
    sign_up(business, 300)
    business.set_clock("2027-02-28T10:00:00Z")
    business.renew()
    with sessions(database_url) as many:
        all_hold_one = Barrier(SESSIONS, timeout=LONGEST_WAIT)
        shares = at_once([partial(start_in_turmoil, session, 7, all_hold_one) for session in many])
    attempts = [*chain.from_iterable(shares), *start_all(business.connection, 1000)]
    assert len(attempts) == len(set(attempts)) == 300
    assert min(map(len, shares)) >= 7, "each session has started some while all others did"


def test_e01_cancel_and_renew_have_two_clean_outcomes(
    business: Business, database_url: str
) -> None:
    rounds = 400
    moments = [datetime(2027, 4, 1, tzinfo=UTC) + timedelta(hours=n) for n in range(rounds)]
    subscriptions = [
        business.value(_SIGN_UP_AT, f"customer {n}", ACCOUNT, moment)
        for n, moment in enumerate(moments)
    ]
    business.set_clock("2027-04-20T00:00:00Z")
    business.collect()

    dice = random.Random(1)  # noqa: S311 - who gets a head start, and how long
    outcomes: Counter[str] = Counter()
    with sessions(database_url, 2) as (renewing, cancelling):

        def late(session: psycopg.Connection, query: str, *parameters: object) -> Any:  # noqa: ANN401
            for _ in range(dice.randrange(4)):
                value(session, "SELECT 1")
            return value(session, query, *parameters)

        for subscription, moment in zip(subscriptions, moments, strict=True):
            boundary = moment.replace(month=moment.month + 1)
            _, told = at_once(
                [
                    partial(late, renewing, _RENEW_AT, 10, boundary),
                    partial(late, cancelling, _FLAG_AT, subscription, boundary),
                ]
            )
            value(renewing, _RENEW_AT, 10, boundary)
            outcomes[clean_outcome(business, subscription, boundary, told)] += 1

    assert set(outcomes) == {"cancelled first", "renewed first"}, outcomes
    business.set_clock("2027-05-31T00:00:00Z")
    business.collect()
    assert business.value(_RENEWALS_CHARGED) == outcomes["renewed first"]
    assert business.violations() == []


def clean_outcome(business: Business, subscription: int, boundary: datetime, told: datetime) -> str:
    """Which of the two it was, by what the caller was told and by all rows; anything else fails."""
    rows = business.connection.execute(_HOW_IT_ENDED, (subscription,)).fetchone()
    if told == boundary:
        assert rows == ("CANCELED", boundary, boundary, True, 0)
        return "cancelled first"
    following = boundary.replace(month=boundary.month + 1)
    assert told == following
    assert rows == ("ACTIVE", following, None, True, 1)
    return "renewed first"


def test_a09_a_double_click_makes_one_subscription(business: Business, database_url: str) -> None:
    """The page made a new key for each click; by our contract the same checkout goes on."""
    customer = business.value("SELECT customer_id FROM billing_api.create_customer('c', 'USD')")
    business.value("SELECT billing_api.add_payment_method(%s, %s, 'tok_ok')", customer, ACCOUNT)
    with sessions(database_url) as many:
        answers = at_once(
            [
                partial(value, session, _SUBSCRIBE, customer, f"click {n}")
                for n, session in enumerate(many)
            ]
        )
    assert len(set(answers)) == 1
    assert business.value("SELECT count(*) FROM billing.subscription") == 1
    assert business.value("SELECT array_agg(total) FROM billing.invoice") == [3000]
    business.collect()
    assert business.value("SELECT array_agg(amount) FROM billing.payment_attempt") == [3000]

    with pytest.raises(psycopg.Error) as refused:
        business.value(_SUBSCRIBE, customer, "a stale screen")
    assert refused.value.sqlstate == "SB301"
    assert refused.value.diag.message_detail == str(answers[0])
    assert business.value("SELECT count(*) FROM billing.subscription") == 1
    assert business.violations() == []


def test_o11_the_second_call_with_a_key_waits_for_the_answer_of_the_first(
    business: Business, database_url: str
) -> None:
    customer = business.value("SELECT customer_id FROM billing_api.create_customer('c', 'USD')")
    with sessions(database_url) as many:
        answers = at_once(
            [partial(value, session, _SUBSCRIBE_MANY, customer, 1) for session in many]
        )
    assert len(set(answers)) == 1
    assert business.value(_SUBSCRIBE_MANY, customer, 1) == answers[0]
    with pytest.raises(psycopg.Error) as refused:
        business.value(_SUBSCRIBE_MANY, customer, 2)
    assert refused.value.sqlstate == "SB305"
    assert business.value("SELECT count(*) FROM billing.subscription") == 1
    assert business.value("SELECT count(*) FROM billing.idempotency_key") == 1


@pytest.mark.parametrize("isolation", ["REPEATABLE READ", "SERIALIZABLE"])
@pytest.mark.parametrize("stale_call", _STALE_CALLS)
def test_an_older_snapshot_than_a_refund_gives_nothing_back(
    business: Business, database_url: str, isolation: str, stale_call: str
) -> None:
    """Half of a period that 3000 paid is over, and 2000 go back: so not another 1500 after that."""
    call, arguments, given_back = _STALE_CALLS[stale_call]
    subscription = business.sign_up("c")
    invoice = business.value("SELECT invoice_id FROM billing.invoice")
    if "manual" in stale_call:
        invoice = business.value(_BILL_BY_HAND, business.customers["c"])
    business.collect()
    business.set_clock("2027-02-14T10:00:00Z")
    arguments = {**arguments, "subscription": subscription, "invoice": invoice}

    with sessions(database_url, 1) as (stale,):
        stale.execute(b"BEGIN ISOLATION LEVEL " + isolation.encode())
        value(stale, "SELECT 1 FROM billing_api.invoice LIMIT 1")
        business.value(_REFUND, invoice=invoice, amount=2000, key="first")
        with pytest.raises(psycopg.errors.SerializationFailure):
            stale.execute(call.encode(), arguments)
        stale.execute("ROLLBACK")

        stale.execute(b"BEGIN ISOLATION LEVEL " + isolation.encode())
        stale.execute(call.encode(), arguments)
        stale.execute("COMMIT")
    assert business.value(_GIVEN_BACK) == given_back
    assert business.violations() == []


@pytest.mark.parametrize("isolation", ["REPEATABLE READ", "SERIALIZABLE"])
def test_nobody_is_erased_from_an_older_snapshot_than_a_sign_up(
    business: Business, database_url: str, isolation: str
) -> None:
    customer = business.value("SELECT customer_id FROM billing_api.create_customer('c', 'USD')")
    business.value("SELECT billing_api.add_payment_method(%s, %s, 'tok_ok')", customer, ACCOUNT)
    with sessions(database_url, 1) as (stale,):
        stale.execute(b"BEGIN ISOLATION LEVEL " + isolation.encode())
        value(stale, "SELECT 1 FROM billing_api.customer LIMIT 1")
        business.value(_SUBSCRIBE, customer, "meanwhile")
        with pytest.raises(psycopg.Error) as refused:
            value(stale, "SELECT billing_api.erase_customer(%s)", customer)
        stale.execute("ROLLBACK")
    assert refused.value.sqlstate == "SB316"
    assert business.value("SELECT status FROM billing.customer") == "ACTIVE"
    assert business.violations() == []


class Turmoil:
    """What one of several sessions does at random to rows that all of them share."""

    numbers = count()

    def __init__(self, session: psycopg.Connection, seed: int) -> None:
        self.session = session
        self.dice = random.Random(seed)  # noqa: S311 - a mix that can be had again

    def act(self, times: int) -> None:
        acts = (self.renew, self.start, self.settle, self.settle, self.cancel, self.grant)
        for _ in range(times):
            self.dice.choice(acts)()

    def renew(self) -> None:
        value(self.session, _RENEW, self.dice.randint(1, 30))

    def start(self) -> None:
        values(self.session, _START, ACCOUNT, self.dice.randint(1, 20))

    def settle(self) -> None:
        started = values(self.session, _STARTED)
        attempts = self.dice.sample(started, self.dice.randint(0, len(started)))
        outcome = self.dice.choice(["SUCCEEDED", "SUCCEEDED", "DECLINED", "UNKNOWN", "PROCESSING"])
        settle(self.session, attempts + attempts[:3], outcome)

    def cancel(self) -> None:
        live = values(self.session, _LIVE)
        if len(live) < 100:
            return
        try:
            value(self.session, _CANCEL, self.dice.choice(live), self.dice.random() < 0.5)
        except psycopg.Error as error:
            if error.sqlstate != "SB302":  # it ended meanwhile
                raise

    def grant(self) -> None:
        key = f"grant {next(self.numbers)}"
        value(self.session, _GRANT, self.dice.randrange(40), self.dice.randint(1, 4000), key)


def test_everything_at_once_leaves_everything_sound(business: Business, database_url: str) -> None:
    """Renew, start, settle, cancel and grant credit, all over the same rows, three months late.

    A deadlock, a number given twice or an update that was lost fails it.
    """
    sign_up(business, customers=40, each=5)
    business.set_clock("2027-04-30T12:00:00Z")
    with sessions(database_url) as many:
        at_once([partial(Turmoil(session, n).act, 60) for n, session in enumerate(many)])
    assert business.violations() == []
    assert business.value("SELECT count(*) FROM billing.invoice WHERE credit_applied > 0") > 0
    assert business.value("SELECT count(*) FROM billing.invoice WHERE status = 'VOID'") > 0

    business.renew()
    business.collect()
    assert business.violations() == []
