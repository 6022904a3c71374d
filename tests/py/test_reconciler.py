"""The reconciler: asks what became of doubtful attempts, and changes nothing by asking in vain."""

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from redis import Redis

from billing_shell.embedded import RedisServer
from tests.py.support.in_process import working
from tests.py.support.simulator import SimulatorProcess, client_of, put, smooth_simulator
from tests.py.support.world import ACCOUNT, DUE, PRICE, World, until

LATER = DUE + timedelta(seconds=30)
"""When a send that was not answered is asked about for the first time."""


@pytest.fixture
def world(database_url: str) -> Iterator[World]:
    made = World(database_url)
    yield made
    made.close()


@pytest.fixture
def redis(data_dir: Path) -> Iterator[RedisServer]:
    with RedisServer(data_dir / "redis") as server:
        yield server


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[SimulatorProcess]:
    with smooth_simulator(tmp_path, "--hang", "0.1") as process:
        yield process


def doubtful(world: World) -> int:
    return world.count("payment_attempt", "status = 'UNKNOWN'")


def asked(gateway: SimulatorProcess) -> int:
    return int(gateway.value("SELECT count(*) FROM calls WHERE operation = 'look_up'"))


async def test_doubt_is_resolved_by_asking_and_not_by_charging(
    world: World, redis: RedisServer, gateway: SimulatorProcess
) -> None:
    world.subscribe(15, "tok_timeout_charged")
    async with working(world, redis.url, gateway.url):
        await until(lambda: doubtful(world) == 15, "15 doubts")
        assert asked(gateway) == 0, "not before its time"
        world.set_clock(LATER)
        await until(lambda: world.count("invoice", "status = 'PAID' AND kind = 'RENEWAL'") == 15)
    assert gateway.rows("SELECT amount, count(*) FROM charges GROUP BY 1") == [(PRICE, 15)]
    sends = "SELECT count(*) FROM calls WHERE operation = 'charge'"
    assert (gateway.value(sends), asked(gateway)) == (15, 15)


async def test_look_ups_take_slots_of_their_own(
    world: World, redis: RedisServer, gateway: SimulatorProcess
) -> None:
    world.subscribe(1, "tok_timeout_charged")
    async with working(world, redis.url, gateway.url):
        await until(lambda: doubtful(world) == 1, "the doubt")
        world.set_clock(LATER)
        await until(lambda: doubtful(world) == 0, "the answer")
    with Redis.from_url(redis.url) as client:
        keys = {key.decode() for key in client.scan_iter()}
    assert keys == {f"billing:throttle:{ACCOUNT}:{name}" for name in ("charge", "look_up")}


async def test_a_look_up_that_errs_changes_nothing(
    world: World, redis: RedisServer, gateway: SimulatorProcess
) -> None:
    world.subscribe(1, "tok_timeout_charged")
    state = (
        "SELECT status, send_count, not_found_count, not_found_rounds, decline_code"
        " FROM billing.payment_attempt"
    )
    async with working(world, redis.url, gateway.url):
        await until(lambda: doubtful(world) == 1, "the doubt")
        before = world.rows(state)
        async with client_of(gateway) as client:
            await put(client, "faults", rate=1, kinds=["500_lost"])
            world.set_clock(LATER)
            await until(lambda: asked(gateway) == 1, "the question")
            await until(lambda: world.count("payment_report", "source = 'LOOKUP'") == 1, "its end")
            assert world.rows(state) == before
            await put(client, "faults", rate=0)
        world.set_clock(LATER + timedelta(minutes=2))
        await until(lambda: doubtful(world) == 0, "the answer")
    assert gateway.rows("SELECT amount, count(*) FROM charges GROUP BY 1") == [(PRICE, 1)]


async def test_an_attempt_whose_worker_died_is_asked_about_once_its_lease_has_lapsed(
    world: World, redis: RedisServer, gateway: SimulatorProcess
) -> None:
    world.subscribe(3)
    world.value("SELECT billing_worker.renew_due(10)")
    claimed = world.rows(
        "SELECT attempt_id FROM billing_worker.start_attempts(%s, 3, 'dead')", ACCOUNT
    )
    assert len(claimed) == 3
    world.lapse_leases()
    async with working(world, redis.url, gateway.url):
        await until(lambda: asked(gateway) == 3, "3 questions")
        await until(lambda: world.count("payment_report", "outcome = 'NOT_FOUND'") == 3, "answers")
    assert gateway.value("SELECT count(*) FROM charges") == 0, (
        "nobody knows that they were not sent"
    )
    assert doubtful(world) == 3
