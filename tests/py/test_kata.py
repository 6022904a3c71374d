"""The figures of a well-known exercise in subscription billing, against the real thing.

A plan of $49.00 per 30 days with a trial of 14; retries 1, 3, 5 and 7 days after the first failure.
Days are counted from DAY_0. A worker of ours collects at the simulated gateway, which is a process
of its own, and what was charged is read from its ledger.
"""

import contextlib
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from billing_shell.embedded import RedisServer
from billing_shell.sabotage import Sabotage, break_worker
from billing_shell.simulated_gateway import SimulatedGateway
from tests.py.support.in_process import working
from tests.py.support.simulator import SimulatorProcess, client_of, put, smooth_simulator
from tests.py.support.worker_process import QUICK, WorkerProcess
from tests.py.support.world import ACCOUNT, World, until

DAY_0 = datetime(2027, 1, 1, tzinfo=UTC)
PRICE = 4900
TOKEN = "tok_ok.kata"

_CUSTOMER = """
    SELECT c.customer_id
    FROM billing_api.create_customer(p_external_ref => 'kata', p_currency => 'USD') AS c
    CROSS JOIN LATERAL billing_api.add_payment_method(
        p_customer_id => c.customer_id, p_gateway_account => %s, p_token => %s
    ) AS m
"""
_PLAN = """
    SELECT p.plan_id
    FROM billing_api.create_plan(
        p_code => 'PRO', p_name => 'Pro', p_amount => %s, p_currency => 'USD',
        p_interval_unit => 'DAY', p_interval_count => 30, p_trial_days => 14
    ) AS p
"""
_SIGN_UP = """
    SELECT s.subscription_id
    FROM billing_api.create_subscription(
        p_customer_id => %s, p_plan_code => 'PRO', p_idempotency_key => 'kata',
        p_dunning_policy => 'fixed_1357'
    ) AS s
"""
_SUBSCRIPTION = """
    SELECT s.status, s.current_period_start, s.current_period_end
    FROM billing_api.subscription AS s
"""
_INVOICES = """
    SELECT i.status, i.total, i.amount_paid, i.failure_count
    FROM billing_api.invoice AS i
    WHERE i.total > 0
"""
_QUIET = """
    SELECT NOT (
        EXISTS (SELECT FROM billing.subscription WHERE next_renewal_at <= billing.now())
        OR EXISTS (
            SELECT FROM billing.invoice WHERE status = 'OPEN' AND next_attempt_at <= billing.now()
        )
        OR EXISTS (
            SELECT FROM billing.payment_attempt
            WHERE status = 'STARTED' OR lease_until IS NOT NULL OR next_lookup_at <= billing.now()
        )
    )
"""
_LAPSE = "UPDATE billing.payment_attempt SET lease_until = clock_timestamp() RETURNING attempt_id"


def day(number: float) -> datetime:
    return DAY_0 + timedelta(days=number)


class Kata(World):
    """One customer on trial since day 0."""

    def __init__(self, url: str, gateway: SimulatorProcess) -> None:
        # What gets no answer is cut by the gateway, long before it would time out here.
        super().__init__(url)
        self.gateway = gateway
        self.set_clock(DAY_0)
        self.value(_PLAN, PRICE)
        customer_id = self.value(_CUSTOMER, ACCOUNT, TOKEN)
        self.value(_SIGN_UP, customer_id)

    @property
    def subscription(self) -> tuple[str, datetime, datetime]:
        """Status and current period."""
        ((status, starts_at, ends_at),) = self.rows(_SUBSCRIPTION)
        return status, starts_at, ends_at

    @property
    def status(self) -> str:
        return self.subscription[0]

    @property
    def invoices(self) -> list[tuple[str, int, int, int]]:
        """Status, total, paid and failures of each invoice that asks for money."""
        return [(s, t, p, f) for s, t, p, f in self.rows(_INVOICES)]

    def charged(self) -> list[int]:
        """What moved at the gateway, in cents, by its own ledger."""
        rows = self.gateway.rows(
            "SELECT amount FROM charges WHERE status = 'succeeded' ORDER BY charge_no"
        )
        return [amount for (amount,) in rows]

    def asked(self) -> int:
        """How many payments the gateway made or refused."""
        return int(self.gateway.value("SELECT count(*) FROM charges"))

    def quiet(self) -> bool:
        """Whether nothing is due and nothing under way."""
        return bool(self.value(_QUIET))

    async def move_clocks(self, instant: datetime) -> None:
        """Freeze the gateway's business clock and ours."""
        async with client_of(self.gateway) as client:
            await put(client, "clock", now=instant.isoformat())
        self.set_clock(instant)

    async def live_until(self, instant: datetime) -> None:
        """Move the clocks and let the worker do all that there is to do."""
        await self.move_clocks(instant)
        await until(self.quiet, f"all to be done at {instant}")

    async def script(self, *outcomes: str) -> None:
        """Line up what becomes of the next charges."""
        async with client_of(self.gateway) as client:
            await put(client, "script", token=TOKEN, outcomes=list(outcomes))


@pytest.fixture
def redis(data_dir: Path) -> Iterator[RedisServer]:
    with RedisServer(data_dir / "redis") as server:
        yield server


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[SimulatorProcess]:
    # Its search never sees a payment in time: what saves the day is the key, or nothing does.
    with smooth_simulator(tmp_path, "--hang", "0.5", "--search-lag", "86400") as process:
        yield process


@pytest.fixture
def kata(database_url: str, gateway: SimulatorProcess) -> Iterator[Kata]:
    made = Kata(database_url, gateway)
    yield made
    made.close()


@contextlib.asynccontextmanager
async def worker(kata: Kata, redis: RedisServer) -> AsyncIterator[None]:
    async with working(kata, redis.url, kata.gateway.url):
        yield


async def test_m1_a_trial_converts_to_a_paid_cycle(kata: Kata, redis: RedisServer) -> None:
    assert kata.subscription == ("TRIALING", day(0), day(14))

    async with worker(kata, redis):
        await kata.live_until(day(5))
        assert kata.subscription == ("TRIALING", day(0), day(14))
        assert (kata.invoices, kata.asked()) == ([], 0)

        await kata.live_until(day(14))

    assert kata.subscription == ("ACTIVE", day(14), day(44))
    assert kata.invoices == [("PAID", PRICE, PRICE, 0)]
    assert kata.charged() == [PRICE]


async def test_m3_two_failures_and_a_retry_that_succeeds_recover(
    kata: Kata, redis: RedisServer
) -> None:
    await kata.script("decline_do_not_honor", "decline_do_not_honor", "ok")

    async with worker(kata, redis):
        await kata.live_until(day(14))
        assert (kata.status, kata.invoices) == ("PAST_DUE", [("OPEN", PRICE, 0, 1)])

        await kata.live_until(day(15))
        assert (kata.status, kata.invoices) == ("PAST_DUE", [("OPEN", PRICE, 0, 2)])

        await kata.live_until(day(17))

    assert kata.subscription == ("ACTIVE", day(14), day(44))
    assert kata.invoices == [("PAID", PRICE, PRICE, 2)]
    assert (kata.charged(), kata.asked()) == ([PRICE], 3)


async def test_m3_the_fifth_failure_exhausts_four_retries(kata: Kata, redis: RedisServer) -> None:
    await kata.script(*["decline_do_not_honor"] * 5)

    async with worker(kata, redis):
        for failures, at in enumerate((14, 15, 17, 19), start=1):
            await kata.live_until(day(at))
            assert (kata.status, kata.invoices) == ("PAST_DUE", [("OPEN", PRICE, 0, failures)])

        await kata.live_until(day(21))
        await until(lambda: kata.status != "PAST_DUE", "the end of the ladder")
        assert kata.status == "CANCELED"
        await kata.live_until(day(60))

    assert kata.invoices == [("FAILED", PRICE, 0, 5)]
    assert (kata.charged(), kata.asked()) == ([], 5)


@pytest.mark.crash
async def test_m4_a_crash_after_the_charge_and_a_retry_charge_once(
    kata: Kata, redis: RedisServer, tmp_path: Path
) -> None:
    options: dict[str, Any] = {
        "database_url": kata.url,
        "redis_url": redis.url,
        "gateway_url": kata.gateway.url,
        "gateway_account": ACCOUNT,
        "cadence": QUICK,
        "heartbeat_seconds": 0.2,
        "stalled_after_seconds": 1.0,
        "drain_seconds": 10.0,
    }
    await kata.move_clocks(day(14))
    dying = WorkerProcess(tmp_path / "worker.log", options)
    stands_still = tmp_path / "signal"
    dying.start(crash_point="answer_received", crash_signal=stands_still)
    await until(stands_still.exists, "the crash point")
    dying.kill()

    assert kata.charged() == [PRICE]
    assert kata.status == "TRIALING"
    assert kata.invoices == [("OPEN", PRICE, 0, 0)]
    assert len(kata.rows(_LAPSE)) == 1

    async with worker(kata, redis):
        await until(lambda: kata.count("payment_attempt", "status = 'UNKNOWN'") == 1)
        # Looked up in vain; a quarter of an hour after the first send it is sent again.
        await kata.live_until(day(14) + timedelta(minutes=15))

    assert kata.charged() == [PRICE]
    assert kata.gateway.value("SELECT count(*) FROM calls WHERE replayed = 1") == 1
    assert kata.subscription == ("ACTIVE", day(14), day(44))
    assert kata.invoices == [("PAID", PRICE, PRICE, 0)]
    assert kata.count("subscription_period", "kind = 'BILLED'") == 1


@pytest.mark.parametrize(("sabotaged", "moved"), [(True, [4900, 4900]), (False, [4900])])
async def test_without_the_key_a_cycle_of_49_dollars_costs_98(
    kata: Kata,
    redis: RedisServer,
    monkeypatch: pytest.MonkeyPatch,
    *,
    sabotaged: bool,
    moved: list[int],
) -> None:
    monkeypatch.setattr(SimulatedGateway, "charge", SimulatedGateway.charge)  # to be undone
    if sabotaged:
        break_worker(Sabotage.RANDOM_KEY)
    await kata.script("timeout_charged")

    async with worker(kata, redis):
        await kata.live_until(day(14))
        assert kata.charged() == [PRICE]
        assert kata.status == "TRIALING"
        await kata.live_until(day(14) + timedelta(minutes=15))

    assert kata.charged() == moved
    # The subscription's own records look the same either way: only the gateway's tell.
    assert kata.subscription == ("ACTIVE", day(14), day(44))
    assert kata.invoices == [("PAID", PRICE, PRICE, 0)]
