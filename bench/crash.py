"""Kills workers and the database at random, round after round, and looks at what is left.

    python bench/crash.py --rounds 200
    python bench/crash.py --rounds 20 --database

Servers of its own. In each round customers become due, the worker is killed after a random part of
a second, or at a named crash point, and another one takes over; with --database it is the database
server that is killed, and starts again. A round ends when all is paid. Then the gateway's ledger
must hold one payment for each invoice and nothing else, and the integrity check must find nothing.
Exit code 1 if not.
"""

import argparse
import asyncio
import contextlib
import random
import sys
import time
from collections import Counter
from pathlib import Path

import httpx

from billing_shell.doctor import examine
from billing_shell.embedded import PostgresServer, RedisServer, temporary_data_dir
from billing_shell.migrate import migrate
from tests.py.support.simulator import SimulatorProcess
from tests.py.support.worker_process import QUICK, WorkerProcess
from tests.py.support.world import ACCOUNT, PRICE, World, until

EACH = 12
PATIENCE = 300.0
"""Seconds that a round may take on a busy machine."""
POINTS = (
    "",
    "",
    "slots_reserved",
    "attempts_started",
    "request_sent",
    "answer_received",
    "settled",
)

# Not a 500 that is kept without a charge: only a person ends that.
FAULTS = ["timeout_charged", "timeout_lost", "cut", "500_charged", "429"]

_UNPAID = """
    SELECT i.invoice_id, i.next_attempt_at, i.held_until, to_jsonb(a), billing.now()
    FROM billing.invoice AS i LEFT JOIN billing.payment_attempt AS a USING (customer_id, invoice_id)
    WHERE i.status <> 'PAID'
"""


class Bench:
    """One database, one gateway, and workers that do not live long."""

    def __init__(self, directory: Path, server: PostgresServer, redis: RedisServer) -> None:
        self.world = World(server.url, request_timeout=1, lease_margin=1)
        self.gateway = SimulatorProcess(
            directory / "gateway.db", "--latency", "0-0.2", "--faults", "0", "--hang", "0.3"
        )
        self.deaths: Counter[str] = Counter()
        self._directory = directory
        self._server = server
        self._options = {
            "database_url": server.url,
            "redis_url": redis.url,
            "gateway_account": ACCOUNT,
            "cadence": QUICK,
            "heartbeat_seconds": 0.2,
            "stalled_after_seconds": 1.0,
        }

    def let_faults_strike(self) -> None:
        """Have one call in ten go wrong at the gateway."""
        faults = {"rate": 0.1, "kinds": FAULTS}
        httpx.put(f"{self.gateway.url}/_control/faults", json=faults).raise_for_status()

    def worker(self) -> WorkerProcess:
        """Describe a worker."""
        options = self._options | {"gateway_url": self.gateway.url}
        return WorkerProcess(self._directory / "worker.log", options)

    async def round(self, number: int, *, database: bool) -> None:
        """Kill somebody, and wait until everything is paid."""
        chance = random.Random(number)  # noqa: S311 - to be repeated
        self.world.subscribe(EACH)
        wanted = self._paid() + EACH
        victim = self.worker()
        point = "" if database else chance.choice(POINTS)
        reached = self._directory / f"reached-{number}"
        victim.start(crash_point=point, crash_signal=reached)
        if point:
            await until(reached.exists, point)
        else:
            await until(lambda: bool(victim.logged("worker_started")), "the start")
            await asyncio.sleep(chance.uniform(0, 1.5))
        if database:
            self._server.kill()
            self._server.start()
            self.world.reconnect()
        else:
            victim.kill()
        self.deaths["database" if database else point or "at random"] += 1
        heir = victim if database else self.worker()
        if not database:
            heir.start()
        try:
            async with asyncio.timeout(PATIENCE):
                while not self._goes_on(wanted):  # noqa: ASYNC110 - the database cannot tell us
                    await asyncio.sleep(0.05)
        except TimeoutError:
            print(*self.world.rows(_UNPAID), sep="\n")
            raise
        finally:
            heir.kill()

    def verdict(self) -> list[str]:
        """Return what is wrong."""
        wrong = [
            f"{reference}: {n} payments"
            for reference, n in self.gateway.rows(
                "SELECT reference, count(*) FROM charges WHERE status = 'succeeded'"
                " GROUP BY 1 HAVING count(*) > 1"
            )
        ]
        moved = self.gateway.value(
            "SELECT coalesce(sum(amount), 0) FROM charges WHERE status = 'succeeded'"
        )
        if moved != PRICE * self._paid():
            wrong.append(f"the gateway moved {moved}, {self._paid()} invoices are paid")
        wrong += [
            f"{v.check_name}: {v.object}: {v.detail}" for v in examine(self.world.url).violations
        ]
        return wrong

    def _paid(self) -> int:
        return self.world.count("invoice", "status = 'PAID' AND kind = 'RENEWAL'")

    def _goes_on(self, wanted: int) -> bool:
        self.world.value("SELECT billing_ops.set_clock(billing.now() + interval '10 seconds')")
        return self._paid() >= wanted


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
        migrate(server.url)
        bench = Bench(directory, server, redis)
        stack.callback(bench.world.close)
        stack.enter_context(bench.gateway)
        bench.let_faults_strike()
        for number in range(1, arguments.rounds + 1):
            await bench.round(number, database=arguments.database)
            if wrong := bench.verdict():
                print(f"round {number}:", *wrong, sep="\n  ")
                return 1
    print(f"{arguments.rounds} rounds in {time.monotonic() - began:.0f} s, all clean")
    print(", ".join(f"{name} {count}" for name, count in sorted(bench.deaths.items())))
    return 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
