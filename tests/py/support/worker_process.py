"""One worker as a process, run by the tests: `python -m tests.py.support.worker_process OPTIONS`.

OPTIONS is a JSON object with the fields of `WorkerOptions`. It is `billing worker`, with those that
the command line does not offer.
"""

import asyncio
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from billing_shell.logs import configure_logs
from billing_shell.settings import LogFormat
from billing_shell.worker import Cadence, Worker, WorkerOptions
from tests.py.support.world import until

ROOT = Path(__file__).parents[3]

QUICK = {
    "renew": "* * * * * *",
    "reconcile": "* * * * * *",
    "webhooks": "* * * * * *",
    "dunning": "* * * * * *",
    "housekeeping": "* * * * * *",
    # Once a year: where the gateway's clock is another one, what it has booked is of other days.
    "settlements": "0 0 1 1 * 0",
}
"""A cadence for tests, which wait for each task."""


class WorkerProcess:
    """One worker process; may be killed, frozen, and told to stop."""

    def __init__(self, log: Path, options: dict[str, Any]) -> None:
        """Not started yet.

        Args:
            log: file for its log lines, JSON.
            options: fields of `WorkerOptions`; `cadence` as a dictionary.
        """
        self._log = log
        self._options = options
        self._process: subprocess.Popen[bytes] | None = None

    def start(self, *, crash_point: str = "", crash_signal: Path | None = None) -> None:
        """Start it, armed with a crash point if one is named."""
        environment = dict(os.environ)
        if crash_point:
            environment |= {
                "BILLING_CRASH_POINT": crash_point,
                "BILLING_CRASH_SIGNAL": str(crash_signal),
            }
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", __name__, json.dumps(self._options)],
                cwd=ROOT,
                env=environment,
                stdout=log,
                stderr=log,
            )

    def send(self, number: signal.Signals) -> None:
        """Send it a signal."""
        self._running().send_signal(number)

    def kill(self) -> None:
        """End it as a power cut would."""
        if self._process is not None and self._process.poll() is None:
            self._process.kill()
            self._process.wait()

    async def stop(self) -> int:
        """Ask it to end; return its exit code."""
        process = self._running()
        process.terminate()
        await until(lambda: process.poll() is not None, "the worker's end")
        assert process.returncode is not None
        return process.returncode

    def log(self) -> str:
        """Return all that it has logged."""
        return self._log.read_text() if self._log.exists() else ""

    def logged(self, event: str) -> list[dict[str, Any]]:
        """Return its log lines of one kind."""
        # Of a line that is being written there is as yet no end.
        lines = self.log().splitlines(keepends=True)
        whole = [line for line in lines if line.startswith("{") and line.endswith("\n")]
        documents = [json.loads(line) for line in whole]
        return [document for document in documents if document.get("event") == event]

    def _running(self) -> "subprocess.Popen[bytes]":
        assert self._process is not None
        return self._process


async def _run(options: WorkerOptions) -> int:
    worker = Worker(options)
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, worker.stop)
    return 0 if await worker.run() else 1


def work(options: dict[str, Any]) -> int:
    """Be a worker until told to stop; return the exit code."""
    options["cadence"] = Cadence(**options.get("cadence", {}))
    configure_logs(LogFormat.JSON)
    return asyncio.run(_run(WorkerOptions(**options)))


if __name__ == "__main__":
    sys.exit(work(json.loads(sys.argv[1])))
