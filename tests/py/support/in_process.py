"""A worker in the test's own event loop: quick to start, and its log lines can be captured."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

from billing_shell.worker import Cadence, Worker, WorkerOptions
from tests.py.support.worker_process import QUICK
from tests.py.support.world import ACCOUNT, World


@contextlib.asynccontextmanager
async def working(
    world: World,
    redis_url: str,
    gateway_url: str = "http://127.0.0.1:9",
    **options: Any,  # noqa: ANN401
) -> AsyncIterator[Worker]:
    """Run one for as long as the context lasts; it must end with nothing left open."""
    worker = Worker(
        WorkerOptions(
            database_url=world.url,
            redis_url=redis_url,
            gateway_url=gateway_url,
            **{
                "gateway_account": ACCOUNT,
                "drain_seconds": 120,
                "cadence": Cadence(**QUICK),
                **options,
            },
        )
    )
    running = asyncio.create_task(worker.run())
    try:
        yield worker
    finally:
        worker.stop()
        assert await running
