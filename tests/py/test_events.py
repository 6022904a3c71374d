"""The events' schemas, the database's list of types and the page that describes them agree."""

import re
from pathlib import Path

import psycopg
import pytest

from tests.py.support.event_schemas import DIRECTORY, event_types, problems, schema

COMMON = ["customerId", "subscriptionId", "resourceRef", "occurredAt", "version"]
INVOICE = {
    "customerId": 64,
    "subscriptionId": 128,
    "resourceRef": "default",
    "occurredAt": "2027-01-31T10:30:00Z",
    "version": 3,
    "invoiceId": 192,
    "kind": "RENEWAL",
    "status": "PAID",
    "currency": "USD",
    "total": 3000,
    "creditApplied": 0,
    "amountPaid": 3000,
    "carried": 0,
    "amountDue": 0,
    "periodStart": "2027-01-31T10:30:00Z",
    "periodEnd": "2027-02-28T10:30:00Z",
}


def test_the_database_takes_exactly_the_types_that_have_a_schema(
    connection: psycopg.Connection,
) -> None:
    row = connection.execute(
        "SELECT pg_get_constraintdef(oid) FROM pg_constraint "
        "WHERE conname = 'event_type_is_documented' AND conrelid = 'billing.outbox_event'::regclass"
    ).fetchone()
    assert row is not None
    assert sorted(re.findall(r"'(\w+)'", row[0])) == event_types()


def test_the_page_describes_exactly_the_types_that_have_a_schema() -> None:
    page = (DIRECTORY.parent / "events.md").read_text("utf-8")
    links = re.findall(r"\[`(\w+)`\]\(events/(\w+)\.schema\.json\)", page)
    assert [name for name, _ in links] == [target for _, target in links]
    assert sorted(name for name, _ in links) == event_types()


@pytest.mark.parametrize("event_type", event_types())
def test_a_schema_is_strict_and_begins_with_the_common_part(event_type: str) -> None:
    found = schema(event_type)
    assert found["title"] == event_type
    assert found["$id"] == f"{event_type}.schema.json"
    assert found["additionalProperties"] is False
    assert list(found["properties"])[:5] == COMMON
    assert set(COMMON) <= set(found["required"])
    assert set(found["required"]) <= set(found["properties"])
    for name, rule in found["properties"].items():
        assert rule["description"].endswith("."), name
        assert "number" not in rule["type"], f"{name} must be an integer"
    page = (DIRECTORY.parent / "events.md").read_text("utf-8")
    (line,) = (text for text in page.splitlines() if f"events/{event_type}.schema.json" in text)
    own = set(found["properties"]) - set(COMMON)
    shared = set(
        schema("SubscriptionRenewed" if event_type[0] == "S" else "InvoicePaid")["properties"]
    )
    assert set(re.findall(r"`(\w+)`", line.split("|")[3])) == (
        own - shared if event_type.startswith(("Subscription", "Invoice")) else own
    )


def test_a_right_payload_has_no_problems() -> None:
    assert problems("InvoicePaid", INVOICE) == []


@pytest.mark.parametrize(
    ("change", "where"),
    [
        ({"email": "a@example.com"}, "email"),
        ({"total": 30.5}, "total"),
        ({"total": "3000"}, "total"),
        ({"total": -1}, "total"),
        ({"invoiceId": None}, "invoiceId"),
        ({"occurredAt": "2027-01-31T10:30:00+01:00"}, "occurredAt"),
        ({"occurredAt": "2027-01-31 10:30:00"}, "occurredAt"),
        ({"status": "UNCOLLECTIBLE"}, "status"),
        ({"currency": "usd"}, "currency"),
    ],
)
def test_a_wrong_payload_is_told_what_is_wrong(change: dict[str, object], where: str) -> None:
    (problem,) = problems("InvoicePaid", INVOICE | change)
    assert where in problem


def test_a_missing_part_is_told() -> None:
    (problem,) = problems("InvoicePaid", {k: v for k, v in INVOICE.items() if k != "amountDue"})
    assert "amountDue" in problem


def test_every_schema_stands_where_consumers_look() -> None:
    assert Path("docs/events").resolve() == DIRECTORY
