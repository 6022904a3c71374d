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
from billing_shell.kafka_publisher import Delivery
from billing_shell.relay import Relay

_PARTITIONS = 4
# As late as if the relay had been silent for longer than a lease lasts, by the wall clock.
_LET_LEASES_LAPSE: tuple[LiteralString, ...] = (
    "UPDATE billing.outbox_lease SET leased_until = clock_timestamp() - interval '1 second'",
    "UPDATE billing.outbox_relay SET seen_at = seen_at - interval '1 minute'",
)


class _DiedError(Exception):
    """It died with a batch that is on the topic and not confirmed."""


class _MortalRelay(Relay):
    """A relay that may be told to die."""

    dies = False

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
    """One relay after the other.

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
        self._relay = self._another()

    async def publish(self) -> None:
        """Publish all that waits.

        Raises:
            BrokerUnavailableError: the broker failed.
        """
        busy = True
        while busy:
            self._batches += 1
            chance = Random(f"{self._seed}/relay/{self._batches}")  # noqa: S311 - to be repeated
            self._relay.dies = chance.random() < self._faults
            try:
                busy = await self._relay.publish_batch()
            except _DiedError:
                self.counts["deaths_of_relays"] += 1
                await self._relay.drop()
                self._relay = self._another()
                for statement in _LET_LEASES_LAPSE:
                    self._owner.execute(statement)

    async def aclose(self) -> None:
        """Disconnect."""
        await self._relay.close()

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
            partitions=_PARTITIONS,
        )
