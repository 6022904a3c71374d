"""Messages through a broker of the Kafka protocol."""

import uuid

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

SECONDS = 120.0


def pass_a_message(bootstrap: str) -> bytes | None:
    """Create a topic, write one message to it and read it back."""
    topic = f"topic-{uuid.uuid4().hex}"
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic(topic, 1, 1)])[topic].result(SECONDS)
    producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True})
    producer.produce(topic, value=b"hello", key=b"key", partition=0)
    assert producer.flush(SECONDS) == 0
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "test"})
    consumer.assign([TopicPartition(topic, 0, 0)])
    message = consumer.poll(SECONDS)
    consumer.close()
    assert message is not None
    assert message.error() is None
    return message.value()
