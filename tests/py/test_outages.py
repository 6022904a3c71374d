"""The gateway is out for five minutes, or two hours: nobody goes past due, all is collected once.

The hours are those of the business clock. What was charged is read from the gateway's own ledger.
"""

import itertools
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from billing_shell.embedded import RedisServer
from billing_shell.embedded_server import free_port
from tests.py.support.simulator import SMOOTH, SimulatorProcess
from tests.py.support.worker_process import QUICK, WorkerProcess
from tests.py.support.world import ACCOUNT, DUE, PRICE, World, until

PEOPLE = 60


@pytest.fixture
def world(database_url: str) -> Iterator[World]:
    # So short that each call to a gateway that stands still is over soon, and no shorter: a busy
    # machine has all of the first calls sent before the first of them times out.
    made = World(database_url, request_timeout=2, lease_margin=1)
    yield made
    made.close()


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[SimulatorProcess]:
    """A gateway that comes back under its old address."""
    process = SimulatorProcess(
        tmp_path / "gateway.db", *SMOOTH, "--hang", "0.5", "--port", str(free_port())
    )
    process.start()
    yield process
    process.kill()


@pytest.fixture
def worker(
    world: World, gateway: SimulatorProcess, data_dir: Path, tmp_path: Path
) -> Iterator[WorkerProcess]:
    with RedisServer(data_dir / "redis") as redis:
        process = WorkerProcess(
            tmp_path / "worker.log",
            {
                "database_url": world.url,
                "redis_url": redis.url,
                "gateway_url": gateway.url,
                "gateway_account": ACCOUNT,
                "cadence": QUICK,
                "heartbeat_seconds": 0.2,
                "stalled_after_seconds": 1.0,
                "drain_seconds": 120.0,
            },
        )
        yield process
        process.kill()
        print(process.log())  # noqa: T201


def nobody_suffers(world: World) -> None:
    """No decline, no step of dunning, no subscription past due."""
    assert world.count("subscription", "status <> 'ACTIVE'") == 0
    assert world.count("subscription_event", "to_status = 'PAST_DUE'") == 0
    assert world.count("payment_attempt", "status = 'DECLINED'") == 0
    assert world.value("SELECT coalesce(sum(failure_count), 0) FROM billing.invoice") == 0


async def collected_once(world: World, gateway: SimulatorProcess, now: timedelta) -> None:
    """Everything is paid, by one charge each, under one attempt each."""

    def look() -> bool:
        nonlocal now
        now += timedelta(seconds=30)
        world.set_clock(DUE + now)
        return world.count("invoice", "status = 'PAID' AND kind = 'RENEWAL'") == PEOPLE

    await until(look, f"{PEOPLE} paid invoices")
    nobody_suffers(world)
    assert gateway.rows(
        "SELECT amount, count(*), count(DISTINCT reference) FROM charges"
        " WHERE status = 'succeeded' GROUP BY 1"
    ) == [(PRICE, PEOPLE, PEOPLE)]
    assert world.count("payment_attempt") == PEOPLE
    assert world.count("outbox_event", "event_type = 'InvoicePaid'") == PEOPLE
    assert world.rows("SELECT * FROM billing_ops.check_integrity()") == []


@pytest.mark.parametrize("outage", [timedelta(minutes=5), timedelta(hours=2)], ids=str)
async def test_a_gateway_that_refuses_connections_costs_nobody_anything(
    world: World, gateway: SimulatorProcess, worker: WorkerProcess, outage: timedelta
) -> None:
    gateway.kill()
    world.subscribe(PEOPLE)
    worker.start()
    await until(lambda: bool(worker.logged("breaker_opened")), "the breaker")
    world.set_clock(DUE + outage)
    await until(lambda: len(worker.logged("breaker_opened")) >= 3, "three probes")
    nobody_suffers(world)
    sends = world.value("SELECT coalesce(sum(send_count), 0) FROM billing.payment_attempt")
    assert sends <= 3 * PEOPLE, "the breaker limits the calls"
    gateway.start()
    await collected_once(world, gateway, outage)


@pytest.mark.parametrize("outage", [timedelta(minutes=5), timedelta(hours=2)], ids=str)
async def test_a_gateway_that_never_answers_is_asked_before_it_is_charged_again(
    world: World, gateway: SimulatorProcess, worker: WorkerProcess, outage: timedelta
) -> None:
    world.subscribe(PEOPLE)
    with gateway.frozen():
        worker.start()
        await until(lambda: bool(worker.logged("breaker_opened")), "the breaker")
        seconds = itertools.count()

        def look() -> bool:
            # What is told after the jump is asked about half a minute later.
            world.set_clock(DUE + outage + timedelta(seconds=min(next(seconds), 3600)))
            return len(worker.logged("breaker_opened")) >= 3

        await until(look, "three probes")
        nobody_suffers(world)
    await collected_once(world, gateway, outage + timedelta(hours=1))
    # What came while it stood still it has found when it woke up: a send and a look-up of each, and
    # some probes. Without the breaker it is a send more for each after minutes, two after hours.
    calls = gateway.value("SELECT count(*) FROM calls")
    assert PEOPLE < calls < 3 * PEOPLE, "the breaker limits the calls"
