"""The simulation: months of business on a frozen clock, and at the end three questions.

Customers act by chance of one seed, the real functions bill them, the worker's own code collects
through the simulated gateway, a process with books of its own. Faults strike on the way. At the
end: does the integrity check find nothing, does the gateway's ledger agree with the database, and
do the events tell what is so? The same seed comes to the same end.
"""

import asyncio
import heapq
import json
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any, LiteralString

import httpx
import psycopg

from billing_shell.demo_processes import Gateway
from billing_shell.doctor import Violation, examine
from billing_shell.simulate_books import compare_events, compare_money, digest, read_faults
from billing_shell.simulate_customers import Customers
from billing_shell.simulate_engine import ACCOUNT, Engine, Work

START = datetime(2027, 1, 14, 9, 30, tzinfo=UTC)
STEP = timedelta(days=1)
_TAIL = timedelta(days=6)
"""Nobody acts any more, and everything under way comes to its end."""
# Look-ups and repeated sends come within the hour; between two steps the clock moves to each.
_MINUTES = (2, 18, 36, 75)
_WEBHOOKS_TO_NOWHERE = (
    "--webhook-url",
    "http://127.0.0.1:9/",
    "--webhook-secret",
    "whsec_" + 32 * "c2",
)

_PREPARE: LiteralString = "UPDATE billing.database_identity SET key_prefix = %(prefix)s"
# Leases, Retry-After and retries go by the wall clock, which nobody can turn: they are ended.
_LET_WALL_CLOCK_PASS: tuple[LiteralString, ...] = (
    """
    UPDATE billing.payment_attempt SET lease_until = clock_timestamp()
    WHERE lease_until > clock_timestamp() AND claimed_by <> %(alive)s
    """,
    """
    UPDATE billing.invoice SET held_until = clock_timestamp()
    WHERE status IN ('OPEN', 'FAILED') AND held_until > clock_timestamp()
    """,
    """
    UPDATE billing.webhook_event SET next_try_at = clock_timestamp()
    WHERE status IN ('RECEIVED', 'UNMATCHED') AND next_try_at > clock_timestamp()
    """,
)
_DUE_SOON: LiteralString = """
    SELECT EXISTS (
        SELECT 1 FROM billing.payment_attempt AS a
        WHERE a.ended_at IS NULL AND (a.next_lookup_at <= %(until)s OR a.lease_until IS NOT NULL)
          AND NOT EXISTS (
              SELECT 1 FROM billing.reconciliation_case AS k
              WHERE k.customer_id = a.customer_id AND k.attempt_id = a.attempt_id
                AND k.resolved_at IS NULL
          )
    ) OR EXISTS (
        SELECT 1 FROM billing.invoice AS i
        WHERE i.status = 'OPEN' AND i.next_attempt_at <= %(until)s
    )
"""
_DUE: LiteralString = """
    SELECT
        EXISTS (
            SELECT 1 FROM billing.subscription AS s WHERE s.next_renewal_at <= c.now_at
        ),
        EXISTS (
            SELECT 1 FROM billing.invoice AS i
            WHERE i.status IN ('OPEN', 'FAILED') AND i.next_attempt_at <= c.now_at
              AND (i.held_until IS NULL OR i.held_until <= clock_timestamp())
        ),
        EXISTS (
            SELECT 1 FROM billing.payment_attempt AS a
            WHERE (a.lease_until IS NULL AND a.next_lookup_at <= c.now_at)
               OR a.lease_until <= clock_timestamp()
        ),
        EXISTS (
            SELECT 1 FROM billing.webhook_event AS w
            WHERE w.status IN ('RECEIVED', 'UNMATCHED') AND w.next_try_at <= clock_timestamp()
        )
    FROM (SELECT billing.now() AS now_at) AS c
"""
_COUNTS: LiteralString = """
    SELECT 'subscriptions', count(*) FROM billing.subscription
    UNION ALL SELECT 'periods', count(*) FROM billing.subscription_period
    UNION ALL SELECT 'invoices', count(*) FROM billing.invoice
    UNION ALL SELECT 'attempts', count(*) FROM billing.payment_attempt
    UNION ALL SELECT 'late_payments', count(*) FROM billing.credit_entry WHERE kind = 'LATE_PAYMENT'
    UNION ALL SELECT 'cases', count(*) FROM billing.reconciliation_case
    UNION ALL
    SELECT 'reports_' || lower(verdict), count(*) FROM billing.payment_report GROUP BY verdict
    UNION ALL
    SELECT 'webhooks_' || lower(status), count(*) FROM billing.webhook_event GROUP BY status
    UNION ALL
    SELECT 'subscriptions_' || lower(status), count(*) FROM billing.subscription GROUP BY status
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulationOptions:
    """What is simulated.

    Attributes:
        seed: makes customers, faults and deaths.
        days: how long they act; six quiet days follow.
        subscriptions: how many customers, each with one subscription at a time.
        faults: share of calls to the gateway that a fault strikes, and of batches that the worker
            does not survive.
    """

    seed: int = 1
    days: int = 120
    subscriptions: int = 200
    faults: float = 0.06


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulationReport:
    """How it ended.

    Attributes:
        digest: of the end state; the same for the same options.
        findings: what does not agree; empty where all is well.
        violations: what the integrity check found.
        faults: how often each happened.
        counts: what happened otherwise.
        seconds: how long it took.
    """

    seed: int
    digest: str
    findings: tuple[str, ...]
    violations: tuple[Violation, ...]
    faults: Mapping[str, int]
    counts: Mapping[str, int]
    seconds: float

    @property
    def sound(self) -> bool:
        """Whether every question was answered as it has to be."""
        return not self.findings and not self.violations

    def document(self) -> dict[str, Any]:
        """Return it for JSON."""
        return {"sound": self.sound, **asdict(self)}


def simulate(
    database_url: str,
    directory: Path,
    options: SimulationOptions,
    progress: Callable[[int, int], None] = lambda _done, _of: None,
) -> SimulationReport:
    """Run one simulation.

    Args:
        database_url: an empty migrated database that nobody else uses, as a superuser or as a
            member of billing_owner and the other roles. It becomes a test database for ever.
        directory: for the gateway's ledger and log; must hold none.
        options: what to simulate.
        progress: told of (days done, days in all).

    Raises:
        DemoError: the gateway did not start.
        DatabaseError: the database refused what it must not refuse.
        NeverQuietError: there was work without end.
    """
    return asyncio.run(_Simulation(database_url, directory, options).run(progress))


class _Simulation:
    def __init__(self, database_url: str, directory: Path, options: SimulationOptions) -> None:
        self._url = database_url
        self._directory = directory
        self._options = options
        self._now = START
        self._counts: Counter[str] = Counter()
        self._seen_event = 0
        self._mail: list[tuple[datetime, str, str, dict[str, Any]]] = []
        self._endings: dict[str, tuple[datetime, str]] = {}
        self._client = httpx.Client(trust_env=False)
        self._owner = psycopg.connect(
            database_url, autocommit=True, application_name="billing simulate"
        )

    async def run(self, progress: Callable[[int, int], None]) -> SimulationReport:
        loop = asyncio.get_running_loop()
        began = loop.time()
        options = self._options
        with closing(self._owner), self._client, self._gateway() as gateway:
            self._owner.execute("SET ROLE billing_owner")
            self._owner.execute("SET timezone = 'UTC'")
            self._owner.execute("SELECT billing_ops.mark_test_database()")
            self._owner.execute(_PREPARE, {"prefix": f"sim{options.seed:05d}"})
            self._set_clock(gateway, START)
            customers = Customers(
                self._url,
                seed=options.seed,
                number=options.subscriptions,
                days=options.days,
                start=START,
            )
            engine = Engine(
                self._url, gateway.url, due=self._due, seed=options.seed, faults=options.faults
            )
            with closing(customers):
                customers.open_shop()
                async with engine:
                    acting = START + timedelta(days=options.days)
                    end = acting + _TAIL
                    while self._now < end:
                        if self._now < acting:
                            customers.act(self._now, STEP)
                        await self._step(gateway, engine)
                        progress((self._now - START).days, (end - START).days)
            return self._conclude(engine, customers, loop.time() - began)

    @contextmanager
    def _gateway(self) -> Iterator[Gateway]:
        faults = str(self._options.faults)
        arguments = [
            *("--seed", str(self._options.seed), "--faults", faults, "--latency", "0"),
            *("--limit", "100000", "--hang", "0.05", "--commit-window", "0"),
            *_WEBHOOKS_TO_NOWHERE,
        ]
        with Gateway(self._directory / "gateway.sqlite", self._directory, arguments) as gateway:
            yield gateway

    async def _step(self, gateway: Gateway, engine: Engine) -> None:
        start = self._now
        self._let_customers_decide(gateway)
        self._deliver()
        await engine.work()
        for minutes in _MINUTES:
            self._let_wall_clock_pass(engine)
            until = start + timedelta(minutes=minutes)
            if not self._holds(_DUE_SOON, until=until):
                continue
            self._set_clock(gateway, until)
            self._collect_mail()
            self._deliver()
            await engine.work(everything=False)
        await engine.wake_the_frozen()
        self._collect_mail()
        self._set_clock(gateway, start + STEP)

    def _set_clock(self, gateway: Gateway, now: datetime) -> None:
        self._now = now
        self._owner.execute("SELECT billing_ops.set_clock(%s)", (now,))
        gateway.set_clock(now.isoformat())

    def _let_wall_clock_pass(self, engine: Engine) -> None:
        for statement in _LET_WALL_CLOCK_PASS:
            self._owner.execute(statement, {"alive": engine.worker})

    def _due(self) -> frozenset[Work]:
        row = self._owner.execute(_DUE).fetchone()
        found = () if row is None else zip(Work, row, strict=True)
        return frozenset(work for work, is_due in found if is_due)

    def _holds(self, query: LiteralString, **parameters: object) -> bool:
        row = self._owner.execute(query, parameters).fetchone()
        return row is not None and bool(row[0])

    def _ledger(self) -> sqlite3.Connection:
        return sqlite3.connect(self._directory / "gateway.sqlite")

    def _let_customers_decide(self, gateway: Gateway) -> None:
        """Have actions completed or refused, and bank money arrive or bounce, some time later."""
        with closing(self._ledger()) as ledger:
            waiting = ledger.execute(
                "SELECT payment_id, reference, status FROM charges"
                " WHERE status IN ('requires_action', 'processing') ORDER BY reference"
            ).fetchall()
        for payment_id, reference, status in waiting:
            if reference not in self._endings:
                chance = self._chance("decision", reference)
                hours = (
                    chance.uniform(0, 20)
                    if status == "requires_action"
                    else chance.uniform(24, 150)
                )
                (verb,) = chance.choices(("complete", "fail", "never"), (7, 2, 1))
                self._endings[reference] = (self._now + timedelta(hours=hours), verb)
            due, verb = self._endings[reference]
            if due <= self._now and verb != "never":
                answer = self._client.post(f"{gateway.url}/_control/charges/{payment_id}/{verb}")
                if answer.is_success:
                    self._counts[f"{status}_then_{verb}"] += 1
        self._collect_mail()

    def _collect_mail(self) -> None:
        """Take what the gateway has to tell; it arrives at once, late, or late and twice."""
        with closing(self._ledger()) as ledger:
            told = ledger.execute(
                "SELECT event_no, event_id, event_type, payload FROM webhook_events"
                " WHERE event_no > ? ORDER BY event_no",
                (self._seen_event,),
            ).fetchall()
        for event_no, event_id, event_type, payload in told:
            self._seen_event = max(self._seen_event, event_no)
            data = json.loads(payload)["data"]
            chance = self._chance("mail", event_type, data["reference"])
            late = chance.random()
            arrivals = [self._now]
            if late < 0.3:  # noqa: PLR2004 - a share
                arrivals = [self._now + timedelta(hours=chance.uniform(1, 96))]
                self._counts["webhooks_late"] += 1
            if chance.random() < 0.15:  # noqa: PLR2004 - a share
                arrivals.append(arrivals[0] + timedelta(hours=chance.uniform(0, 48)))
                self._counts["webhooks_twice"] += 1
            if late > 0.95:  # noqa: PLR2004 - a share
                arrivals = []
                self._counts["webhooks_lost"] += 1
            for at in arrivals:
                name = f"{data['reference']} {event_type} {at}"
                document = {"id": event_id, "type": event_type, "data": data}
                heapq.heappush(self._mail, (at, name, event_id, document))

    def _deliver(self) -> None:
        while self._mail and self._mail[0][0] <= self._now:
            _, _, event_id, document = heapq.heappop(self._mail)
            data = document["data"]
            payload = {
                "paymentId": data["payment_id"],
                "reference": data["reference"],
                "outcome": data["status"].upper(),
                "amount": data["amount"],
                "currency": data["currency"],
                "code": data["code"],
            }
            self._owner.execute(
                "SELECT billing_worker.receive_webhook(%s, %s, %s, %s)",
                (ACCOUNT, event_id, document["type"], json.dumps(payload)),
            )

    def _chance(self, *what: str) -> Random:
        return Random("/".join((str(self._options.seed), *what)))  # noqa: S311 - to be repeated

    def _conclude(self, engine: Engine, customers: Customers, seconds: float) -> SimulationReport:
        ledger = self._directory / "gateway.sqlite"
        figures, findings = compare_money(self._owner, ledger)
        events, disorder = compare_events(self._owner)
        if counts_parked := engine.counts["parked"]:
            findings.append(f"{counts_parked} renewals failed on their data and were set aside")
        deaths = {
            name: engine.counts.pop(name)
            for name in list(engine.counts)
            if "deaths" in name or "freezes" in name or "frozen" in name
        }
        counts = self._counts + engine.counts + customers.counts + figures
        counts.update(dict(self._owner.execute(_COUNTS).fetchall()))
        counts["events"] = events
        faults = read_faults(ledger) | deaths
        faults |= {
            name: counts.pop(name) for name in ("webhooks_late", "webhooks_twice", "webhooks_lost")
        }
        diagnosis = examine(self._url)
        return SimulationReport(
            seed=self._options.seed,
            digest=digest(self._owner),
            findings=tuple(findings + disorder),
            violations=diagnosis.violations,
            faults=dict(sorted(faults.items())),
            counts=dict(sorted(counts.items())),
            seconds=seconds,
        )
