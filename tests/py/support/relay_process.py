"""A relay in a process of its own, which tests may stop, freeze and kill.

Logs JSON lines to standard output. Arguments: database URL, brokers, topic, relay id, batch.
"""

import asyncio
import signal
import sys

import structlog

from billing_shell.relay import Relay


async def _run(url: str, bootstrap: str, topic: str, relay_id: str, batch: int) -> None:
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    await Relay(url, bootstrap, topic=topic, relay_id=relay_id, batch=batch).run(stop)


if __name__ == "__main__":
    structlog.configure(
        processors=[structlog.processors.JSONRenderer()],
        logger_factory=structlog.PrintLoggerFactory(sys.stdout),
    )
    url, bootstrap, topic, relay_id, batch = sys.argv[1:]
    asyncio.run(_run(url, bootstrap, topic, relay_id, int(batch)))
