"""A whole installation whose processes are killed, round after round, and a judge of what is left.

In each round customers become due, others sign up over HTTP, each of them twice at once and again
until an answer comes, and a payment is given back; in the middle of that one process is killed. A
round is over when all work is done, and then everything is looked at from outside.
"""

import asyncio
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Any

import httpx
import psycopg

from billing_shell.api_commands import create_key
from billing_shell.api_keys import Scope
from billing_shell.api_shapes import REPLAYED_HEADER
from billing_shell.database import RELAY_ROLE, session_conninfo
from billing_shell.doctor import examine
from billing_shell.embedded import PostgresServer
from billing_shell.embedded_server import free_port
from tests.py.support.simulator import SimulatorProcess, client_of, put
from tests.py.support.topic import Record, first_appearances, next_offsets, read_topic
from tests.py.support.worker_process import QUICK, ROOT
from tests.py.support.world import ACCOUNT, PRICE, World

DUE = 6
"""Subscriptions that become due in a round."""
CALLERS = 4
"""Customers who sign up in a round; each calls twice at once."""
PATIENCE = 300.0
"""Seconds that anything in a round may take on a busy machine."""
START = datetime(2027, 3, 2, tzinfo=UTC)

_LOOK_EVERY = 0.1
_RELAY_BATCH = 25
# Not a 500 that is kept without a charge: only a person ends that.
_FAULTS = ["timeout_charged", "timeout_lost", "cut", "500_charged", "429"]
_HTTP_CALLS_AGAIN = 500

_GO_ON = "SELECT billing_ops.set_clock(billing.now() + interval '1 minute')"
_MINUTES_AT_ONCE, _MINUTES_A_SECOND = 240, 3
"""How far business time may go on in one wait: the gateway forgets its keys after a day, and on a
busy machine the last of it must not be used up before those who need it have come to themselves."""
_BECOME_DUE = """
    SELECT s.subscription_id
    FROM generate_series(%(first)s::integer, %(last)s::integer) AS g (no)
    CROSS JOIN LATERAL billing_api.create_customer('customer ' || g.no, 'USD') AS c
    CROSS JOIN LATERAL billing_api.add_payment_method(
        c.customer_id, %(account)s, 'tok_ok.' || g.no
    ) AS m
    CROSS JOIN LATERAL billing_api.import_subscription(
        p_customer_id => m.customer_id, p_plan_code => 'BASIC',
        p_current_period_start => billing.now() - interval '1 month',
        p_idempotency_key => 'import'
    ) AS s
"""
_NEW_CUSTOMERS = """
    SELECT c.customer_id
    FROM generate_series(%(first)s::integer, %(last)s::integer) AS g (no)
    CROSS JOIN LATERAL billing_api.create_customer('customer ' || g.no, 'USD') AS c
    CROSS JOIN LATERAL billing_api.add_payment_method(
        c.customer_id, %(account)s, 'tok_ok.' || g.no
    ) AS m
"""
_REFUNDABLE = """
    SELECT i.invoice_id FROM billing.invoice AS i
    WHERE i.status = 'PAID' AND i.amount_paid > 0 AND NOT EXISTS (
        SELECT FROM billing.refund AS r
        WHERE r.customer_id = i.customer_id AND r.invoice_id = i.invoice_id
    )
    ORDER BY i.invoice_id LIMIT 1
"""
_LEFT = """
    SELECT
        (SELECT count(*) FROM billing.invoice WHERE status <> 'PAID'),
        (SELECT count(*) FROM billing.payment_attempt WHERE ended_at IS NULL),
        (SELECT count(*) FROM billing.refund WHERE status <> 'SUCCEEDED'),
        (SELECT count(*) FROM billing.subscription WHERE status <> 'ACTIVE'),
        (SELECT count(*) FROM billing.subscription WHERE next_renewal_at <= billing.now()),
        (SELECT count(*) FROM billing.outbox_event WHERE published_at IS NULL)
"""
_ATTEMPTS = """
    SELECT a.idempotency_key, a.customer_id, a.invoice_id, i.amount_paid
    FROM billing.payment_attempt AS a
    INNER JOIN billing.invoice AS i USING (customer_id, invoice_id)
"""
_REFUNDS = "SELECT idempotency_key, amount FROM billing.refund"
_EVENTS = "SELECT outbox_event_id, aggregate_id, aggregate_seq FROM billing.outbox_event"
_SIGNED_UP = """
    SELECT customer_id, array_agg(subscription_id) FROM billing.subscription
    WHERE customer_id = ANY(%s::bigint[]) GROUP BY 1
"""
_LAPSE = """
    WITH forgotten AS (
        UPDATE billing.outbox_relay SET seen_at = seen_at - interval '1 minute' RETURNING 1
    )
    UPDATE billing.outbox_lease SET leased_until = clock_timestamp() - interval '1 second'
    RETURNING 1
"""
_BACKENDS = """
    SELECT pid FROM pg_stat_activity
    WHERE application_name LIKE 'billing %%' AND datname = current_database()
"""


class Victim(StrEnum):
    """Who is killed."""

    WORKER = "worker"
    RELAY = "relay"
    DOOR = "API"
    DATABASE = "database"


POINTS: dict[Victim, tuple[str, ...]] = {
    Victim.WORKER: (
        "slots_reserved",
        "attempts_started",
        "request_sent",
        "answer_received",
        "settled",
        "refunds_started",
        "refund_answered",
        "refunds_settled",
    ),
    Victim.RELAY: ("relay_acknowledged",),
    Victim.DOOR: ("call_committed",),
    Victim.DATABASE: (),
}
DATABASE_DEATHS = ("server killed", "immediate shutdown", "a backend killed")
AT_RANDOM = "at random"


class Process:
    """One process of the installation, which is killed and started again."""

    def __init__(
        self, command: Callable[[], list[str]], log: Path, environment: dict[str, str]
    ) -> None:
        """Not started yet; `command` is asked for its arguments at each start."""
        self._command = command
        self._log = log
        self._environment = os.environ | environment
        self._process: subprocess.Popen[bytes] | None = None

    def start(self, *, point: str = "", reached: Path | None = None) -> None:
        """Start it, armed with a crash point if one is named."""
        armed = {"BILLING_CRASH_POINT": point, "BILLING_CRASH_SIGNAL": str(reached)}
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", *self._command()],
                cwd=ROOT,
                env=self._environment | (armed if point else {}),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )

    @property
    def alive(self) -> bool:
        """Whether it runs."""
        return self._process is not None and self._process.poll() is None

    def kill(self) -> None:
        """End it as a power cut would."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def last_words(self) -> str:
        """Return the end of its log."""
        return self._log.read_text(errors="replace")[-3000:] if self._log.exists() else ""


@dataclass(frozen=True)
class Answer:
    """What a caller of the API got in the end."""

    subscription_id: int
    replayed: bool


class Bench:
    """One database, broker, gateway and door, and processes that do not live long.

    Attributes:
        deaths: how many rounds had which death: victim and where.
        totals: what has been seen in all rounds.
    """

    def __init__(
        self,
        directory: Path,
        database_url: str,
        redis_url: str,
        bootstrap: str,
        topic: str,
        *,
        server: PostgresServer | None = None,
    ) -> None:
        """Make the installation; nothing runs before `start`.

        Args:
            directory: for logs and the gateway's ledger.
            database_url: a migrated database, as the superuser.
            redis_url: a server of the bench's own.
            bootstrap: a broker that is left alone.
            topic: of the bench's own.
            server: the database server, if it may be killed.
        """
        self.deaths: Counter[tuple[Victim, str]] = Counter()
        self.totals: Counter[str] = Counter()
        self.world = World(database_url, request_timeout=1, lease_margin=1)
        self.world.set_clock(START)
        self.world.value("SELECT billing_ops.set_gateway_rate(%s, 'refund', 200)", ACCOUNT)
        self.gateway = SimulatorProcess(
            directory / "gateway.db", "--latency", "0-0.1", "--faults", "0", "--hang", "0.3"
        )
        self._directory = directory
        self._server = server
        self._broker = (bootstrap, topic)
        self._key = create_key(database_url, "bench", [Scope.READ, Scope.WRITE], None)
        self._people = 0
        self._relays = 0
        self._records: list[Record] = []
        self._read_to: dict[int, int] = {}
        port = free_port()
        self._door_url = f"http://127.0.0.1:{port}"
        worker = {
            "database_url": database_url,
            "redis_url": redis_url,
            "gateway_account": ACCOUNT,
            "cadence": QUICK | {"refund": "* * * * * *"},
            "heartbeat_seconds": 0.2,
            "stalled_after_seconds": 1.0,
        }
        door = {"BILLING_DATABASE_URL": database_url, "BILLING_LOG_FORMAT": "json"}
        self._processes = {
            Victim.WORKER: Process(
                lambda: [
                    "tests.py.support.worker_process",
                    json.dumps(worker | {"gateway_url": self.gateway.url}),
                ],
                directory / "worker.log",
                {},
            ),
            Victim.RELAY: Process(lambda: self._relay(database_url), directory / "relay.log", {}),
            Victim.DOOR: Process(
                lambda: ["billing_shell", "api", "--port", str(port), "--connections", "5"],
                directory / "door.log",
                door,
            ),
        }

    async def start(self) -> None:
        """Start everything, and do one round without a death."""
        self.gateway.start()
        async with client_of(self.gateway) as client:
            await put(client, "faults", rate=0.1, kinds=_FAULTS)
        for process in self._processes.values():
            process.start()
        await self._finish(self._begin(0))

    def end(self) -> None:
        """Kill everything."""
        for process in self._processes.values():
            process.kill()
        self.gateway.kill()
        self.world.close()

    async def round(self, number: int, victim: Victim, where: str) -> list[str]:
        """Kill somebody in the middle of the work, wait until all is done, and judge.

        Args:
            number: of this round; decides all that is left to chance.
            victim: who is killed.
            where: a crash point, `AT_RANDOM`, or one of `DATABASE_DEATHS`.

        Returns:
            what is wrong.

        Raises:
            AssertionError: the work did not come to its end.
        """
        chance = random.Random(number)  # noqa: S311 - to be repeated
        process = self._processes.get(victim)
        if process is not None and where != AT_RANDOM:
            reached = self._directory / f"reached-{number}"
            process.kill()
            self._forget_relay(victim)
            process.start(point=where, reached=reached)
            callers = self._begin(number)
            await self._wait(reached.exists, where)
        else:
            callers = self._begin(number)
            progress = self._progress(victim, callers)
            far = progress() + chance.randint(0, DUE + CALLERS)
            await self._wait(lambda: progress() >= far or self._done(callers), "some of the work")
            await asyncio.sleep(chance.uniform(0, 0.1))  # anywhere between two steps
        if process is not None:
            process.kill()
            self._forget_relay(victim)
            process.start()
        else:
            await self._kill_database(where, chance)
        self.deaths[victim, where] += 1
        await self._finish(callers)
        return await asyncio.to_thread(self.verdict, callers)

    def verdict(self, callers: dict[int, list["asyncio.Task[Answer]"]]) -> list[str]:
        """Return what is wrong: in the gateway's ledger, the database, the topic, the answers."""
        wrong = [
            f"{v.check_name}: {v.object}: {v.detail}" for v in examine(self.world.url).violations
        ]
        return wrong + self._wrong_ledger() + self._wrong_topic() + self._wrong_answers(callers)

    def _begin(self, number: int) -> dict[int, list["asyncio.Task[Answer]"]]:
        """Bring the work of a round; return the callers by customer."""
        first = self._people + 1
        self._people += DUE + CALLERS
        self.world.rows(_BECOME_DUE, first=first, last=first + DUE - 1, account=ACCOUNT)
        customers = self.world.rows(
            _NEW_CUSTOMERS, first=first + DUE, last=self._people, account=ACCOUNT
        )
        for (invoice_id,) in self.world.rows(_REFUNDABLE):
            # Given back by SQL: who asks over HTTP is tested with the sign-ups.
            self.world.rows(
                "SELECT billing_api.refund_invoice(%s, p_idempotency_key => %s)",
                invoice_id,
                f"refund {number}",
            )
        return {
            customer_id: [asyncio.create_task(self._insist(customer_id)) for _ in range(2)]
            for (customer_id,) in customers
        }

    async def _insist(self, customer_id: int) -> Answer:
        """Sign up under one key, again and again until there is an answer."""
        deadline = time.monotonic() + PATIENCE
        headers = {"Authorization": f"Bearer {self._key}", "Idempotency-Key": "sign up"}
        body = {"customerId": customer_id, "planCode": "BASIC"}
        while time.monotonic() < deadline:
            try:
                async with httpx.AsyncClient(base_url=self._door_url, timeout=PATIENCE) as client:
                    answer = await client.post("/subscriptions", json=body, headers=headers)
            except httpx.TransportError:
                self.totals["calls without an answer"] += 1
            else:
                if answer.status_code < _HTTP_CALLS_AGAIN:
                    assert answer.status_code == httpx.codes.CREATED, answer.text
                    replayed = REPLAYED_HEADER in answer.headers
                    return Answer(int(answer.json()["subscriptionId"]), replayed)
                self.totals["calls answered by 5xx"] += 1
            await asyncio.sleep(_LOOK_EVERY)
        raise AssertionError(f"no answer for customer {customer_id}")

    def _progress(
        self, victim: Victim, callers: dict[int, list["asyncio.Task[Answer]"]]
    ) -> Callable[[], int]:
        """Return what tells how far the part of the work has come in which a victim takes part."""
        if victim is Victim.RELAY:
            return lambda: self.world.count("outbox_event", "published_at IS NOT NULL")
        if victim is Victim.DOOR:
            return lambda: sum(task.done() for tasks in callers.values() for task in tasks)
        return lambda: int(self.gateway.value("SELECT count(*) FROM calls"))

    async def _kill_database(self, how: str, chance: random.Random) -> None:
        assert self._server is not None, "a server that is not the bench's own stays alive"
        if how == "server killed":
            self._server.kill()
        elif how == "immediate shutdown":
            os.kill(self._server.pid, signal.SIGQUIT)
            await self._wait(lambda: not self._alive(), "the end of the server", ticking=False)
        else:
            # The server ends all other sessions then, and recovers by itself.
            backends = [pid for (pid,) in self.world.rows(_BACKENDS)]
            os.kill(chance.choice(backends), signal.SIGKILL)
        if not self._alive():
            self._server.start()
        await self._wait(self._connects, "the database", ticking=False)

    def _alive(self) -> bool:
        return self._server is not None and self._server.running

    def _connects(self) -> bool:
        try:
            self.world.reconnect()
            self.world.value("SELECT 1")
        except psycopg.OperationalError:
            return False
        return True

    async def _finish(self, callers: dict[int, list["asyncio.Task[Answer]"]]) -> None:
        await self._wait(lambda: self._done(callers), "the end of the work")
        self.totals["rounds"] += 1

    def _done(self, callers: dict[int, list["asyncio.Task[Answer]"]]) -> bool:
        tasks = [task for pair in callers.values() for task in pair]
        for task in tasks:
            if task.done():
                task.result()
        return all(task.done() for task in tasks) and not any(self._left())

    def _left(self) -> tuple[int, ...]:
        return tuple(self.world.rows(_LEFT)[0])

    async def _wait(
        self, condition: Callable[[], bool], what: str, *, ticking: bool = True
    ) -> None:
        """Wait, while business time goes on."""
        deadline = time.monotonic() + PATIENCE
        gone_on = 0
        while not condition():
            if time.monotonic() > deadline:
                raise AssertionError(self._lament(what))
            elapsed = PATIENCE - (deadline - time.monotonic())
            if ticking and gone_on < _MINUTES_AT_ONCE + _MINUTES_A_SECOND * elapsed:
                self.world.value(_GO_ON)
                gone_on += 1
            await asyncio.sleep(_LOOK_EVERY)

    def _lament(self, what: str) -> str:
        words = [f"waited for {what} in vain"]
        words.append(
            "left: invoices, attempts, refunds, subscriptions, renewals, events"
            f" {self._left() if self._connects() else 'unknown'}"
        )
        for name, process in self._processes.items():
            words.append(f"{name} {'runs' if process.alive else 'is dead'}: {process.last_words()}")
        return "\n".join(words)

    def _relay(self, database_url: str) -> list[str]:
        self._relays += 1
        return [
            "tests.py.support.relay_process",
            session_conninfo(database_url, role=RELAY_ROLE, application_name="billing relay"),
            *self._broker,
            f"relay-{self._relays}",
            str(_RELAY_BATCH),
        ]

    def _forget_relay(self, victim: Victim) -> None:
        """Make it as late as if the dead relay had been silent for longer than a lease lasts."""
        if victim is Victim.RELAY:
            self.world.rows(_LAPSE)

    def _wrong_ledger(self) -> list[str]:
        """Money that moved twice, moved without a cause, or is booked and did not move."""
        wrong: list[str] = []
        known = {
            key: ((customer, no), paid) for key, customer, no, paid in self.world.rows(_ATTEMPTS)
        }
        moved: dict[tuple[int, int], list[int]] = defaultdict(list)
        for reference, amount in self.gateway.rows(
            "SELECT reference, amount FROM charges WHERE status = 'succeeded'"
        ):
            if reference not in known:
                wrong.append(f"a charge for {reference}, which nobody knows")
            else:
                moved[known[reference][0]].append(amount)
        for invoice, paid in dict(known.values()).items():
            if moved[invoice] != [PRICE] or paid != PRICE:
                wrong.append(f"invoice {invoice}: {moved[invoice]} moved, {paid} booked")
        given_back = self.gateway.rows("SELECT reference, amount FROM refunds ORDER BY 1")
        if given_back != sorted(self.world.rows(_REFUNDS)):
            wrong.append(f"refunds at the gateway {given_back} are not those of the database")
        self.totals["charges"] = sum(map(len, moved.values()))
        self.totals["refunds"] = len(given_back)
        return wrong

    def _wrong_topic(self) -> list[str]:
        """Events that are lost, unknown, or out of order."""
        self._records += read_topic(*self._broker, self._read_to)
        self._read_to = next_offsets(self._records)
        written: dict[str, list[int]] = defaultdict(list)
        events = self.world.rows(_EVENTS)
        for _, aggregate_id, seq in sorted(events, key=lambda event: event[2]):
            written[str(aggregate_id)].append(seq)
        told = first_appearances(self._records)
        self.totals["events"] = len(events)
        self.totals["events told again"] = len(self._records) - len(events)
        return [
            f"aggregate {aggregate}: wrote {written[aggregate]}, told {told.get(aggregate)}"
            for aggregate in written.keys() | told.keys()
            if written[aggregate] != told.get(aggregate)
        ]

    def _wrong_answers(self, callers: dict[int, list["asyncio.Task[Answer]"]]) -> list[str]:
        """Callers with two subscriptions, or with another answer than the truth."""
        signed_up: dict[int, list[Any]] = dict(self.world.rows(_SIGNED_UP, list(callers)))
        wrong: list[str] = []
        for customer_id, tasks in callers.items():
            answers = [task.result() for task in tasks]
            got = {answer.subscription_id for answer in answers}
            if len(got) != 1 or signed_up.get(customer_id) != [*got]:
                wrong.append(f"customer {customer_id}: {answers}, has {signed_up.get(customer_id)}")
            self.totals["sign-ups"] += 1
            self.totals["answers repeated"] += sum(answer.replayed for answer in answers)
        return wrong
