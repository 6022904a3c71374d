"""The relay's tests again, with Apache Kafka instead of a broker that speaks its protocol.

Left out is the broker that comes back without its topics, since this one keeps them: what that
means for those who read it has tests of its own here.
"""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # there, not exported
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourceType,
)
from confluent_kafka.cimpl import NewTopic
from psycopg import Connection

from billing_shell.relay import Relay
from tests.py.support.apache_kafka import ApacheKafka, apache_kafka
from tests.py.support.topic import first_appearances, read_topic
from tests.py.test_relay import (
    number,
    relay_url,
    running,
    test_a_poison_event_blocks_its_own_subscription_only_until_an_operator_replays_it,
    test_a_relay_killed_before_it_marks_repeats_but_neither_loses_nor_reorders,
    test_a_relay_outlives_a_database_that_drops_its_connection,
    test_a_relay_that_stops_gives_back_its_partitions_at_once,
    test_a_relay_that_was_frozen_for_longer_than_its_lease_marks_nothing,
    test_an_event_becomes_a_cloud_event_keyed_by_its_subscription,
    test_another_relay_takes_over_from_one_that_was_killed,
    test_two_relays_share_the_work_and_keep_every_subscription_in_order,
    test_while_the_broker_is_down_events_wait_and_afterwards_all_are_on_the_topic,
    topic,
    unpublished,
    until,
    write,
    write_large,
)

pytestmark = pytest.mark.long

SMALL = 100_000
BLOCKED = "SELECT count(*) FROM billing_ops.blocked_event"

__all__ = [
    "relay_url",
    "test_a_poison_event_blocks_its_own_subscription_only_until_an_operator_replays_it",
    "test_a_relay_killed_before_it_marks_repeats_but_neither_loses_nor_reorders",
    "test_a_relay_outlives_a_database_that_drops_its_connection",
    "test_a_relay_that_stops_gives_back_its_partitions_at_once",
    "test_a_relay_that_was_frozen_for_longer_than_its_lease_marks_nothing",
    "test_an_event_becomes_a_cloud_event_keyed_by_its_subscription",
    "test_another_relay_takes_over_from_one_that_was_killed",
    "test_two_relays_share_the_work_and_keep_every_subscription_in_order",
    "test_while_the_broker_is_down_events_wait_and_afterwards_all_are_on_the_topic",
    "topic",
]


@pytest.fixture(scope="module")
def kafka_broker(session_data_dir: Path) -> Iterator[ApacheKafka]:
    """A broker for those tests that leave it alone."""
    with apache_kafka(session_data_dir / "apache-kafka") as broker:
        yield broker


@pytest.fixture
def own_broker(data_dir: Path) -> Iterator[ApacheKafka]:
    """A broker that the test may stop."""
    with apache_kafka(data_dir / "apache-kafka") as broker:
        yield broker


@pytest.mark.parametrize("killed", [True, False], ids=["killed", "stopped"])
async def test_a_restart_of_the_broker_loses_and_reorders_nothing(
    relay_url: str,
    connection: Connection,
    own_broker: ApacheKafka,
    topic: str,
    killed: bool,  # noqa: FBT001 - a parameter
) -> None:
    async with running(Relay(relay_url, own_broker.bootstrap, topic=topic, batch=50)) as relay:
        for part in range(4):
            write(connection, aggregates=20, each=10, first_seq=1 + 10 * part)
        await until(lambda: relay.published >= 100)
        # The relay is in the middle of the 800, and stays so while the broker is away.
        await asyncio.to_thread(own_broker.kill if killed else own_broker.stop)
        left = unpublished(connection)
        assert left > 0, "the restart came too late to say anything"
        write(connection, aggregates=20, each=5, first_seq=41)
        await asyncio.to_thread(own_broker.start)
        await until(lambda: unpublished(connection) == 0)
    records = read_topic(own_broker.bootstrap, topic)
    assert first_appearances(records) == {str(64 * n): list(range(1, 46)) for n in range(1, 21)}
    assert len({record.partition for record in records}) > 1


async def test_an_event_that_the_broker_refuses_holds_up_its_own_subscription_only(
    relay_url: str, connection: Connection, kafka_broker: ApacheKafka, topic: str
) -> None:
    admin = AdminClient({"bootstrap.servers": kafka_broker.bootstrap})
    small = {"max.message.bytes": str(SMALL)}
    for made in admin.create_topics(
        [NewTopic(topic, num_partitions=3, replication_factor=1, config=small)]
    ).values():
        made.result()
    poison = write_large(connection, subscription=1, seq=1, size=2 * SMALL)
    write(connection, aggregates=1, each=3, first_seq=2)
    write(connection, aggregates=8, each=5, first_id=2)
    async with running(Relay(relay_url, kafka_broker.bootstrap, topic=topic)) as relay:
        await until(lambda: relay.published == 40 and number(connection, BLOCKED) == 1)
        larger = ConfigEntry(
            "max.message.bytes",
            str(3 * SMALL),
            incremental_operation=AlterConfigOpType.SET,
        )
        resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[larger])
        for altered in admin.incremental_alter_configs([resource]).values():
            altered.result()
        connection.execute("SELECT billing_ops.replay_event(%s)", (poison,))
        await until(lambda: unpublished(connection) == 0)
    records = read_topic(kafka_broker.bootstrap, topic)
    expected = {str(64 * n): list(range(1, 6)) for n in range(2, 10)}
    assert first_appearances(records) == expected | {"64": [1, 2, 3, 4]}
