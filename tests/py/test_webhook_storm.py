"""A thousand webhooks in any order, doubled, from two connections, with failures: the same end.

The end is compared with that of the same events delivered once each, in order, over one connection.
"""

import json
import random
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import psycopg
import pytest

from tests.py.support.servers import TestPostgres
from tests.py.support.world import ACCOUNT, DUE, World

PEOPLE = 250

# What is said about the attempts of these 50 fails until one of the events has been put off.
_STUMBLING = 50
_FAIL_AT_FIRST = """
    CREATE FUNCTION billing_fault() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        IF EXISTS (
            SELECT FROM billing.customer AS c
            WHERE c.customer_id = new.customer_id AND c.external_ref ~ '[27]$'
        ) AND NOT EXISTS (
            SELECT FROM billing.webhook_event AS w
            WHERE w.payload ->> 'reference' = new.idempotency_key AND w.failure_count > 0
        ) THEN
            RAISE EXCEPTION USING ERRCODE = '23514', MESSAGE = 'a fault on purpose';
        END IF;
        RETURN new;
    END $$;
    CREATE TRIGGER fault BEFORE UPDATE ON billing.payment_attempt
    FOR EACH ROW EXECUTE FUNCTION billing_fault();
"""


@dataclass(frozen=True, slots=True)
class Event:
    """One event of the gateway."""

    event_id: str
    event_type: str
    payload: dict[str, Any]


def in_flight(world: World) -> list[Event]:
    """Start everybody's charge, a fifth of them for the second time; return what will be said.

    Four events about each: under way, the end of it twice under two ids, and either the first
    failure once more or a payment of somebody else.
    """
    world.subscribe(PEOPLE)
    world.rows("SELECT billing_worker.renew_due(1000)")
    start = "SELECT * FROM billing_worker.start_attempts(%s, 1000, 'test', %s)"
    world.rows(start, ACCOUNT, DUE)
    world.rows(
        "SELECT s.verdict FROM (SELECT array_agg(ROW(a.customer_id, a.attempt_id, a.claim_epoch,"
        " 'DECLINED', 'first_' || c.external_ref, NULL, NULL, 'insufficient_funds', NULL, NULL,"
        " 'SEND')::billing.charge_result) AS results FROM billing.payment_attempt AS a"
        " INNER JOIN billing.customer AS c USING (customer_id)"
        " WHERE c.external_ref ~ '[05]$') AS r"
        " CROSS JOIN LATERAL billing_worker.settle_attempts(r.results, %s) AS s",
        DUE,
    )
    world.set_clock(DUE + timedelta(days=1, hours=3))
    world.rows(start, ACCOUNT, DUE + timedelta(days=1, hours=3))
    events: list[Event] = []
    for person, key, number in world.rows(
        "SELECT c.external_ref, a.idempotency_key, a.attempt_no FROM billing.payment_attempt AS a"
        " INNER JOIN billing.customer AS c USING (customer_id)"
        " WHERE a.ended_at IS NULL ORDER BY a.customer_id"
    ):
        payment = f"pay_{person.replace(' ', '_')}"
        about = {"paymentId": payment, "reference": key}
        paid = {"outcome": "SUCCEEDED", "amount": 3000, "currency": "USD"}
        refused = {"outcome": "DECLINED", "code": "insufficient_funds"}
        end = about | (refused if person.endswith("3") else paid)
        other = (
            {"paymentId": f"first_{person}", **refused}
            if number > 1
            else {"paymentId": f"other_{person.replace(' ', '_')}", **paid}
        )
        events += [
            Event(f"a {person}", "charge.processing", about | {"outcome": "PROCESSING"}),
            Event(f"b {person}", "charge.ended", end),
            Event(f"c {person}", "invoice.ended", end),
            Event(f"d {person}", "charge.other", other),
        ]
    return events


def receive(connection: psycopg.Connection[Any], event: Event) -> None:
    connection.execute(
        "SELECT billing_worker.receive_webhook(%s, %s, %s, %s)",
        (ACCOUNT, event.event_id, event.event_type, json.dumps(event.payload)),
    )


def drain(connection: psycopg.Connection[Any]) -> None:
    """Process until nothing waits any more, but for what matches nothing."""
    waiting = "SELECT count(*) FROM billing.webhook_event WHERE status = 'RECEIVED'"
    while connection.execute(waiting).fetchone() != (0,):
        connection.execute(
            "UPDATE billing.webhook_event SET next_try_at = clock_timestamp()"
            " WHERE status = 'RECEIVED' AND failure_count > 0"
        )
        connection.execute("SELECT billing_worker.process_webhooks(50)")


def end_of(world: World) -> dict[str, list[tuple[Any, ...]]]:
    """What the customers, and the world, have of it."""
    return {
        "attempts": world.rows(
            "SELECT c.external_ref, a.attempt_no, a.status, a.gateway_payment_id, a.captured_amount"
            " FROM billing.payment_attempt AS a"
            " INNER JOIN billing.customer AS c USING (customer_id) ORDER BY 1, 2"
        ),
        "invoices": world.rows(
            "SELECT c.external_ref, i.kind, i.status, i.amount_paid, i.failure_count"
            " FROM billing.invoice AS i INNER JOIN billing.customer AS c USING (customer_id)"
            " ORDER BY 1, 2"
        ),
        "subscriptions": world.rows(
            "SELECT c.external_ref, s.status, s.current_period_end, s.event_seq"
            " FROM billing.subscription AS s INNER JOIN billing.customer AS c USING (customer_id)"
            " ORDER BY 1"
        ),
        "told": world.rows(
            "SELECT c.external_ref, o.event_type, count(*)"
            " FROM billing.outbox_event AS o INNER JOIN billing.customer AS c USING (customer_id)"
            " GROUP BY 1, 2 ORDER BY 1, 2"
        ),
        "credit": world.rows("SELECT customer_id, balance FROM billing.credit_balance ORDER BY 1"),
        "cases": world.rows("SELECT kind, count(*) FROM billing.reconciliation_case GROUP BY 1"),
        "inbox": world.rows("SELECT event_id FROM billing.webhook_event ORDER BY 1"),
    }


@pytest.fixture(scope="module")
def in_order(postgres: TestPostgres, template_database: str) -> Iterator[dict[str, Any]]:
    """How it ends where every event comes once, in order."""
    with postgres.database(template=template_database) as name:
        world = World(postgres.database_url(name))
        events = in_flight(world)
        with psycopg.connect(world.url, autocommit=True) as connection:
            for event in events:
                receive(connection, event)
            drain(connection)
        yield end_of(world)
        world.close()


@pytest.mark.parametrize("seed", [1, 2])
def test_a_thousand_webhooks_end_as_if_they_had_come_once_and_in_order(
    database_url: str, in_order: dict[str, Any], seed: int
) -> None:
    """Also cases G01, G02, G04, G09."""
    world = World(database_url)
    events = in_flight(world)
    assert len(events) == 4 * PEOPLE
    deliveries = events * 2
    random.Random(seed).shuffle(deliveries)  # noqa: S311  the order, nothing secret
    with psycopg.connect(database_url, autocommit=True) as operator:
        operator.execute(_FAIL_AT_FIRST)
        faults: list[BaseException] = []

        def deliver(part: list[Event]) -> None:
            try:
                with psycopg.connect(database_url, autocommit=True) as connection:
                    for number, event in enumerate(part):
                        receive(connection, event)
                        if number % 25 == 0:
                            connection.execute("SELECT billing_worker.process_webhooks(50)")
                    drain(connection)
            except BaseException as fault:  # noqa: BLE001  raised again below, in the test's thread
                faults.append(fault)

        threads = [threading.Thread(target=deliver, args=(deliveries[half::2],)) for half in (0, 1)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not faults, faults
        put_off = world.value(
            "SELECT count(DISTINCT payload ->> 'reference') FROM billing.webhook_event"
            " WHERE failure_count > 0"
        )
        assert put_off == _STUMBLING
        operator.execute("DROP TRIGGER fault ON billing.payment_attempt")
    ended = end_of(world)
    for part, rows in in_order.items():
        assert ended[part] == rows, part
    assert world.rows("SELECT * FROM billing_ops.check_integrity()") == []
    assert world.count("webhook_event", "status = 'UNMATCHED'") == 200
    world.close()
