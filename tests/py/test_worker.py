"""The worker on real servers: killed, frozen, doubled, stopped, and cut off from Redis.

What was charged is read from the gateway's own ledger.
"""

import itertools
import signal
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from billing_shell.embedded import RedisServer
from tests.py.support.simulator import SimulatorProcess, client_of, put, smooth_simulator
from tests.py.support.worker_process import QUICK, WorkerProcess
from tests.py.support.world import ACCOUNT, DUE, PRICE, World, busiest_second, until

CRASH_POINTS = ("slots_reserved", "attempts_started", "request_sent", "answer_received", "settled")


@pytest.fixture
def world(database_url: str) -> Iterator[World]:
    """Nothing times out here: the gateway cuts what it does not answer, and leases are lapsed.

    Those of 15 s are for look-ups that miss their slots on a busy machine.
    """
    made = World(database_url, request_timeout=10, lease_margin=5)
    yield made
    made.close()


@pytest.fixture
def redis(data_dir: Path) -> Iterator[RedisServer]:
    """A server of the test's own: throttles of one name would meet in a shared one."""
    with RedisServer(data_dir / "redis") as server:
        yield server


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[SimulatorProcess]:
    with smooth_simulator(tmp_path, "--hang", "0.5") as process:
        yield process


class Workers:
    """Starts workers and ends them all."""

    def __init__(self, world: World, redis: RedisServer, folder: Path) -> None:
        self._world = world
        self._redis = redis
        self._folder = folder
        self._started: list[WorkerProcess] = []

    def make(self, gateway: SimulatorProcess, **options: object) -> WorkerProcess:
        """Describe one; it is not started."""
        worker = WorkerProcess(
            self._folder / f"worker-{len(self._started)}.log",
            {
                "database_url": self._world.url,
                "redis_url": self._redis.url,
                "gateway_url": gateway.url,
                "gateway_account": ACCOUNT,
                "cadence": QUICK,
                "heartbeat_seconds": 0.2,
                "stalled_after_seconds": 1.0,
                "drain_seconds": 120.0,
                **options,
            },
        )
        self._started.append(worker)
        return worker

    def start(self, gateway: SimulatorProcess, **options: object) -> WorkerProcess:
        """Start one."""
        worker = self.make(gateway, **options)
        worker.start()
        return worker

    def end(self) -> None:
        """Kill those that run, and show what they logged, should the test have failed."""
        for worker in self._started:
            worker.kill()
            print(worker.log())  # noqa: T201


@pytest.fixture
def workers(world: World, redis: RedisServer, tmp_path: Path) -> Iterator[Workers]:
    made = Workers(world, redis, tmp_path)
    yield made
    made.end()


def paid(world: World) -> int:
    return world.count("invoice", "status = 'PAID' AND kind = 'RENEWAL'")


def charged(gateway: SimulatorProcess) -> list[tuple[int, int]]:
    """Amounts that moved, with how often."""
    return gateway.rows(
        "SELECT amount, count(*) FROM charges WHERE status = 'succeeded' GROUP BY 1 ORDER BY 1"
    )


def as_time_goes_on(
    world: World, condition: Callable[[], bool], since: datetime = DUE
) -> Callable[[], bool]:
    """Return the condition, so that business time goes on by 10 s at every look at it."""
    instants = itertools.count(1)

    def look() -> bool:
        # Nine hours at most: the gateway forgets its keys after a whole one.
        world.set_clock(since + min(timedelta(seconds=10 * next(instants)), timedelta(hours=9)))
        return condition()

    return look


async def test_due_subscriptions_are_renewed_and_paid_once_each(
    world: World, gateway: SimulatorProcess, workers: Workers
) -> None:
    world.subscribe(40)
    worker = workers.start(gateway)
    await until(lambda: paid(world) == 40, "40 paid invoices")
    assert charged(gateway) == [(PRICE, 40)]
    assert world.count("payment_attempt") == 40
    assert await worker.stop() == 0
    assert world.count("payment_attempt", "lease_until IS NOT NULL") == 0


@pytest.mark.parametrize("crash_point", CRASH_POINTS)
@pytest.mark.crash
async def test_a_worker_killed_at_any_point_charges_nothing_twice_and_skips_nothing(
    world: World, gateway: SimulatorProcess, workers: Workers, tmp_path: Path, crash_point: str
) -> None:
    world.subscribe(12)
    signal_file = tmp_path / "reached"
    first = workers.make(gateway)
    first.start(crash_point=crash_point, crash_signal=signal_file)
    await until(signal_file.exists, crash_point)
    first.kill()
    world.lapse_leases()
    workers.start(gateway)
    await until(as_time_goes_on(world, lambda: paid(world) == 12), "12 paid invoices")
    assert charged(gateway) == [(PRICE, 12)]
    assert gateway.value("SELECT count(DISTINCT reference) FROM charges") == 12
    assert world.count("payment_attempt") == 12
    assert world.count("subscription_period", "period_start = '2027-03-01T00:00:00Z'") == 12


@pytest.mark.crash
async def test_the_job_of_a_killed_worker_does_not_stay_in_doing(
    world: World, gateway: SimulatorProcess, workers: Workers, tmp_path: Path
) -> None:
    """Case O01."""
    world.subscribe(1)
    signal_file = tmp_path / "reached"
    first = workers.make(gateway)
    first.start(crash_point="answer_received", crash_signal=signal_file)
    await until(signal_file.exists, "the crash point")
    doing = "SELECT id FROM procrastinate.procrastinate_jobs WHERE status = 'doing'"
    dead = {job_id for (job_id,) in world.rows(doing)}
    assert dead, "it was killed in the middle of a job"
    first.kill()
    world.lapse_leases()
    second = workers.start(gateway)
    await until(lambda: not dead & {i for (i,) in world.rows(doing)}, "the sweep")
    await until(as_time_goes_on(world, lambda: paid(world) == 1), "the payment")
    assert charged(gateway) == [(PRICE, 1)]
    assert world.count("payment_attempt") == 1
    assert await second.stop() == 0


@pytest.mark.parametrize(
    "job",
    [
        None,
        "(task_name, queue_name, status) VALUES ('renew', 'billing', 'failed')",
        "(task_name, queue_name, status, lock) VALUES ('renew', 'billing', 'doing', 'renew')",
        "(task_name, queue_name, status, attempts) VALUES ('renew', 'billing', 'doing', 9)",
    ],
    ids=["deleted or never queued", "failed", "held by a dead worker", "stalled"],
)
async def test_a_lost_or_dead_job_loses_no_renewal(
    world: World, gateway: SimulatorProcess, workers: Workers, job: str | None
) -> None:
    """Case O03: only the database says what is due."""
    world.subscribe(1)
    if job is not None:
        world.value(f"INSERT INTO procrastinate.procrastinate_jobs {job} RETURNING id")
    workers.start(gateway)
    await until(lambda: world.count("invoice", "kind = 'RENEWAL'") == 1, "the renewal")
    left = "SELECT count(*) FROM procrastinate.procrastinate_jobs WHERE status = 'doing' AND id = 1"
    await until(lambda: world.value(left) == 0 or job is None, "the sweep")


async def test_a_time_out_after_the_charge_is_not_charged_again(
    world: World, gateway: SimulatorProcess, workers: Workers
) -> None:
    """Case A01, without its webhook."""
    world.subscribe(3, "tok_timeout_charged")
    workers.start(gateway)
    await until(lambda: world.count("payment_attempt", "status = 'UNKNOWN'") == 3, "the doubt")
    assert world.count("subscription", "status = 'ACTIVE'") == 3
    await until(as_time_goes_on(world, lambda: paid(world) == 3), "3 paid invoices")
    assert charged(gateway) == [(PRICE, 3)]
    assert world.count("payment_attempt") == 3
    assert world.count("subscription", "status = 'ACTIVE'") == 3
    assert world.count("outbox_event", "event_type = 'InvoicePaid'") == 3
    assert world.value("SELECT sum(failure_count) FROM billing.invoice") == 0


async def test_a_429_is_no_decline_and_waits_for_its_retry_after(
    world: World, gateway: SimulatorProcess, workers: Workers
) -> None:
    """Case F13."""
    world.subscribe(1, "tok_429_3")
    workers.start(gateway)
    await until(lambda: paid(world) == 1, "the payment")
    arrivals = [
        at
        for (at,) in gateway.rows(
            "SELECT arrived_us FROM calls WHERE operation = 'charge' ORDER BY arrived_us"
        )
    ]
    assert len(arrivals) == 4
    assert all(after - before >= 2_000_000 for before, after in itertools.pairwise(arrivals))
    assert gateway.value("SELECT count(DISTINCT idempotency_key) FROM calls") == 1
    assert world.rows("SELECT attempt_no, send_count FROM billing.payment_attempt") == [(1, 4)]
    assert world.value("SELECT max(failure_count) FROM billing.invoice") == 0
    assert world.count("subscription_event", "to_status = 'PAST_DUE'") == 0


async def test_a_decline_gets_a_new_key_and_a_time_out_the_same_one(
    world: World, gateway: SimulatorProcess, workers: Workers
) -> None:
    """Case O13."""
    world.subscribe(1, "tok_ok")
    async with client_of(gateway) as client:
        outcomes = ["decline_insufficient_funds", "timeout_lost", "500_lost", "ok"]
        await put(client, "script", token="tok_ok.1", outcomes=outcomes)
    workers.start(gateway)
    await until(lambda: world.count("invoice", "failure_count = 1") == 1, "the decline")
    assert world.count("subscription", "status = 'PAST_DUE'") == 1
    second_try = DUE + timedelta(days=1, hours=3)
    world.set_clock(second_try)
    await until(lambda: world.count("payment_attempt", "attempt_no = 2") == 1, "the second try")
    await until(as_time_goes_on(world, lambda: paid(world) == 1, second_try), "the payment")
    sends = gateway.rows(
        "SELECT idempotency_key, count(*) FROM calls WHERE operation = 'charge' GROUP BY 1"
        " ORDER BY 1"
    )
    assert [key.rpartition("-")[2] for key, _ in sends] == ["1", "2"]
    assert [count for _, count in sends] == [1, 3]
    assert charged(gateway) == [(PRICE, 1)]
    statuses = "SELECT attempt_no, status FROM billing.payment_attempt ORDER BY attempt_no"
    assert world.rows(statuses) == [(1, "DECLINED"), (2, "SUCCEEDED")]
    assert world.count("subscription", "status = 'ACTIVE'") == 1


async def test_sigterm_settles_what_is_in_flight_and_leaves_nothing_claimed(
    world: World, gateway: SimulatorProcess, workers: Workers
) -> None:
    world.subscribe(60)
    async with client_of(gateway) as client:
        await put(client, "latency", least=0.5, most=0.5)
    worker = workers.start(gateway)
    in_flight = "SELECT count(*) FROM calls WHERE http_status IS NULL"
    await until(lambda: gateway.value(in_flight) > 0, "calls in flight")
    assert await worker.stop() == 0
    ((_, moved),) = charged(gateway)
    assert moved == paid(world) > 0
    assert world.count("payment_attempt", "lease_until IS NOT NULL") == 0
    assert world.count("payment_attempt", "status = 'UNKNOWN'") == 0


async def test_a_frozen_worker_wakes_up_to_stale_answers_and_goes_on(
    world: World, gateway: SimulatorProcess, workers: Workers
) -> None:
    world.subscribe(20)
    async with client_of(gateway) as client:
        await put(client, "latency", least=0.6, most=0.6)
        frozen = workers.start(gateway)
        arrived = "SELECT count(*) FROM calls WHERE operation = 'charge'"
        await until(lambda: gateway.value(arrived) > 0, "calls in flight")
        frozen.send(signal.SIGSTOP)
        await put(client, "latency", least=0, most=0)
    world.lapse_leases()
    other = workers.start(gateway)
    await until(as_time_goes_on(world, lambda: paid(world) == 20), "20 paid invoices")
    assert await other.stop() == 0
    reports = world.count("payment_report", "verdict = 'APPLIED'")
    frozen.send(signal.SIGCONT)
    # It takes part again, and what it still had in hand has changed nothing.
    world.subscribe(5)
    await until(lambda: paid(world) == 25, "5 more")
    assert charged(gateway) == [(PRICE, 25)]
    assert world.count("payment_attempt") == 25
    assert world.count("payment_report", "verdict = 'APPLIED'") == reports + 5
    assert await frozen.stop() == 0


async def test_without_redis_nothing_is_sent_and_nothing_counts(
    world: World, gateway: SimulatorProcess, redis: RedisServer, workers: Workers
) -> None:
    """Case O10, with fewer invoices and a lower limit."""
    limit = 40
    for operation in ("charge", "look_up"):
        world.value("SELECT billing_ops.set_gateway_rate(%s, %s, %s)", ACCOUNT, operation, limit)
    world.subscribe(160)
    redis.stop()
    started = [workers.start(gateway) for _ in range(4)]
    await until(
        lambda: all(worker.logged("throttle_unavailable") for worker in started), "four refusals"
    )
    await until(
        lambda: world.count("invoice", "kind = 'RENEWAL'") == 160, "renewing, without Redis"
    )
    assert world.count("payment_attempt") == 0
    assert gateway.value("SELECT count(*) FROM calls") == 0
    redis.start()
    await until(lambda: paid(world) == 160, "160 paid invoices")
    arrivals = [at for (at,) in gateway.rows("SELECT arrived_us FROM calls")]
    assert busiest_second(arrivals) <= limit
    assert charged(gateway) == [(PRICE, 160)]
    assert world.value("SELECT max(attempt_count) FROM billing.invoice") == 1
    assert world.value("SELECT max(failure_count) FROM billing.invoice") == 0
    assert [await worker.stop() for worker in started] == [0, 0, 0, 0]
