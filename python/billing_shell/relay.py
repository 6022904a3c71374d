"""The relay: moves events from the outbox to Kafka, at least once each and in order per aggregate.

Lease, publish, confirm; an event is marked only after the broker has acknowledged it. Any number of
relays may run: they share out the partitions of the outbox among themselves, and what one leaves
unmarked another sends again, with the same id. A broker or database that is down costs nothing but
time.
"""

import asyncio
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

import psycopg
import structlog
from psycopg.rows import class_row

from billing_shell import crashpoints
from billing_shell.kafka_publisher import (
    BrokerUnavailableError,
    Delivery,
    Event,
    KafkaPublisher,
    Outcome,
)
from billing_shell.process_names import made_up_name

DEFAULT_TOPIC = "billing-events"
DEFAULT_SOURCE = "/billing"
DEFAULT_BATCH = 1000

_LARGEST_BATCH = 10_000
# A lease lasts at least 20 s from the call. No wave begins later than this after it, and the last
# one ends within the publisher's message time-out of 10 s.
_SEND_SECONDS = 5.0
_IDLE_SECONDS = 0.25
_SHORTEST_BACKOFF = 0.25
_LONGEST_BACKOFF = 10.0

_LEASE = """
    SELECT
        outbox_event_id, created_at, customer_id, partition, lease_epoch, aggregate_type,
        aggregate_id, aggregate_seq, event_type, occurred_at, payload::text AS payload
    FROM billing_worker.lease_outbox(p_relay => %(relay)s, p_limit => %(limit)s)
"""
_CONFIRM = """
    SELECT billing_worker.confirm_outbox(
        p_relay => %(relay)s,
        p_results => ARRAY(
            SELECT ROW(r.*)::billing.outbox_result
            FROM unnest(
                %(ids)s::bigint[], %(created)s::timestamptz[], %(customers)s::bigint[],
                %(partitions)s::smallint[], %(epochs)s::bigint[], %(outcomes)s::text[],
                %(errors)s::text[]
            ) AS r
        )
    )
"""
_RELEASE = "SELECT billing_worker.release_outbox(p_relay => %(relay)s)"

_log = structlog.get_logger(__name__)


class Relay:
    """One relay.

    Attributes:
        relay_id: its name in the outbox's leases, unique per process.
        published: events that it has marked as published so far.
    """

    def __init__(  # noqa: PLR0913 - a database, a broker, and how to use them
        self,
        dsn: str,
        bootstrap: str,
        *,
        topic: str = DEFAULT_TOPIC,
        relay_id: str | None = None,
        source: str = DEFAULT_SOURCE,
        batch: int = DEFAULT_BATCH,
        partitions: int = 12,
        replication_factor: int = -1,
        kafka_options: Mapping[str, str | int | float | bool] | None = None,
    ) -> None:
        """Nothing is connected yet.

        Args:
            dsn: the database, as a member of billing_relay; a direct connection or a pooled one.
            bootstrap: brokers as `host:port[,host:port...]`.
            topic: where events go; created if it is not there.
            relay_id: None makes one up. Two processes must not share one.
            source: URI reference for `ce_source`; distinct for each database that writes to the
                topic, because it makes event ids unique.
            batch: events per round, 1 to 10,000.
            partitions: of a topic that is created.
            replication_factor: of a topic that is created; -1 is the broker's default.
            kafka_options: further settings of librdkafka, for security above all. Idempotence, acks
                and the message time-out are not up for choice.

        Raises:
            ValueError: `batch` is out of range.
        """
        if not 1 <= batch <= _LARGEST_BATCH:
            raise ValueError(f"batch must be 1 to {_LARGEST_BATCH}, not {batch}")
        self.relay_id = relay_id or made_up_name()
        self.published = 0
        self._dsn = dsn
        self._batch = batch
        self._connection: psycopg.AsyncConnection | None = None
        self._publisher = KafkaPublisher(
            bootstrap,
            topic,
            client_id=self.relay_id,
            source=source,
            partitions=partitions,
            replication_factor=replication_factor,
            options=kafka_options or {},
        )
        # One thread: the publisher is not made for two, and what it sends keeps its order.
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="relay")

    async def run(self, stop: asyncio.Event) -> None:
        """Publishes until told to stop, then finishes the batch in hand and gives back its leases.

        Raises:
            psycopg.Error: the database refuses the calls themselves (rights, versions); not when it
                cannot be reached, which is waited out.
        """
        log = _log.bind(relay=self.relay_id)
        log.info("relay_started")
        backoff = _SHORTEST_BACKOFF
        try:
            while not stop.is_set():
                try:
                    busy = await self.publish_batch()
                except (BrokerUnavailableError, psycopg.OperationalError) as error:
                    log.warning("relay_waits", error=str(error), seconds=backoff)
                    await _wait(stop, backoff)
                    backoff = min(2 * backoff, _LONGEST_BACKOFF)
                else:
                    backoff = _SHORTEST_BACKOFF
                    if not busy:
                        await _wait(stop, _IDLE_SECONDS)
        finally:
            await self.close()
            log.info("relay_stopped", published=self.published)

    async def publish_batch(self) -> bool:
        """Publishes and confirms one batch. False when there was nothing to publish.

        Raises:
            BrokerUnavailableError: the broker failed, before or after part of the batch, which is
                confirmed.
            psycopg.OperationalError: the database cannot be reached.
        """
        loop = asyncio.get_running_loop()
        # First the broker: while it is down no partition is held, and no event is read for nothing.
        await loop.run_in_executor(self._thread, self._publisher.open)
        deadline = time.monotonic() + _SEND_SECONDS
        events = await self._lease()
        if not events:
            return False
        publication = await loop.run_in_executor(
            self._thread, self._publisher.publish, events, deadline
        )
        if publication.deliveries:
            crashpoints.reach("relay_acknowledged")
            await self._confirm(publication.deliveries)
        if publication.trouble is not None:
            raise BrokerUnavailableError(publication.trouble)
        return True

    async def _lease(self) -> list[Event]:
        connection = await self._connect()
        async with connection.cursor(row_factory=class_row(Event)) as cursor:
            await cursor.execute(_LEASE, {"relay": self.relay_id, "limit": self._batch})
            return await cursor.fetchall()

    async def _confirm(self, deliveries: Sequence[Delivery]) -> None:
        connection = await self._connect()
        cursor = await connection.execute(
            _CONFIRM,
            {
                "relay": self.relay_id,
                "ids": [d.event.outbox_event_id for d in deliveries],
                "created": [d.event.created_at for d in deliveries],
                "customers": [d.event.customer_id for d in deliveries],
                "partitions": [d.event.partition for d in deliveries],
                "epochs": [d.event.lease_epoch for d in deliveries],
                "outcomes": [d.outcome.value for d in deliveries],
                "errors": [d.error for d in deliveries],
            },
        )
        (marked,) = await cursor.fetchone() or (0,)
        self.published += marked
        acknowledged = sum(d.outcome is Outcome.PUBLISHED for d in deliveries)
        if marked < acknowledged:
            _log.warning(
                "relay_lost_its_lease",
                relay=self.relay_id,
                acknowledged=acknowledged,
                marked=marked,
            )
        for delivery in deliveries:
            if delivery.outcome is not Outcome.PUBLISHED:
                _log.error(
                    "event_refused",
                    relay=self.relay_id,
                    event_id=delivery.event.outbox_event_id,
                    event_type=delivery.event.event_type,
                    outcome=delivery.outcome.value,
                    error=delivery.error,
                )

    async def _connect(self) -> psycopg.AsyncConnection:
        """The connection, made anew after the database has gone away."""
        if self._connection is None or self._connection.closed:
            self._connection = await psycopg.AsyncConnection.connect(
                self._dsn, autocommit=True, application_name=f"billing relay {self.relay_id}"
            )
        return self._connection

    async def close(self) -> None:
        """Gives back the leases and disconnects."""
        loop = asyncio.get_running_loop()
        await loop.run_in_executor(self._thread, self._publisher.close)
        self._thread.shutdown(wait=False)
        if self._connection is None:
            return
        try:
            await self._connection.execute(_RELEASE, {"relay": self.relay_id})
        except psycopg.Error as error:
            # They lapse by themselves.
            _log.warning("relay_keeps_its_leases", relay=self.relay_id, error=str(error))
        await self._connection.close()


async def _wait(stop: asyncio.Event, seconds: float) -> None:
    try:
        await asyncio.wait_for(stop.wait(), seconds)
    except TimeoutError:
        return
