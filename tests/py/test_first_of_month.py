"""The first of the month, to scale: many due at once, workers killed, customers who act meanwhile.

What a subscription must have come to follows from what its customer got done, and when: a renewal
and one charge for it unless he ended it before it was renewed. Nothing is left to chance but that.
"""

import itertools
import random
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import timedelta
from functools import partial
from pathlib import Path

import psycopg
import pytest

from billing_shell.doctor import examine
from billing_shell.embedded import RedisServer
from tests.py.support.simulator import SimulatorProcess, smooth_simulator
from tests.py.support.world import DUE, PRICE, World, busiest_second, until
from tests.py.test_worker import Workers, paid

PEOPLE = 200
WORKERS = 8
KILLS = 3
LIMIT = 200
_LOOK_EVERY = 0.2

_CANCEL = "SELECT billing_api.cancel_subscription(%s)"
_CHANGE = "SELECT billing_api.change_plan(%s, 'PLUS', p_payment_behavior => 'PAY_FIRST')"
_UNFINISHED = """
    SELECT (SELECT count(*) FROM billing.subscription WHERE next_renewal_at <= billing.now())
        + (SELECT count(*) FROM billing.invoice WHERE status = 'OPEN')
        + (SELECT count(*) FROM billing.payment_attempt WHERE ended_at IS NULL)
        + (SELECT count(*) FROM billing.refund WHERE ended_at IS NULL)
"""
_RENEWALS = """
    SELECT
        s.subscription_id, s.status, count(i.invoice_id),
        count(i.invoice_id) FILTER (WHERE i.status = 'PAID')
    FROM billing.subscription AS s
    LEFT JOIN billing.invoice AS i
        ON i.customer_id = s.customer_id AND i.subscription_id = s.subscription_id
        AND i.kind = 'RENEWAL'
    GROUP BY s.subscription_id, s.status
"""
_CAPTURED = """
    SELECT coalesce(sum(captured_amount), 0), count(*)
    FROM billing.payment_attempt
    WHERE status = 'SUCCEEDED'
"""


@pytest.fixture
def world(database_url: str) -> Iterator[World]:
    made = World(database_url, request_timeout=2, lease_margin=1, rate=LIMIT)
    made.value("SELECT billing_api.create_plan('PLUS', 'Plus', 6000, 'USD', 'MONTH')")
    yield made
    made.close()


@pytest.fixture
def workers(world: World, data_dir: Path, tmp_path: Path) -> Iterator[Workers]:
    with RedisServer(data_dir / "redis") as redis:
        made = Workers(world, redis, tmp_path)
        yield made
        made.end()


class Customers(threading.Thread):
    """Two in five do something, once: one cancels, the other changes to a dearer plan.

    Attributes:
        answers: how often which SQLSTATE was answered; the empty one is a success.
        canceled: the subscriptions that were ended.
    """

    def __init__(self, url: str, subscriptions: list[int]) -> None:
        """Not begun yet."""
        super().__init__()
        self._url = url
        self._subscriptions = subscriptions
        self.answers: Counter[str] = Counter()
        self.canceled: set[int] = set()

    def run(self) -> None:
        with psycopg.connect(self._url, autocommit=True) as connection:
            connection.execute("SET ROLE billing_app")
            for place, subscription_id in enumerate(self._subscriptions):
                if place % 5 == 0 and self._asked(connection, _CANCEL, subscription_id):
                    self.canceled.add(subscription_id)
                if place % 5 == 1:
                    self._asked(connection, _CHANGE, subscription_id)

    def _asked(self, connection: psycopg.Connection, statement: str, subscription_id: int) -> bool:
        try:
            connection.execute(statement.encode(), (subscription_id,))
        except psycopg.Error as error:
            self.answers[error.sqlstate or "none"] += 1
            return False
        self.answers[""] += 1
        return True


@pytest.mark.crash
async def test_everybody_due_is_renewed_and_charged_once_whatever_happens_meanwhile(
    world: World, workers: Workers, tmp_path: Path
) -> None:
    with smooth_simulator(tmp_path, "--limit", str(LIMIT), "--hang", "0.5") as gateway:
        await _first_of_month(world, workers, gateway)


async def _first_of_month(world: World, workers: Workers, gateway: SimulatorProcess) -> None:
    subscriptions = world.subscribe(PEOPLE)
    dice = random.Random(7)  # noqa: S311
    shuffled = dice.sample(subscriptions, PEOPLE)
    running = [workers.start(gateway) for _ in range(WORKERS)]
    customers = Customers(world.url, shuffled)
    ticks = itertools.count(1)

    def later(condition: Callable[[], bool]) -> Callable[[], bool]:
        """Have business time go on by 10 s, and never back, at every look at a condition."""

        def look() -> bool:
            world.set_clock(DUE + min(timedelta(seconds=10 * next(ticks)), timedelta(hours=9)))
            return condition()

        return look

    for kill in range(1, KILLS + 1):
        progress = later(partial(_has_paid, world, kill * PEOPLE // 10))
        await until(progress, f"progress before kill {kill}", every=_LOOK_EVERY)
        if kill == 1:
            customers.start()
        running.pop(dice.randrange(len(running))).kill()
        running.append(workers.start(gateway))
    customers.join()
    await until(later(lambda: world.value(_UNFINISHED) == 0), "the end", every=_LOOK_EVERY)

    assert {each for each in customers.answers if not each.startswith("SB")} <= {""}
    assert len(customers.canceled) == PEOPLE // 5
    for subscription_id, status, renewals, renewals_paid in world.rows(_RENEWALS):
        if subscription_id in customers.canceled:
            assert (status, renewals <= 1) == ("CANCELED", True)
        else:
            assert (status, renewals, renewals_paid) == ("ACTIVE", 1, 1)
    moved = gateway.rows(
        "SELECT sum(amount), count(*), count(DISTINCT reference) FROM charges"
        " WHERE status = 'succeeded'"
    )
    ((captured, times),) = world.rows(_CAPTURED)
    assert moved == [(captured, times, times)]
    assert captured >= PRICE * (PEOPLE - PEOPLE // 5)
    arrivals = gateway.rows("SELECT arrived_us FROM calls WHERE operation = 'charge'")
    assert busiest_second([at for (at,) in arrivals]) <= LIMIT
    assert examine(world.url).violations == ()


def _has_paid(world: World, invoices: int) -> bool:
    return paid(world) >= invoices
