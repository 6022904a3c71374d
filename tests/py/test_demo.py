"""The demo at a small scale, from the command line: healthy, and sabotaged in each way.

Rates need volume, so none is judged here; everything else is, as in a whole run.
"""

import json
import os
import subprocess
import sys
from typing import Any

import psycopg
import pytest

from billing_shell.embedded import KafkaBroker, RedisServer

_SECONDS = 1500


def run(*options: str, **variables: str) -> "subprocess.CompletedProcess[str]":
    """Run `billing demo`, with no variable of ours but those that are given."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("BILLING_")}
    return subprocess.run(
        [sys.executable, "-m", "billing_shell", "demo", "--json", *options],
        env={**environment, **variables},
        capture_output=True,
        text=True,
        timeout=_SECONDS,
        check=False,
    )


def demo(*options: str) -> tuple[int, dict[str, Any]]:
    """Run it on servers of its own; its exit code and its report."""
    ended = run(*options)
    assert ended.stdout, ended.stderr
    assert "curl -H 'Authorization: Bearer bk_" in ended.stderr
    report: dict[str, Any] = json.loads(ended.stdout)
    return ended.returncode, report


@pytest.mark.crash
def test_a_healthy_run_agrees_in_three_books_and_leaves_nothing_out() -> None:
    code, report = demo("--subscriptions", "300", "--workers", "2")

    assert (report["findings"], report["not_exercised"]) == ([], [])
    assert code == 0
    assert report["renewals"] == {
        "due": 300,
        "as_asked": 300,
        "periods_opened": 300,
        "invoices": 300,
        "missing": 0,
        "twice": 0,
    }
    assert all(money["database"] == money["gateway"] for money in report["money"])
    assert {money["currency"] for money in report["money"]} == {"EUR", "JPY", "KWD", "USD"}
    assert report["events"]["outbox"] == report["events"]["distinct"]
    assert report["throttle"]["most_charges_in_a_second"] <= 200
    assert report["throttle"]["rate_judged"] is False
    assert report["dunning"]["past_due"] == report["dunning"]["retries_planned"]
    assert all(count > 0 for count in report["exercised"].values())


def test_a_database_with_customers_is_left_alone(
    database_url: str, redis_server: RedisServer, kafka_broker: KafkaBroker
) -> None:
    with psycopg.connect(database_url) as connection:
        connection.execute("SELECT billing_api.create_customer('acme', 'USD')")
    ended = run(
        BILLING_DATABASE_URL=database_url,
        BILLING_REDIS_URL=redis_server.url,
        BILLING_KAFKA_BOOTSTRAP=kafka_broker.bootstrap,
    )
    assert ended.returncode == 1
    assert "has customers" in ended.stderr
    with psycopg.connect(database_url) as connection:
        found = connection.execute(
            "SELECT d.is_test, (SELECT count(*) FROM billing.gateway_account)"
            " FROM billing.database_identity AS d"
        ).fetchone()
    assert found == (False, 0)


@pytest.mark.crash
@pytest.mark.parametrize(
    ("sabotage", "findings"),
    [
        ("random-key", {"double_charge", "unknown_reference", "currency_differs"}),
        ("no-epoch", {"double_charge", "stale_report_believed", "currency_differs"}),
        ("period-outside-tx", {"not_advanced", "parked"}),
    ],
)
def test_a_sabotaged_engine_is_found_out(sabotage: str, findings: set[str]) -> None:
    # Few enough to do without the examples that are refused by a 429 or a stored error for ever.
    code, report = demo("--subscriptions", "40", "--sabotage", sabotage)

    assert code == 1
    assert findings <= {finding["code"] for finding in report["findings"]}
