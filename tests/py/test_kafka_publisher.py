"""What the publisher makes of a broker's answers that a healthy broker does not give.

The producer is scripted here, since no broker can be asked to refuse one event of a request; that
real brokers get what they should is the matter of test_relay.py.
"""

import time
from collections.abc import Callable
from datetime import UTC, datetime

import pytest
from confluent_kafka import KafkaError, KafkaException, Producer

from billing_shell.kafka_publisher import Event, KafkaPublisher, Outcome, Publication

NOW = datetime(2027, 1, 31, 10, 30, tzinfo=UTC)

Report = Callable[[KafkaError | None, None], None]


class ScriptedProducer:
    """Answers each event by its id, as if all that is produced before a poll were one request."""

    def __init__(self, answers: dict[int, int], *, whole_request: bool = False) -> None:
        self.answers = answers
        self.whole_request = whole_request
        self.requests: list[list[int]] = []
        self.purged = False
        self._queued: list[tuple[int, Report]] = []

    def produce(  # as the real one
        self,
        topic: str,
        *,
        key: bytes,
        value: bytes,
        headers: list[tuple[str, bytes]],
        on_delivery: Report,
    ) -> None:
        assert topic == "topic"
        assert key
        assert value == b"{}"
        self._queued.append((int(dict(headers)["ce_id"]), on_delivery))

    def poll(self, _timeout: float) -> int:
        queued, self._queued = self._queued, []
        if queued:
            self.requests.append([event_id for event_id, _ in queued])
        for event_id, report in queued:
            asked = [other for other, _ in queued] if self.whole_request else [event_id]
            codes = [self.answers[other] for other in asked if other in self.answers]
            report(KafkaError(codes[0]) if codes else None, None)
        return len(queued)

    def purge(self) -> None:
        self.purged = True


class Refusing(ScriptedProducer):
    """Refuses in `produce` itself, as the client library does with what it will not even send."""

    def produce(
        self,
        topic: str,
        *,
        key: bytes,
        value: bytes,
        headers: list[tuple[str, bytes]],
        on_delivery: Report,
    ) -> None:
        event_id = int(dict(headers)["ce_id"])
        if event_id in self.answers:
            raise KafkaException(KafkaError(self.answers[event_id]))
        super().produce(topic, key=key, value=value, headers=headers, on_delivery=on_delivery)


def event(subscription: int, seq: int) -> Event:
    """An event whose id is 10 times its subscription plus its number."""
    return Event(
        outbox_event_id=10 * subscription + seq,
        created_at=NOW,
        customer_id=1,
        partition=0,
        lease_epoch=1,
        aggregate_type="subscription",
        aggregate_id=subscription,
        aggregate_seq=seq,
        event_type="InvoiceOpened",
        occurred_at=NOW,
        payload="{}",
    )


EVENTS = [event(1, 1), event(2, 1), event(1, 2), event(2, 2), event(3, 1)]


@pytest.fixture
def publish(monkeypatch: pytest.MonkeyPatch) -> Callable[[ScriptedProducer], Publication]:
    """Publishes EVENTS through a scripted producer."""

    def run(producer: ScriptedProducer) -> Publication:
        publisher = KafkaPublisher(
            "", "topic", client_id="", source="/", partitions=1, replication_factor=1, options={}
        )

        def opened(self: KafkaPublisher) -> Producer:
            self._producer = producer  # type: ignore[assignment]
            return producer  # type: ignore[return-value]

        monkeypatch.setattr(KafkaPublisher, "open", opened)
        return publisher.publish(EVENTS, time.monotonic() + 60)

    return run


def outcomes(publication: Publication) -> dict[int, Outcome]:
    return {d.event.outbox_event_id: d.outcome for d in publication.deliveries}


def test_events_go_in_waves_the_first_of_every_subscription_then_the_second(
    publish: Callable[[ScriptedProducer], Publication],
) -> None:
    producer = ScriptedProducer({})
    publication = publish(producer)
    assert producer.requests == [[11, 21, 31], [12, 22]]
    assert publication.trouble is None
    assert outcomes(publication) == dict.fromkeys((11, 12, 21, 22, 31), Outcome.PUBLISHED)


def test_an_event_too_large_is_found_among_those_that_travelled_with_it(
    publish: Callable[[ScriptedProducer], Publication],
) -> None:
    producer = ScriptedProducer({11: KafkaError.MSG_SIZE_TOO_LARGE}, whole_request=True)
    publication = publish(producer)
    assert producer.requests == [[11, 21, 31], [11], [21], [31], [22]]
    assert outcomes(publication) == {
        11: Outcome.REJECTED,
        21: Outcome.PUBLISHED,
        22: Outcome.PUBLISHED,
        31: Outcome.PUBLISHED,
    }


def test_an_event_that_the_client_will_not_send_is_rejected(
    publish: Callable[[ScriptedProducer], Publication],
) -> None:
    publication = publish(Refusing({12: KafkaError.MSG_SIZE_TOO_LARGE}))
    assert outcomes(publication)[12] is Outcome.REJECTED
    assert publication.trouble is None


def test_an_event_refused_for_a_passing_reason_ends_its_own_subscription_only(
    publish: Callable[[ScriptedProducer], Publication],
) -> None:
    producer = ScriptedProducer({11: KafkaError.INVALID_TIMESTAMP})
    publication = publish(producer)
    assert producer.requests == [[11, 21, 31], [22]]
    assert outcomes(publication)[11] is Outcome.FAILED
    assert publication.deliveries[0].error
    assert publication.trouble is None


@pytest.mark.parametrize(
    "code",
    [
        KafkaError._MSG_TIMED_OUT,  # noqa: SLF001 - its name
        KafkaError._ALL_BROKERS_DOWN,  # noqa: SLF001 - its name
        KafkaError.UNKNOWN_TOPIC_OR_PART,
        KafkaError.NOT_ENOUGH_REPLICAS,
        KafkaError.TOPIC_AUTHORIZATION_FAILED,
    ],
)
def test_a_broker_in_trouble_ends_the_batch_and_counts_against_no_event(
    publish: Callable[[ScriptedProducer], Publication], code: int
) -> None:
    producer = ScriptedProducer({21: code})
    publication = publish(producer)
    assert producer.requests == [[11, 21, 31]]
    assert outcomes(publication) == {11: Outcome.PUBLISHED, 31: Outcome.PUBLISHED}
    assert publication.trouble
    assert producer.purged


def test_no_wave_begins_after_the_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    producer = ScriptedProducer({})
    publisher = KafkaPublisher(
        "", "topic", client_id="", source="/", partitions=1, replication_factor=1, options={}
    )
    monkeypatch.setattr(KafkaPublisher, "open", lambda _self: producer)
    assert publisher.publish(EVENTS, time.monotonic() - 1) == Publication(())
    assert producer.requests == []
