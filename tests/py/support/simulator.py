"""The simulated gateway as a process, and its ledger as an auditor reads it: by sqlite3 alone."""

import asyncio
import contextlib
import json
import os
import select
import signal
import sqlite3
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import httpx

from billing_shell.connection_lanes import ConnectionLanes

# Costs nothing where all goes well, and machines are busy.
_START_SECONDS = 180
_STOP_SECONDS = 180

SMOOTH = ("--latency", "0", "--faults", "0", "--limit", "100000")
"""Options of a gateway that answers at once, and to which nothing happens by chance."""


class SimulatorProcess:
    """One gateway process on one ledger file; may be killed and started again."""

    def __init__(self, ledger: Path, *options: str) -> None:
        self.ledger = ledger
        self._options = options
        self._process: subprocess.Popen[str] | None = None
        self.url = ""

    @staticmethod
    def command(ledger: Path) -> list[str]:
        """Return the command line that starts a gateway."""
        return [sys.executable, "-m", "billing_shell.simulator", "--ledger", str(ledger)]

    def start(self, *more_options: str) -> None:
        """Start it and wait until it listens."""
        process = subprocess.Popen(
            [*self.command(self.ledger), *self._options, *more_options],
            stdout=subprocess.PIPE,
            text=True,
        )
        self._process = process
        assert process.stdout is not None
        listening, _, _ = select.select([process.stdout], [], [], _START_SECONDS)
        line = process.stdout.readline() if listening else ""
        if not line:
            self.kill()
            raise AssertionError("the simulated gateway does not listen")
        self.url = json.loads(line)["url"]

    def kill(self) -> None:
        """End it as a power cut would."""
        if self._process is not None:
            self._process.kill()
            self._finish()

    def stop(self) -> int:
        """Ask it to end; return its exit code."""
        assert self._process is not None
        process = self._process
        process.terminate()
        process.wait(_STOP_SECONDS)
        self._finish()
        return process.returncode

    @contextlib.contextmanager
    def frozen(self) -> Iterator[None]:
        """Give it no processor time meanwhile."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, self._process.pid, os.WSTOPPED | os.WNOWAIT)
        try:
            yield
        finally:
            self._process.send_signal(signal.SIGCONT)

    def unread(self) -> int:
        """Bytes that have come to its port, and that it has not read; on Linux."""
        port = f":{int(self.url.rpartition(':')[2]):04X}"
        waiting = 0
        for line in Path("/proc/net/tcp").read_text("ascii").splitlines()[1:]:
            _, local, _, state, queues, *_ = line.split()
            if local.endswith(port) and state == "01":
                waiting += int(queues.partition(":")[2], 16)
        return waiting

    def rows(self, statement: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Read the ledger file, while the gateway runs or when it is dead."""
        with contextlib.closing(sqlite3.connect(self.ledger, timeout=_START_SECONDS)) as connection:
            return connection.execute(statement, parameters).fetchall()

    def value(self, statement: str, parameters: Sequence[Any] = ()) -> Any:  # noqa: ANN401
        """Read one value of the ledger file."""
        ((value,),) = self.rows(statement, parameters)
        return value

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.kill()

    def _finish(self) -> None:
        assert self._process is not None
        self._process.wait(_STOP_SECONDS)
        assert self._process.stdout is not None
        self._process.stdout.close()
        self._process = None


@contextlib.contextmanager
def smooth_simulator(folder: Path, *options: str) -> Iterator[SimulatorProcess]:
    """Run a gateway that answers at once and faultlessly, unless `options` say otherwise."""
    with SimulatorProcess(folder / "gateway.db", *SMOOTH, *options) as process:
        yield process


@contextlib.asynccontextmanager
async def client_of(process: SimulatorProcess) -> AsyncIterator[httpx.AsyncClient]:
    """Open a client of a gateway, with time and connections enough for every test."""
    lanes = ConnectionLanes(most=1_000, idle_seconds=30)
    async with httpx.AsyncClient(
        base_url=process.url, timeout=_START_SECONDS, transport=lanes
    ) as client:
        yield client


async def charge(
    client: httpx.AsyncClient,
    key: str | None,
    source: str = "tok_ok",
    *,
    seconds: float = _START_SECONDS,
    **others: object,
) -> httpx.Response:
    """Send one charge of 4,900 minor units under a key, which is its reference as well."""
    document = {"amount": 4900, "currency": "USD", "source": source, "reference": key or "none"}
    headers = {} if key is None else {"Idempotency-Key": key}
    return await client.post(
        "/v1/charges", json=document | others, headers=headers, timeout=seconds
    )


async def until(condition: Callable[[], bool]) -> None:
    """Wait for what another process does; it cannot tell us, so its traces are watched."""
    async with asyncio.timeout(_START_SECONDS):
        while True:
            if condition():
                return
            await asyncio.sleep(0.002)


async def put(client: httpx.AsyncClient, what: str, **document: object) -> httpx.Response:
    """Set something over the control interface."""
    response = await client.put(f"/_control/{what}", json=document)
    assert response.status_code == 200, response.text
    return response
