"""What may go wrong around workers does, while they work: nothing is charged twice or left out.

Processes that are killed stand in `test_worker.py`, relays and brokers in `test_relay.py`. Every
test ends with the gateway's own ledger and with the integrity check.
"""

import asyncio
import contextlib
import signal
import time
from collections.abc import AsyncIterator, Iterator
from datetime import timedelta
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import pytest
from redis import Redis

from billing_shell.doctor import examine
from billing_shell.embedded import PostgresServer, RedisServer
from billing_shell.migrate import migrate
from tests.py.support.servers import TestPostgres
from tests.py.support.simulator import SimulatorProcess, client_of, put, smooth_simulator
from tests.py.support.world import DUE, PRICE, World, busiest_second, until
from tests.py.test_worker import Workers, as_time_goes_on, charged, paid

pytestmark = pytest.mark.long

LIMIT = 40
HELD_SECONDS = 120
SLOW_SECONDS = 10
_CUT = """
    SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
    WHERE application_name LIKE 'billing %%' AND datname = current_database()
"""


@pytest.fixture
def world(database_url: str) -> Iterator[World]:
    made = World(database_url, request_timeout=2, lease_margin=1, rate=LIMIT)
    yield made
    made.close()


@pytest.fixture
def redis(data_dir: Path) -> Iterator[RedisServer]:
    with RedisServer(data_dir / "redis") as server:
        yield server


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[SimulatorProcess]:
    with smooth_simulator(tmp_path, "--hang", "0.5") as process:
        yield process


@pytest.fixture
def workers(world: World, redis: RedisServer, tmp_path: Path) -> Iterator[Workers]:
    made = Workers(world, redis, tmp_path)
    yield made
    made.end()


def assert_all_is_well(world: World, gateway: SimulatorProcess, people: int) -> None:
    assert charged(gateway) == [(PRICE, people)]
    assert gateway.value("SELECT count(DISTINCT reference) FROM charges") == people
    assert examine(world.url).violations == ()


def has_paid(world: World, invoices: int) -> bool:
    return paid(world) >= invoices


def most_in_a_second(gateway: SimulatorProcess, operation: str = "charge") -> int:
    arrivals = gateway.rows("SELECT arrived_us FROM calls WHERE operation = ?", (operation,))
    return busiest_second([at for (at,) in arrivals])


@pytest.mark.parametrize("number", [1, 4, 8])
async def test_no_second_sees_more_than_the_limit(
    world: World, gateway: SimulatorProcess, redis: RedisServer, workers: Workers, number: int
) -> None:
    """From a cold start, over a flush in mid-run, and in a burst after idling."""
    world.subscribe(3 * LIMIT)
    started = [workers.start(gateway) for _ in range(number)]
    # On a busy machine an answer may come after its lease; asking again takes business time.
    under_way = as_time_goes_on(world, lambda: paid(world) > LIMIT)
    await until(under_way, "the run to be under way")
    with Redis.from_url(redis.url) as client:
        client.flushall()
    since = DUE + timedelta(hours=10)
    everybody = as_time_goes_on(world, partial(has_paid, world, 3 * LIMIT), since)
    await until(everybody, "all payments")
    last = int(gateway.value("SELECT max(arrived_us) FROM calls"))
    await until(lambda: time.time_ns() // 1000 - last > 1_500_000, "a second without a call")
    world.subscribe(2 * LIMIT)
    await until(as_time_goes_on(world, partial(has_paid, world, 5 * LIMIT)), "the burst")
    assert most_in_a_second(gateway) <= LIMIT
    assert most_in_a_second(gateway, "look_up") <= LIMIT
    assert {await worker.stop() for worker in started} == {0}
    assert_all_is_well(world, gateway, 5 * LIMIT)


async def test_a_redis_that_stands_still_holds_up_and_breaks_nothing(
    world: World, gateway: SimulatorProcess, redis: RedisServer, workers: Workers
) -> None:
    world.subscribe(2 * LIMIT)
    worker = workers.start(gateway)
    await until(lambda: paid(world) > 5, "the run to be under way")
    redis.signal(signal.SIGSTOP)
    try:
        await until(lambda: bool(worker.logged("throttle_unavailable")), "the refusal")
    finally:
        redis.signal(signal.SIGCONT)
    await until(as_time_goes_on(world, lambda: paid(world) == 2 * LIMIT), "all payments")
    assert most_in_a_second(gateway) <= LIMIT
    assert_all_is_well(world, gateway, 2 * LIMIT)


class SlowWay:
    """A way to a server of this machine on which whatever is said takes some time.

    Attributes:
        seconds: for which each piece is held, each way.
    """

    def __init__(self, port: int, seconds: float) -> None:
        """Not open yet."""
        self._port = port
        self.seconds = seconds

    async def _pass_on(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        with contextlib.closing(sink), contextlib.suppress(OSError):
            while data := await source.read(65536):
                await asyncio.sleep(self.seconds)
                sink.write(data)
                await sink.drain()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, back = await asyncio.open_connection("127.0.0.1", self._port)
        await asyncio.gather(self._pass_on(reader, back), self._pass_on(there, writer))

    @contextlib.asynccontextmanager
    async def open(self) -> AsyncIterator[int]:
        """Open it; its port."""
        async with await asyncio.start_server(self._serve, "127.0.0.1", 0) as server:
            yield server.sockets[0].getsockname()[1]


async def test_a_redis_that_is_slow_costs_time_and_no_call_too_many(
    world: World, gateway: SimulatorProcess, redis: RedisServer, workers: Workers
) -> None:
    """So slow at first that slots are over before they are known; then a little."""
    address = urlsplit(redis.url)
    assert address.port is not None
    way = SlowWay(address.port, 0.2)
    async with way.open() as port:
        world.subscribe(2 * LIMIT)
        slow = address._replace(netloc=f"127.0.0.1:{port}").geturl()
        started = [workers.start(gateway, redis_url=slow) for _ in range(2)]
        await until(lambda: all(worker.logged("worker_started") for worker in started), "both")
        began = time.monotonic()
        await until(lambda: time.monotonic() - began > SLOW_SECONDS, "some seconds")
        way.seconds = 0.002
        everybody = partial(has_paid, world, 2 * LIMIT)
        await until(as_time_goes_on(world, everybody), "all payments")
        assert {await worker.stop() for worker in started} == {0}
    assert most_in_a_second(gateway) <= LIMIT
    assert most_in_a_second(gateway, "look_up") <= LIMIT
    assert_all_is_well(world, gateway, 2 * LIMIT)


async def test_connections_that_are_cut_again_and_again_lose_nothing(
    world: World, gateway: SimulatorProcess, workers: Workers
) -> None:
    world.subscribe(2 * LIMIT)
    async with client_of(gateway) as client:
        await put(client, "latency", least=0.1, most=0.3)
    for _ in range(2):
        workers.start(gateway)
    for hour, least in enumerate((1, 20, 40, 60)):
        since = DUE + timedelta(hours=hour)
        await until(as_time_goes_on(world, partial(has_paid, world, least), since), "progress")
        assert world.value(_CUT) > 0
    since = DUE + timedelta(hours=4)
    everybody = partial(has_paid, world, 2 * LIMIT)
    await until(as_time_goes_on(world, everybody, since), "all payments")
    assert_all_is_well(world, gateway, 2 * LIMIT)


async def test_a_transaction_held_open_holds_up_only_what_it_has_locked(
    world: World, gateway: SimulatorProcess, workers: Workers
) -> None:
    held, *_ = world.subscribe(20)
    began = time.monotonic()
    with psycopg.connect(world.url) as other:
        other.execute("SELECT count(*) FROM billing.invoice")
        other.execute(
            "SELECT 1 FROM billing.subscription WHERE subscription_id = %s FOR UPDATE", (held,)
        )
        workers.start(gateway)
        await until(lambda: paid(world) == 19, "those that nobody holds")
        # Beyond every time-out and lease of the others: two minutes of nothing but waiting.
        await until(
            lambda: time.monotonic() - began > HELD_SECONDS and paid(world) == 19, "two minutes"
        )
        assert world.count("invoice", "kind = 'RENEWAL'") == 19
    await until(lambda: paid(world) == 20, "the last one")
    assert_all_is_well(world, gateway, 20)


async def test_a_clock_that_jumps_forward_and_back_bills_each_period_once(
    world: World, gateway: SimulatorProcess, workers: Workers
) -> None:
    world.subscribe(5)
    workers.start(gateway)
    await until(lambda: paid(world) == 5, "March")
    for days, periods in ((31, 10), (-40, 10), (31, 10), (61, 15), (0, 15), (62, 15)):
        world.set_clock(DUE + timedelta(days=days))
        await until(partial(has_paid, world, periods), f"day {days}")
    assert world.count("subscription_period") == 5 * 4
    assert_all_is_well(world, gateway, 15)


async def test_a_database_that_crashes_in_the_middle_of_a_batch_loses_nothing(
    postgres: TestPostgres, data_dir: Path, gateway: SimulatorProcess, tmp_path: Path
) -> None:
    if postgres.binaries is None:
        pytest.skip("crashing a server needs its programs on this machine")
    with (
        PostgresServer(data_dir / "postgres", binaries=postgres.binaries) as server,
        RedisServer(data_dir / "redis") as redis,
    ):
        migrate(server.url)
        world = World(server.url, request_timeout=2, lease_margin=1, rate=LIMIT)
        workers = Workers(world, redis, tmp_path)
        try:
            world.subscribe(2 * LIMIT)
            async with client_of(gateway) as client:
                await put(client, "latency", least=0.1, most=0.3)
            workers.start(gateway)
            for hour, least in enumerate((5, 40)):
                since = DUE + timedelta(hours=hour)
                progress = partial(has_paid, world, least)
                await until(as_time_goes_on(world, progress, since), "progress")
                server.kill()
                server.start()
                world.reconnect()
            since = DUE + timedelta(hours=2)
            everybody = partial(has_paid, world, 2 * LIMIT)
            await until(as_time_goes_on(world, everybody, since), "all payments")
            assert_all_is_well(world, gateway, 2 * LIMIT)
        finally:
            workers.end()
            world.close()
