"""Publishes events to Kafka as CloudEvents, in order per aggregate and acknowledged one by one.

A batch goes out in waves: the first event of every aggregate, all in flight at once; when those are
acknowledged the second of every aggregate, and so on. So nothing is sent before what precedes it is
known to be on the topic, whatever fails; a plain idempotent producer does not promise that across
errors.

Blocking; the relay runs it in one thread of its own.
"""

import logging
import time
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum

from confluent_kafka import KafkaError, KafkaException, Message, Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

MESSAGE_TIMEOUT = 10.0
"""Seconds after which an event that the broker has not acknowledged counts as not sent."""

_ADMIN_TIMEOUT = 3.0
_POLL = 0.1

_log = logging.getLogger(__name__)

# Refused for what the event is. Sent again alone first, because the refusal may have been meant for
# the whole request that it travelled in.
_REJECTIONS = frozenset(
    {
        KafkaError.MSG_SIZE_TOO_LARGE,
        KafkaError.RECORD_LIST_TOO_LARGE,
        KafkaError.INVALID_MSG_SIZE,
        KafkaError.INVALID_RECORD,
    }
)
# The broker's trouble, not the event's; so is every error of the client library itself, which all
# have negative codes.
_BROKER_TROUBLE = frozenset(
    {
        KafkaError.BROKER_NOT_AVAILABLE,
        KafkaError.CLUSTER_AUTHORIZATION_FAILED,
        KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
        KafkaError.COORDINATOR_NOT_AVAILABLE,
        KafkaError.DUPLICATE_SEQUENCE_NUMBER,
        KafkaError.FENCED_LEADER_EPOCH,
        KafkaError.INCONSISTENT_TOPIC_ID,
        KafkaError.INVALID_PRODUCER_EPOCH,
        KafkaError.INVALID_PRODUCER_ID_MAPPING,
        KafkaError.INVALID_REQUIRED_ACKS,
        KafkaError.KAFKA_STORAGE_ERROR,
        KafkaError.LEADER_NOT_AVAILABLE,
        KafkaError.NETWORK_EXCEPTION,
        KafkaError.NOT_CONTROLLER,
        KafkaError.NOT_COORDINATOR,
        KafkaError.NOT_ENOUGH_REPLICAS,
        KafkaError.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        KafkaError.NOT_LEADER_FOR_PARTITION,
        KafkaError.OUT_OF_ORDER_SEQUENCE_NUMBER,
        KafkaError.PRODUCER_FENCED,
        KafkaError.REPLICA_NOT_AVAILABLE,
        KafkaError.REQUEST_TIMED_OUT,
        KafkaError.SASL_AUTHENTICATION_FAILED,
        KafkaError.THROTTLING_QUOTA_EXCEEDED,
        KafkaError.TOPIC_AUTHORIZATION_FAILED,
        KafkaError.TOPIC_EXCEPTION,
        KafkaError.UNKNOWN_LEADER_EPOCH,
        KafkaError.UNKNOWN_PRODUCER_ID,
        KafkaError.UNKNOWN_TOPIC_ID,
        KafkaError.UNKNOWN_TOPIC_OR_PART,
        KafkaError.UNSUPPORTED_COMPRESSION_TYPE,
        KafkaError.UNSUPPORTED_VERSION,
    }
)


class BrokerUnavailableError(Exception):
    """The broker cannot be reached or cannot serve the topic. Nothing is wrong with any event."""


class Outcome(StrEnum):
    """What became of an event that was sent."""

    PUBLISHED = "PUBLISHED"
    """Acknowledged by all in-sync replicas."""
    FAILED = "FAILED"
    """Refused, for a reason that may pass."""
    REJECTED = "REJECTED"
    """Refused for what it is, and always will be."""


@dataclass(frozen=True, slots=True)
class Event:
    """One event of the outbox, as leased.

    Attributes:
        created_at: when it was written, wall clock; part of its key in the outbox.
        partition: partition of the outbox, 0 to 15; nothing to do with the topic's.
        lease_epoch: lease under which it may be confirmed.
        occurred_at: when it happened, business time.
        payload: JSON text, sent as it is.
    """

    outbox_event_id: int
    created_at: datetime
    customer_id: int
    partition: int
    lease_epoch: int
    aggregate_type: str
    aggregate_id: int
    aggregate_seq: int
    event_type: str
    occurred_at: datetime
    payload: str


@dataclass(frozen=True, slots=True)
class Delivery:
    """An event and what became of it.

    Attributes:
        error: what the broker said, unless published.
    """

    event: Event
    outcome: Outcome
    error: str | None = None


@dataclass(frozen=True, slots=True)
class Publication:
    """What became of a batch.

    Attributes:
        deliveries: of the events that were sent; the others were held back.
        trouble: why the broker could not be used to the end, or None.
    """

    deliveries: tuple[Delivery, ...]
    trouble: str | None = None


def message_headers(event: Event, source: str) -> list[tuple[str, str | bytes | None]]:
    """The headers of CloudEvents 1.0 in Kafka's binary mode.

    Args:
        event: what is sent.
        source: URI reference of this engine; together with the event's id it is unique.
    """
    occurred_at = event.occurred_at.astimezone(UTC).isoformat().replace("+00:00", "Z")
    return [
        ("ce_specversion", b"1.0"),
        ("ce_id", str(event.outbox_event_id).encode()),
        ("ce_source", source.encode()),
        ("ce_type", event.event_type.encode()),
        ("ce_time", occurred_at.encode()),
        ("ce_subject", f"{event.aggregate_type}/{event.aggregate_id}".encode()),
        ("ce_aggregateseq", str(event.aggregate_seq).encode()),
        ("content-type", b"application/json"),
    ]


class KafkaPublisher:
    """A producer for one topic, made anew after any trouble with the broker."""

    def __init__(
        self,
        bootstrap: str,
        topic: str,
        *,
        client_id: str,
        source: str,
        partitions: int,
        replication_factor: int,
        options: Mapping[str, str | int | float | bool],
    ) -> None:
        """Nothing is connected yet.

        Args:
            bootstrap: brokers as `host:port[,host:port...]`.
            topic: created if it is not there.
            client_id: name of this producer in the broker's logs.
            source: URI reference for `ce_source`.
            partitions: of a topic that is created.
            replication_factor: of a topic that is created; -1 is the broker's default.
            options: further settings of librdkafka, for security above all.
        """
        self._topic = topic
        self._source = source
        self._new_topic = NewTopic(topic, partitions, replication_factor)
        self._connection = {**options, "bootstrap.servers": bootstrap, "client.id": client_id}
        self._producer: Producer | None = None
        self._broken = False

    def open(self) -> Producer:
        """Makes sure of the topic and the producer; cheap when all is well.

        Raises:
            BrokerUnavailableError: neither is to be had.
        """
        if self._producer is not None:
            self._producer.poll(0)
            if not self._broken:
                return self._producer
            self.close()
        self._ensure_topic()
        settings = {
            # Keys go where the Java client would send them.
            "partitioner": "murmur2_random",
            "linger.ms": 1,
            **self._connection,
            "enable.idempotence": True,
            "acks": "all",
            "message.timeout.ms": int(MESSAGE_TIMEOUT * 1000),
            "error_cb": self._note_error,
        }
        self._broken = False
        self._producer = Producer(settings, logger=_log)
        return self._producer

    def close(self) -> None:
        """Drops the producer with all that it has not sent."""
        if self._producer is not None:
            self._producer.purge()
            self._producer.poll(0)
            self._producer = None

    def publish(self, events: Sequence[Event], deadline: float) -> Publication:
        """Sends events and waits until each is acknowledged or refused.

        An aggregate ends at its first event that is not acknowledged; a broker in trouble ends the
        batch.

        Args:
            events: in any order; those of an aggregate go by `aggregate_seq`.
            deadline: seconds on `time.monotonic()` after which no further wave is begun. The last
                one takes MESSAGE_TIMEOUT at most.

        Raises:
            BrokerUnavailableError: nothing was sent.
        """
        producer = self.open()
        waiting: dict[tuple[str, int], deque[Event]] = {}
        for event in sorted(events, key=lambda event: event.aggregate_seq):
            waiting.setdefault((event.aggregate_type, event.aggregate_id), deque()).append(event)
        deliveries: list[Delivery] = []
        while waiting and time.monotonic() < deadline:
            wave = [queue.popleft() for queue in waiting.values()]
            delivered, trouble = self._deliver(producer, wave)
            deliveries += delivered
            if trouble is not None:
                self.close()
                return Publication(tuple(deliveries), str(trouble))
            done = {d.event.outbox_event_id for d in delivered if d.outcome is Outcome.PUBLISHED}
            waiting = {
                key: queue
                for (key, queue), event in zip(waiting.items(), wave, strict=True)
                if queue and event.outbox_event_id in done
            }
        return Publication(tuple(deliveries))

    def _deliver(
        self, producer: Producer, wave: Sequence[Event]
    ) -> tuple[list[Delivery], KafkaError | None]:
        """Sends one wave; the deliveries, and the broker's trouble if there was any."""
        deliveries: list[Delivery] = []
        trouble: KafkaError | None = None
        for event, report in self._send(producer, wave):
            error = report
            if error is not None and error.code() in _REJECTIONS and len(wave) > 1:
                if trouble is not None:
                    continue
                error = self._send(producer, [event])[0][1]
            if error is None:
                deliveries.append(Delivery(event, Outcome.PUBLISHED))
            elif error.code() in _REJECTIONS:
                deliveries.append(Delivery(event, Outcome.REJECTED, str(error)))
            elif error.code() < 0 or error.code() in _BROKER_TROUBLE:
                trouble = error
            else:
                deliveries.append(Delivery(event, Outcome.FAILED, str(error)))
        return deliveries, trouble

    def _send(
        self, producer: Producer, events: Sequence[Event]
    ) -> list[tuple[Event, KafkaError | None]]:
        """Produces events, all in flight at once, and waits for the report on each."""
        reports: dict[int, KafkaError | None] = {}
        for event in events:
            try:
                self._produce(producer, event, reports)
            except KafkaException as refused:
                reports[event.outbox_event_id] = refused.args[0]
        while len(reports) < len(events):
            # The message time-out bounds this: every event is reported on, one way or the other.
            producer.poll(_POLL)
        return [(event, reports[event.outbox_event_id]) for event in events]

    def _produce(
        self, producer: Producer, event: Event, reports: dict[int, KafkaError | None]
    ) -> None:
        def report(error: KafkaError | None, _message: Message) -> None:
            reports[event.outbox_event_id] = error

        while True:
            try:
                producer.produce(
                    self._topic,
                    key=str(event.aggregate_id).encode(),
                    value=event.payload.encode(),
                    headers=message_headers(event, self._source),
                    on_delivery=report,
                )
            except BufferError:
                producer.poll(_POLL)
            else:
                return

    def _ensure_topic(self) -> None:
        admin = AdminClient(self._connection, logger=_log)
        try:
            found = admin.list_topics(timeout=_ADMIN_TIMEOUT).topics.get(self._topic)
            if found is None or found.error is not None:
                created = admin.create_topics([self._new_topic], request_timeout=_ADMIN_TIMEOUT)
                created[self._topic].result(_ADMIN_TIMEOUT)
                _log.info("topic %s created", self._topic)
        except KafkaException as error:
            if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
                raise BrokerUnavailableError(f"topic {self._topic}: {error}") from error
        except TimeoutError as error:
            raise BrokerUnavailableError(f"topic {self._topic}: no answer") from error

    def _note_error(self, error: KafkaError) -> None:
        """Begins anew, before the next batch, where the brokers may come back without the topic.

        Left alone, the producer would have a lost topic created by the broker's own defaults.
        """
        _log.info("broker: %s", error)
        if error.code() == KafkaError._ALL_BROKERS_DOWN or error.fatal():  # noqa: SLF001 - its name
            self._broken = True
