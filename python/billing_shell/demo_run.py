"""One demo run, from an empty database to an empty outbox."""

import contextlib
import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Self

import psycopg

from billing_shell.api_commands import temporary_key
from billing_shell.api_keys import Scope
from billing_shell.bell import Bell
from billing_shell.books.database_book import UnpaidInvoice, read_unpaid
from billing_shell.demo_display import Display
from billing_shell.demo_processes import DemoError, DemoProcess, Fleet, Gateway, StandStill
from billing_shell.demo_watch import Counts, Watch
from billing_shell.housekeeping import Retention
from billing_shell.import_files import ImportRows
from billing_shell.importer import import_rows
from billing_shell.migrate import migrate
from billing_shell.queries import ENSURE_OUTBOX_PARTITIONS
from billing_shell.reconciliation import Course, Kill
from billing_shell.sabotage import BETWEEN, POINT_VARIABLE, Sabotage, break_database
from billing_shell.starvation import Starvation

TAKEN_OVER_AT = datetime(2027, 2, 27, 12, 0, tzinfo=UTC)
"""Business time of the import: every example's current period runs."""
RENEWED_AT = datetime(2027, 3, 1, 9, 0, tzinfo=UTC)
"""Business time of the renewal: every example but the last hundred is due."""

ACCOUNT = "simulated"
LIMIT = 200
"""The gateway's limit, calls per second of one operation."""

_FAULT_RATE = 0.02
# All but the 429, which some of the examples' tokens ask for: each stops everybody for two seconds,
# and one in three hundred calls would leave the gateway idle for most of the run.
_FAULTS = ("timeout_charged", "timeout_lost", "cut", "500_stored", "500_charged", "500_lost")

_REQUEST_SECONDS = 3
# Longer than a request waits, so that what hangs times out here and is not cut there.
_HANG_SECONDS = 5
# Shorter than the first look-up's delay, so that by then a payment is found.
_SEARCH_LAG_SECONDS = 20
_SETTLE_WINDOW = timedelta(minutes=1)
# For as long the gateway remembers a key, and ours is sent again for nine tenths of it. Short, so
# that what it answers by a stored error for ever is given up within the run.
_KEY_LIFETIME = timedelta(hours=1)

_PATIENCE_SECONDS = 60.0
_SPENT_PATIENCE_SECONDS = 8.0
_SIGNAL_SECONDS = 90.0
# When outcomes are asked for again, and unanswered charges sent again, until well after their keys
# have lapsed.
_DOUBTS = (timedelta(seconds=30), timedelta(minutes=2), *[timedelta(minutes=15)] * 8)

_HAS_SCHEMA = "SELECT to_regclass('billing.customer') IS NOT NULL"
_IN_USE = "SELECT EXISTS (SELECT 1 FROM billing.customer)"
_SET_PREFIX = "UPDATE billing.database_identity AS d SET key_prefix = %s WHERE d.is_test"
_MARK = "SELECT billing_ops.mark_test_database()"
_SET_CLOCK = "SELECT billing_ops.set_clock(%s)"
_CREATE_ACCOUNT = """
    SELECT billing_ops.create_gateway_account(
        p_code => %(code)s, p_adapter => 'simulated', p_request_timeout => %(timeout)s,
        p_lease_margin => %(margin)s, p_key_lifetime => %(key_lifetime)s,
        p_settle_window => %(settle_window)s
    )
"""
_SET_RATE = """
    SELECT billing_ops.set_gateway_rate(
        p_account => %(code)s, p_operation => %(operation)s, p_per_second => %(limit)s
    )
"""
_CLAIMED = """
    SELECT a.customer_id, a.attempt_id, a.claim_epoch
    FROM billing.payment_attempt AS a
    WHERE a.status = 'STARTED'
"""
# What a dead worker had claimed, and somebody else has claimed since without a definite answer.
_PASSED_ON = """
    SELECT c.customer_id, c.attempt_id, c.claim_epoch
    FROM jsonb_to_recordset(%(claimed)s::jsonb)
        AS c (customer_id bigint, attempt_id bigint, claim_epoch integer)
    INNER JOIN billing.payment_attempt AS a
        ON a.customer_id = c.customer_id AND a.attempt_id = c.attempt_id
    WHERE a.status = 'UNKNOWN' AND a.claim_epoch > c.claim_epoch
"""
_SETTLE = """
    SELECT s.verdict
    FROM billing_worker.settle_attempts(
        p_results => ARRAY(
            SELECT jsonb_populate_record(NULL::billing.charge_result, r)
            FROM jsonb_array_elements(%(results)s::jsonb) AS r
        )
    ) AS s
"""
_NOW_US = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """Where a run takes place, and with what.

    Attributes:
        database_url: an empty database, as a superuser or a login that may migrate it.
        redis_url: holds the throttle.
        kafka_bootstrap: brokers.
        topic: a topic of this run's own.
        directory: for the gateway's ledger and everybody's logs.
        seed: of the gateway, and of our keys there.
        workers: how many worker processes.
        sabotage: what to break, or None.
    """

    database_url: str
    redis_url: str
    kafka_bootstrap: str
    topic: str
    directory: Path
    seed: int
    workers: int
    sabotage: Sabotage | None

    @property
    def ledger(self) -> Path:
        """The gateway's books."""
        return self.ledger_in(self.directory)

    @staticmethod
    def ledger_in(directory: Path) -> Path:
        """Return where the gateway's books are in a directory."""
        return directory / "gateway.sqlite"


@dataclass(slots=True)
class _Notes:
    """What the report needs to know besides the books."""

    due: int = 0
    kills: list[Kill] = field(default_factory=list)
    collected_us: int = 0
    starved: float = 0.0
    first_unpaid: tuple[UnpaidInvoice, ...] = ()
    zombie_reports: int = 0
    zombie_believed: int = 0
    unfinished: list[str] = field(default_factory=list)


class DemoRun:
    """One run; a context, at whose end every process of it has ended."""

    def __init__(self, surroundings: Surroundings, display: Display) -> None:
        """Nothing happens yet.

        Args:
            surroundings: where, and with what.
            display: shows each step.
        """
        self._around = surroundings
        self._display = display
        self._logs = surroundings.directory / "logs"
        self._notes = _Notes()
        self._now = TAKEN_OVER_AT
        self._running = contextlib.ExitStack()
        self._workers: list[DemoProcess] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._running.close()

    def tell(self, rows: ImportRows) -> Course:
        """Run it from the beginning to the end.

        Args:
            rows: what to import.

        Raises:
            DemoError: it cannot go on.
        """
        self._logs.mkdir(parents=True, exist_ok=True)
        self._migrate()
        with self._display.step("gateway"):
            self._gateway = self._running.enter_context(self._start_gateway())
            self._gateway.set_faults(_FAULT_RATE, _FAULTS)
        self._prepare(len(rows.subscriptions))
        self._import(rows)
        self._watch = self._running.enter_context(Watch(self._around.database_url))
        self._bell = self._running.enter_context(Bell(self._around.database_url))
        self._fleet = self._make_fleet()
        door = self._open_door()

        self._move_clock(RENEWED_AT)
        self._notes.due = self._watch.counts().due_renewals
        if self._around.sabotage is not None:
            break_database(self._around.database_url, self._around.sabotage)
        relay = self._relay_killed_once()
        claimed = self._workers_of_whom_one_is_killed()
        self._collect()
        self._speak_for_the_dead(claimed)
        self._settle_doubts("asking about unknown outcomes")
        self._notes.first_unpaid = read_unpaid(self._around.database_url)
        self._retry_declines()
        self._stop(relay)
        door.require_running()
        return self._course()

    def _migrate(self) -> None:
        """Apply the schema; leave a database alone that somebody uses."""
        with psycopg.connect(
            self._around.database_url, application_name="billing demo"
        ) as connection:
            there = connection.execute(_HAS_SCHEMA).fetchone() == (True,)
        if there:
            with self._as("billing_readonly") as reader:
                if reader.execute(_IN_USE).fetchone() != (False,):
                    raise DemoError(
                        "the database has customers; the demo sets clocks and needs one of its own"
                    )
        with self._display.step("schema") as step:
            report = migrate(self._around.database_url)
            step.say(f"version {report.version}")

    def _start_gateway(self) -> Gateway:
        options = {
            "limit": LIMIT,
            "seed": self._around.seed,
            "hang": _HANG_SECONDS,
            "search-lag": _SEARCH_LAG_SECONDS,
            "key-lifetime": _KEY_LIFETIME.total_seconds(),
        }
        return Gateway(
            self._around.ledger,
            self._logs / "gateway.log",
            [text for name, value in options.items() for text in (f"--{name}", str(value))],
        )

    def _prepare(self, subscriptions: int) -> None:
        """Make it a test database with a frozen clock and a gateway account."""
        with self._as("billing_operator") as operator:
            operator.execute(_MARK)
        # The gateway draws its answers by seed and key. A key begins with a prefix that tells all
        # databases apart; the gateway of this run knows this one only.
        with self._as("billing_owner") as owner:
            owner.execute(_SET_PREFIX, (f"demo{self._around.seed % 10**12:012d}",))
        # Before a worker makes them while another one renews: a batch that has to be repeated
        # takes new ids, and thereby other keys.
        with self._as("billing_worker") as worker:
            worker.execute(ENSURE_OUTBOX_PARTITIONS, {"days": Retention().outbox_ahead})
        self._move_clock(TAKEN_OVER_AT)
        # A killed worker's claims lapse when the others are through, so that asking about them
        # does not compete with charging.
        margin = timedelta(seconds=max(5, subscriptions // 100))
        account = {
            "code": ACCOUNT,
            "timeout": timedelta(seconds=_REQUEST_SECONDS),
            "margin": margin,
            "key_lifetime": _KEY_LIFETIME,
            "settle_window": _SETTLE_WINDOW,
        }
        with self._as("billing_operator") as operator:
            operator.execute(_CREATE_ACCOUNT, account)
            for operation in ("charge", "look_up"):
                operator.execute(
                    _SET_RATE, {"code": ACCOUNT, "operation": operation, "limit": LIMIT}
                )
        self._patience = _PATIENCE_SECONDS + margin.total_seconds()

    def _import(self, rows: ImportRows) -> None:
        with self._display.step(f"importing {len(rows.subscriptions):,} subscriptions") as step:
            # One after the other: which customer gets which id, and thereby which keys, is the same
            # each time.
            import_rows(
                self._around.database_url,
                rows,
                gateway_account=ACCOUNT,
                connections=1,
                progress=step.show,
            )

    def _make_fleet(self) -> Fleet:
        environment = {
            "BILLING_DATABASE_URL": self._around.database_url,
            "BILLING_REDIS_URL": self._around.redis_url,
            "BILLING_KAFKA_BOOTSTRAP": self._around.kafka_bootstrap,
            "BILLING_GATEWAY_URL": self._gateway.url,
            "BILLING_GATEWAY_ACCOUNT": ACCOUNT,
            "BILLING_LOG_FORMAT": "json",
        }
        launcher = ["-m", "billing_shell", "worker"]
        if self._around.sabotage is not None:
            launcher = ["-m", "billing_shell.sabotage", self._around.sabotage, "worker"]
        return Fleet(environment, self._logs, launcher)

    def _open_door(self) -> DemoProcess:
        """Let whoever watches look in over HTTP, with a key that lasts as long as the run."""
        scopes = [Scope.READ, Scope.OPERATE]
        made = temporary_key(self._around.database_url, "billing-demo", scopes)
        header = f"Authorization: Bearer {self._running.enter_context(made)}"
        door = self._running.enter_context(self._fleet.door())
        self._display.note(f"look in while it runs: curl -H '{header}' {door.url}/plans")
        return door

    def _relay_killed_once(self) -> DemoProcess:
        """Kill a relay between the broker's word and its own mark; start another one."""
        with (
            self._display.step("relay, killed before it marks what the broker has"),
            StandStill("relay_acknowledged:1", self._around.directory) as still,
        ):
            relay = self._fleet.relay(self._around.topic, still)
            self._running.enter_context(relay)
            self._kill(relay, "relay", still)
            return self._running.enter_context(self._fleet.relay(self._around.topic))

    def _workers_of_whom_one_is_killed(self) -> list[tuple[Any, ...]]:
        """Start the first worker, kill it in the middle, and start it again with the others.

        Returns:
            what was claimed when it was dead: customer, attempt, claim epoch.
        """
        with (
            self._display.step("worker, killed with answers that nobody will record") as step,
            self._standing_still_in_the_middle() as still,
        ):
            # Alone: others might leave it too few answers to come to its crash point.
            first = self._running.enter_context(self._fleet.worker(1, still))
            self._bell.ring("renew")
            step.say(f"waiting for {still.point}")
            self._kill(first, "worker", still)
            with self._as("billing_readonly") as reader:
                claimed = reader.execute(_CLAIMED).fetchall()
            for number in range(1, self._around.workers + 1):
                self._workers.append(self._running.enter_context(self._fleet.worker(number)))
            self._bell.ring("renew")
        return claimed

    def _standing_still_in_the_middle(self) -> StandStill:
        directory = self._around.directory
        if self._around.sabotage is Sabotage.PERIOD_OUTSIDE_TX:
            return StandStill(f"{BETWEEN}:1", directory, POINT_VARIABLE)
        return StandStill(f"answer_received:{max(10, self._notes.due // 10)}", directory)

    def _kill(self, process: DemoProcess, kind: str, still: StandStill) -> None:
        at_us = still.wait(process, _SIGNAL_SECONDS)
        if at_us is None:
            raise DemoError(f"the {process.name} never came to {still.point}")
        process.kill()
        self._notes.kills.append(Kill(process=kind, point=still.point, at_us=at_us))

    def _collect(self) -> None:
        with self._display.step("renewing and collecting") as step:
            starvation = Starvation([self._gateway.pid, *(w.pid for w in self._workers)])

            def show(counts: Counts) -> None:
                self._require_workers()
                step.show(counts.decided, self._notes.due)
                if counts.decided < self._notes.due:
                    self._notes.starved = starvation.share()

            self._wait_until_quiet("renewing and collecting", show)
            self._notes.collected_us = time.time_ns() // _NOW_US

    def _speak_for_the_dead(self, claimed: list[tuple[Any, ...]]) -> None:
        """Hand in what the dead worker might have said, had it only been slow: declined.

        For attempts whose claim has passed on since and whose outcome is unknown. None of it may
        be believed.
        """
        names = ("customer_id", "attempt_id", "claim_epoch")
        died_with = [dict(zip(names, claim, strict=True)) for claim in claimed]
        with self._as("billing_readonly") as reader:
            passed_on = reader.execute(_PASSED_ON, {"claimed": json.dumps(died_with)}).fetchall()
        results = [
            {
                **dict(zip(names, claim, strict=True)),
                "outcome": "DECLINED",
                "code": "insufficient_funds",
                "source": "SEND",
            }
            for claim in passed_on
        ]
        with self._as("billing_worker") as worker:
            verdicts = worker.execute(_SETTLE, {"results": json.dumps(results)}).fetchall()
        self._notes.zombie_reports = len(verdicts)
        self._notes.zombie_believed = sum(verdict != "STALE" for (verdict,) in verdicts)
        self._display.note(
            f"{len(verdicts)} stale results handed in for the dead worker,"
            f" {self._notes.zombie_believed} believed"
        )

    def _settle_doubts(self, title: str) -> None:
        """Move the clock on until no outcome is unknown, or a person has been asked about it."""
        with self._display.step(title) as step:

            def show(counts: Counts) -> None:
                self._require_workers()
                step.say(
                    f"{self._now:%d %b %H:%M:%S}, {counts.due_look_ups} to look up,"
                    f" {counts.due_invoices} to send again, {counts.in_flight} in flight"
                )

            for pause in _DOUBTS:
                if self._watch.unsettled() == 0:
                    return
                self._move_clock(self._now + pause)
                self._bell.ring("reconcile", ACCOUNT)
                self._wait_until_quiet(title, show)
            left = self._watch.unsettled()
            if left:
                self._notes.unfinished.append(f"{title}: {left} attempts are still unknown")

    def _retry_declines(self) -> None:
        """Move the clock to where every first retry is due."""
        rung = self._watch.first_rung()
        if rung is None:
            return
        with self._display.step("retrying declines, a day later") as step:
            self._move_clock(max(self._now, rung + timedelta(seconds=1)))

            def show(counts: Counts) -> None:
                self._require_workers()
                step.say(f"{counts.due_invoices} due, {counts.in_flight} in flight")

            self._wait_until_quiet("retrying declines", show)
        self._settle_doubts("asking about unknown outcomes of retries")

    def _stop(self, relay: DemoProcess) -> None:
        with self._display.step("workers drain"):
            for worker in self._workers:
                self._finish(worker)
        with self._display.step("events to the topic") as step:

            def show(left: int) -> None:
                relay.require_running()
                step.say(f"{left:,} left")

            left = self._watch.wait_until_published(show, patience=self._patience)
            if left:
                self._notes.unfinished.append(f"events to the topic: {left} are not published")
            self._finish(relay)
        self._finish(self._gateway)

    def _finish(self, process: DemoProcess) -> None:
        try:
            process.stop()
        except DemoError as error:
            self._notes.unfinished.append(str(error))

    def _course(self) -> Course:
        notes = self._notes
        return Course(
            limit=LIMIT,
            due=notes.due,
            kills=tuple(notes.kills),
            collected_us=notes.collected_us,
            starved=notes.starved,
            first_unpaid=notes.first_unpaid,
            zombie_reports=notes.zombie_reports,
            zombie_believed=notes.zombie_believed,
            unfinished=tuple(notes.unfinished),
        )

    def _wait_until_quiet(self, title: str, show: Callable[[Counts], None]) -> None:
        stuck = self._watch.wait_until_quiet(show, patience=self._patience)
        if stuck is not None:
            # What has not moved for so long will not move for a long wait again.
            self._patience = _SPENT_PATIENCE_SECONDS
            self._notes.unfinished.append(
                f"{title}: {stuck.due_renewals} renewals, {stuck.due_invoices} invoices,"
                f" {stuck.in_flight} claimed attempts and {stuck.due_look_ups} look-ups do not move"
            )

    def _require_workers(self) -> None:
        for worker in self._workers:
            worker.require_running()
        self._gateway.require_running()

    def _move_clock(self, now: datetime) -> None:
        """Set both business clocks, the gateway's first: it never lags behind ours."""
        now = now.replace(microsecond=0)
        self._gateway.set_clock(now.isoformat())
        with self._as("billing_operator") as operator:
            operator.execute(_SET_CLOCK, (now,))
        self._now = now

    @contextlib.contextmanager
    def _as(self, role: str) -> Iterator[psycopg.Connection[Any]]:
        """Open a transaction with the rights of a role."""
        with psycopg.connect(
            self._around.database_url, application_name="billing demo"
        ) as connection:
            connection.execute(f"SET LOCAL ROLE {role}".encode())
            yield connection
