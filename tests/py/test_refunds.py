"""Refunds on real servers: sent once whatever happens to the worker or the answer.

What went back is read from the gateway's own ledger.
"""

import contextlib
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest

from billing_shell.embedded import RedisServer
from billing_shell.throttle import Slot
from billing_shell.worker import Cadence
from tests.py.support.in_process import working
from tests.py.support.simulator import SimulatorProcess, client_of, put, smooth_simulator
from tests.py.support.worker_process import QUICK, WorkerProcess
from tests.py.support.world import ACCOUNT, DUE, PRICE, World, until

CRASH_POINTS = ("refunds_started", "request_sent", "refund_answered", "refunds_settled")
HALF = PRICE // 2


@pytest.fixture
def world(database_url: str) -> Iterator[World]:
    """Nothing times out here: the gateway cuts what it does not answer, and leases are lapsed.

    Those of 15 s are for look-ups that miss their slots on a busy machine.
    """
    made = World(database_url, request_timeout=10, lease_margin=5)
    yield made
    made.close()


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[SimulatorProcess]:
    with smooth_simulator(tmp_path, "--hang", "0.5") as process:
        yield process


class Shop:
    """Paid subscriptions, and workers to refund them."""

    def __init__(self, world: World, gateway: SimulatorProcess, redis: str, folder: Path) -> None:
        self.world = world
        self.gateway = gateway
        self._redis = redis
        self._folder = folder
        self._started: list[WorkerProcess] = []

    def worker(self, *, crash_point: str = "", crash_signal: Path | None = None) -> WorkerProcess:
        """Start a worker, armed with a crash point if one is named."""
        worker = WorkerProcess(
            self._folder / f"worker-{len(self._started)}.log",
            {
                "database_url": self.world.url,
                "redis_url": self._redis,
                "gateway_url": self.gateway.url,
                "gateway_account": ACCOUNT,
                "cadence": QUICK | {"refund": "* * * * * *"},
                "heartbeat_seconds": 0.2,
                "stalled_after_seconds": 1.0,
                "drain_seconds": 120.0,
            },
        )
        self._started.append(worker)
        worker.start(crash_point=crash_point, crash_signal=crash_signal)
        return worker

    async def sell(self, people: int) -> list[tuple[int, str]]:
        """Have so many renewals paid; return their invoices and payments at the gateway."""
        self.world.subscribe(people)
        worker = self.worker()
        paid = "status = 'PAID' AND kind = 'RENEWAL'"
        await until(lambda: self.world.count("invoice", paid) == people, f"{people} paid invoices")
        assert await worker.stop() == 0
        return self.world.rows(
            "SELECT invoice_id, gateway_payment_id FROM billing.payment_attempt"
            " WHERE status = 'SUCCEEDED' ORDER BY 1"
        )

    async def line_up(self, payment_id: str, *outcomes: str) -> None:
        """Have these things happen to the next refunds of a payment."""
        async with client_of(self.gateway) as client:
            await put(client, "script", token=payment_id, outcomes=list(outcomes))

    def refund(self, invoice_id: int, amount: int | None, key: str) -> None:
        """Ask for a refund."""
        self.world.rows(
            "SELECT refund_id FROM billing_api.refund_invoice(%s, %s, %s)", invoice_id, amount, key
        )

    def succeeded(self) -> int:
        """Count refunds that we know to have gone."""
        return self.world.count("refund", "status = 'SUCCEEDED'")

    async def until_succeeded(self, number: int) -> None:
        """Wait for so many, while business time goes on by 10 s at every look."""
        now = DUE

        def look() -> bool:
            nonlocal now
            now += timedelta(seconds=10)
            self.world.set_clock(now)
            return self.succeeded() == number

        await until(look, f"{number} refunds")

    def sent_back(self) -> list[tuple[str, int, int]]:
        """Read the gateway's ledger: payment, number of refunds, sum."""
        return self.gateway.rows(
            "SELECT payment_id, count(*), sum(amount) FROM refunds GROUP BY 1 ORDER BY 1"
        )

    def broken(self) -> list[tuple[Any, ...]]:
        """Return what the integrity check finds."""
        return self.world.rows("SELECT * FROM billing_ops.check_integrity()")

    def end(self) -> None:
        """Kill those that run, and show what they logged, should the test have failed."""
        for worker in self._started:
            worker.kill()
            print(worker.log())  # noqa: T201


@pytest.fixture
def shop(world: World, gateway: SimulatorProcess, data_dir: Path, tmp_path: Path) -> Iterator[Shop]:
    with RedisServer(data_dir / "redis") as redis:
        made = Shop(world, gateway, redis.url, tmp_path)
        yield made
        made.end()


@pytest.mark.crash
@pytest.mark.parametrize("crash_point", CRASH_POINTS)
async def test_a_worker_killed_at_any_point_refunds_nothing_twice_and_forgets_nothing(
    shop: Shop, tmp_path: Path, crash_point: str
) -> None:
    invoices = await shop.sell(3)
    for invoice_id, _ in invoices:
        shop.refund(invoice_id, HALF, f"refund {invoice_id}")
    reached = tmp_path / "reached"
    first = shop.worker(crash_point=crash_point, crash_signal=reached)
    await until(reached.exists, crash_point)
    first.kill()
    shop.world.lapse_leases()
    shop.worker()
    await shop.until_succeeded(3)
    assert shop.sent_back() == sorted((payment, 1, HALF) for _, payment in invoices)
    assert shop.world.count("outbox_event", "event_type = 'RefundIssued'") == 3
    assert shop.broken() == []


@pytest.mark.parametrize(
    "outcomes",
    [
        ("timeout_charged",),
        ("timeout_lost",),
        ("cut",),
        ("500_charged",),
        ("500_lost",),
        ("429",),
        ("429", "timeout_charged", "cut"),
    ],
    ids=" ".join,
)
async def test_whatever_happens_to_the_answer_the_money_goes_back_once(
    shop: Shop, outcomes: tuple[str, ...]
) -> None:
    ((invoice_id, payment_id),) = await shop.sell(1)
    await shop.line_up(payment_id, *outcomes)
    shop.refund(invoice_id, HALF, "refund")
    shop.worker()
    await shop.until_succeeded(1)
    assert shop.sent_back() == [(payment_id, 1, HALF)]
    assert (
        shop.gateway.value(
            "SELECT count(DISTINCT idempotency_key) FROM calls WHERE operation = 'refund'"
        )
        == 1
    )
    assert (
        shop.world.value("SELECT amount_refunded FROM billing.invoice WHERE kind = 'RENEWAL'")
        == HALF
    )
    assert shop.broken() == []


async def test_what_the_gateway_refuses_is_laid_before_a_person(shop: Shop) -> None:
    ((invoice_id, payment_id),) = await shop.sell(1)
    await shop.line_up(payment_id, "decline_refused")
    shop.refund(invoice_id, None, "refund")
    shop.worker()
    await until(lambda: shop.world.count("refund", "status = 'FAILED'") == 1, "the refusal")
    assert shop.world.rows("SELECT kind, amount FROM billing_ops.open_cases") == [
        ("REFUND_FAILED", PRICE)
    ]
    assert shop.sent_back() == []
    assert shop.broken() == []


async def test_money_back_exactly_once_on_cancellation(shop: Shop) -> None:
    """Case E10: the call is made four times, the refund times out once."""
    ((_, payment_id),) = await shop.sell(1)
    await shop.line_up(payment_id, "timeout_charged")
    subscription_id = shop.world.value("SELECT subscription_id FROM billing.subscription")
    middle = DUE + timedelta(days=15, hours=12)
    for _ in range(4):
        shop.world.rows(
            "SELECT status FROM billing_api.cancel_subscription(%s, p_unused_time => 'REFUND',"
            " p_idempotency_key => 'cancel', p_as_of => %s)",
            subscription_id,
            middle,
        )
    shop.worker()
    now = middle

    def look() -> bool:
        nonlocal now
        now += timedelta(seconds=10)
        shop.world.set_clock(now)
        return shop.succeeded() == 1

    await until(look, "the refund")
    assert shop.sent_back() == [(payment_id, 1, HALF)]
    assert shop.world.count("refund") == 1
    assert shop.world.count("credit_entry") == 0
    assert shop.broken() == []


def paid(world: World, people: int) -> list[int]:
    """Renewals that were paid, as we say; the gateway knows nothing of it."""
    world.subscribe(people)
    world.rows("SELECT billing_worker.renew_due(100)")
    world.rows(
        "SELECT s.verdict FROM (SELECT array_agg(ROW(q.customer_id, q.attempt_id, q.claim_epoch,"
        " 'SUCCEEDED', 'pay_' || q.attempt_id, q.amount, q.currency, NULL, NULL, NULL, 'SEND')"
        "::billing.charge_result) AS results"
        " FROM billing_worker.start_attempts(%s, 100, 'test') AS q) AS r"
        " CROSS JOIN LATERAL billing_worker.settle_attempts(r.results) AS s",
        ACCOUNT,
    )
    rows = world.rows("SELECT invoice_id FROM billing.invoice WHERE amount_paid > 0")
    assert len(rows) == people
    return [invoice_id for (invoice_id,) in rows]


async def test_a_look_up_that_misses_its_slots_takes_another_before_its_claim_lapses(
    world: World, gateway: SimulatorProcess, data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (invoice_id,) = paid(world, 1)
    world.rows("SELECT refund_id FROM billing_api.refund_invoice(%s, %s, 'r')", invoice_id, HALF)
    world.rows("SELECT refund_id FROM billing_worker.start_refunds(%s, 1, 'dead')", ACCOUNT)
    world.lapse_leases()
    reached = Slot.reached
    missed: list[Slot] = []

    async def seldom_reached(slot: Slot) -> bool:
        if len(missed) < 3:
            missed.append(slot)
            return False
        return await reached(slot)

    monkeypatch.setattr(Slot, "reached", seldom_reached)
    cadence = Cadence(**QUICK | {"refund": "* * * * * *"})
    with RedisServer(data_dir / "redis") as redis:
        async with working(world, redis.url, gateway.url, cadence=cadence):
            asked = "SELECT count(*) FROM calls"
            await until(lambda: gateway.value(asked) == 1, "the question")
    assert len(missed) == 3
    assert world.rows("SELECT lookup_count, claim_epoch FROM billing.refund") == [(1, 2)]


def test_two_refunds_at_once_never_exceed_the_payment(world: World) -> None:
    """Case H14, fifty times: exactly one of two refunds of 2000 out of 3000 is taken."""
    invoices = paid(world, 50)
    with contextlib.ExitStack() as stack:
        first, second = (
            stack.enter_context(psycopg.connect(world.url, autocommit=False)) for _ in range(2)
        )
        statement = "SELECT refund_id FROM billing_api.refund_invoice(%s, 2000, %s)"
        for invoice_id in invoices:
            first.execute(statement, (invoice_id, "first"))
            with psycopg.connect(world.url, autocommit=True) as third:
                waiting = second.pgconn.backend_pid
                second.pgconn.send_query_params(
                    b"SELECT refund_id FROM billing_api.refund_invoice($1::bigint, 2000, 'second')",
                    [str(invoice_id).encode()],
                )
                blocked = "SELECT cardinality(pg_blocking_pids(%s)) > 0"
                while third.execute(blocked, (waiting,)).fetchone() != (True,):
                    pass
            first.commit()
            result = second.pgconn.get_result()
            assert result is not None
            assert result.error_field(67) == b"SB330"
            assert second.pgconn.get_result() is None
            second.rollback()
    assert world.rows("SELECT count(*), sum(amount) FROM billing.refund") == [(50, 100_000)]
