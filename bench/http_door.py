"""What the HTTP door costs next to the same SQL call through psycopg alone.

    python bench/http_door.py [--rounds 10] [--calls 500] [--url postgresql://...]

Two calls, `GET /subscriptions/{id}` and `POST /subscriptions`, each made in rounds that alternate
between the door and psycopg, so that whatever else the machine does falls on both. One call at a
time. For each: CPU of the server side, which is the door's process (or the process that calls
psycopg) and the PostgreSQL backends, and the latency as the caller sees it. The caller of the door
is a plain socket whose own CPU is not counted. Fails where the door costs more than five times the
bare call, in CPU or at the 99th percentile.

Without `--url` it runs on a PostgreSQL of its own, from its wheel.
"""

import argparse
import json
import os
import socket
import subprocess
import sys
import time
import uuid
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field

import psycopg
import uvloop
from bench_database import bench_database
from psycopg_pool import AsyncConnectionPool

from billing_shell.api_commands import create_key
from billing_shell.api_keys import Scope
from billing_shell.embedded_server import free_port

MOST_TIMES = 5.0

_NAME = "bench_http_door"
_TICKS = os.sysconf("SC_CLK_TCK")
_WARM_UP = 100
_SEED = """
    SELECT billing_ops.create_gateway_account('simulated', 'simulated');
    SELECT billing_api.create_plan('PRO_MONTHLY', 'Pro', 4900, 'USD', 'MONTH');
"""
_CUSTOMERS = """
    WITH made AS MATERIALIZED (
        SELECT c.customer_id
        FROM generate_series(1, %s) AS n (no)
        CROSS JOIN LATERAL billing_api.create_customer(n.no::text, 'USD') AS c
    )
    SELECT m.customer_id
    FROM made AS m
    CROSS JOIN LATERAL billing_api.add_payment_method(m.customer_id, 'simulated', 'tok_ok') AS p
    ORDER BY m.customer_id
"""
_GET = "SELECT s.* FROM billing_api.subscription AS s WHERE s.subscription_id = %(id)s"
_POST = """
    SELECT s.* FROM billing_api.create_subscription(
        p_customer_id => %(id)s, p_plan_code => 'PRO_MONTHLY', p_idempotency_key => %(key)s
    ) AS s
"""
_BACKENDS = (
    "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND application_name = %s"
)


@dataclass
class Cost:
    """What calls of one kind cost by one way.

    Attributes:
        calls: how many.
        process: seconds of CPU of the process in front of PostgreSQL.
        backends: seconds of CPU of PostgreSQL's backends.
        latencies: seconds, one of each call.
    """

    calls: int = 0
    process: float = 0.0
    backends: float = 0.0
    latencies: list[float] = field(default_factory=list)

    @property
    def cpu(self) -> float:
        """Microseconds of CPU for a call."""
        return (self.process + self.backends) / self.calls * 1e6

    def percentile(self, share: float) -> float:
        """Microseconds of latency."""
        ordered = sorted(self.latencies)
        return ordered[min(int(len(ordered) * share), len(ordered) - 1)] * 1e6


def _cpu(pid: int) -> float:
    with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:  # noqa: PTH123
        times = file.read().rpartition(")")[2].split()
    return (int(times[11]) + int(times[12])) / _TICKS


class Door:
    """`billing api` in a process of its own, and one connection to it."""

    def __init__(self, url: str, key: str) -> None:
        self._key = key
        self.port = free_port()
        environment = {**os.environ, "BILLING_DATABASE_URL": url, "BILLING_LOG_FORMAT": "json"}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "billing_shell", "api", "--port", str(self.port)],
            env=environment,
            stderr=subprocess.DEVNULL,
        )
        self._socket = self._connected()

    def _connected(self) -> socket.socket:
        deadline = time.monotonic() + 60
        while True:
            try:
                opened = socket.create_connection(("127.0.0.1", self.port))
            except ConnectionRefusedError:
                if time.monotonic() > deadline or self.process.poll() is not None:
                    raise
                time.sleep(0.05)
                continue
            opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            return opened

    def request(self, head: str, body: bytes = b"") -> bytes:
        """Makes one request and returns the answer's body."""
        self._socket.sendall(
            f"{head} HTTP/1.1\r\nHost: door\r\nAuthorization: Bearer {self._key}\r\n"
            f"Idempotency-Key: {uuid.uuid4()}\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(body)}\r\n\r\n".encode()
            + body
        )
        received = b""
        while b"\r\n\r\n" not in received:
            received += self._read()
        head_text, _, rest = received.partition(b"\r\n\r\n")
        if not head_text.startswith((b"HTTP/1.1 200", b"HTTP/1.1 201")):
            raise RuntimeError(head_text.decode())
        length = int(head_text.lower().partition(b"content-length:")[2].partition(b"\r\n")[0])
        while len(rest) < length:
            rest += self._read()
        return rest

    def _read(self) -> bytes:
        received = self._socket.recv(65536)
        if not received:
            raise ConnectionError("the door has closed the connection")
        return received

    def close(self) -> None:
        """Ends the process."""
        self._socket.close()
        self.process.terminate()
        self.process.wait(30)


@dataclass
class Kind:
    """One kind of call.

    Attributes:
        name: for people.
        ids: one for each call; they are used up.
        door: makes it over HTTP.
        bare: makes it by psycopg.
    """

    name: str
    ids: Iterator[int]
    door: Callable[[int], object]
    bare: Callable[[int], Awaitable[object]]
    costs: dict[str, Cost] = field(default_factory=lambda: {"door": Cost(), "bare": Cost()})


def _backends(connection: psycopg.Connection, application: str) -> float:
    return sum(_cpu(pid) for (pid,) in connection.execute(_BACKENDS, (application,)).fetchall())


async def _measure(
    connection: psycopg.Connection, door: Door, kinds: list[Kind], rounds: int, calls: int
) -> None:
    for number in range(rounds + 1):
        size = calls if number else _WARM_UP
        for kind in kinds:
            for way, pid, application in (
                ("bare", os.getpid(), "bench bare"),
                ("door", door.process.pid, "billing api"),
            ):
                spent, spent_behind = _cpu(pid), _backends(connection, application)
                latencies = []
                for call in [next(kind.ids) for _ in range(size)]:
                    began = time.perf_counter()
                    if way == "door":
                        kind.door(call)
                    else:
                        await kind.bare(call)
                    latencies.append(time.perf_counter() - began)
                if number:
                    cost = kind.costs[way]
                    cost.calls += size
                    cost.process += _cpu(pid) - spent
                    cost.backends += _backends(connection, application) - spent_behind
                    cost.latencies += latencies


def _cycled(ids: list[int]) -> Iterator[int]:
    while True:
        yield from ids


async def _run(url: str, rounds: int, calls: int) -> bool:
    customers_needed = 2 * (rounds * calls + _WARM_UP)
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(_SEED)
        customers = [row[0] for row in connection.execute(_CUSTOMERS, (customers_needed + 100,))]
        subscriptions = [
            connection.execute(_POST, {"id": customer, "key": str(customer)}).fetchone()[0]  # type: ignore[index]
            for customer in customers[customers_needed:]
        ]
        connection.execute("VACUUM ANALYZE")
        door = Door(url, create_key(url, "bench", [Scope.READ, Scope.WRITE], None))
        pool = AsyncConnectionPool(
            url,
            min_size=1,
            max_size=1,
            open=False,
            kwargs={"autocommit": True, "application_name": "bench bare"},
        )

        async def bare(query: str, parameters: dict[str, object]) -> object:
            async with pool.connection() as one:
                cursor = await one.execute(query.encode(), parameters)
                return await cursor.fetchone()

        def post(customer: int) -> object:
            body = {"customerId": customer, "planCode": "PRO_MONTHLY"}
            return door.request("POST /subscriptions", json.dumps(body).encode())

        kinds = [
            Kind(
                "GET /subscriptions/{id}",
                _cycled(subscriptions),
                lambda id_: door.request(f"GET /subscriptions/{id_}"),
                lambda id_: bare(_GET, {"id": id_}),
            ),
            Kind(
                "POST /subscriptions",
                iter(customers),
                post,
                lambda id_: bare(_POST, {"id": id_, "key": str(uuid.uuid4())}),
            ),
        ]
        await pool.open(wait=True)
        try:
            await _measure(connection, door, kinds, rounds, calls)
        finally:
            await pool.close()
            door.close()
    reports = [_report(kind) for kind in kinds]
    return all(reports)


def _report(kind: Kind) -> bool:
    door, bare = kind.costs["door"], kind.costs["bare"]
    print(f"{kind.name}, {door.calls} calls each way, microseconds")
    for name, cost in kind.costs.items():
        print(
            f"  {name}  cpu {cost.cpu:6.0f} (process {cost.process / cost.calls * 1e6:.0f}, "
            f"backend {cost.backends / cost.calls * 1e6:.0f})  latency p50 "
            f"{cost.percentile(0.5):.0f} p99 {cost.percentile(0.99):.0f}"
        )
    times = {"cpu": door.cpu / bare.cpu, "p99": door.percentile(0.99) / bare.percentile(0.99)}
    print("  times " + "  ".join(f"{name} {value:.2f}" for name, value in times.items()))
    return max(times.values()) <= MOST_TIMES


def main() -> None:
    """Measure both and compare."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--url", help="any database of a server, as a superuser")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--calls", type=int, default=500, help="of each kind in a round")
    arguments = parser.parse_args()
    with bench_database(arguments.url, _NAME) as url:
        within = uvloop.run(_run(url, arguments.rounds, arguments.calls))
    if not within:
        sys.exit(f"the door costs more than {MOST_TIMES:.0f} times the bare call")


if __name__ == "__main__":
    main()
