"""Whether worker, database and Redis agree on the time."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta

import pytest
from redis.asyncio import Redis

from billing_shell import clocks, queries
from billing_shell.clocks import LARGEST_SKEW, ClockGuard, lease_clock
from billing_shell.database import Database
from billing_shell.embedded import RedisServer
from billing_shell.errors import RetryableError
from billing_shell.throttle import Throttle, ThrottleUnavailableError, connect

SECOND = timedelta(seconds=1)
NOW = datetime(2027, 3, 1, tzinfo=UTC)


@pytest.fixture
async def database(database_url: str) -> AsyncIterator[Database]:
    async with Database(database_url, application_name="test") as opened:
        yield opened


@pytest.fixture
async def redis(redis_server: RedisServer) -> AsyncIterator[Redis]:
    async with connect(redis_server.url) as opened:
        yield opened


async def now() -> datetime:
    return datetime.now(UTC)


async def test_clocks_of_one_machine_agree(database: Database, redis: Redis) -> None:
    guard = ClockGuard(
        lambda: database.value(queries.CLOCK, {}), Throttle(redis, "a", "charge", 2).server_time
    )
    assert await guard.agree()


@pytest.mark.parametrize("sign", [-1, 1])
async def test_a_worker_whose_clock_is_wrong_notices(
    database: Database, redis: Redis, sign: int
) -> None:
    guard = ClockGuard(
        lambda: database.value(queries.CLOCK, {}),
        Throttle(redis, "a", "charge", 2).server_time,
        # An hour more: so much delay of an answer explains nothing.
        local_time=lambda: datetime.now(UTC) + sign * (LARGEST_SKEW + timedelta(hours=1)),
    )
    assert not await guard.agree()


@pytest.mark.parametrize(
    ("database_ahead", "redis_ahead", "agree"),
    [(59, 59, True), (0, 61, False), (61, 0, False), (-40, 40, False), (-29, 29, True)],
)
async def test_no_two_of_them_may_lie_further_apart_than_a_minute(
    database_ahead: int, redis_ahead: int, *, agree: bool
) -> None:
    async def of_database() -> datetime:
        return NOW + database_ahead * SECOND

    async def of_redis() -> datetime:
        return NOW + redis_ahead * SECOND

    assert await ClockGuard(of_database, of_redis, lambda: NOW).agree() is agree


async def test_a_slow_answer_is_no_skew() -> None:
    instants = iter(
        [datetime(2027, 3, 1, tzinfo=UTC) + n * timedelta(minutes=10) for n in range(9)]
    )

    async def halfway() -> datetime:
        return datetime(2027, 3, 1, 0, 5, tzinfo=UTC)

    async def later() -> datetime:
        return datetime(2027, 3, 1, 0, 25, tzinfo=UTC)

    assert await ClockGuard(halfway, later, lambda: next(instants)).agree()


async def test_without_redis_the_other_two_decide() -> None:
    async def silent() -> datetime:
        raise ThrottleUnavailableError("nobody there")

    assert await ClockGuard(now, silent).agree()


async def test_without_the_database_nobody_decides() -> None:
    async def silent() -> datetime:
        raise RetryableError("08000", "nobody there")

    with pytest.raises(RetryableError):
        await ClockGuard(silent, now).agree()


async def test_it_asks_every_few_seconds_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clocks, "lease_clock", lambda: 100.0)
    asked = 0

    async def counting() -> datetime:
        nonlocal asked
        asked += 1
        return datetime.now(UTC)

    guard = ClockGuard(counting, counting)
    assert await guard.agree()
    assert await guard.agree()
    assert asked == 2


def test_the_clock_of_leases_goes_on() -> None:
    before = lease_clock()
    assert lease_clock() >= before
