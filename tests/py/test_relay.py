"""The relay, with a real database and a real broker: at least once, in order, whatever dies."""

import asyncio
import contextlib
import json
import os
import signal
import sys
import time
import uuid
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import psycopg
import pytest
from psycopg import Connection

from billing_shell.embedded import KafkaBroker
from billing_shell.relay import Relay
from tests.py.support.topic import first_appearances, read_topic

PATIENCE = 180.0  # costs nothing where all goes well, and machines are busy
TOO_LARGE = 1_100_000  # bytes; the client library sends a million by default

# Relays that hold what is half of all.
SHARING = """
    SELECT count(*)
    FROM (
        SELECT FROM billing_ops.outbox_lag
        WHERE relay IS NOT NULL GROUP BY relay HAVING count(*) = 8
    ) AS r
"""
HELD = "SELECT count(*) FROM billing_ops.outbox_lag WHERE relay IS NOT NULL"


@pytest.fixture
def relay_url(database_url: str) -> str:
    """The database, with no more rights than a relay has."""
    return f"{database_url}?options=-c%20role%3Dbilling_relay"


@pytest.fixture
def topic() -> str:
    return f"events-{uuid.uuid4()}"


@pytest.fixture
def own_broker(data_dir: Path) -> Iterator[KafkaBroker]:
    """A broker that the test may stop."""
    with KafkaBroker(data_dir / "kafka") as broker:
        yield broker


def write(
    connection: Connection, aggregates: int, each: int, first_seq: int = 1, first_id: int = 1
) -> None:
    """Writes `each` events of each of so many subscriptions, all first ones before all second."""
    connection.execute(
        """
        INSERT INTO billing.outbox_event (
            aggregate_type, aggregate_id, aggregate_seq, customer_id, event_type, payload,
            occurred_at
        )
        SELECT
            'subscription', 64 * a.no, s.no, 64 * a.no, 'InvoiceOpened',
            jsonb_build_object('aggregate', a.no, 'seq', s.no, 'text', repeat('x', 300)),
            '2027-01-31T10:30:00Z'
        FROM generate_series(%(seq)s, %(seq)s + %(each)s - 1) AS s (no)
        CROSS JOIN generate_series(%(id)s, %(id)s + %(aggregates)s - 1) AS a (no)
        ORDER BY s.no, a.no
        """,
        {"aggregates": aggregates, "each": each, "seq": first_seq, "id": first_id},
    )


def write_large(connection: Connection, subscription: int, seq: int, size: int) -> int:
    """Writes one event with so many bytes of text and returns its id."""
    row = connection.execute(
        """
        INSERT INTO billing.outbox_event (
            aggregate_type, aggregate_id, aggregate_seq, customer_id, event_type, payload,
            occurred_at
        )
        VALUES (
            'subscription', 64 * %(id)s, %(seq)s, 64 * %(id)s, 'InvoiceOpened',
            jsonb_build_object('text', repeat('x', %(size)s)), '2027-01-31T10:30:00Z'
        )
        RETURNING outbox_event_id
        """,
        {"id": subscription, "seq": seq, "size": size},
    ).fetchone()
    assert row is not None
    return int(row[0])


def number(connection: Connection, query: str, *parameters: object) -> int:
    row = connection.execute(query.encode(), parameters).fetchone()
    assert row is not None
    return int(row[0])


def unpublished(connection: Connection) -> int:
    return number(
        connection, "SELECT count(*) FROM billing.outbox_event WHERE published_at IS NULL"
    )


def lapse_all_leases(connection: Connection) -> None:
    """Makes it as late as if every relay had been silent for longer than a lease lasts."""
    connection.execute(
        "UPDATE billing.outbox_lease SET leased_until = clock_timestamp() - interval '1 second'"
    )
    connection.execute("UPDATE billing.outbox_relay SET seen_at = seen_at - interval '1 minute'")


async def until(condition: Callable[[], bool]) -> None:
    """Waits for a condition."""
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        await asyncio.sleep(0.02)


@contextlib.asynccontextmanager
async def running(relay: Relay) -> AsyncIterator[Relay]:
    """Runs a relay beside the test."""
    stop = asyncio.Event()
    async with asyncio.TaskGroup() as group:
        group.create_task(relay.run(stop))
        try:
            yield relay
        finally:
            stop.set()


class RelayProcess:
    """A relay in a process of its own."""

    def __init__(self, directory: Path, process: asyncio.subprocess.Process) -> None:
        self._log = directory / "relay.log"
        self._process = process

    def log(self) -> list[dict[str, object]]:
        """What it has logged so far."""
        lines = self._log.read_text("utf-8").splitlines(keepends=True)
        return [json.loads(line) for line in lines if line.startswith("{") and line.endswith("\n")]

    def said(self, event: str) -> bool:
        return any(line["event"] == event for line in self.log())

    def send(self, number: signal.Signals) -> None:
        self._process.send_signal(number)

    async def ended(self) -> int:
        return await self._process.wait()


@contextlib.asynccontextmanager
async def relay_process(
    directory: Path,
    *arguments: str,
    batch: int = 1000,
    relay_id: str = "relay-1",
    crash_point: str = "",
) -> AsyncIterator[RelayProcess]:
    """Starts a relay process; arguments are database URL, brokers, topic."""
    environment = {**os.environ, "BILLING_CRASH_SIGNAL": str(directory / "signal")}
    if crash_point:
        environment["BILLING_CRASH_POINT"] = crash_point
    with (directory / "relay.log").open("ab") as log:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "tests.py.support.relay_process"),
            *(*arguments, relay_id, str(batch)),
            stdout=log,
            stderr=log,
            env=environment,
        )
    try:
        yield RelayProcess(directory, process)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def test_an_event_becomes_a_cloud_event_keyed_by_its_subscription(
    relay_url: str, connection: Connection, kafka_broker: KafkaBroker, topic: str
) -> None:
    write(connection, aggregates=1, each=1, first_seq=7, first_id=5)
    async with running(Relay(relay_url, kafka_broker.bootstrap, topic=topic, source="/billing/eu")):
        await until(lambda: unpublished(connection) == 0)
    event = connection.execute(
        "SELECT outbox_event_id, payload::text FROM billing.outbox_event"
    ).fetchone()
    assert event is not None
    (record,) = read_topic(kafka_broker.bootstrap, topic)
    assert record.key == "320"
    assert record.value.decode() == event[1]
    assert record.headers == {
        "ce_specversion": "1.0",
        "ce_id": str(event[0]),
        "ce_source": "/billing/eu",
        "ce_type": "InvoiceOpened",
        "ce_time": "2027-01-31T10:30:00Z",
        "ce_subject": "subscription/320",
        "ce_aggregateseq": "7",
        "content-type": "application/json",
    }


@pytest.mark.crash
@pytest.mark.parametrize(
    ("crash_point", "batch", "in_hand"),
    [("relay_acknowledged", 200, 100), ("relay_acknowledged:3", 20, 20)],
)
async def test_a_relay_killed_before_it_marks_repeats_but_neither_loses_nor_reorders(
    relay_url: str,
    connection: Connection,
    kafka_broker: KafkaBroker,
    topic: str,
    tmp_path: Path,
    crash_point: str,
    batch: int,
    in_hand: int,
) -> None:
    write(connection, aggregates=20, each=5)
    target = (relay_url, kafka_broker.bootstrap, topic)
    async with relay_process(tmp_path, *target, batch=batch, crash_point=crash_point) as killed:
        await until((tmp_path / "signal").exists)
        killed.send(signal.SIGKILL)
        assert await killed.ended() == -signal.SIGKILL
    sent = len(read_topic(kafka_broker.bootstrap, topic))
    marked = 100 - unpublished(connection)
    assert sent - marked == in_hand, "the batch in hand is on the topic, and not marked"

    async with relay_process(tmp_path, *target, batch=batch) as restarted:
        await until(lambda: unpublished(connection) == 0)
        restarted.send(signal.SIGTERM)
        assert await restarted.ended() == 0
    records = read_topic(kafka_broker.bootstrap, topic)
    assert len(records) == 100 + in_hand
    assert first_appearances(records) == {str(64 * n): [1, 2, 3, 4, 5] for n in range(1, 21)}


async def test_two_relays_share_the_work_and_keep_every_subscription_in_order(
    relay_url: str, connection: Connection, kafka_broker: KafkaBroker, topic: str
) -> None:
    relays = [
        Relay(relay_url, kafka_broker.bootstrap, topic=topic, relay_id=name, batch=50)
        for name in ("one", "two")
    ]
    async with running(relays[0]), running(relays[1]):
        # Both have their share before there is work, and more comes while they are at it.
        await until(lambda: number(connection, SHARING) == 2)
        for part in range(5):
            write(connection, aggregates=64, each=4, first_seq=1 + 4 * part)
        await until(lambda: unpublished(connection) == 0)
        # Each counts what it has marked once the database has told it so.
        await until(lambda: sum(relay.published for relay in relays) == 64 * 20)
        assert all(relay.published > 0 for relay in relays)
    records = read_topic(kafka_broker.bootstrap, topic)
    assert len(records) == 64 * 20
    assert first_appearances(records) == {str(64 * n): list(range(1, 21)) for n in range(1, 65)}


@pytest.mark.crash
async def test_another_relay_takes_over_from_one_that_was_killed(
    relay_url: str,
    connection: Connection,
    kafka_broker: KafkaBroker,
    topic: str,
    tmp_path: Path,
) -> None:
    target = (relay_url, kafka_broker.bootstrap, topic)
    async with (
        relay_process(tmp_path, *target, batch=10, crash_point="relay_acknowledged:4") as killed,
        running(Relay(relay_url, kafka_broker.bootstrap, topic=topic, relay_id="heir")),
    ):
        await until(lambda: number(connection, SHARING) == 2)
        write(connection, aggregates=16, each=20)
        await until((tmp_path / "signal").exists)
        killed.send(signal.SIGKILL)
        await killed.ended()
        lapse_all_leases(connection)
        await until(lambda: unpublished(connection) == 0)
    records = read_topic(kafka_broker.bootstrap, topic)
    assert first_appearances(records) == {str(64 * n): list(range(1, 21)) for n in range(1, 17)}


async def test_while_the_broker_is_down_events_wait_and_afterwards_all_are_on_the_topic(
    relay_url: str, connection: Connection, own_broker: KafkaBroker, topic: str, tmp_path: Path
) -> None:
    own_broker.kill()
    write(connection, aggregates=100, each=10)
    async with relay_process(tmp_path, relay_url, own_broker.bootstrap, topic) as relay:
        await until(lambda: sum(line["event"] == "relay_waits" for line in relay.log()) >= 2)
        waits = [line["seconds"] for line in relay.log() if line["event"] == "relay_waits"]
        assert waits[:2] == [0.25, 0.5]
        assert unpublished(connection) == 1000
        assert number(connection, "SELECT max(publish_failures) FROM billing.outbox_event") == 0
        # Billing does not notice: another transaction commits while the relay waits.
        write(connection, aggregates=1, each=1, first_id=1000)
        own_broker.start()
        await until(lambda: unpublished(connection) == 0)
    records = read_topic(own_broker.bootstrap, topic)
    assert len({record.event_id for record in records}) == 1001
    assert all(numbers == sorted(numbers) for numbers in first_appearances(records).values())


async def test_a_broker_that_came_back_without_its_topic_gets_the_rest(
    relay_url: str, connection: Connection, own_broker: KafkaBroker, topic: str
) -> None:
    async with running(Relay(relay_url, own_broker.bootstrap, topic=topic, partitions=5)) as relay:
        write(connection, aggregates=10, each=1)
        await until(lambda: relay.published == 10)
        own_broker.kill()
        write(connection, aggregates=10, each=20, first_seq=2)
        own_broker.start()
        await until(lambda: unpublished(connection) == 0)
    records = read_topic(own_broker.bootstrap, topic)
    assert first_appearances(records) == {str(64 * n): list(range(2, 22)) for n in range(1, 11)}
    assert {record.partition for record in records} <= set(range(5))


async def test_a_poison_event_blocks_its_own_subscription_only_until_an_operator_replays_it(
    relay_url: str, connection: Connection, kafka_broker: KafkaBroker, topic: str
) -> None:
    poison = write_large(connection, subscription=1, seq=1, size=TOO_LARGE)
    write(connection, aggregates=1, each=10, first_seq=2)
    write(connection, aggregates=8, each=5, first_id=2)
    async with running(Relay(relay_url, kafka_broker.bootstrap, topic=topic)) as relay:
        await until(lambda: relay.published == 40)
        await until(
            lambda: number(connection, "SELECT count(*) FROM billing_ops.blocked_event") == 1
        )
        # Whatever else it might send it would have sent before this one, which was written last.
        write(connection, aggregates=1, each=1, first_id=100)
        await until(lambda: relay.published == 41)
    blocked = connection.execute(
        "SELECT outbox_event_id, held_back, last_error FROM billing_ops.blocked_event"
    ).fetchone()
    assert blocked is not None
    assert blocked[:2] == (poison, 10)
    assert "too large" in blocked[2]
    assert unpublished(connection) == 11

    connection.execute("SELECT billing_ops.replay_event(%s)", (poison,))
    with pytest.raises(psycopg.Error) as refused:
        connection.execute("SELECT billing_ops.replay_event(%s)", (poison,))
    assert refused.value.sqlstate == "SB351"
    options = {"message.max.bytes": 2 * TOO_LARGE}
    async with running(
        Relay(relay_url, kafka_broker.bootstrap, topic=topic, kafka_options=options)
    ):
        await until(lambda: unpublished(connection) == 0)
    records = read_topic(kafka_broker.bootstrap, topic)
    assert len(records) == 52
    assert first_appearances(records)["64"] == list(range(1, 12))


@pytest.mark.crash
async def test_a_relay_that_was_frozen_for_longer_than_its_lease_marks_nothing(
    relay_url: str, connection: Connection, own_broker: KafkaBroker, topic: str, tmp_path: Path
) -> None:
    async with relay_process(tmp_path, relay_url, own_broker.bootstrap, topic) as zombie:
        await until(lambda: number(connection, HELD) == 16)
        # The broker holds its breath, so the relay stands between lease and confirmation.
        os.kill(own_broker.pid, signal.SIGSTOP)
        write(connection, aggregates=10, each=1)
        (written_at,) = connection.execute("SELECT clock_timestamp()").fetchone() or (None,)
        leased = (
            "SELECT count(*) FROM pg_stat_activity "
            "WHERE application_name = 'billing relay relay-1' AND state = 'idle' "
            "AND query LIKE '%%lease_outbox%%' AND query_start > %s"
        )
        await until(lambda: number(connection, leased, written_at) == 1)
        zombie.send(signal.SIGSTOP)
        os.kill(own_broker.pid, signal.SIGCONT)
        lapse_all_leases(connection)
        taken = number(connection, "SELECT count(*) FROM billing_worker.lease_outbox('heir', 1000)")
        assert taken == 10
        zombie.send(signal.SIGCONT)
        await until(lambda: zombie.said("relay_lost_its_lease"))
        assert unpublished(connection) == 10
        assert not zombie.said("relay_stopped")


async def test_a_relay_that_stops_gives_back_its_partitions_at_once(
    relay_url: str, connection: Connection, kafka_broker: KafkaBroker, topic: str
) -> None:
    async with running(Relay(relay_url, kafka_broker.bootstrap, topic=topic)):
        await until(lambda: number(connection, HELD) == 16)
    assert number(connection, HELD) == 0


async def test_a_relay_outlives_a_database_that_drops_its_connection(
    relay_url: str, connection: Connection, kafka_broker: KafkaBroker, topic: str
) -> None:
    async with running(Relay(relay_url, kafka_broker.bootstrap, topic=topic)) as relay:
        write(connection, aggregates=1, each=1)
        await until(lambda: relay.published == 1)
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = %s",
            (f"billing relay {relay.relay_id}",),
        )
        write(connection, aggregates=1, each=1, first_seq=2)
        await until(lambda: relay.published == 2)


def test_a_batch_out_of_range_is_refused() -> None:
    for batch in (0, 10_001):
        with pytest.raises(ValueError, match="batch"):
            Relay("", "", batch=batch)
