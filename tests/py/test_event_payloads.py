"""Every event that the engine writes in a long story keeps to its schema and to its numbers."""

from collections import defaultdict
from typing import LiteralString

import psycopg
import pytest
from psycopg.sql import SQL

from tests.py.support.event_schemas import assert_valid, event_types

NOT_IN_THE_STORY = {
    "PaymentUnexpected",
    "RefundFailed",
    "RefundIssued",
    "ResourceResumed",
}


class Story:
    """A test database, its clock, and what may happen in it."""

    def __init__(self, connection: psycopg.Connection) -> None:
        self._connection = connection
        self.call("billing_ops.mark_test_database()")
        self.call("billing_ops.create_gateway_account('sim', 'simulated')")
        self.call("billing_ops.set_gateway_rate('sim', 'charge', 200)")
        for code, amount, trial in (("BASIC", 3000, 0), ("PRO", 9000, 0), ("TRY", 3000, 14)):
            self.call(
                "billing_api.create_plan(%s, %s, %s, 'USD', 'MONTH', p_trial_days => %s)",
                *(code, code, amount, trial),
            )

    def call(self, call: LiteralString, *arguments: object) -> None:
        """Calls one function; what it returns is of no interest."""
        self._connection.execute(SQL("SELECT FROM {}").format(SQL(call)), arguments)

    def _id(self, query: LiteralString, *arguments: object) -> int:
        row = self._connection.execute(query, arguments).fetchone()
        assert row is not None
        return int(row[0])

    def at(self, instant: str) -> None:
        """Sets the clock, forward."""
        self.call("billing_ops.set_clock(%s)", instant)

    def customer(self, name: str) -> int:
        customer = self._id("SELECT customer_id FROM billing_api.create_customer(%s, 'USD')", name)
        self.call("billing_api.add_payment_method(%s, 'sim', 'tok_ok')", customer)
        return customer

    def subscription(self, customer: int, plan: str, policy: str = "standard") -> int:
        return self._id(
            "SELECT subscription_id "
            "FROM billing_api.create_subscription(%s, %s, 'key', p_dunning_policy => %s)",
            *(customer, plan, policy),
        )

    def renew(self) -> None:
        self.call("billing_worker.renew_due(100)")

    def collect(self, outcome: str = "SUCCEEDED", code: str | None = None) -> None:
        """Attempts everything that is due, with one outcome for all of it."""
        self._connection.execute(
            """
            SELECT billing_worker.settle_attempts(
                ARRAY(
                    SELECT jsonb_populate_record(
                        NULL::billing.charge_result,
                        jsonb_build_object(
                            'customer_id', q.customer_id, 'attempt_id', q.attempt_id,
                            'claim_epoch', q.claim_epoch, 'outcome', %(outcome)s::text,
                            'gateway_payment_id', 'pay_' || q.attempt_id, 'amount', q.amount,
                            'currency', q.currency, 'code', %(code)s::text, 'source', 'SEND'
                        )
                    )
                    FROM billing_worker.start_attempts('sim', 100, 'story') AS q
                )
            )
            """,
            {"outcome": outcome, "code": code},
        )

    def dunning(self) -> None:
        self.call("billing_worker.end_dunning(100)")


@pytest.fixture
def story(connection: psycopg.Connection) -> Story:
    return Story(connection)


def _tell(story: Story) -> None:
    story.at("2027-01-31T10:30:00Z")
    first = story.customer("first")
    subscription = story.subscription(first, "BASIC")
    story.collect()
    story.call("billing_api.grant_credit(%s, 500, 'USD', 'an apology', 'key')", first)
    story.at("2027-02-28T10:30:00Z")
    story.renew()
    story.collect("DECLINED", "insufficient_funds")
    story.at("2027-03-02T10:30:00Z")
    story.collect()
    story.call("billing_api.change_plan(%s, 'PRO')", subscription)
    story.collect()
    story.call("billing_api.pause_subscription(%s)", subscription)
    story.at("2027-03-10T10:30:00Z")
    story.call("billing_api.resume_subscription(%s)", subscription)
    story.call("billing_api.cancel_subscription(%s, true)", subscription)
    story.call("billing_api.undo_cancel(%s)", subscription)
    story.call("billing_api.cancel_subscription(%s, false, 'CREDIT')", subscription)

    trying = story.customer("trying")
    story.subscription(trying, "TRY")
    story.at("2027-03-21T10:30:00Z")
    story.call("billing_worker.announce_trial_endings(100)")
    story.call("billing_api.add_price('TRY', 4000, 'USD', '2027-04-01Z')")
    story.call("billing_api.migrate_price('TRY', '2027-04-01Z', 10, false)")
    story.at("2027-03-24T10:30:00Z")
    story.renew()
    story.collect("REQUIRES_ACTION")
    story.call("billing_api.grant_credit(%s, 50000, 'USD', 'a prize', 'key')", trying)
    story.at("2027-04-25T10:30:00Z")
    story.renew()

    story.subscription(story.customer("undecided"), "BASIC")
    story.at("2027-04-27T10:30:00Z")
    story.call("billing_worker.expire_checkouts(100)")

    story.subscription(story.customer("broke"), "BASIC")
    story.subscription(story.customer("store"), "BASIC", "store_grace")
    story.collect()
    story.at("2027-05-27T10:30:00Z")
    story.renew()
    story.collect("DECLINED", "do_not_honor")
    for day in range(1, 15):
        story.at(f"2027-06-{day:02}T10:30:00Z")
        story.collect("DECLINED", "do_not_honor")
        story.dunning()


def test_every_event_of_a_long_story_keeps_to_its_schema_and_its_order(
    story: Story, connection: psycopg.Connection
) -> None:
    _tell(story)
    events = connection.execute(
        """
        SELECT event_type, payload, aggregate_type, aggregate_id, aggregate_seq
        FROM billing.outbox_event
        ORDER BY outbox_event_id
        """
    ).fetchall()
    assert_valid((event_type, payload) for event_type, payload, *_ in events)

    numbers: dict[tuple[str, int], list[int]] = defaultdict(list)
    for event_type, payload, aggregate_type, aggregate_id, number in events:
        assert payload[f"{aggregate_type}Id"] == aggregate_id, event_type
        numbers[aggregate_type, aggregate_id].append(number)
    for key, found in numbers.items():
        assert found == sorted(set(found)), key

    assert {event_type for event_type, *_ in events} == set(event_types()) - NOT_IN_THE_STORY
