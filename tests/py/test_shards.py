"""Two databases as shards: customers split, drained together under one throttle, to one topic."""

import uuid
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import pytest

from billing_shell.database import RELAY_ROLE, session_conninfo
from billing_shell.doctor import examine
from billing_shell.embedded import KafkaBroker, RedisServer
from billing_shell.relay import Relay
from tests.py.support.servers import TestPostgres
from tests.py.support.simulator import smooth_simulator
from tests.py.support.topic import first_appearances, read_topic
from tests.py.support.world import PRICE, World, busiest_second, until
from tests.py.test_relay import running
from tests.py.test_worker import Workers, charged, paid

LIMIT = 30
EACH = 45


@pytest.fixture
def shards(postgres: TestPostgres, template_database: str) -> Iterator[list[World]]:
    with ExitStack() as stack:
        worlds = []
        for number in (0, 1):
            name = stack.enter_context(postgres.database(template=template_database))
            world = World(postgres.database_url(name), rate=LIMIT, shard=number)
            stack.callback(world.close)
            worlds.append(world)
        yield worlds


def published(world: World) -> bool:
    return world.count("outbox_event", "published_at IS NULL") == 0


async def test_two_shards_are_drained_together(
    shards: list[World], data_dir: Path, kafka_broker: KafkaBroker, tmp_path: Path
) -> None:
    topic = f"shards-{uuid.uuid4().hex[:12]}"
    with ExitStack() as stack:
        redis = stack.enter_context(RedisServer(data_dir / "redis"))
        gateway = stack.enter_context(smooth_simulator(tmp_path))
        for number, world in enumerate(shards):
            world.subscribe(EACH)
            folder = tmp_path / str(number)
            folder.mkdir()
            workers = Workers(world, redis, folder)
            stack.callback(workers.end)
            workers.start(gateway)
        await until(lambda: all(paid(world) == EACH for world in shards), "all payments")

        assert charged(gateway) == [(PRICE, 2 * EACH)]
        assert gateway.value("SELECT count(DISTINCT reference) FROM charges") == 2 * EACH
        arrivals = [at for (at,) in gateway.rows("SELECT arrived_us FROM calls")]
        assert busiest_second(arrivals) <= LIMIT

    for number, world in enumerate(shards):
        relay = Relay(
            session_conninfo(world.url, role=RELAY_ROLE, application_name="test"),
            kafka_broker.bootstrap,
            topic=topic,
            source=f"/billing/{number}",
        )
        async with running(relay):
            await until(partial(published, world), "all events")
    records = read_topic(kafka_broker.bootstrap, topic)
    assert {record.headers["ce_source"] for record in records} == {"/billing/0", "/billing/1"}
    assert len({record.event_id for record in records}) == sum(
        world.count("outbox_event") for world in shards
    )
    assert all(seqs == sorted(seqs) for seqs in first_appearances(records).values())

    for number, world in enumerate(shards):
        assert world.count("subscription", "subscription_id %% 64 <> %s", number) == 0
        assert world.count("payment_attempt", "attempt_id %% 64 <> %s", number) == 0
        assert examine(world.url).violations == ()
