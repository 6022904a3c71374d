"""How long the integrity check takes: fills a new database with paid subscriptions and times it.

    python bench/integrity.py postgresql://postgres@127.0.0.1:5432/postgres --subscriptions 100000

Makes a database `bench_integrity`, dropped at the end. Each subscription has had three periods,
with an invoice, a line, a payment attempt and its report each. Rows are made set-based, not by the
engine: what is measured is reading.
"""

import argparse
import time
from pathlib import Path

import psycopg
from bench_database import bench_database

_NAME = "bench_integrity"
_SETUP = Path(__file__).with_suffix(".sql")
_SINCE = "SELECT * FROM billing_ops.check_integrity(clock_timestamp() - interval '12 hours')"

_CHECKS = """
    SELECT p.proname
    FROM pg_catalog.pg_proc AS p
    WHERE p.pronamespace = 'billing'::regnamespace AND p.proname LIKE 'check\\_%'
    ORDER BY p.proname
"""


def _timed(connection: psycopg.Connection, query: str) -> tuple[float, list[tuple[object, ...]]]:
    began = time.monotonic()
    rows = connection.execute(query.encode()).fetchall()
    return time.monotonic() - began, rows


def main() -> None:
    """Fill, measure, drop."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("url", help="any database of the server, as a superuser")
    parser.add_argument("--subscriptions", type=int, default=100_000)
    arguments = parser.parse_args()
    with (
        bench_database(arguments.url, _NAME) as url,
        psycopg.connect(url, autocommit=True) as connection,
    ):
        _measure(connection, arguments.subscriptions)


def _measure(connection: psycopg.Connection, subscriptions: int) -> None:
    began = time.monotonic()
    script = _SETUP.read_text(encoding="utf-8").replace(":subscriptions", str(subscriptions))
    connection.execute(script.encode())
    connection.execute("VACUUM ANALYZE")
    print(f"{subscriptions:,} subscriptions filled in {time.monotonic() - began:.0f} s")
    for (check,) in connection.execute(_CHECKS.encode()).fetchall():
        seconds, rows = _timed(connection, f"SELECT * FROM billing.{check}()")  # noqa: S608
        print(f"{seconds:8.2f} s  {check}  {len(rows)} rows {rows[:1] if rows else ''}")
    seconds, rows = _timed(connection, "SELECT * FROM billing_ops.check_integrity()")
    print(f"{seconds:8.2f} s  check_integrity(), {len(rows)} rows")
    seconds, _ = _timed(connection, _SINCE)
    print(f"{seconds:8.2f} s  check_integrity(p_since), 1 % of the customers")


if __name__ == "__main__":
    main()
