"""Whether the pace holds when very many are due at once: renewals and claims, small against large.

    python bench/first_of_month.py [--small 100000] [--large 1000000] [--url postgresql://...]

Fills a database with subscriptions of which one in five is due at the same instant, renews all of
them in batches of 500 by `renew_due`, then claims and settles pages of 100 by `start_attempts` and
`settle_attempts` while all of the invoices wait. Does so at two sizes in one run. What one
subscription costs must not grow with how many are due: fails where the large size costs more than
twice the small one. Costs are CPU time of the backend, so that other work of the machine counts as
little as can be; the server is therefore one on this machine, under Linux. The gateway is left out:
its limit is reached long before any of this.

Rows are made set-based, not by the engine. Without `--url` it runs on a PostgreSQL of its own.
"""

import argparse
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import psycopg
from bench_database import bench_database

MOST_TIMES = 2.0

_SETUP = Path(__file__).with_suffix(".sql")
_BATCH = 500
_PAGE = 100
_PAGES = 50
_RENEW = "SELECT billing_worker.renew_due(%s)"
_START = (
    "SELECT customer_id, attempt_id, claim_epoch, amount, currency"
    " FROM billing_worker.start_attempts('simulated', %s, 'bench')"
)
_SETTLE = """
    SELECT count(*) FILTER (WHERE s.verdict = 'APPLIED' AND s.invoice_status = 'PAID')
    FROM billing_worker.settle_attempts(ARRAY(
        SELECT ROW(
            r.customer_id, r.attempt_id, r.claim_epoch, 'SUCCEEDED', 'pay_' || r.attempt_id,
            r.amount, r.currency, NULL, NULL, NULL, 'SEND'
        )::billing.charge_result
        FROM unnest(%s::bigint[], %s::bigint[], %s::integer[], %s::bigint[], %s::text[])
            AS r (customer_id, attempt_id, claim_epoch, amount, currency)
    )) AS s
"""
_UNTOUCHED = "SELECT count(*) FROM billing.subscription WHERE next_renewal_at <= billing.now()"


@dataclass(frozen=True, slots=True)
class Pace:
    """CPU milliseconds for each subscription or attempt, the median of batches or pages.

    Attributes:
        renew: to renew one; early and late are the first and the last tenth of the batches.
        collect: to start and settle one while all the others wait.
        seconds: that all renewals took, by the clock.
    """

    due: int
    renew: float
    renew_early: float
    renew_late: float
    collect: float
    seconds: float


def _spent(connection: psycopg.Connection) -> float:
    """CPU milliseconds of a backend so far."""
    statistics = Path(f"/proc/{connection.info.backend_pid}/schedstat")
    return int(statistics.read_text(encoding="ascii").split()[0]) / 1e6


def _costs(
    connection: psycopg.Connection, query: str, arguments: tuple[object, ...]
) -> tuple[float, list[tuple[object, ...]]]:
    before = _spent(connection)
    rows = connection.execute(query.encode(), arguments).fetchall()
    return _spent(connection) - before, rows


def _renew(connection: psycopg.Connection) -> list[float]:
    batches = []
    while True:
        milliseconds, rows = _costs(connection, _RENEW, (_BATCH,))
        if rows == [(0,)]:
            return batches
        if rows == [(_BATCH,)]:
            batches.append(milliseconds / _BATCH)


def _collect(connection: psycopg.Connection) -> float:
    pages = []
    for _ in range(_PAGES):
        starting, started = _costs(connection, _START, (_PAGE,))
        if len(started) != _PAGE:
            sys.exit(f"{len(started)} attempts started, not {_PAGE}")
        columns = tuple(list(column) for column in zip(*started, strict=True))
        settling, settled = _costs(connection, _SETTLE, columns)
        if settled != [(_PAGE,)]:
            sys.exit(f"{settled} settled, not {_PAGE}")
        pages.append((starting + settling) / _PAGE)
    return median(pages)


def measure(url: str | None, subscriptions: int) -> Pace:
    """Fill a database, renew and collect; exits where anything is left over."""
    with (
        bench_database(url, "bench_first_of_month") as own,
        psycopg.connect(own, autocommit=True) as connection,
    ):
        script = _SETUP.read_text(encoding="utf-8")
        connection.execute(script.replace(":subscriptions", str(subscriptions)).encode())
        connection.execute("VACUUM ANALYZE")
        began = time.perf_counter()
        batches = _renew(connection)
        seconds = time.perf_counter() - began
        if connection.execute(_UNTOUCHED).fetchone() != (0,):
            sys.exit("not all that was due is renewed")
        connection.execute("ANALYZE")
        tenth = max(1, len(batches) // 10)
        return Pace(
            due=subscriptions // 5,
            renew=median(batches),
            renew_early=median(batches[:tenth]),
            renew_late=median(batches[-tenth:]),
            collect=_collect(connection),
            seconds=seconds,
        )


def main() -> None:
    """Measure both sizes and compare."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--url", help="any database of a server, as a superuser")
    parser.add_argument("--small", type=int, default=100_000, help="subscriptions")
    parser.add_argument("--large", type=int, default=1_000_000, help="subscriptions")
    arguments = parser.parse_args()
    paces = [measure(arguments.url, size) for size in (arguments.small, arguments.large)]
    for pace in paces:
        print(
            f"{pace.due:,} due: {pace.seconds:.0f} s in all, {pace.renew:.3f} ms a renewal"
            f" (first tenth {pace.renew_early:.3f}, last tenth {pace.renew_late:.3f}),"
            f" {pace.collect:.3f} ms to start and settle one"
        )
    small, large = paces
    times = {
        "renewing": large.renew / small.renew,
        "renewing, late against early": large.renew_late / large.renew_early,
        "collecting": large.collect / small.collect,
    }
    for what, value in times.items():
        print(f"{what}: {value:.2f} times")
    if max(times.values()) > MOST_TIMES:
        sys.exit(f"what one costs grows with how many are due: more than {MOST_TIMES:.0f} times")


if __name__ == "__main__":
    main()
