"""What the gateway of a simulation tells later, and its customers decide later.

Its events are taken from the ledger, signed, read by the adapter's own reader and handed to the
database as the API does it: at once, before the answer, late, twice, or never.
"""

import heapq
import json
import sqlite3
from collections import Counter
from datetime import UTC, datetime, timedelta
from random import Random

import psycopg

from billing_shell.simulate_engine import ACCOUNT
from billing_shell.simulate_gateway import SECRET, MortalGateway
from billing_shell.simulated_gateway import read_webhook
from billing_shell.webhook_signature import sign

_LATE = 0.3
_NEVER = 0.05
_AGAIN = 0.15

_NEWS = """
    SELECT
        e.event_no, e.event_id, e.event_type, e.payload,
        (SELECT count(*) FROM webhook_deliveries AS d WHERE d.event_no = e.event_no) AS copies,
        EXISTS (
            SELECT 1 FROM calls AS c WHERE c.payment_id = e.payment_id AND c.fault = 'webhook_early'
        ) AS is_early
    FROM webhook_events AS e
    WHERE e.event_no > ?
    ORDER BY e.event_no
"""
_WAITING = """
    SELECT payment_id, reference, status
    FROM charges
    WHERE status IN ('requires_action', 'processing')
    ORDER BY reference
"""


class Mail:
    """Events on their way, and decisions that are still to be made.

    Attributes:
        counts: what customers and banks decided.
        faults: what befell events.
    """

    def __init__(self, gateway: MortalGateway, connection: psycopg.Connection, seed: int) -> None:
        """Nothing is on its way.

        Args:
            gateway: whose ledger is read.
            connection: a session that may call `receive_webhook`.
            seed: makes delays, losses and decisions.
        """
        self.counts: Counter[str] = Counter()
        self.faults: Counter[str] = Counter()
        self._gateway = gateway
        self._connection = connection
        self._seed = seed
        self._ledger = sqlite3.connect(gateway.ledger)
        self._seen = 0
        self._on_its_way: list[tuple[datetime, str, str, bytes]] = []
        self._endings: dict[str, tuple[datetime, str]] = {}

    def close(self) -> None:
        """Close the ledger."""
        self._ledger.close()

    def let_decide(self, now: datetime) -> None:
        """Have actions completed or refused, and bank money arrive or bounce, some time later."""
        for payment_id, reference, status in self._ledger.execute(_WAITING).fetchall():
            if reference not in self._endings:
                chance = self._chance("decision", reference)
                hours = (
                    chance.uniform(0, 20)
                    if status == "requires_action"
                    else chance.uniform(24, 150)
                )
                (verb,) = chance.choices(("complete", "fail", "never"), (7, 2, 1))
                self._endings[reference] = (now + timedelta(hours=hours), verb)
            due, verb = self._endings[reference]
            if due <= now and verb != "never" and self._gateway.end(payment_id, verb):
                self.counts[f"{status}_then_{verb}"] += 1

    def collect(self, now: datetime) -> bool:
        """Take what is new. What arrives before the answer is delivered; True if anything was."""
        is_early = False
        for event_no, event_id, event_type, payload, copies, early in self._ledger.execute(
            _NEWS, (self._seen,)
        ).fetchall():
            self._seen = event_no
            body = payload.encode()
            if early:
                is_early = True
                self._receive(event_id, body)
                continue
            name = f"{json.loads(payload)['data']['reference']} {event_type}"
            for at in self._arrivals(now, name, copies):
                heapq.heappush(self._on_its_way, (at, f"{name} {at}", event_id, body))
        return is_early

    def deliver(self, now: datetime) -> None:
        """Deliver what has arrived by now."""
        while self._on_its_way and self._on_its_way[0][0] <= now:
            _, _, event_id, body = heapq.heappop(self._on_its_way)
            self._receive(event_id, body)

    def _arrivals(self, now: datetime, name: str, copies: int) -> list[datetime]:
        chance = self._chance("mail", name)
        late = chance.random()
        if late > 1 - _NEVER:
            self.faults["webhooks_lost"] += 1
            return []
        arrivals = [now] * copies
        if late < _LATE:
            self.faults["webhooks_late"] += 1
            arrivals = [now + timedelta(hours=chance.uniform(1, 96))] * copies
        if chance.random() < _AGAIN:
            self.faults["webhooks_twice"] += 1
            arrivals.append(arrivals[0] + timedelta(hours=chance.uniform(0, 48)))
        return arrivals

    def _receive(self, event_id: str, body: bytes) -> None:
        signed_at = datetime.now(UTC)
        headers = sign(event_id, signed_at, body, SECRET)
        event = read_webhook(body, headers, [SECRET], signed_at)
        self._connection.execute(
            "SELECT billing_worker.receive_webhook(%s, %s, %s, %s)",
            (ACCOUNT, event.event_id, event.event_type, json.dumps(event.payload)),
        )

    def _chance(self, *what: str) -> Random:
        return Random("/".join((str(self._seed), *what)))  # noqa: S311 - to be repeated
