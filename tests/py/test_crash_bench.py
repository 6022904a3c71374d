"""A few rounds of the crash bench; `python -m bench.crash` does hundreds.

Each crash point of the worker has its own test in `test_worker.py` and `test_refunds.py`. Here the
whole installation runs, so that one death is seen by everybody else.
"""

import uuid
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from billing_shell.embedded import KafkaBroker, PostgresServer, RedisServer
from billing_shell.migrate import migrate
from tests.py.support.crash_bench import AT_RANDOM, POINTS, Bench, Victim
from tests.py.support.servers import TestPostgres

pytestmark = pytest.mark.crash


@pytest.fixture
async def bench(
    postgres: TestPostgres, kafka_broker: KafkaBroker, data_dir: Path
) -> AsyncIterator[Bench]:
    if postgres.binaries is None:
        pytest.skip("killing a server needs its programs on this machine")
    topic = f"crashes-{uuid.uuid4().hex[:12]}"
    with (
        PostgresServer(data_dir / "postgres", binaries=postgres.binaries, durable=False) as server,
        RedisServer(data_dir / "redis") as redis,
    ):
        migrate(server.url)
        made = Bench(data_dir, server.url, redis.url, kafka_broker.bootstrap, topic, server=server)
        try:
            await made.start()
            yield made
        finally:
            made.end()


async def test_whoever_is_killed_all_work_is_done_once_and_told(bench: Bench) -> None:
    deaths: tuple[tuple[Victim, str], ...] = (
        (Victim.WORKER, AT_RANDOM),
        (Victim.RELAY, POINTS[Victim.RELAY][0]),
        (Victim.DOOR, POINTS[Victim.DOOR][0]),
        (Victim.DATABASE, "server killed"),
    )
    for number, (victim, where) in enumerate(deaths, start=1):
        assert await bench.round(number, victim, where) == [], f"{victim} {where}"
    assert bench.totals["calls without an answer"] > 0
    assert bench.totals["answers repeated"] >= bench.totals["sign-ups"]
    assert bench.totals["events told again"] > 0
