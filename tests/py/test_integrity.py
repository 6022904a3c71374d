"""Each check finds what it is for, and nothing else does: the data are corrupted once per check."""

import json
import tomllib
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import psycopg
import pytest
from typer.testing import CliRunner

from billing_shell.cli import app
from billing_shell.doctor import examine
from tests.py.support.business import Business, a_little_of_everything
from tests.py.support.servers import TestPostgres

CORRUPTIONS: dict[str, list[str]] = tomllib.loads(
    Path(__file__).with_name("corruptions.toml").read_text(encoding="utf-8")
)

FOUND_SINCE = """
    SELECT array_agg(DISTINCT v.check_name)
    FROM billing_ops.check_integrity(clock_timestamp() - %s) AS v
"""


@pytest.fixture(scope="module")
def business(postgres: TestPostgres, template_database: str) -> Iterator[Business]:
    """One history, read by all tests of this file; each corrupts it in a transaction of its own."""
    with (
        postgres.database(template=template_database) as name,
        psycopg.connect(postgres.database_url(name), autocommit=True) as connection,
    ):
        yield a_little_of_everything(connection)


def corrupt(business: Business, check: str) -> None:
    for statement in CORRUPTIONS[check]:
        changed = business.connection.execute(statement.format(**business.subscriptions).encode())
        assert changed.rowcount != 0, "nothing was corrupted"


def test_what_the_engine_did_is_sound(business: Business) -> None:
    assert business.violations() == []


def test_each_check_has_its_corruption(business: Business) -> None:
    names = business.value(
        "SELECT array_agg(substr(proname, 7)) FROM pg_catalog.pg_proc"
        " WHERE pronamespace = 'billing'::regnamespace AND proname LIKE 'check\\_%'"
    )
    assert set(names) == set(CORRUPTIONS)


@pytest.mark.parametrize("check", CORRUPTIONS)
def test_exactly_the_check_for_it_fires(business: Business, check: str) -> None:
    with business.connection.transaction(force_rollback=True):
        business.value("SET LOCAL session_replication_role = replica")
        corrupt(business, check)
        assert {violation["check_name"] for violation in business.violations()} == {check}
        assert business.value(FOUND_SINCE, timedelta(hours=3)) == [check]


def test_an_examination_by_time_looks_at_who_was_written_about(business: Business) -> None:
    with business.connection.transaction(force_rollback=True):
        business.value("SET LOCAL session_replication_role = replica")
        business.value(
            "UPDATE billing.outbox_event SET created_at = created_at - interval '2 hours'"
        )
        corrupt(business, "invoice_totals")
        since = "SELECT count(*) FROM billing_ops.check_integrity(clock_timestamp() - %s)"
        assert business.value(since, timedelta(hours=1)) == 0
        assert business.value(since, timedelta(hours=3)) == 1


def test_the_doctor_tells_people_and_programs(database_url: str) -> None:
    assert examine(database_url).healthy
    environment = {"BILLING_DATABASE_URL": database_url}
    runner = CliRunner(env=environment)
    well = runner.invoke(app, ["doctor"])
    assert (well.exit_code, well.output.endswith("nothing is wrong\n")) == (0, True)

    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute("ALTER TABLE billing.invoice DISABLE TRIGGER invoice_keeps_its_terms")
    ill = runner.invoke(app, ["doctor"])
    assert ill.exit_code == 1
    assert (
        "BROKEN trigger invoice_keeps_its_terms on billing.invoice: is switched off" in ill.output
    )

    told = runner.invoke(app, ["doctor", "--json"])
    document = json.loads(told.stdout)
    assert told.exit_code == 1
    assert [v["check_name"] for v in document["violations"]] == ["guards"]
