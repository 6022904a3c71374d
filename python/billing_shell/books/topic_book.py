"""The topic's book: every message from offset 0, read by a fresh consumer without a group.

The layout is `docs/events.md`'s: CloudEvents in Kafka's binary mode.
"""

import json
import time
from dataclasses import dataclass
from typing import Any

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, Message
from confluent_kafka import TopicPartition as Partition

_BATCH = 1_000
_POLL_SECONDS = 0.1


class TopicUnreadableError(Exception):
    """The topic could not be read to its end."""


@dataclass(frozen=True, slots=True)
class Appearance:
    """One message.

    Attributes:
        key: the message's key, id of the aggregate.
        sequence: `ce_aggregateseq`.
        payload: JSON in a canonical form: members sorted, no spaces.
    """

    event_id: str
    event_type: str
    subject: str
    key: str
    sequence: int
    payload: str


@dataclass(frozen=True, slots=True)
class TopicBook:
    """All messages; those of one key in the order in which they stand on their partition."""

    appearances: tuple[Appearance, ...]
    partitions: int


def read_topic_book(bootstrap: str, topic: str, *, seconds: float = 60.0) -> TopicBook:
    """Read a topic from its first message up to where it ends now.

    Args:
        bootstrap: brokers as `host:port[,host:port...]`.
        topic: which one.
        seconds: how long it may take.

    Raises:
        TopicUnreadableError: no such topic, no broker, no end in time, or messages of another kind.
    """
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            # Asked for by the client library; nothing is ever committed and no group is joined.
            "group.id": "billing-report",
            "enable.auto.commit": False,
            "enable.auto.offset.store": False,
            "auto.offset.reset": "earliest",
            "enable.partition.eof": True,
        }
    )
    try:
        partitions = _partitions(consumer, topic, seconds)
        consumer.assign([Partition(topic, number, OFFSET_BEGINNING) for number in partitions])
        return TopicBook(tuple(_read(consumer, partitions, seconds)), len(partitions))
    except KafkaException as error:
        raise TopicUnreadableError(f"topic {topic}: {error}") from error
    finally:
        consumer.close()


def _partitions(consumer: Consumer, topic: str, seconds: float) -> list[int]:
    # Of all topics: a broker may create one that is asked for by name.
    found = consumer.list_topics(timeout=seconds).topics.get(topic)
    if found is None or found.error is not None or not found.partitions:
        raise TopicUnreadableError(f"topic {topic} is not there")
    return sorted(found.partitions)


def _read(consumer: Consumer, partitions: list[int], seconds: float) -> list[Appearance]:
    deadline = time.monotonic() + seconds
    appearances: list[Appearance] = []
    unfinished = set(partitions)
    while unfinished:
        if time.monotonic() > deadline:
            raise TopicUnreadableError(f"partitions {sorted(unfinished)} have no end")
        for message in consumer.consume(_BATCH, _POLL_SECONDS):
            error = message.error()
            if error is None:
                appearances.append(_appearance(message))
            elif error.code() == KafkaError._PARTITION_EOF:  # noqa: SLF001 - its name
                unfinished.discard(message.partition())
            else:
                raise KafkaException(error)
    return appearances


def _appearance(message: Message) -> Appearance:
    pairs: Any = message.headers() or ()  # typed as several things by its library
    headers: dict[str, bytes] = dict(pairs)
    key, value = message.key(), message.value()
    try:
        if not isinstance(key, bytes) or not isinstance(value, bytes):
            raise TopicUnreadableError("a message without key or value")
        return Appearance(
            event_id=headers["ce_id"].decode(),
            event_type=headers["ce_type"].decode(),
            subject=headers["ce_subject"].decode(),
            key=key.decode(),
            sequence=int(headers["ce_aggregateseq"]),
            payload=json.dumps(json.loads(value), sort_keys=True, separators=(",", ":")),
        )
    except (KeyError, ValueError, AttributeError) as error:
        where = f"partition {message.partition()}, offset {message.offset()}"
        raise TopicUnreadableError(f"{where} holds no event: {error!r}") from error
