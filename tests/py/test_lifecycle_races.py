"""What customers do against what the calendar does, in processes of their own: clean outcomes only.

Each race has rounds of its own subscriptions, whose boundaries lie a minute apart, so that a
renewal run takes up the one of its round and no other. Every outcome must occur, or a race would
prove nothing about it; how often each did is printed. Where one has not occurred in a heat, as may
be on a busy machine, there is another heat with other leads, up to four.
"""

from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import psycopg
import pytest

from tests.py.support.race import Call, race

ROUNDS = 200
HEATS = 4
SECOND = timedelta(seconds=1)
HALF = timedelta(days=15)
START = datetime(2027, 4, 1, tzinfo=UTC)
BOUNDARY = datetime(2027, 5, 1, tzinfo=UTC)

_RENEW = "SELECT billing_worker.renew_due(10, %(at)s)"
_CHANGE = "SELECT plan_code FROM billing_api.change_plan(%(no)s, %(plan)s, p_as_of => %(at)s)"
_UNDO = "SELECT plan_code FROM billing_api.undo_change(%(no)s, p_as_of => %(at)s)"
_PAUSE = "SELECT status FROM billing_api.pause_subscription(%(no)s, p_as_of => %(at)s)"
_CANCEL = "SELECT status FROM billing_api.cancel_subscription(%(no)s, true, p_as_of => %(at)s)"
_CANCEL_WHEN = """
    SELECT to_char(s.current_period_end AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS+00:00')
    FROM billing_api.cancel_subscription(%(no)s, true, p_as_of => %(at)s) AS s
"""
_RENEW_ALL = "SELECT billing_worker.renew_due(1000, %(at)s)"
_START = "SELECT count(*) FROM billing_worker.start_attempts('sim', 1000, 'race', %(at)s)"
_SETTLE = """
    SELECT count(*)::text
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
        FROM billing_worker.start_attempts('sim', 1000, 'race', %(at)s) AS q
        HAVING count(*) > 0
    ) AS settled
"""
_SIGN_UP = """
    SELECT s.subscription_id
    FROM generate_series(%(first)s, %(first)s + %(rounds)s - 1) AS n
    CROSS JOIN LATERAL billing_api.create_customer(
        'customer ' || n, 'USD', p_as_of => %(start)s
    ) AS c
    CROSS JOIN LATERAL billing_api.add_payment_method(
        c.customer_id, 'sim', 'tok_ok', p_as_of => %(start)s
    ) AS m
    CROSS JOIN LATERAL billing_api.create_subscription(
        m.customer_id, %(plan)s, 'sign up', p_payment_behavior => 'GRANT_FIRST',
        p_dunning_policy => 'slow', p_as_of => %(start)s + n * interval '1 minute'
    ) AS s
    ORDER BY s.subscription_id
"""
_GRANT = """
    SELECT count(*)
    FROM billing.subscription AS c
    CROSS JOIN LATERAL billing_api.grant_credit(
        c.customer_id, 3000, 'USD', 'gift', 'gift ' || c.customer_id, p_as_of => %(start)s
    ) AS g
    WHERE c.subscription_id = ANY (%(numbers)s)
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
_SETTLE_ONE = """
    SELECT s.verdict
    FROM billing.payment_attempt AS a
    CROSS JOIN LATERAL billing_worker.settle_attempts(
        ARRAY[
            ROW(
                a.customer_id, a.attempt_id, a.claim_epoch, 'SUCCEEDED', 'pay_' || a.attempt_id,
                a.amount, a.currency, NULL, NULL, NULL, 'SEND'
            )::billing.charge_result
        ],
        %(at)s
    ) AS s
    WHERE a.attempt_id = %(attempt)s
"""
_IN_FLIGHT = """
    SELECT array_agg(a.attempt_id ORDER BY i.period_start)
    FROM billing.payment_attempt AS a
    INNER JOIN billing.invoice AS i USING (customer_id, invoice_id)
    WHERE a.status = 'STARTED'
    GROUP BY i.subscription_id
    ORDER BY i.subscription_id
"""
_RECOVERY = """
    SELECT
        s.status,
        (SELECT count(*) FROM billing.outbox_event AS o
         WHERE o.aggregate_type = 'subscription' AND o.aggregate_id = s.subscription_id
           AND o.event_type = 'SubscriptionRecovered'),
        (SELECT string_agg(to_char(i.period_start, 'Mon'), ' ' ORDER BY e.event_seq)
         FROM billing.subscription_event AS e
         INNER JOIN billing.invoice AS i USING (customer_id, invoice_id)
         WHERE e.customer_id = s.customer_id AND e.subscription_id = s.subscription_id
           AND e.event_type = 'InvoicePaid' AND i.kind = 'RENEWAL')
    FROM billing.subscription AS s
    WHERE s.subscription_id = %(no)s
"""
_BROKEN = (
    "SELECT check_name, object, detail FROM billing_ops.check_integrity() WHERE severity = 'BROKEN'"
)


class Field:
    """A database with a subscription for each round of a heat, paid for April."""

    def __init__(self, url: str, connection: psycopg.Connection) -> None:
        self.url = url
        self.connection = connection
        self.first = 0
        self.numbers: list[int] = []
        for statement in (
            "SELECT billing_ops.mark_test_database()",
            "SELECT billing_ops.create_gateway_account('sim', 'simulated')",
            "SELECT billing_ops.set_gateway_rate('sim', 'charge', 200)",
            """SELECT billing_ops.create_dunning_policy(
                'slow', '{20 days,20 days,20 days}', p_past_due_renewal => 'CONTINUE',
                p_as_of => '2026-01-01Z'
            )""",
        ):
            self.connection.execute(statement)
        for code, amount in (("BASIC", 3000), ("PRO", 9000), ("TEAM", 5000)):
            self.connection.execute(
                "SELECT billing_api.create_plan(%s, %s, %s::bigint, 'USD', 'MONTH',"
                " p_as_of => '2026-01-01Z')",
                (code, code.title(), amount),
            )

    def prepare(self, plan: str = "BASIC", *, credit: bool = False) -> None:
        """Sign a customer up for each round of the next heat."""
        self.first += len(self.numbers)
        rows = self.connection.execute(
            _SIGN_UP, {"first": self.first, "rounds": ROUNDS, "start": START, "plan": plan}
        )
        self.numbers = [number for (number,) in rows]
        self.pay(START + timedelta(minutes=self.first + ROUNDS))
        if credit:
            self.connection.execute(_GRANT, {"start": START, "numbers": self.numbers})
        # Statistics as autovacuum would have them, so that no race is decided by a bad plan.
        self.connection.execute("ANALYZE")

    def pay(self, at: datetime, outcome: str = "SUCCEEDED") -> None:
        """Settle all that is due with one outcome."""
        self.connection.execute(_SETTLE.encode(), {"at": at, "outcome": outcome})

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
        return BOUNDARY + timedelta(minutes=self.first + n)

    def decide(
        self,
        prepare: Callable[[], None],
        sides: Callable[[], tuple[list[Call], list[Call]]],
        judge: Callable[[int, tuple[str, str]], str],
        outcomes: set[str],
    ) -> None:
        """Race until every outcome has occurred; no round may end otherwise, or break a promise."""
        count: Counter[str] = Counter()
        for heat in range(HEATS):
            prepare()
            answers = race(self.url, *sides(), heat)
            count.update(judge(n, answer) for n, answer in enumerate(answers))
            if outcomes <= set(count):
                break
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
    def judge(n: int, answer: tuple[str, str]) -> str:
        change, renewed = answer
        assert change in {"PRO", "BASIC"}, change
        assert renewed.isdigit(), renewed
        field.finish(n)
        plan, status, pending, _, total, renewals, _ = field.state(n)
        assert (plan, status, pending, total, renewals) == ("PRO", "ACTIVE", None, 9000, 1)
        if change == "BASIC":
            return "renewed first: 3000, then 6000 for the change, which waited for its payment"
        return "changed first: one invoice of 9000" + (
            "" if renewed != "0" else "; the run passed over it while it was being changed"
        )

    field.decide(
        # May is paid by credit when it is opened, so that a change that comes later is possible.
        lambda: field.prepare(credit=True),
        lambda: (field.calls(_CHANGE, plan="PRO", early=early), field.calls(_RENEW)),
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
        field.prepare,
        lambda: (field.calls(_CHANGE, plan="PRO"), field.calls(_RENEW)),
        judge,
        {
            "renewed first: the change is refused while May is owed",
            "changed first: one invoice of 9000",
        },
    )


def test_a_cancellation_against_the_renewal(field: Field) -> None:
    def judge(n: int, answer: tuple[str, str]) -> str:
        told, _ = answer
        field.finish(n)
        plan, status, _, flagged, total, renewals, _ = field.state(n)
        assert (plan, flagged) == ("BASIC", True)
        if told == str(field.boundary(n)):
            assert (status, total, renewals) == ("CANCELED", 0, 0)
            return "cancelled first: it ends at this boundary, May is not billed"
        assert told == str(field.boundary(n).replace(month=6))
        assert (status, total, renewals) == ("ACTIVE", 3000, 1)
        return "renewed first: it ends a month later, and the caller is told so"

    field.decide(
        field.prepare,
        lambda: (field.calls(_CANCEL_WHEN), field.calls(_RENEW)),
        judge,
        {
            "cancelled first: it ends at this boundary, May is not billed",
            "renewed first: it ends a month later, and the caller is told so",
        },
    )


def test_undoing_a_change_against_the_end_of_the_period(field: Field) -> None:
    def prepare() -> None:
        field.prepare("PRO")
        for number in field.numbers:
            field.connection.execute(
                "SELECT billing_api.change_plan(%s, 'BASIC', p_timing => 'AT_PERIOD_END',"
                " p_as_of => '2027-04-10Z')",
                (number,),
            )

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
        prepare,
        lambda: (field.calls(_UNDO), field.calls(_RENEW)),
        judge,
        {
            "renewed first: BASIC for 3000, and nothing to take back",
            "undone first: PRO for 9000",
        },
    )


def test_two_changes(field: Field) -> None:
    def judge(n: int, answer: tuple[str, str]) -> str:
        field.pay(field.boundary(n) - HALF)
        plan, status, pending, *_ = field.state(n)
        assert sorted(answer) == ["BASIC", "SB321"], answer
        first = "PRO" if answer[0] == "BASIC" else "TEAM"
        assert (plan, status, pending) == (first, "ACTIVE", None)
        return f"{first} first: the other is refused"

    field.decide(
        field.prepare,
        lambda: (
            field.calls(_CHANGE, plan="PRO", early=HALF),
            field.calls(_CHANGE, plan="TEAM", early=HALF),
        ),
        judge,
        {"PRO first: the other is refused", "TEAM first: the other is refused"},
    )


def test_a_pause_against_the_renewal(field: Field) -> None:
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
        lambda: field.prepare(credit=True),
        lambda: (field.calls(_PAUSE), field.calls(_RENEW)),
        judge,
        {"renewed first: all of May is kept", "paused first: May is not billed"},
    )


def test_a_cancellation_against_a_change(field: Field) -> None:
    raced: list[tuple[object, ...]] = []

    def judge(n: int, answer: tuple[str, str]) -> str:
        assert answer == ("ACTIVE", "BASIC"), answer
        if n == 0:
            raced[:] = [field.state(k) for k in range(ROUNDS)]
            field.pay(field.boundary(ROUNDS) - HALF)
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
        field.prepare,
        lambda: (
            field.calls(_CANCEL, early=HALF),
            field.calls(_CHANGE, plan="PRO", early=HALF),
        ),
        judge,
        {
            "cancelled first: the change is paid, and ends with the period",
            "changed first: the cancellation takes the change back",
        },
    )


def test_two_payments_that_recover_it_together(field: Field) -> None:
    """Case F02: May and June are owed, and both are paid at the same moment."""
    paid_at = BOUNDARY + timedelta(days=60)

    def prepare() -> None:
        field.prepare()
        for days in (1, 32):
            at = BOUNDARY + timedelta(days=days)
            assert field.connection.execute(_RENEW_ALL, {"at": at}).fetchone() == (ROUNDS,)
            field.pay(at, "DECLINED")

    def sides() -> tuple[list[Call], list[Call]]:
        field.connection.execute(_START, {"at": paid_at})
        pairs = [pair for (pair,) in field.connection.execute(_IN_FLIGHT)]
        may, june = zip(*pairs, strict=True)
        return (
            [(_SETTLE_ONE, {"attempt": attempt, "at": paid_at}) for attempt in may],
            [(_SETTLE_ONE, {"attempt": attempt, "at": paid_at}) for attempt in june],
        )

    def judge(n: int, answer: tuple[str, str]) -> str:
        assert answer == ("APPLIED", "APPLIED"), answer
        row = field.connection.execute(_RECOVERY, {"no": field.numbers[n]}).fetchone()
        assert row in {("ACTIVE", 1, "May Jun"), ("ACTIVE", 1, "Jun May")}, row
        return f"{row[2].split()[1]} was paid last, and recovers it"

    field.decide(
        prepare,
        sides,
        judge,
        {"Jun was paid last, and recovers it", "May was paid last, and recovers it"},
    )
