"""What customers do against what the calendar does, in processes of their own: clean outcomes only.

Each race has rounds of its own subscriptions, whose boundaries lie a minute apart, so that a
renewal run takes up the one of its round and no other. Every outcome must occur, or a race would
prove nothing about it; how often each did is printed.
"""

from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import psycopg
import pytest

from tests.py.support.race import Call, race

ROUNDS = 200
SECOND = timedelta(seconds=1)
START = datetime(2027, 4, 1, tzinfo=UTC)
BOUNDARY = datetime(2027, 5, 1, tzinfo=UTC)

_RENEW = "SELECT billing_worker.renew_due(10, %(at)s)"
_CHANGE = "SELECT plan_code FROM billing_api.change_plan(%(no)s, %(plan)s, p_as_of => %(at)s)"
_UNDO = "SELECT plan_code FROM billing_api.undo_change(%(no)s, p_as_of => %(at)s)"
_PAUSE = "SELECT status FROM billing_api.pause_subscription(%(no)s, p_as_of => %(at)s)"
_CANCEL = "SELECT status FROM billing_api.cancel_subscription(%(no)s, true, p_as_of => %(at)s)"
_SETTLE = """
    SELECT count(*)::text
    FROM (
        SELECT billing_worker.settle_attempts(
            array_agg(
                ROW(
                    q.customer_id, q.attempt_id, q.claim_epoch, 'SUCCEEDED', 'pay_' || q.attempt_id,
                    q.amount, q.currency, NULL, NULL, NULL, 'SEND'
                )::billing.charge_result
            ),
            %(at)s
        )
        FROM billing_worker.start_attempts('sim', 1000, 'race', %(at)s) AS q
        HAVING count(*) > 0
    ) AS settled
"""
_SIGN_UP = """
    SELECT s.subscription_id
    FROM generate_series(0, %(rounds)s - 1) AS n
    CROSS JOIN LATERAL billing_api.create_customer(
        'customer ' || n, 'USD', p_as_of => %(start)s
    ) AS c
    CROSS JOIN LATERAL billing_api.add_payment_method(
        c.customer_id, 'sim', 'tok_ok', p_as_of => %(start)s
    ) AS m
    CROSS JOIN LATERAL billing_api.create_subscription(
        m.customer_id, %(plan)s, 'sign up', p_payment_behavior => 'GRANT_FIRST',
        p_as_of => %(start)s + n * interval '1 minute'
    ) AS s
    ORDER BY s.subscription_id
"""
_GRANT = """
    SELECT count(*)
    FROM billing.customer AS c
    CROSS JOIN LATERAL billing_api.grant_credit(
        c.customer_id, 3000, 'USD', 'gift', 'gift ' || c.customer_id, p_as_of => %(start)s
    ) AS g
"""
_STATE = """
    SELECT
        s.plan_code, s.status, s.pending_plan_code, s.cancel_at_period_end,
        (SELECT coalesce(sum(i.total), 0)::bigint FROM billing.invoice AS i
         WHERE i.subscription_id = s.subscription_id AND i.status <> 'VOID'
           AND i.period_start >= %(boundary)s),
        (SELECT count(*) FROM billing.invoice AS i
         WHERE i.subscription_id = s.subscription_id AND i.kind = 'RENEWAL' AND i.status <> 'VOID'),
        (SELECT b.paused_seconds_left FROM billing.subscription AS b
         WHERE b.customer_id = s.customer_id AND b.subscription_id = s.subscription_id)
    FROM billing_api.subscription AS s
    WHERE s.subscription_id = %(no)s
"""
_BROKEN = (
    "SELECT check_name, object, detail FROM billing_ops.check_integrity() WHERE severity = 'BROKEN'"
)


class Field:
    """A database with a subscription for each round, paid for April."""

    def __init__(self, url: str, connection: psycopg.Connection) -> None:
        self.url = url
        self.connection = connection
        self.numbers: list[int] = []

    def prepare(self, plan: str = "BASIC", *, credit: bool = False) -> None:
        """Sign a customer up for each round."""
        for statement in (
            "SELECT billing_ops.mark_test_database()",
            "SELECT billing_ops.create_gateway_account('sim', 'simulated')",
            "SELECT billing_ops.set_gateway_rate('sim', 'charge', 200)",
        ):
            self.connection.execute(statement)
        for code, amount in (("BASIC", 3000), ("PRO", 9000), ("TEAM", 5000)):
            self.connection.execute(
                "SELECT billing_api.create_plan(%s, %s, %s::bigint, 'USD', 'MONTH',"
                " p_as_of => '2026-01-01Z')",
                (code, code.title(), amount),
            )
        rows = self.connection.execute(_SIGN_UP, {"rounds": ROUNDS, "start": START, "plan": plan})
        self.numbers = [number for (number,) in rows]
        self.pay(START + timedelta(minutes=ROUNDS))
        if credit:
            self.connection.execute(_GRANT, {"start": START})
        # Statistics as autovacuum would have them, so that no race is decided by a bad plan.
        self.connection.execute("ANALYZE")

    def pay(self, at: datetime) -> None:
        """Collect all that is due."""
        self.connection.execute(_SETTLE.encode(), {"at": at})

    def calls(
        self, query: str, *, early: timedelta = timedelta(0), **parameters: object
    ) -> list[Call]:
        """Return a call for each round, at the boundary of its subscription or earlier."""
        return [
            (query, {"no": number, "at": self.boundary(n) - early, **parameters})
            for n, number in enumerate(self.numbers)
        ]

    def boundary(self, n: int) -> datetime:
        """Return the boundary of the subscription of a round."""
        return BOUNDARY + timedelta(minutes=n)

    def decide(
        self,
        answers: list[tuple[str, str]],
        judge: Callable[[int, tuple[str, str]], str],
        outcomes: set[str],
    ) -> None:
        """Judge each round; every outcome must have occurred, and no promise may be broken."""
        count = Counter(judge(n, answer) for n, answer in enumerate(answers))
        print("".join(f"\n{number:6} {outcome}" for outcome, number in sorted(count.items())))  # noqa: T201
        assert self.connection.execute(_BROKEN).fetchall() == []
        assert set(count) == outcomes

    def state(self, n: int) -> tuple[object, ...]:
        """Return plan, status, pending plan, flag, May's total, renewals, seconds left."""
        row = self.connection.execute(
            _STATE.encode(), {"no": self.numbers[n], "boundary": self.boundary(n)}
        ).fetchone()
        assert row is not None
        return tuple(row)

    def finish(self, n: int) -> None:
        """Let the next run and the collector do what the race has left to them."""
        at = self.boundary(n)
        while self.connection.execute(_RENEW.encode(), {"at": at}).fetchone() != (0,):
            continue
        self.pay(at)


@pytest.fixture
def field(database_url: str, connection: psycopg.Connection) -> Field:
    return Field(database_url, connection)


def change_against_renewal(field: Field, early: timedelta) -> None:
    # May is paid by credit when it is opened, so that a change that comes second is not refused.
    field.prepare(credit=True)
    answers = race(field.url, field.calls(_CHANGE, plan="PRO", early=early), field.calls(_RENEW))

    def judge(n: int, answer: tuple[str, str]) -> str:
        change, renewed = answer
        assert change in {"PRO", "BASIC"}, change
        field.finish(n)
        plan, status, pending, _, total, renewals, _ = field.state(n)
        assert (plan, status, pending, total, renewals) == ("PRO", "ACTIVE", None, 9000, 1)
        if change == "BASIC":
            return "renewed first: 3000, then 6000 for the change, which waited for its payment"
        return "changed first: one invoice of 9000" + (
            "" if renewed == "1" else "; the run passed over it while it was being changed"
        )

    field.decide(
        answers,
        judge,
        {
            "renewed first: 3000, then 6000 for the change, which waited for its payment",
            "changed first: one invoice of 9000",
            "changed first: one invoice of 9000; the run passed over it while it was being changed",
        },
    )


def test_a_change_against_the_renewal_at_the_boundary(field: Field) -> None:
    change_against_renewal(field, timedelta(0))


def test_a_change_against_the_renewal_a_second_before(field: Field) -> None:
    change_against_renewal(field, SECOND)


def test_a_change_against_a_renewal_that_is_still_owed(field: Field) -> None:
    field.prepare()
    answers = race(field.url, field.calls(_CHANGE, plan="PRO"), field.calls(_RENEW))

    def judge(n: int, answer: tuple[str, str]) -> str:
        change, _ = answer
        field.finish(n)
        plan, status, _, _, total, renewals, _ = field.state(n)
        assert (status, renewals) == ("ACTIVE", 1)
        if change == "SB320":
            assert (plan, total) == ("BASIC", 3000)
            return "renewed first: the change is refused while May is owed"
        assert (change, plan, total) == ("PRO", "PRO", 9000)
        return "changed first: one invoice of 9000"

    field.decide(
        answers,
        judge,
        {
            "renewed first: the change is refused while May is owed",
            "changed first: one invoice of 9000",
        },
    )


def test_undoing_a_change_against_the_end_of_the_period(field: Field) -> None:
    field.prepare("PRO")
    for number in field.numbers:
        field.connection.execute(
            "SELECT billing_api.change_plan(%s, 'BASIC', p_timing => 'AT_PERIOD_END',"
            " p_as_of => '2027-04-10Z')",
            (number,),
        )
    answers = race(field.url, field.calls(_UNDO), field.calls(_RENEW))

    def judge(n: int, answer: tuple[str, str]) -> str:
        undone, _ = answer
        field.finish(n)
        plan, status, pending, _, total, renewals, _ = field.state(n)
        assert (status, pending, renewals) == ("ACTIVE", None, 1)
        if undone == "SB322":
            assert (plan, total) == ("BASIC", 3000)
            return "renewed first: BASIC for 3000, and nothing to take back"
        assert (undone, plan, total) == ("PRO", "PRO", 9000)
        return "undone first: PRO for 9000"

    field.decide(
        answers,
        judge,
        {
            "renewed first: BASIC for 3000, and nothing to take back",
            "undone first: PRO for 9000",
        },
    )


def test_two_changes(field: Field) -> None:
    field.prepare()
    half = timedelta(days=15)
    answers = race(
        field.url,
        field.calls(_CHANGE, plan="PRO", early=half),
        field.calls(_CHANGE, plan="TEAM", early=half),
    )

    def judge(n: int, answer: tuple[str, str]) -> str:
        field.pay(field.boundary(n) - half)
        plan, status, pending, *_ = field.state(n)
        assert sorted(answer) == ["BASIC", "SB321"], answer
        first = "PRO" if answer[0] == "BASIC" else "TEAM"
        assert (plan, status, pending) == (first, "ACTIVE", None)
        return f"{first} first: the other is refused"

    field.decide(
        answers, judge, {"PRO first: the other is refused", "TEAM first: the other is refused"}
    )


def test_a_pause_against_the_renewal(field: Field) -> None:
    field.prepare(credit=True)
    answers = race(field.url, field.calls(_PAUSE), field.calls(_RENEW))

    def judge(n: int, answer: tuple[str, str]) -> str:
        assert answer[0] == "PAUSED", answer
        field.finish(n)
        _, status, _, _, total, renewals, left = field.state(n)
        assert status == "PAUSED"
        if renewals:
            assert (total, renewals, left) == (3000, 1, 31 * 86400)
            return "renewed first: all of May is kept"
        assert (total, left) == (0, 0)
        return "paused first: May is not billed"

    field.decide(
        answers,
        judge,
        {"renewed first: all of May is kept", "paused first: May is not billed"},
    )


def test_a_cancellation_against_a_change(field: Field) -> None:
    field.prepare()
    half = timedelta(days=15)
    answers = race(
        field.url,
        field.calls(_CANCEL, early=half),
        field.calls(_CHANGE, plan="PRO", early=half),
    )

    raced = [field.state(n) for n in range(ROUNDS)]
    field.pay(field.boundary(ROUNDS) - half)

    def judge(n: int, answer: tuple[str, str]) -> str:
        assert answer == ("ACTIVE", "BASIC"), answer
        _, _, pending, flagged, *_ = raced[n]
        field.finish(n)
        plan, status, _, _, total, renewals, _ = field.state(n)
        assert (flagged, status, total, renewals) == (True, "CANCELED", 0, 0)
        if pending == "PRO":
            assert plan == "PRO"
            return "cancelled first: the change is paid, and ends with the period"
        assert plan == "BASIC"
        return "changed first: the cancellation takes the change back"

    field.decide(
        answers,
        judge,
        {
            "cancelled first: the change is paid, and ends with the period",
            "changed first: the cancellation takes the change back",
        },
    )
