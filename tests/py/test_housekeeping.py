"""Housekeeping: what it makes and drops, and that it steps aside."""

import asyncio
from collections.abc import AsyncIterator, Iterator

import psycopg
import pytest
from structlog.testing import capture_logs

from billing_shell.database import Database
from billing_shell.housekeeping import Retention, keep_house
from tests.py.support.world import ACCOUNT, World


@pytest.fixture
def world(database_url: str) -> Iterator[World]:
    made = World(database_url)
    yield made
    made.close()


@pytest.fixture
async def database(world: World) -> AsyncIterator[Database]:
    async with Database(world.url, application_name="test") as opened:
        yield opened


PARTITIONS = """
    SELECT count(*) FROM pg_inherits
    WHERE inhparent = 'billing.outbox_event'::regclass AND inhrelid::regclass::text ~ '[0-9]{8}$'
"""


async def test_a_round_does_all_of_it(world: World, database: Database) -> None:
    world.subscribe(2)
    world.value(
        "SELECT billing_worker.receive_webhook(%s, 'evt_1', 'charge.succeeded', %s)",
        ACCOUNT,
        '{"paymentId": "p"}',
    )
    world.value("UPDATE billing.webhook_event SET status = 'IGNORED' RETURNING 1")
    world.value("SELECT billing_worker.start_renewal_run('dead')")
    world.value(
        "UPDATE billing.billing_run SET last_batch_wall_at = now() - interval '1 hour' RETURNING 1"
    )
    world.value("SELECT billing_ops.set_clock(billing.now() + interval '46 days')")
    assert world.count("idempotency_key", "NOT keep_for_ever") > 0
    with capture_logs() as logs:
        await keep_house(database, asyncio.Event(), Retention(outbox_ahead=3))
    (line,) = logs
    assert line["event"] == "house_kept"
    assert (line["runs_closed"], line["payloads_dropped"]) == (1, 1)
    assert line["keys_dropped"] > 0
    assert world.value(PARTITIONS) >= 4
    assert world.count("idempotency_key", "NOT keep_for_ever") == 0
    assert world.rows("SELECT event_id, payload FROM billing.webhook_event") == [("evt_1", None)]
    with capture_logs() as logs:
        await keep_house(database, asyncio.Event(), Retention(outbox_ahead=3))
    assert logs == []


async def test_a_lock_that_is_not_to_be_had_holds_up_nothing_else(
    world: World, database: Database
) -> None:
    world.value("SELECT billing_worker.start_renewal_run('dead')")
    world.value(
        "UPDATE billing.billing_run SET last_batch_wall_at = now() - interval '1 hour' RETURNING 1"
    )
    with psycopg.connect(world.url) as holder, capture_logs() as logs:
        holder.execute("LOCK TABLE billing.outbox_event IN ACCESS SHARE MODE")
        holder.execute("LOCK TABLE billing.outbox_event_default IN ACCESS SHARE MODE")
        await keep_house(database, asyncio.Event(), Retention(outbox_ahead=30))
    waits = [line for line in logs if line["event"] == "housekeeping_waits"]
    assert {line["code"] for line in waits} == {"55P03"}
    assert world.count("billing_run", "status = 'DONE'") == 1


async def test_told_to_stop_it_begins_no_further_sweep(world: World, database: Database) -> None:
    world.subscribe(1)
    world.value("SELECT billing_ops.set_clock(billing.now() + interval '46 days')")
    stop = asyncio.Event()
    stop.set()
    await keep_house(database, stop, Retention())
    assert world.count("idempotency_key", "NOT keep_for_ever") > 0
