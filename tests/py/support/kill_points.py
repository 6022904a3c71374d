"""One row of the table of kill points: its promise, and the database in which it is tried."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import httpx
import psycopg

from tests.py.support.simulator import SimulatorProcess, client_of
from tests.py.support.world import ACCOUNT, DUE, PRICE, World

HALF = PRICE // 2

CHARGE, DECLINE = "charge", "declined charge"
CHARGE_FOUND, CHARGE_LOST = "look-up of a charge", "look-up of no charge"
REFUND = "refund"
REFUND_FOUND, REFUND_LOST = "look-up of a refund", "look-up of no refund"

# Past the first look-up of what was sent when the subscription became due.
_IN_DOUBT = timedelta(seconds=40)

_UNKNOWN_CHARGE = """
    SELECT s.verdict
    FROM billing.payment_attempt AS a
    CROSS JOIN LATERAL billing_worker.settle_attempts(ARRAY[ROW(
        a.customer_id, a.attempt_id, a.claim_epoch, 'UNKNOWN', NULL, NULL, NULL, 'timeout', NULL,
        NULL, 'SEND'
    )::billing.charge_result]) AS s
"""
_SUCCESSFUL_CHARGE = """
    SELECT s.verdict
    FROM billing.payment_attempt AS a
    CROSS JOIN LATERAL billing_worker.settle_attempts(ARRAY[ROW(
        a.customer_id, a.attempt_id, a.claim_epoch, 'SUCCEEDED', %s::text, a.amount,
        a.currency, NULL, NULL, NULL, 'SEND'
    )::billing.charge_result]) AS s
"""
_UNKNOWN_REFUND = """
    SELECT s.verdict
    FROM billing.refund AS f
    CROSS JOIN LATERAL billing_worker.settle_refunds(ARRAY[ROW(
        f.customer_id, f.refund_id, f.claim_epoch, 'UNKNOWN', NULL, NULL, NULL, 'timeout', NULL,
        'SEND'
    )::billing.refund_result]) AS s
"""
_OPEN_WORK = """
    SELECT
        (SELECT count(*) FROM billing.payment_attempt WHERE ended_at IS NULL)
        + (SELECT count(*) FROM billing.refund WHERE ended_at IS NULL)
        + (
            SELECT count(*) FROM billing.invoice
            WHERE status = 'OPEN' AND next_attempt_at <= billing.now()
        )
        + (
            SELECT count(*) FROM procrastinate.procrastinate_jobs
            WHERE status = 'doing' AND id = ANY(%s::bigint[])
        )
"""
_TOLD = ("InvoicePaid", "InvoicePaymentFailed", "InvoiceVoided", "RefundIssued")


@dataclass(frozen=True)
class Row:
    """One point, and what is promised.

    Attributes:
        flow: what the worker is at.
        point: where it is killed.
        left: status of the attempt or refund then, or one of two; empty = there is none.
        moved: successful charges, or refunds, in the gateway's ledger then.
        sends: requests to charge, or to refund, that the gateway gets in all.
        asked: whether somebody asks what became of it after the restart; None = perhaps.
        charges: that succeeded, in the end.
        refunds: in the end.
        cancelled: whether the customer cancels before the restart.
    """

    flow: str
    point: str
    left: str
    moved: int
    sends: int
    asked: bool | None
    charges: int = 1
    refunds: int = 0
    cancelled: bool = False

    def __str__(self) -> str:
        """Its name."""
        return f"{self.flow}, {self.point}" + (", cancelled" if self.cancelled else "")

    @property
    def is_refund(self) -> bool:
        """Whether it is about money that goes back."""
        return self.flow in {REFUND, REFUND_FOUND, REFUND_LOST}


@dataclass(frozen=True)
class Seen:
    """What came of a row.

    Attributes:
        left: as in `Row`.
        moved: as in `Row`.
        sends: as in `Row`.
        asks: look-ups that reached the gateway after the restart.
        charges: amounts that moved, in the end.
        refunds: amounts that went back, in the end.
        attempts: statuses of all attempts, in the end.
        invoice: status of the renewal's invoice, and how often it was declined.
        keys: idempotency keys that the gateway has seen.
        told: what the world was told about payments, sorted.
        broken: what the integrity check finds.
    """

    left: str
    moved: int
    sends: int
    asks: int
    charges: tuple[int, ...]
    refunds: tuple[int, ...]
    attempts: tuple[str, ...]
    invoice: tuple[str, int]
    keys: int
    told: tuple[str, ...]
    broken: tuple[Any, ...]


class Life:
    """A database with one subscription that is due, and its part of the gateway's ledger."""

    def __init__(self, row: Row, url: str, gateway: SimulatorProcess) -> None:
        """Make it, with its renewal's invoice open.

        Args:
            row: what is tried in it.
            url: a migrated database, as the superuser.
            gateway: which is shared by all rows.
        """
        self._row = row
        self._gateway = gateway
        self._instants = itertools.count(1)
        with psycopg.connect(url, autocommit=True) as operator:
            # Copies of one database would meet at the gateway under one prefix.
            operator.execute("SELECT billing_ops.adopt_database('clone')")
        self.world = World(url)
        prefix = self.world.value("SELECT key_prefix FROM billing.database_identity")
        self._ours = f"{prefix}-%"
        token = "tok_decline_insufficient_funds" if row.flow == DECLINE else "tok_ok"
        (self._subscription_id,) = self.world.subscribe(1, token)
        self.world.value("SELECT billing_worker.renew_due(10)")
        self.world.value("SELECT billing_worker.ensure_outbox_partitions(1)")

    async def prepare(self) -> None:
        """Bring it to where the row begins: to be charged, in doubt, or to be refunded."""
        if self._row.flow in {CHARGE, DECLINE}:
            return
        async with client_of(self._gateway) as client:
            payment_id = await self._charge(client)
            if self._row.is_refund:
                await self._refund(client, payment_id)
        if self._row.flow != REFUND:
            self.world.set_clock(DUE + _IN_DOUBT)

    async def _charge(self, client: httpx.AsyncClient) -> str:
        """Charge it; where that is to be in doubt, nobody has heard the answer."""
        ((key, amount, token, description),) = self.world.rows(
            "SELECT idempotency_key, amount, payment_method_token, description"
            " FROM billing_worker.start_attempts(%s, 1, 'first')",
            ACCOUNT,
        )
        payment_id = ""
        if self._row.flow != CHARGE_LOST:
            document = {
                "amount": amount,
                "currency": "USD",
                "source": token,
                "description": description,
            }
            payment_id = await _post(client, "/v1/charges", key, document)
        if self._row.is_refund:
            self.world.rows(_SUCCESSFUL_CHARGE, payment_id)
        else:
            self.world.rows(_UNKNOWN_CHARGE)
        return payment_id

    async def _refund(self, client: httpx.AsyncClient, payment_id: str) -> None:
        """Have half of it asked back; where that is to be in doubt, nobody has heard the answer."""
        invoice_id = self.world.value(
            "SELECT invoice_id FROM billing.invoice WHERE kind = 'RENEWAL'"
        )
        self.world.rows(
            "SELECT refund_id FROM billing_api.refund_invoice(%s, %s, 'refund')", invoice_id, HALF
        )
        if self._row.flow == REFUND:
            return
        ((key,),) = self.world.rows(
            "SELECT idempotency_key FROM billing_worker.start_refunds(%s, 1, 'first')", ACCOUNT
        )
        if self._row.flow == REFUND_FOUND:
            await _post(client, "/v1/refunds", key, {"charge": payment_id, "amount": HALF})
        self.world.rows(_UNKNOWN_REFUND)

    def status(self) -> str:
        """Status of the attempt, or of the refund; empty without one."""
        table = "refund" if self._row.is_refund else "payment_attempt"
        rows = self.world.rows(f"SELECT status FROM billing.{table}")  # noqa: S608  one of the two
        return str(rows[0][0]) if rows else ""

    def moved(self) -> int:
        """Successful charges, or refunds, in the ledger."""
        return len(self.refunds() if self._row.is_refund else self.charges())

    def charges(self) -> tuple[int, ...]:
        """Amounts that the gateway has moved."""
        return self._amounts(
            "SELECT amount FROM charges WHERE status = 'succeeded' AND reference LIKE ?"
        )

    def refunds(self) -> tuple[int, ...]:
        """Amounts that it has sent back."""
        return self._amounts("SELECT amount FROM refunds WHERE reference LIKE ?")

    def sends(self) -> int:
        """Requests to charge, or to refund, that it has got."""
        return self._calls("refund" if self._row.is_refund else "charge")

    def asks(self) -> int:
        """Look-ups that it has got."""
        return self._calls("look_up")

    def answered(self) -> int:
        """Requests that it has answered, into the void or not."""
        query = "SELECT count(*) FROM calls WHERE http_status IS NOT NULL AND reference LIKE ?"
        return int(self._gateway.value(query, (self._ours,)))

    def doing(self) -> Sequence[int]:
        """Jobs that somebody has begun."""
        query = "SELECT id FROM procrastinate.procrastinate_jobs WHERE status = 'doing'"
        return [job_id for (job_id,) in self.world.rows(query)]

    def bury_the_dead(self) -> None:
        """Do what a few minutes do to the claims and the heartbeat of a worker that died."""
        with psycopg.connect(self.world.url, autocommit=True) as operator:
            for table in ("payment_attempt", "refund"):
                operator.execute(
                    f"UPDATE billing.{table} SET lease_until = clock_timestamp()"  # noqa: S608  two
                    " WHERE lease_until IS NOT NULL"
                )
            operator.execute(
                "UPDATE procrastinate.procrastinate_workers"
                " SET last_heartbeat = last_heartbeat - interval '5 minutes'"
            )

    def cancel(self) -> None:
        """End the subscription at once, as its customer does."""
        query = "SELECT status FROM billing_api.cancel_subscription(%s)"
        assert self.world.rows(query, self._subscription_id) == [("CANCELED",)]

    def is_finished(self, dead_jobs: Sequence[int]) -> bool:
        """Let half a minute go by, and tell whether nothing is left to be done."""
        self.world.set_clock(DUE + _IN_DOUBT + timedelta(seconds=30 * next(self._instants)))
        return self.world.value(_OPEN_WORK, dead_jobs) == 0

    def seen(self, left: str, moved: int, asks_before: int) -> Seen:
        """What came of it."""
        keys = "SELECT count(DISTINCT idempotency_key) FROM calls WHERE reference LIKE ?"
        ((status, failures),) = self.world.rows(
            "SELECT status, failure_count FROM billing.invoice WHERE kind = 'RENEWAL'"
        )
        return Seen(
            left=left,
            moved=moved,
            sends=self.sends(),
            asks=self.asks() - asks_before,
            charges=self.charges(),
            refunds=self.refunds(),
            attempts=self._column("SELECT status FROM billing.payment_attempt ORDER BY attempt_no"),
            invoice=(status, failures),
            keys=self._gateway.value(keys, (self._ours,)),
            told=self._column(
                "SELECT event_type FROM billing.outbox_event WHERE event_type = ANY(%s) ORDER BY 1",
                list(_TOLD),
            ),
            broken=tuple(self.world.rows("SELECT * FROM billing_ops.check_integrity()")),
        )

    def _amounts(self, query: str) -> tuple[int, ...]:
        return tuple(amount for (amount,) in self._gateway.rows(query, (self._ours,)))

    def _calls(self, operation: str) -> int:
        query = "SELECT count(*) FROM calls WHERE operation = ? AND reference LIKE ?"
        return int(self._gateway.value(query, (operation, self._ours)))

    def _column(self, query: str, *parameters: object) -> tuple[str, ...]:
        return tuple(value for (value,) in self.world.rows(query, *parameters))


async def _post(client: httpx.AsyncClient, path: str, key: str, document: dict[str, object]) -> str:
    """Send something to the gateway as a worker would; return the id that it gives."""
    response = await client.post(
        path,
        json=document | {"reference": key},
        headers={"Idempotency-Key": key},
    )
    assert response.status_code == 200, response.text
    return str(response.json()["id"])
