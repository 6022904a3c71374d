"""The renewer: everything due is renewed once, however many renew and whoever dies."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime
from pathlib import Path

import psycopg
import pytest
from structlog.testing import capture_logs

from billing_shell import renewer
from billing_shell.clocks import ClockGuard
from billing_shell.database import Database
from billing_shell.embedded import RedisServer
from billing_shell.errors import BillingError, RetryableError
from billing_shell.renewer import BATCH, Renewer
from tests.py.support.worker_process import QUICK, WorkerProcess
from tests.py.support.world import ACCOUNT, World, until


@pytest.fixture
def world(database_url: str) -> Iterator[World]:
    made = World(database_url)
    yield made
    made.close()


@pytest.fixture
async def database(world: World) -> AsyncIterator[Database]:
    async with Database(world.url, application_name="test") as opened:
        yield opened


async def now() -> datetime:
    return datetime.now(UTC)


def in_agreement() -> ClockGuard:
    return ClockGuard(now, now)


def apart() -> ClockGuard:
    return ClockGuard(now, now, local_time=lambda: datetime(2020, 1, 1, tzinfo=UTC))


@pytest.fixture
def quiet() -> asyncio.Event:
    """A stop that nobody asks for."""
    return asyncio.Event()


def renewals(world: World) -> tuple[int, int]:
    """Invoices of the new period, and of how many subscriptions."""
    ((invoices, subscriptions),) = world.rows(
        "SELECT count(*), count(DISTINCT subscription_id) FROM billing.invoice"
        " WHERE kind = 'RENEWAL' AND status <> 'VOID' AND period_start = '2027-03-01T00:00:00Z'"
    )
    return invoices, subscriptions


async def test_a_run_renews_all_that_is_due_in_batches(
    world: World, database: Database, quiet: asyncio.Event
) -> None:
    world.subscribe(BATCH + 3)
    batches: list[int] = []
    run = await Renewer(database, clocks=in_agreement(), worker="test").run(quiet, batches.append)
    assert run is not None
    assert (run.status, run.renewed, run.parked) == ("DONE", BATCH + 3, 0)
    assert batches == [BATCH, 3]
    assert renewals(world) == (BATCH + 3, BATCH + 3)


async def test_where_nothing_is_due_no_run_is_left(
    world: World, database: Database, quiet: asyncio.Event
) -> None:
    assert await Renewer(database, clocks=in_agreement(), worker="test").run(quiet) is None
    assert world.count("billing_run") == 0


@pytest.mark.parametrize("people", [1, 300])
async def test_eight_sessions_at_once_renew_each_subscription_once(
    world: World, quiet: asyncio.Event, people: int
) -> None:
    """Case A08: whoever comes too late finds nothing, and no fault."""
    world.subscribe(people)
    async with contextlib.AsyncExitStack() as stack:
        sessions = [
            await stack.enter_async_context(
                Database(world.url, application_name=f"test {n}", connections=1)
            )
            for n in range(8)
        ]
        runs = await asyncio.gather(
            *(
                Renewer(session, clocks=in_agreement(), worker=f"test {n}").run(quiet)
                for n, session in enumerate(sessions)
            )
        )
    assert sum(run.renewed for run in runs if run is not None) == people
    assert renewals(world) == (people, people)


async def test_while_clocks_lie_apart_nothing_is_renewed(
    world: World, database: Database, quiet: asyncio.Event
) -> None:
    """Ruling R41."""
    world.subscribe(1)
    with capture_logs() as logs:
        assert await Renewer(database, clocks=apart(), worker="test").run(quiet) is None
    assert renewals(world) == (0, 0)
    assert [line["event"] for line in logs] == ["clocks_apart"]


async def test_a_lock_that_is_not_to_be_had_is_waited_for(
    world: World, quiet: asyncio.Event
) -> None:
    world.subscribe(1)
    url = f"{world.url}?options=-c%20lock_timeout%3D50ms"
    async with Database(url, application_name="test") as database:
        with psycopg.connect(world.url) as holder, capture_logs() as logs:
            # What a run writes last; claiming skips what is locked.
            holder.execute("LOCK TABLE billing.invoice_line IN EXCLUSIVE MODE")
            renewing = asyncio.create_task(
                Renewer(database, clocks=in_agreement(), worker="test").run(quiet)
            )
            await until(
                lambda: any(line["event"] == "renewing_waits" for line in logs), "a failure"
            )
            assert {line["code"] for line in logs if line["event"] == "renewing_waits"} == {"55P03"}
            holder.rollback()
            run = await renewing
    assert run is not None
    assert run.renewed == 1
    assert world.count("subscription", "parked_at IS NOT NULL") == 0


async def test_a_lock_that_is_never_to_be_had_ends_the_run_and_parks_nobody(
    world: World, quiet: asyncio.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.subscribe(1)
    monkeypatch.setattr(renewer, "_SHORTEST_BACKOFF", 0.001)
    url = f"{world.url}?options=-c%20lock_timeout%3D10ms"
    async with Database(url, application_name="test") as database:
        with psycopg.connect(world.url) as holder:
            holder.execute("LOCK TABLE billing.invoice_line IN EXCLUSIVE MODE")
            with pytest.raises(RetryableError):
                await Renewer(database, clocks=in_agreement(), worker="test").run(quiet)
    assert world.count("subscription", "parked_at IS NOT NULL") == 0
    assert world.count("billing_run", "status = 'RUNNING'") == 1


async def test_a_run_that_was_closed_in_between_ends_quietly(
    world: World, database: Database, quiet: asyncio.Event
) -> None:
    world.subscribe(BATCH + 1)

    def close(_taken_up: int) -> None:
        world.value(
            "UPDATE billing.billing_run SET status = 'DONE', ended_wall_at = now() RETURNING 1"
        )

    await Renewer(database, clocks=in_agreement(), worker="test").run(quiet, close)
    assert renewals(world) == (BATCH, BATCH)
    await Renewer(database, clocks=in_agreement(), worker="test").run(quiet)
    assert renewals(world) == (BATCH + 1, BATCH + 1)


async def test_told_to_stop_it_finishes_its_batch_and_the_run(
    world: World, database: Database, quiet: asyncio.Event
) -> None:
    world.subscribe(BATCH + 1)
    run = await Renewer(database, clocks=in_agreement(), worker="test").run(
        quiet, lambda _: quiet.set()
    )
    assert run is not None
    assert (run.status, run.renewed) == ("DONE", BATCH)


async def test_a_refusal_is_passed_on(
    world: World, database: Database, quiet: asyncio.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.subscribe(1)
    monkeypatch.setattr(renewer, "BATCH", 0)
    with pytest.raises(BillingError) as caught:
        await Renewer(database, clocks=in_agreement(), worker="test").run(quiet)
    assert caught.value.code == "SB101"


@pytest.mark.crash
async def test_a_worker_killed_again_and_again_renews_everything_once(
    world: World, redis_server: RedisServer, tmp_path: Path
) -> None:
    """Case A13, with batches of 500: killed after each of the first three."""
    people = 3 * BATCH + 100
    world.subscribe(people)
    worker = WorkerProcess(
        tmp_path / "worker.log",
        {
            "database_url": world.url,
            "redis_url": redis_server.url,
            "gateway_url": "http://127.0.0.1:9",
            "gateway_account": ACCOUNT,
            "cadence": QUICK,
        },
    )
    world.value("SELECT billing_ops.pause_collecting()")
    try:
        for killed in range(3):
            worker.start()
            await until(lambda done=(killed + 1) * BATCH: renewals(world)[0] >= done, "a batch")  # type: ignore[misc]
            worker.kill()
        worker.start()
        await until(lambda: renewals(world)[0] >= people, "the rest")
    finally:
        worker.kill()
    assert renewals(world) == (people, people)
    assert world.count("subscription", "current_period_start = '2027-03-01T00:00:00Z'") == people
    assert world.count("subscription", "version <> 2") == 0
