"""A small world to bill: a test database at a frozen instant, one plan, one gateway account."""

import asyncio
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg

ACCOUNT = "simulated"
BEFORE = datetime(2027, 2, 10, tzinfo=UTC)
DUE = datetime(2027, 3, 1, tzinfo=UTC)
"""When the subscriptions of a world become due, and its clock stands at first."""
PRICE = 3000

_LONGEST_WAIT = 180.0
"""Seconds; costs nothing where all goes well, and machines are busy."""
_LOOK_EVERY = 0.02

_SUBSCRIBE = """
    SELECT s.subscription_id
    FROM generate_series(%(first)s::integer, %(last)s::integer) AS g (no)
    CROSS JOIN LATERAL billing_api.create_customer(
        p_external_ref => 'customer ' || g.no, p_currency => 'USD'
    ) AS c
    CROSS JOIN LATERAL billing_api.add_payment_method(
        p_customer_id => c.customer_id, p_gateway_account => %(account)s,
        p_token => %(token)s || '.' || g.no
    ) AS m
    CROSS JOIN LATERAL billing_api.import_subscription(
        p_customer_id => c.customer_id, p_plan_code => 'BASIC',
        p_current_period_start => '2027-02-01T00:00:00Z', p_idempotency_key => 'import ' || g.no
    ) AS s
    ORDER BY g.no
"""


_CHECK_OUT = """
    WITH customer AS MATERIALIZED (
        SELECT c.customer_id
        FROM billing_api.create_customer(
            p_external_ref => 'customer ' || %s::integer, p_currency => 'USD'
        ) AS c
    ),

    method AS MATERIALIZED (
        SELECT c.customer_id, m.payment_method_id
        FROM customer AS c
        CROSS JOIN LATERAL billing_api.add_payment_method(
            p_customer_id => c.customer_id, p_gateway_account => %s, p_token => %s
        ) AS m
    )

    SELECT s.subscription_id
    FROM method AS m
    CROSS JOIN LATERAL billing_api.create_subscription(
        p_customer_id => m.customer_id, p_plan_code => 'BASIC',
        p_idempotency_key => 'check-out ' || m.customer_id
    ) AS s
"""


class World:
    """Drives the database as an operator, and reads all of it."""

    def __init__(
        self,
        url: str,
        *,
        request_timeout: float = 30,
        lease_margin: float = 60,
        rate: int = 200,
        shard: int = 0,
    ) -> None:
        """Make it, with nobody in it.

        Args:
            url: a migrated database, as the superuser.
            request_timeout: seconds, of the gateway account.
            lease_margin: seconds, of the gateway account.
            rate: calls in any second, of each operation.
            shard: its number.
        """
        self.url = url
        self._people = 0
        self._connection = _connect(url)
        self.value("SELECT billing_ops.mark_test_database()")
        self.value("SELECT billing_ops.set_shard(%s)", shard)
        self.set_clock(BEFORE)
        self.value(
            "SELECT billing_ops.create_gateway_account(p_code => %s, p_adapter => 'simulated',"
            " p_request_timeout => %s, p_lease_margin => %s)",
            ACCOUNT,
            timedelta(seconds=request_timeout),
            timedelta(seconds=lease_margin),
        )
        for operation in ("charge", "look_up"):
            self.value("SELECT billing_ops.set_gateway_rate(%s, %s, %s)", ACCOUNT, operation, rate)
        self.value(
            "SELECT billing_api.create_plan('BASIC', 'Basic', %s::bigint, 'USD', 'MONTH')", PRICE
        )

    def check_out(self, token: str = "tok_ok") -> int:  # noqa: S107
        """Sign a new customer up, who pays first; return the subscription."""
        self._people += 1
        subscription_id = self.value(_CHECK_OUT, self._people, ACCOUNT, token)
        return int(subscription_id)

    def reconnect(self) -> None:
        """Connect again, after an outage."""
        self._connection.close()
        self._connection = _connect(self.url)

    def close(self) -> None:
        """Disconnect."""
        self._connection.close()

    def subscribe(self, people: int = 1, token: str = "tok_ok") -> list[int]:  # noqa: S107
        """Import customers whose subscriptions are due at DUE, and turn the clock to it."""
        self.set_clock(BEFORE)
        first, self._people = self._people + 1, self._people + people
        rows = self.rows(_SUBSCRIBE, first=first, last=self._people, account=ACCOUNT, token=token)
        self.set_clock(DUE)
        self._connection.execute("ANALYZE")
        return [subscription_id for (subscription_id,) in rows]

    def lapse_leases(self) -> None:
        """Make it as late as if those who hold claims had been silent for longer than they last."""
        for table in ("payment_attempt", "refund"):
            query = f"UPDATE billing.{table} SET lease_until = clock_timestamp()"  # noqa: S608
            self._connection.execute(f"{query} WHERE lease_until IS NOT NULL".encode())

    def set_clock(self, now: datetime) -> None:
        """Freeze the business clock."""
        self.value("SELECT billing_ops.set_clock(%s)", now)

    def rows(self, query: str, *parameters: object, **named: object) -> list[tuple[Any, ...]]:
        """Read rows."""
        return self._connection.execute(query, named or parameters).fetchall()

    def value(self, query: str, *parameters: object) -> Any:  # noqa: ANN401
        """Read one value."""
        ((value,),) = self.rows(query, *parameters)
        return value

    def count(self, table: str, condition: str = "true", *parameters: object) -> int:
        """Count rows of a table in schema billing."""
        query = f"SELECT count(*) FROM billing.{table} WHERE {condition}"  # noqa: S608
        return int(self.value(query, *parameters))


def _connect(url: str) -> psycopg.Connection[Any]:
    connection = psycopg.connect(url, autocommit=True)
    connection.execute("SET timezone = 'UTC'")
    return connection


async def until(
    condition: Callable[[], bool], what: str = "", *, every: float = _LOOK_EVERY
) -> None:
    """Wait for what shows in the traces of other processes; they cannot tell us."""
    try:
        async with asyncio.timeout(_LONGEST_WAIT):
            while not condition():  # noqa: ASYNC110  other processes set no event of ours
                await asyncio.sleep(every)
    except TimeoutError as error:
        raise AssertionError(f"waited for {what or condition} in vain") from error


def busiest_second(arrivals_us: Sequence[int]) -> int:
    """Return the most arrivals in any half-open second that starts at an arrival."""
    most = first = 0
    ordered = sorted(arrivals_us)
    for last, at in enumerate(ordered):
        while at - ordered[first] >= 1_000_000:
            first += 1
        most = max(most, last - first + 1)
    return most
