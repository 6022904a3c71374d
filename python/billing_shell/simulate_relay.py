"""The relay of a simulation: the real one, batch by batch, which dies where chance has it.

It dies after the broker has acknowledged a batch and before that is confirmed, with all that it
holds. The next one, under another name, sends the batch again once the leases have lapsed.
"""

import asyncio
import uuid
from collections import Counter
from collections.abc import Sequence
from random import Random
from typing import LiteralString

import psycopg

from billing_shell.books.topic_book import TopicBook, read_topic_book
from billing_shell.database import RELAY_ROLE, session_conninfo
from billing_shell.kafka_publisher import Delivery, Event
from billing_shell.relay import Relay

_PARTITIONS = 4
# More than there are events in a day.
_BATCH = 10_000
# As late as if the relay had been silent for longer than a lease lasts, by the wall clock.
_LET_LEASES_LAPSE: tuple[LiteralString, ...] = (
    "UPDATE billing.outbox_lease SET leased_until = clock_timestamp() - interval '1 second'",
    "UPDATE billing.outbox_relay SET seen_at = seen_at - interval '1 minute'",
)


class _DiedError(Exception):
    """It died with a batch that is on the topic and not confirmed."""


class _MortalRelay(Relay):
    """A relay that may be told to die, and says when it has a batch in hand."""

    dies = False

    def __init__(self, dsn: str, bootstrap: str, *, topic: str, relay_id: str) -> None:
        super().__init__(
            dsn, bootstrap, topic=topic, relay_id=relay_id, partitions=_PARTITIONS, batch=_BATCH
        )
        self.has_leased = asyncio.Event()
        # A new producer takes a second until it may write. Its errors show at the first batch.
        self._thread.submit(self._publisher.open)

    async def _lease(self) -> list[Event]:
        events = await super()._lease()
        self.has_leased.set()
        return events

    async def _confirm(self, deliveries: Sequence[Delivery]) -> None:
        if self.dies:
            raise _DiedError
        await super()._confirm(deliveries)

    async def drop(self) -> None:
        """Vanish: no lease is given back."""
        await asyncio.get_running_loop().run_in_executor(self._thread, self._publisher.close)
        self._thread.shutdown(wait=False)
        if self._connection is not None:
            await self._connection.close()


class SimulatedRelay:
    """One relay after the other; the next one is always ready.

    Attributes:
        counts: how often one died.
    """

    def __init__(
        self,
        database_url: str,
        bootstrap: str,
        *,
        owner: psycopg.Connection,
        seed: int,
        faults: float,
    ) -> None:
        """Nothing is connected yet.

        Args:
            database_url: a migrated test database.
            bootstrap: brokers; the topic is a new one.
            owner: a session that may end leases.
            seed: makes deaths.
            faults: share of batches that a relay does not survive.
        """
        self.counts: Counter[str] = Counter()
        self._dsn = session_conninfo(
            database_url, role=RELAY_ROLE, application_name="billing simulate"
        )
        self._bootstrap = bootstrap
        self._topic = f"simulation-{uuid.uuid4()}"
        self._owner = owner
        self._seed = seed
        self._faults = faults
        self._lives = 0
        self._batches = 0
        self._batch: asyncio.Task[bool] | None = None
        self._relay = self._another()
        self._next = self._another()

    async def begin(self) -> None:
        """Take what waits, and go on publishing it while business goes on.

        What is in the batch is settled when this returns; when it comes to its end is not, and
        nothing but the next batch depends on it.

        Raises:
            BrokerUnavailableError: the broker failed with the batch before.
        """
        await self._finish()
        self._batches += 1
        chance = Random(f"{self._seed}/relay/{self._batches}")  # noqa: S311 - to be repeated
        self._relay.dies = chance.random() < self._faults
        self._relay.has_leased.clear()
        self._batch = asyncio.create_task(self._publish_batch())
        leased = asyncio.create_task(self._relay.has_leased.wait())
        await asyncio.wait({self._batch, leased}, return_when=asyncio.FIRST_COMPLETED)
        leased.cancel()

    async def publish(self) -> None:
        """Publish all that waits, to the end.

        Raises:
            BrokerUnavailableError: the broker failed.
        """
        busy = True
        while busy:
            await self.begin()
            busy = await self._finish()

    async def _publish_batch(self) -> bool:
        try:
            return await self._relay.publish_batch()
        except _DiedError:
            self.counts["deaths_of_relays"] += 1
            await self._relay.drop()
            self._relay, self._next = self._next, self._another()
            for statement in _LET_LEASES_LAPSE:
                self._owner.execute(statement)
            return True

    async def _finish(self) -> bool:
        """Wait for the batch in hand; tell whether there was anything in it."""
        batch, self._batch = self._batch, None
        return batch is not None and await batch

    async def aclose(self) -> None:
        """Wait for the batch in hand, whatever becomes of it, and disconnect."""
        if self._batch is not None:
            await asyncio.gather(self._batch, return_exceptions=True)
        await self._relay.close()
        await self._next.close()

    def read(self) -> TopicBook:
        """Read the whole topic as somebody else."""
        return read_topic_book(self._bootstrap, self._topic)

    def _another(self) -> _MortalRelay:
        self._lives += 1
        return _MortalRelay(
            self._dsn,
            self._bootstrap,
            topic=self._topic,
            relay_id=f"relay-{self._lives}",
        )
