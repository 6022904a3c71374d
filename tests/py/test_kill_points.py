"""A worker is killed between any two steps of a charge, a refund or a look-up, and another goes on.

Each row is a database of its own and a worker process that stands still at the named point, where
it gets its SIGKILL. The figures are what the protocol promises, worked out by hand: what is left in
the database, what the gateway's own ledger holds by then, and what it holds in the end. The rows
run side by side, for most of their time is waiting for leases.
"""

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

import pytest

from billing_shell.crashpoints import CRASH_POINTS
from billing_shell.embedded import RedisServer, temporary_data_dir
from tests.py.support.kill_points import (
    CHARGE,
    CHARGE_FOUND,
    CHARGE_LOST,
    DECLINE,
    HALF,
    REFUND,
    REFUND_FOUND,
    REFUND_LOST,
    Life,
    Row,
    Seen,
)
from tests.py.support.servers import TestPostgres
from tests.py.support.simulator import SimulatorProcess, smooth_simulator
from tests.py.support.worker_forks import WorkerForks
from tests.py.support.worker_process import QUICK
from tests.py.support.world import ACCOUNT, PRICE, until

pytestmark = pytest.mark.crash

SIDE_BY_SIDE = 4
LIVES = 8
REACHED_WITHIN = 40.0
NEVER = "0 0 29 2 *"
CADENCE = QUICK | {"refund": "* * * * * *"} | dict.fromkeys(("renew", "webhooks", "dunning"), NEVER)
LOOK_EVERY = 0.1

TABLE = [
    # A charge. Only what was committed as started is asked about, and only what the gateway never
    # got is sent again.
    Row(CHARGE, "slots_reserved", "", 0, sends=1, asked=False),
    Row(CHARGE, "claim_made", "", 0, sends=1, asked=False),
    Row(CHARGE, "attempts_started", "STARTED", 0, sends=1, asked=True),
    Row(CHARGE, "request_sent", "STARTED", 1, sends=1, asked=True),
    Row(CHARGE, "answer_received", "STARTED", 1, sends=1, asked=True),
    Row(CHARGE, "settlement_made", "STARTED", 1, sends=1, asked=True),
    Row(CHARGE, "settled", "SUCCEEDED", 1, sends=1, asked=False),
    Row(CHARGE, "collect_job_ending", "SUCCEEDED", 1, sends=1, asked=False),
    # One that is declined: none in the ledger, and one step of dunning.
    Row(DECLINE, "answer_received", "STARTED", 0, sends=1, asked=True, charges=0),
    Row(DECLINE, "settlement_made", "STARTED", 0, sends=1, asked=True, charges=0),
    Row(DECLINE, "settled", "DECLINED", 0, sends=1, asked=False, charges=0),
    # One whose customer cancels before the restart: nothing is sent any more, and what had been
    # goes back.
    Row(CHARGE, "slots_reserved", "", 0, sends=0, asked=False, charges=0, cancelled=True),
    Row(CHARGE, "attempts_started", "STARTED", 0, sends=0, asked=True, charges=0, cancelled=True),
    Row(CHARGE, "request_sent", "STARTED", 1, sends=1, asked=True, refunds=1, cancelled=True),
    # A look-up of a charge that the gateway has: asked as often as it takes, sent never again.
    Row(CHARGE_FOUND, "lookup_slots_reserved", "UNKNOWN", 1, sends=1, asked=True),
    Row(CHARGE_FOUND, "claim_made", "UNKNOWN", 1, sends=1, asked=True),
    Row(CHARGE_FOUND, "lookups_started", "UNKNOWN", 1, sends=1, asked=True),
    Row(CHARGE_FOUND, "request_sent", "UNKNOWN", 1, sends=1, asked=True),
    Row(CHARGE_FOUND, "answer_received", "UNKNOWN", 1, sends=1, asked=True),
    Row(CHARGE_FOUND, "settlement_made", "UNKNOWN", 1, sends=1, asked=True),
    Row(CHARGE_FOUND, "settled", "SUCCEEDED", 1, sends=1, asked=False),
    Row(CHARGE_FOUND, "reconcile_job_ending", "UNKNOWN or SUCCEEDED", 1, sends=1, asked=None),
    # Of one that it never got: sent once, when nothing was found often enough.
    Row(CHARGE_LOST, "lookups_started", "UNKNOWN", 0, sends=1, asked=True),
    Row(CHARGE_LOST, "answer_received", "UNKNOWN", 0, sends=1, asked=True),
    Row(CHARGE_LOST, "settled", "UNKNOWN", 0, sends=1, asked=True),
    # Refunds, by the same protocol.
    Row(REFUND, "refund_slots_reserved", "REQUESTED", 0, sends=1, asked=False, refunds=1),
    Row(REFUND, "claim_made", "REQUESTED", 0, sends=1, asked=False, refunds=1),
    Row(REFUND, "refunds_started", "STARTED", 0, sends=1, asked=True, refunds=1),
    Row(REFUND, "request_sent", "STARTED", 1, sends=1, asked=True, refunds=1),
    Row(REFUND, "refund_answered", "STARTED", 1, sends=1, asked=True, refunds=1),
    Row(REFUND, "settlement_made", "STARTED", 1, sends=1, asked=True, refunds=1),
    Row(REFUND, "refunds_settled", "SUCCEEDED", 1, sends=1, asked=False, refunds=1),
    Row(REFUND, "refund_job_ending", "SUCCEEDED", 1, sends=1, asked=False, refunds=1),
    Row(REFUND_FOUND, "refunds_started", "UNKNOWN", 1, sends=1, asked=True, refunds=1),
    Row(REFUND_FOUND, "refund_answered", "UNKNOWN", 1, sends=1, asked=True, refunds=1),
    Row(REFUND_FOUND, "settlement_made", "UNKNOWN", 1, sends=1, asked=True, refunds=1),
    Row(REFUND_FOUND, "refunds_settled", "SUCCEEDED", 1, sends=1, asked=False, refunds=1),
    Row(REFUND_LOST, "refunds_started", "UNKNOWN", 0, sends=1, asked=True, refunds=1),
]


class PointNotReachedError(Exception):
    """A worker went on without coming by where it was to be killed."""


class Trial:
    """Tries rows on shared servers."""

    def __init__(
        self,
        postgres: TestPostgres,
        template: str,
        gateway: SimulatorProcess,
        redis_url: str,
        forks: WorkerForks,
        folder: Path,
    ) -> None:
        self._postgres = postgres
        self._template = template
        self._gateway = gateway
        self._redis_url = redis_url
        self._forks = forks
        self._folder = folder
        self._places = asyncio.Semaphore(SIDE_BY_SIDE)

    async def all(self) -> dict[Row, Seen | BaseException]:
        """What came of each row."""
        results = await asyncio.gather(*map(self._one, TABLE), return_exceptions=True)
        return dict(zip(TABLE, results, strict=True))

    async def _one(self, row: Row) -> Seen:
        """Try a row; anew where the worker that was to be killed missed its slot and sent nothing.

        It waits for its next business minute then, and business time stands still.
        """
        async with self._places:
            for number in range(1, LIVES):
                try:
                    seen = await self._once(row, number)
                except PointNotReachedError:
                    continue
                if seen.moved >= row.moved:
                    return seen
            return await self._once(row, LIVES)

    async def _once(self, row: Row, number: int) -> Seen:
        with ExitStack() as stack:
            copy = self._postgres.database(template=self._template)
            name = await asyncio.to_thread(stack.enter_context, copy)
            url = self._postgres.database_url(name)
            life = await asyncio.to_thread(Life, row, url, self._gateway)
            stack.callback(life.world.close)
            await life.prepare()
            return await self._live(row, life, self._folder / f"{TABLE.index(row)}-{number}")

    async def _live(self, row: Row, life: Life, folder: Path) -> Seen:
        await asyncio.to_thread(folder.mkdir)
        left, moved, dead_jobs = await self._die(row, life, folder)
        asks_before = life.asks()
        if row.cancelled:
            life.cancel()
        worker = self._forks.start(self._options(life), log=folder / "second.log")
        try:
            await until(lambda: life.is_finished(dead_jobs), f"the end of: {row}", every=LOOK_EVERY)
        finally:
            worker.kill()
        return life.seen(left, moved, asks_before)

    async def _die(self, row: Row, life: Life, folder: Path) -> tuple[str, int, Sequence[int]]:
        """Have a worker killed at its point. Return what is left of it, and its jobs."""
        reached = folder / "reached"
        answered_before = life.answered()
        worker = self._forks.start(
            self._options(life),
            log=folder / "first.log",
            crash_point=row.point,
            crash_signal=reached,
        )
        try:
            if row.point == "collect_job_ending":
                # It lasts until the worker is told to stop.
                await until(lambda: life.status() == "SUCCEEDED", str(row), every=LOOK_EVERY)
                worker.stop()
            await self._reach(row, reached)
            if row.point == "request_sent":
                # What is on its way arrives, whatever becomes of its sender.
                await until(lambda: life.answered() > answered_before, str(row))
        finally:
            worker.kill()
        seen = life.status(), life.moved(), life.doing()
        life.bury_the_dead()
        return seen

    async def _reach(self, row: Row, reached: Path) -> None:
        try:
            async with asyncio.timeout(REACHED_WITHIN):
                await until(reached.exists, str(row))
        except TimeoutError as error:
            raise PointNotReachedError(row) from error

    def _options(self, life: Life) -> dict[str, object]:
        return {
            "database_url": life.world.url,
            "redis_url": self._redis_url,
            "gateway_url": self._gateway.url,
            "gateway_account": ACCOUNT,
            "cadence": CADENCE,
            "heartbeat_seconds": 1.0,
            "stalled_after_seconds": 60.0,
        }


@pytest.fixture(scope="module")
def results(
    postgres: TestPostgres, template_database: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[Row, Seen | BaseException]]:
    """What came of each row."""
    folder = tmp_path_factory.mktemp("kill_points")
    with (
        temporary_data_dir() as data,
        RedisServer(data / "redis") as redis,
        smooth_simulator(folder) as gateway,
        WorkerForks() as forks,
    ):
        trial = Trial(postgres, template_database, gateway, redis.url, forks, folder)
        yield asyncio.run(trial.all())


def expected_attempts(row: Row) -> tuple[str, ...]:
    """How the attempts end: one at most, whatever happens."""
    if row.flow == DECLINE:
        return ("DECLINED",)
    if row.charges:
        return ("SUCCEEDED",)
    return ("ABANDONED",) if row.left else ()


def expected_news(row: Row) -> tuple[str, ...]:
    """What the world is told, once each."""
    if row.flow == DECLINE:
        return ("InvoicePaymentFailed",)
    first = "InvoiceVoided" if row.cancelled else "InvoicePaid"
    return (first,) + ("RefundIssued",) * row.refunds


@pytest.mark.parametrize("row", TABLE, ids=str)
def test_once_or_never_as_promised(row: Row, results: dict[Row, Seen | BaseException]) -> None:
    seen = results[row]
    if isinstance(seen, BaseException):
        raise seen
    assert seen.left in row.left.split(" or ")
    assert seen.moved == row.moved
    assert seen.sends == row.sends
    assert row.asked is None or (seen.asks > 0) == row.asked
    assert seen.charges == (PRICE,) * row.charges
    assert seen.refunds == (PRICE if row.cancelled else HALF,) * row.refunds
    assert seen.keys == (seen.sends > 0 or row.is_refund) + row.refunds
    assert seen.attempts == expected_attempts(row)
    statuses = {DECLINE: ("OPEN", 1)}
    assert seen.invoice == (("VOID", 0) if row.cancelled else statuses.get(row.flow, ("PAID", 0)))
    assert seen.told == expected_news(row)
    assert seen.broken == ()


def test_every_point_on_the_way_of_money_is_in_the_table(
    results: dict[Row, Seen | BaseException], capsys: pytest.CaptureFixture[str]
) -> None:
    elsewhere = {"call_committed", "relay_acknowledged"}
    assert {row.point for row in TABLE} == set(CRASH_POINTS) - elsewhere
    with capsys.disabled():
        print(f"\n{'killed at':56}{'left':12}{'ledger':>7}{'sends':>6}{'asks':>5}  in the end")  # noqa: T201
        for row, seen in results.items():
            if isinstance(seen, Seen):
                end = f"charges {list(seen.charges)}, refunds {list(seen.refunds)}"
                print(f"{row!s:56}{seen.left:12}{seen.moved:7}{seen.sends:6}{seen.asks:5}  {end}")  # noqa: T201
