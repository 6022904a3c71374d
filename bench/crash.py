"""Kills worker, relay, API and database, round after round, and judges what is left.

    python -m bench.crash --rounds 200
    python -m bench.crash --rounds 20 --database

Servers of its own. Who is killed where goes round: each process at random and at each of its crash
points; with --database the server killed, shut down at once, and one of its backends killed. After
each round the gateway's ledger, the integrity check, the topic and the answers of the API must
agree (`tests/py/support/crash_bench.py`). Ends with a table; exit code 1 at the first disagreement.
"""

import argparse
import asyncio
import contextlib
import itertools
import sys
import time
import uuid
from collections.abc import Iterator

from billing_shell.embedded import KafkaBroker, PostgresServer, RedisServer, temporary_data_dir
from billing_shell.migrate import migrate
from tests.py.support.crash_bench import AT_RANDOM, DATABASE_DEATHS, POINTS, Bench, Victim


def deaths() -> Iterator[tuple[Victim, str]]:
    """Worker, relay and API in turns: half of the worker's deaths, a quarter of each other's."""
    worker = itertools.cycle(
        itertools.chain.from_iterable((point, AT_RANDOM) for point in POINTS[Victim.WORKER])
    )
    others = itertools.cycle(
        [
            (Victim.RELAY, AT_RANDOM),
            (Victim.DOOR, AT_RANDOM),
            (Victim.RELAY, POINTS[Victim.RELAY][0]),
            (Victim.DOOR, POINTS[Victim.DOOR][0]),
        ]
    )
    while True:
        yield Victim.WORKER, next(worker)
        yield next(others)


def database_deaths() -> Iterator[tuple[Victim, str]]:
    """Every kind of death in turn."""
    for how in itertools.cycle(DATABASE_DEATHS):
        yield Victim.DATABASE, how


def report(bench: Bench, seconds: float) -> None:
    """Print what has been done and seen, as a table in Markdown."""
    print("| killed | where | rounds |\n|---|---|---|")
    for (victim, where), number in sorted(bench.deaths.items()):
        print(f"| {victim} | {where} | {number} |")
    print("\n| seen | |\n|---|---|")
    for name, number in sorted(bench.totals.items()):
        print(f"| {name} | {number:,} |")
    faults = bench.gateway.rows(
        "SELECT fault, count(*) FROM calls WHERE fault IS NOT NULL GROUP BY 1 ORDER BY 1"
    )
    for name, number in faults:
        print(f"| fault at the gateway: {name} | {number:,} |")
    print(f"| seconds | {seconds:,.0f} |")


async def main() -> int:
    """Run the rounds."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--database", action="store_true", help="kill the database instead")
    arguments = parser.parse_args()
    began = time.monotonic()
    with contextlib.ExitStack() as stack:
        directory = stack.enter_context(temporary_data_dir())
        server = stack.enter_context(PostgresServer(directory / "postgres"))
        redis = stack.enter_context(RedisServer(directory / "redis"))
        kafka = stack.enter_context(KafkaBroker(directory / "kafka"))
        migrate(server.url)
        topic = f"crashes-{uuid.uuid4().hex[:12]}"
        bench = Bench(directory, server.url, redis.url, kafka.bootstrap, topic, server=server)
        stack.callback(bench.end)
        await bench.start()
        chosen = database_deaths() if arguments.database else deaths()
        stack.callback(lambda: report(bench, time.monotonic() - began))
        for number, (victim, where) in zip(range(1, arguments.rounds + 1), chosen, strict=False):
            if wrong := await bench.round(number, victim, where):
                print(f"round {number}, {victim} {where}:", *wrong, sep="\n  ")
                return 1
            print(f"round {number}: {victim} {where}, {time.monotonic() - began:.0f} s", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
