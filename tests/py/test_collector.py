"""The collector: as many attempts as there are slots, people first, and only when it may."""

import signal
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from billing_shell import clocks
from billing_shell.dispatcher import Claim, Dispatcher
from billing_shell.embedded import RedisServer
from billing_shell.embedded_server import free_port
from billing_shell.throttle import Slot
from tests.py.support.in_process import working
from tests.py.support.simulator import SimulatorProcess, smooth_simulator
from tests.py.support.world import ACCOUNT, PRICE, World, busiest_second, until


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
    # A port that no client is given while nobody listens there.
    with smooth_simulator(tmp_path, "--port", str(free_port())) as process:
        yield process


def paid(world: World) -> int:
    return world.count("invoice", "status = 'PAID' AND kind = 'RENEWAL'")


def is_active(world: World, subscription_id: int) -> bool:
    return (
        world.count("subscription", "subscription_id = %s AND status = 'ACTIVE'", subscription_id)
        == 1
    )


def limit(world: World, per_second: int) -> None:
    for operation in ("charge", "look_up"):
        world.value(
            "SELECT billing_ops.set_gateway_rate(%s, %s, %s)", ACCOUNT, operation, per_second
        )


@pytest.fixture
def ahead(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many calls were started and not yet sent, each time that some were started."""
    found: list[int] = []
    started = sent = 0
    add, reached = Dispatcher.add, Slot.reached

    def counted_add(self: Dispatcher, claims: list[Claim]) -> None:
        nonlocal started
        started += len(claims)
        found.append(started - sent)
        add(self, claims)

    async def counted_reached(self: Slot) -> bool:
        nonlocal sent
        usable = await reached(self)
        sent += usable
        return usable

    monkeypatch.setattr(Dispatcher, "add", counted_add)
    monkeypatch.setattr(Slot, "reached", counted_reached)
    return found


async def test_it_keeps_to_the_limit_and_starts_no_more_than_it_has_slots_for(
    world: World, redis: RedisServer, gateway: SimulatorProcess, ahead: list[int]
) -> None:
    limit(world, 20)
    world.subscribe(50)
    async with working(world, redis.url, gateway.url):
        await until(lambda: paid(world) == 50, "50 paid invoices")
    arrivals = [at for (at,) in gateway.rows("SELECT arrived_us FROM calls")]
    assert len(arrivals) == 50
    assert busiest_second(arrivals) <= 20
    # 250 ms of slots at most, and those of a round that missed theirs.
    assert len(ahead) >= 50 / 5
    assert max(ahead) <= 20


async def test_people_who_wait_come_before_the_backlog(
    world: World, redis: RedisServer, gateway: SimulatorProcess
) -> None:
    # Three a second: twenty seconds of backlog.
    limit(world, 5)
    world.subscribe(60)
    async with working(world, redis.url, gateway.url):
        await until(lambda: paid(world) >= 1, "the backlog's beginning")
        subscription_id = world.check_out()
        await until(lambda: is_active(world, subscription_id), "the check-out")
        assert paid(world) < 60, "the backlog still waits"
        limit(world, 200)
        await until(lambda: paid(world) == 60, "the backlog")


async def test_a_check_out_is_seen_within_moments_when_nothing_else_is_due(
    world: World, redis: RedisServer, gateway: SimulatorProcess
) -> None:
    async with working(world, redis.url, gateway.url):
        subscription_id = world.check_out()
        await until(lambda: is_active(world, subscription_id), "the check-out")
    assert gateway.rows("SELECT amount, status FROM charges") == [(PRICE, "succeeded")]


async def test_while_an_operator_has_stopped_it_nothing_is_started(
    world: World, redis: RedisServer, gateway: SimulatorProcess
) -> None:
    world.subscribe(3)
    world.value("SELECT billing_ops.pause_collecting(%s)", ACCOUNT)
    async with working(world, redis.url, gateway.url):
        await until(lambda: world.count("invoice", "kind = 'RENEWAL'") == 3, "the renewals")
        assert world.count("payment_attempt") == 0
        world.value("SELECT billing_ops.resume_collecting(%s)", ACCOUNT)
        await until(lambda: paid(world) == 3, "3 paid invoices")


async def test_a_change_of_the_limit_is_followed_while_it_runs(
    world: World, redis: RedisServer, gateway: SimulatorProcess
) -> None:
    limit(world, 5)
    world.subscribe(120)
    async with working(world, redis.url, gateway.url):
        await until(lambda: paid(world) >= 2, "the first ones")
        limit(world, 200)
        await until(lambda: paid(world) == 120, "all, which would take 24 s at the old limit")


async def test_without_its_gateway_account_it_renews_and_says_what_is_missing(
    world: World, redis: RedisServer, gateway: SimulatorProcess
) -> None:
    world.subscribe(2)
    with capture_logs() as logs:
        async with working(world, redis.url, gateway.url, gateway_account="missing"):
            await until(lambda: world.count("invoice", "kind = 'RENEWAL'") == 2, "the renewals")
            await until(
                lambda: any(line["event"] == "gateway_account_missing" for line in logs), "a word"
            )
    (line,) = [line for line in logs if line["event"] == "gateway_account_missing"]
    assert line["gateway_account"] == "missing"


async def test_an_adapter_that_it_does_not_have_is_named(
    world: World, redis: RedisServer, gateway: SimulatorProcess
) -> None:
    world.value("SELECT billing_ops.create_gateway_account('other', 'abacus')")
    with capture_logs() as logs:
        async with working(world, redis.url, gateway.url, gateway_account="other"):
            await until(
                lambda: any(line["event"] == "gateway_adapter_unknown" for line in logs), "a word"
            )
    (line,) = [line for line in logs if line["event"] == "gateway_adapter_unknown"]
    assert "abacus" in line["hint"]


async def test_while_the_clocks_lie_apart_nothing_is_collected(
    world: World, redis: RedisServer, gateway: SimulatorProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ruling R41."""
    world.subscribe(2)
    world.value("SELECT billing_worker.renew_due(10)")
    wrong = datetime(2020, 1, 1, tzinfo=UTC)
    monkeypatch.setattr(clocks.ClockGuard.__init__, "__defaults__", (lambda: wrong,))
    with capture_logs() as logs:
        async with working(world, redis.url, gateway.url):
            await until(lambda: any(line["event"] == "clocks_apart" for line in logs), "a word")
    assert world.count("payment_attempt") == 0


async def test_a_gateway_that_is_down_empties_no_queue_into_doubt(
    world: World, redis: RedisServer, gateway: SimulatorProcess
) -> None:
    world.subscribe(150)
    gateway.kill()
    with capture_logs() as logs:
        async with working(world, redis.url, gateway.url):
            await until(lambda: any(line["event"] == "breaker_opened" for line in logs), "a word")
            tried = world.count("payment_attempt")
            assert tried < 150
            gateway.start()
            await until(lambda: paid(world) == 150, "150 paid invoices")
    assert any(line["event"] == "breaker_closed" for line in logs)
    assert world.count("payment_attempt") == 150
    assert world.count("payment_report", "outcome = 'UNKNOWN'") == 0
    assert world.value("SELECT max(failure_count) FROM billing.invoice") == 0


async def test_one_process_has_hundreds_of_calls_in_flight(
    world: World, redis: RedisServer, gateway: SimulatorProcess
) -> None:
    world.subscribe(250)
    async with working(world, redis.url, gateway.url):
        process = gateway._process  # noqa: SLF001  to freeze it is nobody else's wish
        assert process is not None
        process.send_signal(signal.SIGSTOP)
        # Its machine takes connections and requests all the same; nobody answers.
        await until(
            lambda: world.count("payment_attempt", "status = 'STARTED'") == 250, "250 calls"
        )
        assert paid(world) == 0
        process.send_signal(signal.SIGCONT)
        await until(lambda: paid(world) == 250, "250 paid invoices")
