"""Puts the gateway together and serves it until SIGTERM or SIGINT."""

import asyncio
import contextlib
import json
import os
import signal
import socket
import sqlite3
import sys
from collections.abc import AsyncIterator, Iterator
from dataclasses import asdict
from pathlib import Path

import uvicorn
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.routing import Route

from billing_shell.simulator.arrivals import Arrivals
from billing_shell.simulator.charging import Charging
from billing_shell.simulator.clocks import ArrivalClock
from billing_shell.simulator.control import Control
from billing_shell.simulator.controls import Controls
from billing_shell.simulator.courier import Courier
from billing_shell.simulator.idempotency import IdempotencyLayer
from billing_shell.simulator.ledger import Ledger
from billing_shell.simulator.lifecycle import Lifecycle
from billing_shell.simulator.looking_up import LookingUp
from billing_shell.simulator.options import Options
from billing_shell.simulator.problems import Problem, on_http_exception, on_problem
from billing_shell.simulator.refunding import Refunding
from billing_shell.simulator.wire import StampingProtocol, listen

# Longer than any client keeps an idle connection: the server closing first would look like a fault.
_KEEP_ALIVE_SECONDS = 120
_DRAIN_SECONDS = 5
_BACKLOG = 2_048
_SWEEP_SECONDS = 1.0


def serve(options: Options) -> None:
    """Serve until SIGTERM or SIGINT, with the ready line on standard output once it listens.

    The line is one JSON object: `event` ("ready"), `url`, `port`, `process_id`, `ledger`. Raises
    LedgerError when the ledger cannot be used, OSError when the address cannot.
    """
    asyncio.run(_serve(options))


async def _serve(options: Options) -> None:
    async with Ledger(options.ledger, options.commit_window, sync=options.sync) as ledger:
        with listen(options.host, options.port, _BACKLOG) as listener:
            async with _application(ledger, options) as application:
                config = uvicorn.Config(
                    application,
                    http=StampingProtocol,
                    ws="none",
                    lifespan="off",
                    log_level="warning",
                    access_log=False,
                    server_header=False,
                    timeout_keep_alive=_KEEP_ALIVE_SECONDS,
                    timeout_graceful_shutdown=_DRAIN_SECONDS,
                )
                await _Server(config, options.ledger).serve(sockets=[listener])


class _Server(uvicorn.Server):
    """A server that says when it is ready, and where."""

    def __init__(self, config: uvicorn.Config, ledger: Path) -> None:
        super().__init__(config)
        self._ledger = ledger

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Drain on SIGTERM and SIGINT, and return: uvicorn would end the process right there.

        The ledger has yet to be closed after the server.
        """
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self.handle_exit, number, None)
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start, then print the ready line."""
        await super().startup(sockets)
        for listener in sockets or []:
            host, port = listener.getsockname()[:2]
            ready = {
                "event": "ready",
                "url": f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}",
                "port": port,
                "process_id": os.getpid(),
                "ledger": str(self._ledger),
            }
            sys.stdout.write(json.dumps(ready) + "\n")
            sys.stdout.flush()


@contextlib.asynccontextmanager
async def _application(ledger: Ledger, options: Options) -> AsyncIterator[Starlette]:
    arrival_clock = ArrivalClock()
    run_no = await _begin_run(ledger, arrival_clock, options)
    controls = await Controls.load(ledger, options)
    courier = Courier(ledger, controls, arrival_clock, options)
    lifecycle = Lifecycle(ledger, controls, arrival_clock, courier)
    arrivals = Arrivals(ledger, arrival_clock, options, run_no)
    layer = IdempotencyLayer(ledger, controls, arrivals, arrival_clock, courier, options)
    charging = Charging(controls, arrivals, arrival_clock, layer, options.hang)
    refunding = Refunding(controls, arrivals, arrival_clock, layer, options.hang)
    looking_up = LookingUp(ledger, controls, arrivals, lifecycle, options)
    control = Control(ledger, controls, lifecycle, courier)
    application = Starlette(
        routes=[
            Route("/v1/charges", charging.charge, methods=["POST"]),
            Route("/v1/charges", looking_up.search, methods=["GET"]),
            Route("/v1/charges/{payment_id}", looking_up.get, methods=["GET"]),
            Route("/v1/refunds", refunding.refund, methods=["POST"]),
            Route("/v1/refunds", looking_up.search_refunds, methods=["GET"]),
            Route("/v1/refunds/{refund_id}", looking_up.get_refund, methods=["GET"]),
            Route("/v1/settlements", looking_up.settlements, methods=["GET"]),
            *control.routes(),
        ],
        exception_handlers={Problem: on_problem, HTTPException: on_http_exception},
    )
    courier.take_up()
    background = [
        asyncio.create_task(courier.run(), name="courier"),
        asyncio.create_task(_expire_for_ever(lifecycle), name="expiry"),
    ]
    try:
        yield application
    finally:
        for task in background:
            task.cancel()
        await asyncio.gather(*background, return_exceptions=True)


async def _expire_for_ever(lifecycle: Lifecycle) -> None:
    while True:
        await lifecycle.expire_actions()
        await asyncio.sleep(_SWEEP_SECONDS)


async def _begin_run(ledger: Ledger, arrival_clock: ArrivalClock, options: Options) -> int:
    settings = json.dumps(_public(options))

    def write(connection: sqlite3.Connection) -> int:
        number = connection.execute(
            "INSERT INTO runs (started_us, process_id, settings) VALUES (?, ?, ?)",
            (arrival_clock.now_us(), os.getpid(), settings),
        ).lastrowid
        return number or 0

    return await ledger.write(write)


def _public(options: Options) -> dict[str, object]:
    settings = asdict(options) | {"ledger": str(options.ledger)}
    return {name: value for name, value in settings.items() if name not in _SECRET}


_SECRET = frozenset({"api_key", "webhook_secret"})
