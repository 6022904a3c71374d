"""The instruments of the simulation: each disagreement, made on purpose, is seen."""

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from importlib import resources
from pathlib import Path

import psycopg
import pytest

from billing_shell import simulator
from billing_shell.books.topic_book import Appearance, TopicBook
from billing_shell.simulate_books import (
    compare_events,
    compare_money,
    compare_periods,
    compare_refunds,
)
from tests.py.support.business import Business, a_little_of_everything
from tests.py.support.servers import TestPostgres

WRITTEN = """
    SELECT o.outbox_event_id::text, o.event_type, o.aggregate_type || '/' || o.aggregate_id,
        o.aggregate_id::text, o.aggregate_seq, o.payload
    FROM billing.outbox_event AS o
    ORDER BY o.outbox_event_id
"""
PAID = """
    SELECT a.idempotency_key, a.gateway_payment_id, a.captured_amount
    FROM billing.payment_attempt AS a
    WHERE a.status = 'SUCCEEDED'
    ORDER BY a.attempt_id
"""


@pytest.fixture(scope="module")
def business(postgres: TestPostgres, template_database: str) -> Iterator[Business]:
    with (
        postgres.database(template=template_database) as name,
        psycopg.connect(postgres.database_url(name), autocommit=True) as connection,
    ):
        yield a_little_of_everything(connection)


@pytest.fixture
def topic(business: Business) -> list[Appearance]:
    """The topic as it has to be."""
    return [
        Appearance(
            event_id=event_id,
            event_type=event_type,
            subject=subject,
            key=key,
            sequence=sequence,
            payload=json.dumps(payload, sort_keys=True, separators=(",", ":")),
        )
        for event_id, event_type, subject, key, sequence, payload in business.connection.execute(
            WRITTEN
        ).fetchall()
    ]


def on_the_topic(business: Business, messages: list[Appearance]) -> list[str]:
    return compare_events(business.connection, TopicBook(tuple(messages), 1))[1]


def test_a_topic_that_tells_all_is_believed(business: Business, topic: list[Appearance]) -> None:
    figures, findings = compare_events(business.connection, TopicBook(tuple(topic), 1))
    assert (figures["events"], figures["events_repeated"], findings) == (len(topic), 0, [])


def test_repeats_are_dropped_as_consumers_drop_them(
    business: Business, topic: list[Appearance]
) -> None:
    figures, findings = compare_events(business.connection, TopicBook(tuple(topic + topic[:5]), 1))
    assert (figures["events_repeated"], findings) == (5, [])


def test_a_lost_event_is_missed(business: Business, topic: list[Appearance]) -> None:
    lost = topic.pop(3)
    found = on_the_topic(business, topic)
    assert f"event {lost.event_id} of {lost.subject} is lost" in found


def test_events_out_of_order_are_seen(business: Business, topic: list[Appearance]) -> None:
    of_one = [n for n, m in enumerate(topic) if m.subject == topic[-1].subject]
    first, second = of_one[0], of_one[1]
    topic[first], topic[second] = topic[second], topic[first]
    assert f"event {topic[second].sequence} of {topic[second].subject} came after" in str(
        on_the_topic(business, topic)
    )


def test_an_event_that_nobody_wrote_is_seen(business: Business, topic: list[Appearance]) -> None:
    topic.append(replace(topic[-1], event_id="999999999"))
    assert "nobody wrote it" in str(on_the_topic(business, topic))


def test_an_event_that_was_changed_on_its_way_is_seen(
    business: Business, topic: list[Appearance]
) -> None:
    topic[0] = replace(topic[0], payload="{}")
    assert "as it was written" in str(on_the_topic(business, topic))


@pytest.fixture
def ledger(business: Business, tmp_path: Path) -> Path:
    """The gateway's books as they have to be."""
    path = tmp_path / "gateway.sqlite"
    schema = resources.files(simulator).joinpath("schema.sql").read_text(encoding="ascii")
    with closing(sqlite3.connect(path)) as books, books:
        books.executescript(schema)
        books.executemany(
            "INSERT INTO charges (payment_id, reference, amount, currency, status, token,"
            " description, requested_amount, created_at, captured_at, booked_us)"
            " VALUES (?2, ?1, ?3, 'USD', 'succeeded', 't', 'd', ?3, '', '', 0)",
            business.connection.execute(PAID).fetchall(),
        )
    return path


def change(ledger: Path, statement: str) -> None:
    with closing(sqlite3.connect(ledger)) as books, books:
        assert books.execute(statement).rowcount == 1


def test_books_that_agree_are_believed(business: Business, ledger: Path) -> None:
    figures, findings = compare_money(business.connection, ledger)
    assert findings == []
    assert figures["charges"] > 1
    assert compare_refunds(business.connection, ledger)[1] == []


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        ("UPDATE charges SET amount = amount + 1 WHERE charge_no = 1", "the gateway moved"),
        ("DELETE FROM charges WHERE charge_no = 1", "the gateway knows nothing of it"),
        (
            (
                "INSERT INTO charges SELECT charge_no + 900, payment_id || 'x', idempotency_key,"
                " reference, amount, currency, status, code, token, description, requested_amount,"
                " created_at, captured_at, expires_at, booked_us FROM charges WHERE charge_no = 1"
            ),
            "double charge",
        ),
        (
            (
                "INSERT INTO charges SELECT charge_no + 900, payment_id || 'x', idempotency_key,"
                " 'of somebody else', amount, currency, status, code, token, description,"
                " requested_amount, created_at, captured_at, expires_at, booked_us"
                " FROM charges WHERE charge_no = 1"
            ),
            "known to the gateway only",
        ),
    ],
)
def test_money_that_moved_otherwise_is_seen(
    business: Business, ledger: Path, statement: str, said: str
) -> None:
    change(ledger, statement)
    assert said in str(compare_money(business.connection, ledger)[1])


def test_one_invoice_that_was_paid_under_two_keys_is_seen(business: Business, ledger: Path) -> None:
    with business.connection.transaction(force_rollback=True):
        business.value("SET LOCAL session_replication_role = replica")
        business.value(
            "UPDATE billing.payment_attempt AS a SET attempt_no = 1000 + a.attempt_id,"
            " invoice_id = (SELECT min(o.invoice_id)"
            " FROM billing.payment_attempt AS o WHERE o.status = 'SUCCEEDED')"
            " WHERE status = 'SUCCEEDED'"
        )
        assert "was paid under" in str(compare_money(business.connection, ledger)[1])


def test_money_that_went_back_unasked_is_seen(business: Business, ledger: Path) -> None:
    change(
        ledger,
        "INSERT INTO refunds (refund_id, payment_id, reference, amount, currency, created_at,"
        " booked_us) SELECT 're_1', payment_id, 'refund', 1, 'USD', '', 0 FROM charges LIMIT 1",
    )
    assert "nobody asked so" in str(compare_refunds(business.connection, ledger)[1])


def test_timelines_without_holes_are_believed(business: Business) -> None:
    assert compare_periods(business.connection) == []


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        (
            (
                "DELETE FROM billing.subscription_period AS p WHERE p.subscription_id = %(paid)s"
                " AND p.period_end = (SELECT max(o.period_end)"
                " FROM billing.subscription_period AS o"
                " WHERE o.subscription_id = p.subscription_id)"
            ),
            "has no period since",
        ),
        (
            (
                "UPDATE billing.subscription_period AS p"
                " SET period_end = period_end - interval '1 h'"
                " WHERE p.subscription_id = %(paid)s AND p.prev_end IS NULL"
            ),
            "does not follow",
        ),
        (
            (
                "UPDATE billing.subscription_period SET invoice_id = NULL"
                " WHERE subscription_id = %(paid)s AND prev_end IS NULL"
            ),
            "has no invoice",
        ),
    ],
)
def test_a_hole_in_a_timeline_is_seen(business: Business, statement: str, said: str) -> None:
    with business.connection.transaction(force_rollback=True):
        business.value("SET LOCAL session_replication_role = replica")
        business.value(
            "ALTER TABLE billing.subscription_period"
            " DROP CONSTRAINT IF EXISTS billed_period_names_its_invoice"
        )
        business.value(statement, paid=business.subscriptions["paid"])
        assert said in str(compare_periods(business.connection))
