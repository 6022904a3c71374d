"""Every situation of a subscription and everything that may happen to it, as one table.

`tests/py/data/lifecycle.csv` is what the engine owes; `docs/lifecycle.md` shows the same rows.
BILLING_WRITE_TABLE=1 writes both from what the engine does: then judge the diff.
"""

import os
from collections.abc import Iterator
from itertools import product

import psycopg
import pytest

from tests.py.support import lifecycle_document, lifecycle_table
from tests.py.support.lifecycle_table import OPERATIONS, SITUATIONS, Row
from tests.py.support.servers import TestPostgres

PLANS = (
    ("BASIC", 3000, "MONTH"),
    ("PRO", 9000, "MONTH"),
    ("LITE", 1000, "MONTH"),
    ("ANNUAL", 36000, "YEAR"),
)
WRITES = os.environ.get("BILLING_WRITE_TABLE") == "1"


@pytest.fixture(scope="module")
def connection(postgres: TestPostgres, template_database: str) -> Iterator[psycopg.Connection]:
    """A database with the plans of the table, shared by all of its rows."""
    with (
        postgres.database(template=template_database) as name,
        psycopg.connect(postgres.database_url(name), autocommit=True) as opened,
    ):
        opened.execute("SET timezone = 'UTC'")
        opened.execute("SELECT billing_ops.mark_test_database()")
        for code, amount, unit in PLANS:
            opened.execute(
                "SELECT billing_api.create_plan(%s, %s, %s::bigint, 'USD', %s,"
                " p_as_of => '2027-01-01Z')",
                (code, code.title(), amount, unit),
            )
        yield opened


@pytest.mark.skipif(not WRITES, reason="writes the table only when told to")
def test_write_the_table(connection: psycopg.Connection) -> None:
    rows = [
        lifecycle_table.happen(connection, situation, operation)
        for operation, situation in product(OPERATIONS, SITUATIONS)
    ]
    lifecycle_table.write(rows)
    lifecycle_document.write(rows)


def test_the_table_is_complete() -> None:
    named = [(row.operation, row.situation) for row in lifecycle_table.read()]
    assert named == list(product(OPERATIONS, SITUATIONS))


@pytest.mark.parametrize("operation", OPERATIONS)
def test_the_engine_does_what_the_table_says(
    connection: psycopg.Connection, operation: str
) -> None:
    owed = [row for row in lifecycle_table.read() if row.operation == operation]
    done = [lifecycle_table.happen(connection, row.situation, operation) for row in owed]
    assert done == owed


def test_what_is_refused_changes_nothing() -> None:
    refused = [row for row in lifecycle_table.read() if row.result.startswith("SB")]
    assert refused
    for row in refused:
        assert (row.terms, row.invoices, row.credit, row.periods, row.events) == ("",) * 5, row


def test_what_has_ended_is_left_alone() -> None:
    ended = [row for row in lifecycle_table.read() if row.situation in {"CANCELED", "EXPIRED"}]
    untouched = Row("", "", "", "", "", "", "", "", "")
    for row in ended:
        assert row.status == row.situation
        assert (row.invoices, row.credit, row.events) == (
            untouched.invoices,
            untouched.credit,
            untouched.events,
        )


def test_the_document_shows_the_table() -> None:
    assert lifecycle_document.shown() == lifecycle_document.render(lifecycle_table.read())
