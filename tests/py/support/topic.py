"""Reads a topic as a stranger would: a fresh consumer, every partition, from its first offset."""

import json
import uuid
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, Message, TopicPartition

_TIMEOUT = 120.0


@dataclass(frozen=True)
class Record:
    """One message."""

    partition: int
    offset: int
    key: str
    value: bytes
    headers: dict[str, str]

    @property
    def event_id(self) -> int:
        return int(self.headers["ce_id"])

    @property
    def seq(self) -> int:
        return int(self.headers["ce_aggregateseq"])

    @property
    def payload(self) -> Any:  # noqa: ANN401 - what JSON holds
        return json.loads(self.value)


def _header(pair: Any) -> tuple[str, str]:  # noqa: ANN401 - typed as several things by its library
    name, text = pair
    return name, text.decode()


def read_topic(bootstrap: str, topic: str, start: Mapping[int, int] | None = None) -> list[Record]:
    """All messages of a topic, by partition and offset; none if the topic does not exist.

    Those of a partition that `start` names begin at the offset there.

    Reads until the broker says that a partition ends. Its watermarks would not do: Tansu's counts
    the last request to a partition as one message, however many it carried.
    """
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": f"reader-{uuid.uuid4()}",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
        }
    )
    try:
        found = consumer.list_topics(timeout=_TIMEOUT).topics.get(topic)
        unread = set(found.partitions) if found is not None else set()
        offsets = start or {}
        consumer.assign(
            [TopicPartition(topic, each, offsets.get(each, OFFSET_BEGINNING)) for each in unread]
        )
        records: list[Record] = []
        while unread:
            message = consumer.poll(_TIMEOUT)
            assert message is not None, f"no end of {topic} within {_TIMEOUT} s"
            error = message.error()
            if error is None:
                records.append(_record(message))
            else:
                assert error.code() == KafkaError._PARTITION_EOF, error  # noqa: SLF001 - its name
                unread.discard(_number(message.partition()))
        return sorted(records, key=lambda record: (record.partition, record.offset))
    finally:
        consumer.close()


def next_offsets(records: Iterable[Record]) -> dict[int, int]:
    """Per partition the offset that follows the last of these messages."""
    last: dict[int, int] = {}
    for record in records:
        last[record.partition] = max(last.get(record.partition, 0), record.offset + 1)
    return last


def _record(message: Message) -> Record:
    key, value = message.key(), message.value()
    assert isinstance(key, bytes)
    assert isinstance(value, bytes)
    return Record(
        _number(message.partition()),
        _number(message.offset()),
        key.decode(),
        value,
        dict(_header(pair) for pair in message.headers() or []),
    )


def _number(number: int | None) -> int:
    assert number is not None
    return number


def first_appearances(records: Iterable[Record]) -> dict[str, list[int]]:
    """Per key the event numbers in the order in which they first appear.

    Fails where a duplicate differs from its first appearance, or a key is on two partitions.
    """
    seen: dict[int, Record] = {}
    order: dict[str, list[int]] = defaultdict(list)
    partition_of: dict[str, int] = {}
    for record in records:
        assert partition_of.setdefault(record.key, record.partition) == record.partition
        first = seen.setdefault(record.event_id, record)
        if first is record:
            order[record.key].append(record.seq)
        else:
            assert (first.key, first.value, first.headers) == (
                record.key,
                record.value,
                record.headers,
            )
    return dict(order)
