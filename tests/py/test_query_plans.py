"""Hot statements walk their index, whatever the plan cache decides and however old the statistics.

The plans are those of the statements inside the functions, told by auto_explain as they run.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.py.support.servers import TestPostgres

MANY_ROWS = Path(__file__).parent / "support" / "many_rows.sql"

LARGE = {
    "credit_balance",
    "customer",
    "invoice",
    "payment_attempt",
    "payment_method",
    "resource",
    "subscription",
    "subscription_period",
}

# What a worker calls, and the indexes by which it must come to its rows: one of each group.
CALLS: dict[str, tuple[str, list[set[str]]]] = {
    "renew_due": ("SELECT billing_worker.renew_due(200)", [{"subscription_due"}]),
    "start_attempts": (
        "SELECT count(*) FROM billing_worker.start_attempts('simulated', 200, 'w')",
        [{"invoice_due"}, {"at_most_one_open_attempt_per_invoice"}],
    ),
    "settle_attempts": (
        """
        SELECT count(*)
        FROM billing_worker.settle_attempts(
            ARRAY(
                SELECT ROW(
                    a.customer_id, a.attempt_id, 1, 'SUCCEEDED', 'new_' || a.attempt_id, 3000,
                    'USD', NULL, NULL, NULL, 'SEND'
                )::billing.charge_result
                FROM billing.payment_attempt AS a
                WHERE a.customer_id BETWEEN 64064 AND 64064 + 64 * 199 AND a.status = 'STARTED'
            )
        )
        """,
        [
            {"subscription_pkey", "subscription_by_id"},
            {"invoice_pkey", "invoice_by_id"},
            {"payment_attempt_pkey", "payment_attempt_by_id"},
            {"gateway_payment_is_booked_once"},
            {"invoice_open_by_subscription"},
        ],
    ),
    "attempts_to_look_up": (
        "SELECT count(*) FROM billing_worker.attempts_to_look_up('simulated', 200)",
        [{"payment_attempt_to_look_up"}, {"payment_attempt_leased"}],
    ),
    "count_due_invoices": (
        "SELECT billing_worker.count_due_invoices('simulated', 200)",
        [{"invoice_due"}],
    ),
    "end_dunning": ("SELECT billing_worker.end_dunning(200)", [{"invoice_dunning_over"}]),
}


@pytest.fixture(scope="module", params=["fresh", "stale"])
def many_rows(
    postgres: TestPostgres, template_database: str, request: pytest.FixtureRequest
) -> Iterator[str]:
    """A database with 24,000 of everything, and statistics of now, or of when it was empty."""
    with postgres.database(template=template_database) as name:
        url = postgres.database_url(name)
        with psycopg.connect(url, autocommit=True) as connection:
            for table in LARGE:
                connection.execute(
                    f"ALTER TABLE billing.{table} SET (autovacuum_enabled = off)".encode()
                )
            connection.execute(b"ANALYZE")
            with connection.transaction():
                connection.execute(MANY_ROWS.read_bytes())
            if request.param == "fresh":
                connection.execute(b"ANALYZE")
        yield url


def plans_of(url: str, call: str, plan_cache_mode: str) -> list[dict[str, Any]]:
    """Plans of all statements within the call, which is taken back."""
    told: list[dict[str, Any]] = []
    with psycopg.connect(url) as connection:
        connection.execute(b"LOAD 'auto_explain'")
        for setting, to in {
            "auto_explain.log_min_duration": "0",
            "auto_explain.log_nested_statements": "on",
            "auto_explain.log_format": "json",
            "auto_explain.log_level": "notice",
            "plan_cache_mode": plan_cache_mode,
        }.items():
            connection.execute(b"SELECT set_config(%s, %s, false)", (setting, to))
        connection.add_notice_handler(
            lambda notice: told.append(json.loads((notice.message_primary or "").split("\n", 1)[1]))
        )
        connection.execute(call.encode())
        connection.rollback()
    return told


def nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for child in plan.get("Plans", ()):
        yield from nodes(child)


@pytest.mark.parametrize("plan_cache_mode", ["auto", "force_generic_plan", "force_custom_plan"])
@pytest.mark.parametrize("name", CALLS)
def test_each_hot_statement_comes_to_its_rows_by_index(
    many_rows: str, name: str, plan_cache_mode: str
) -> None:
    call, indexes = CALLS[name]
    plans = plans_of(many_rows, call, plan_cache_mode)
    seen = [(plan["Query Text"], node) for plan in plans for node in nodes(plan["Plan"])]
    scanned = {
        f"{node['Relation Name']} in: {text}"
        for text, node in seen
        if node["Node Type"] == "Seq Scan" and node["Relation Name"] in LARGE
    }
    assert not scanned, "\n\n".join(sorted(scanned))
    used = {node["Index Name"] for _, node in seen if "Index Name" in node}
    assert [group for group in indexes if not group & used] == [], used


def test_a_scan_would_be_seen(many_rows: str) -> None:
    query = "SELECT count(*) FROM billing.invoice WHERE total = 1"
    (plan,) = [p for p in plans_of(many_rows, query, "auto") if p["Query Text"] == query]
    assert [node["Node Type"] for node in nodes(plan["Plan"])][-1] == "Seq Scan"
