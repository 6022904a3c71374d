"""The simulation: months of business on a frozen clock, and at the end a few questions.

Customers act by chance of one seed, the real functions bill them, the worker's own code collects
through the simulated gateway, a process with books of its own, and its relay publishes to a broker.
Faults strike on the way, and any of them dies. At the end: does the integrity check find nothing,
does the gateway's ledger agree with the database, does a consumer find every event on the topic, in
order? The same seed comes to the same end.
"""

import asyncio
import contextlib
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, LiteralString

import psycopg

from billing_shell.doctor import Violation, examine
from billing_shell.embedded import KafkaBroker
from billing_shell.simulate_books import (
    compare_events,
    compare_money,
    compare_periods,
    compare_refunds,
    digest,
    read_faults,
)
from billing_shell.simulate_customers import Customers
from billing_shell.simulate_engine import Engine, Work
from billing_shell.simulate_gateway import MortalGateway
from billing_shell.simulate_mail import Mail
from billing_shell.simulate_person import Person
from billing_shell.simulate_relay import SimulatedRelay

START = datetime(2027, 1, 14, 9, 30, tzinfo=UTC)
STEP = timedelta(days=1)
_QUIET_DAYS = 6
"""Nobody acts any more, and everything under way comes to its end."""
# Look-ups and repeated sends come within the hour; between two steps the clock moves to each.
_MINUTES = (2, 18, 36, 75)

_PREPARE: LiteralString = "UPDATE billing.database_identity SET key_prefix = %(prefix)s"
# Leases, Retry-After and retries go by the wall clock, which nobody can turn: they are ended. Says
# whether there is something to do soon.
_END_WAITS: LiteralString = """
    WITH leases AS (
        UPDATE billing.payment_attempt SET lease_until = clock_timestamp()
        WHERE lease_until > clock_timestamp() AND claimed_by <> %(alive)s
    ), leases_of_refunds AS (
        UPDATE billing.refund SET lease_until = clock_timestamp()
        WHERE lease_until > clock_timestamp() AND claimed_by <> %(alive)s
    ), holds AS (
        UPDATE billing.invoice SET held_until = clock_timestamp()
        WHERE status IN ('OPEN', 'FAILED') AND held_until > clock_timestamp()
    ), holds_of_refunds AS (
        UPDATE billing.refund SET held_until = clock_timestamp()
        WHERE ended_at IS NULL AND held_until > clock_timestamp()
    ), retries AS (
        UPDATE billing.webhook_event SET next_try_at = clock_timestamp()
        WHERE status IN ('RECEIVED', 'UNMATCHED') AND next_try_at > clock_timestamp()
    )
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
        WHERE i.status IN ('OPEN', 'FAILED') AND i.next_attempt_at <= %(until)s
    ) OR EXISTS (
        SELECT 1 FROM billing.refund AS f
        WHERE f.ended_at IS NULL
          AND (f.next_send_at <= %(until)s OR f.next_lookup_at <= %(until)s
               OR f.lease_until IS NOT NULL)
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
        ),
        EXISTS (
            SELECT 1 FROM billing.refund AS f
            WHERE f.ended_at IS NULL
              AND (f.lease_until IS NULL OR f.lease_until <= clock_timestamp())
              AND (f.held_until IS NULL OR f.held_until <= clock_timestamp())
              AND (f.next_send_at <= c.now_at OR f.next_lookup_at <= c.now_at
                   OR f.lease_until IS NOT NULL)
        )
    FROM (SELECT billing.now() AS now_at OFFSET 0) AS c
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
    SELECT 'refunds_' || lower(status), count(*) FROM billing.refund GROUP BY status
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
    *,
    bootstrap: str | None = None,
) -> SimulationReport:
    """Run one simulation.

    Args:
        database_url: an empty migrated database that nobody else uses, as a superuser or as a
            member of billing_owner and the other roles. It becomes a test database for ever.
        directory: for the gateway's ledger and log; must hold none.
        options: what to simulate.
        progress: told of (days done, days in all).
        bootstrap: brokers for a topic of its own; None starts one for as long as this lasts.

    Raises:
        ServerError: the gateway did not start.
        DatabaseError: the database refused what it must not refuse.
        BrokerUnavailableError: the broker failed.
        NeverQuietError: there was work without end.
    """
    with ExitStack() as stack:
        if bootstrap is None:
            bootstrap = stack.enter_context(KafkaBroker(directory / "kafka")).bootstrap
        gateway = stack.enter_context(
            MortalGateway(directory, seed=options.seed, faults=options.faults)
        )
        owner = stack.enter_context(
            psycopg.connect(database_url, autocommit=True, application_name="billing simulate")
        )
        simulation = _Simulation(database_url, bootstrap, gateway, owner, options)
        stack.callback(simulation.close)
        return asyncio.run(simulation.run(progress))


class _Simulation:
    def __init__(
        self,
        database_url: str,
        bootstrap: str,
        gateway: MortalGateway,
        owner: psycopg.Connection,
        options: SimulationOptions,
    ) -> None:
        self._url = database_url
        self._options = options
        self._gateway = gateway
        self._owner = owner
        self._now = START
        self._mail = Mail(gateway, owner, options.seed)
        self._person = Person(gateway, owner)
        self._customers = Customers(
            database_url,
            seed=options.seed,
            number=options.subscriptions,
            days=options.days,
            start=START,
        )
        self._relay = SimulatedRelay(
            database_url, bootstrap, owner=owner, seed=options.seed, faults=options.faults
        )
        self._engine = Engine(
            database_url,
            gateway.url,
            due=self._due,
            answered=lambda: self._mail.collect(self._now),
            kill_gateway=gateway.kill,
            seed=options.seed,
            faults=options.faults,
        )

    def close(self) -> None:
        self._mail.close()
        self._person.close()
        self._customers.close()

    async def run(self, progress: Callable[[int, int], None]) -> SimulationReport:
        loop = asyncio.get_running_loop()
        began = loop.time()
        self._owner.execute("SET ROLE billing_owner")
        self._owner.execute("SET timezone = 'UTC'")
        self._owner.execute("SELECT billing_ops.mark_test_database()")
        self._owner.execute(_PREPARE, {"prefix": f"sim{self._options.seed:05d}"})
        self._set_clock(START)
        self._customers.open_shop()
        acting = self._options.days
        async with self._engine, contextlib.aclosing(self._relay):
            for day in range(acting + _QUIET_DAYS):
                self._set_clock(START + day * STEP)
                if day < acting:
                    self._customers.act(self._now, STEP)
                await self._step()
                progress(day + 1, acting + _QUIET_DAYS)
            await self._relay.publish()
        return self._conclude(loop.time() - began)

    async def _step(self) -> None:
        start = self._now
        self._person.work(start)
        self._mail.let_decide(start)
        self._mail.collect(start)
        await self._work(everything=True)
        for minutes in _MINUTES:
            until = start + timedelta(minutes=minutes)
            if not self._let_wall_clock_pass(until):
                continue
            self._set_clock(until)
            self._mail.collect(until)
            await self._work(everything=False)
        await self._engine.wake_the_frozen()
        self._mail.collect(self._now)
        await self._relay.begin()

    async def _work(self, *, everything: bool) -> None:
        self._mail.deliver(self._now)
        await self._engine.work(everything=everything)
        self._gateway.revive()

    def _set_clock(self, now: datetime) -> None:
        self._now = now
        self._owner.execute("SELECT billing_ops.set_clock(%s)", (now,))
        self._gateway.set_clock(now)

    def _let_wall_clock_pass(self, until: datetime) -> bool:
        row = self._owner.execute(
            _END_WAITS, {"alive": self._engine.worker, "until": until}
        ).fetchone()
        return row is not None and bool(row[0])

    def _due(self) -> frozenset[Work]:
        row = self._owner.execute(_DUE).fetchone()
        found = () if row is None else zip(Work, row, strict=True)
        return frozenset(work for work, is_due in found if is_due)

    def _conclude(self, seconds: float) -> SimulationReport:
        ledger = self._gateway.ledger
        engine = self._engine.counts
        figures, findings = compare_money(self._owner, ledger)
        refunds, unasked = compare_refunds(self._owner, ledger)
        events, disorder = compare_events(self._owner, self._relay.read())
        gaps = compare_periods(self._owner)
        if counts_parked := engine["parked"]:
            findings.append(f"{counts_parked} renewals failed on their data and were set aside")
        faults = Counter(read_faults(ledger)) + self._mail.faults + self._relay.counts
        faults["deaths_of_gateways"] = self._gateway.deaths
        for name in list(engine):
            if "deaths" in name or "freezes" in name or "frozen" in name:
                faults[name] = engine.pop(name)
        counts = engine + self._customers.counts + self._mail.counts + self._person.counts
        counts += figures + refunds + events
        counts.update(dict(self._owner.execute(_COUNTS).fetchall()))
        diagnosis = examine(self._url)
        return SimulationReport(
            seed=self._options.seed,
            digest=digest(self._owner),
            findings=tuple(findings + unasked + gaps + disorder),
            violations=diagnosis.violations,
            faults=dict(sorted(faults.items())),
            counts=dict(sorted(counts.items())),
            seconds=seconds,
        )
